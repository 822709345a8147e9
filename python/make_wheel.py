"""make wheel: kith-VERSION-py3-none-manylinux_2_NN_x86_64.whl from a build.

    make_wheel.py VERSION BUILD      writes it in BUILD

    kith/*.py  kith/libkith.so.0  kith/bin/kith  kith/lib/libkith-*.so.*

Every library that is not glibc's goes in under a name of its own, so that no
other copy in the process is taken for it, nor it for theirs; whoever loads it
finds it beside itself ($ORIGIN). NN is the newest glibc that a symbol inside
asks for. Licences of what is inside come from the packages that own it, else
there is no wheel. Same build, same bytes. Test: integration/test_wheel.sh
"""

import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

# The system's own, whose versions the name of the wheel promises.
GLIBC = re.compile(r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|util|resolv))\.so")
BYTES_MAX = 25 * 1000 * 1000
HERE = pathlib.Path(__file__).resolve().parent
COMMON = pathlib.Path("/usr/share/common-licenses")

METADATA = """Metadata-Version: 2.1
Name: kith
Version: {version}
Summary: A training loop of yours becomes a peer that gossips
Requires-Python: >=3.9
License: see licenses/
Description-Content-Type: text/markdown

{page}"""
WHEEL = """Wheel-Version: 1.0
Generator: kith
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY = "[console_scripts]\nkith = kith.__main__:main\n"


def run(*command):
    """What it prints; its own words and ours where it fails."""
    try:
        return subprocess.run(command, check=True, text=True,
                              capture_output=True).stdout
    except FileNotFoundError:
        sys.exit(f"make_wheel: {command[0]} is not here: install it")
    except subprocess.CalledProcessError as error:
        sys.exit(f"make_wheel: {' '.join(map(str, command))}: {error.stderr}")


def libraries(files):
    """{name: path} of what the files load, and those in turn, less glibc's."""
    found = {}
    for file in files:
        for name, path in re.findall(r"(\S+) => (\S+) \(", run("ldd", file)):
            if not GLIBC.match(name):
                found[name] = pathlib.Path(path).resolve()
    return found


def private(name):
    return "libkith-" + name.removeprefix("lib")


def adopt(file, found, path):
    """No debugging information; private names, to be found in `path`. One thing
    a run: patchelf 0.14 mixes them up."""
    run("strip", "--strip-unneeded", file)
    for name in run("patchelf", "--print-needed", file).split():
        if name in found:
            run("patchelf", "--replace-needed", name, private(name), file)
    run("patchelf", "--set-rpath", path, file)


def stage(build, folder):
    """The files of the wheel, but for its own; returns what was taken in."""
    package = folder / "kith"
    (package / "bin").mkdir(parents=True)
    (package / "lib").mkdir()
    for source in sorted((HERE / "kith").glob("*.py")):
        shutil.copy(source, package)
    library = shutil.copy(build / "libkith.so.0", package)
    program = shutil.copy(build / "kith", package / "bin")
    found = libraries([library, program])
    adopt(library, found, "$ORIGIN/lib")
    adopt(program, found, "$ORIGIN/../lib")
    for name, path in sorted(found.items()):
        copy = shutil.copy(path, package / "lib" / private(name))
        adopt(copy, found, "$ORIGIN")
        run("patchelf", "--set-soname", private(name), copy)
    return found


def owner(path):
    """The package of a library. Where /lib is a link the list has either."""
    for one in (path, pathlib.Path("/", *path.parts[2:])):
        said = subprocess.run(["dpkg", "-S", one], text=True,
                              capture_output=True, check=False)
        if said.returncode == 0:
            return said.stdout.split(":")[0]
    sys.exit(f"make_wheel: no package owns {path}, so its licence is not known")


def licences(found, folder):
    folder.mkdir(parents=True)
    shutil.copy(HERE.parent / "LICENSE", folder)
    shutil.copy(HERE.parent / "THIRD-PARTY.md", folder)
    named = set()
    for package in sorted({owner(path) for path in found.values()}):
        text = pathlib.Path("/usr/share/doc", package, "copyright").read_text(
            errors="replace")
        (folder / package).write_text(text)
        named |= set(re.findall(rf"{COMMON}/([A-Z]+(?:-\d(?:\.\d)?)?)", text))
    for name in sorted(named):
        if (COMMON / name).exists():
            shutil.copy(COMMON / name, folder)


def newest_glibc(files):
    versions = [int(minor) for file in files
                for minor in re.findall(r"GLIBC_2\.(\d+)", run(
                    "objdump", "-T", file))]
    return max(versions)


def pack(folder, info, wheel):
    """The folder as a wheel, with its list of hashes, at no time of day."""
    rows = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED,
                         compresslevel=9) as out:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, data)

        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            name, data = path.relative_to(folder).as_posix(), path.read_bytes()
            digest = base64.urlsafe_b64encode(
                hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, 0o755 if path.parent.name == "bin" else 0o644)
        rows.append(f"{info}/RECORD,,\n")
        add(f"{info}/RECORD", "".join(rows), 0o644)


def main(version, build):
    build, info = pathlib.Path(build), f"kith-{version}.dist-info"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        found = stage(build, folder)
        minor = newest_glibc(p for p in (folder / "kith").rglob("*")
                             if p.is_file() and p.suffix != ".py")
        tag = f"py3-none-manylinux_2_{minor}_x86_64"
        licences(found, folder / info / "licenses")
        page = (HERE.parent / "docs" / "python.md").read_text()
        (folder / info / "METADATA").write_text(
            METADATA.format(version=version, page=page))
        (folder / info / "WHEEL").write_text(WHEEL.format(tag=tag))
        (folder / info / "entry_points.txt").write_text(ENTRY)
        wheel = build / f"kith-{version}-{tag}.whl"
        pack(folder, info, wheel)
    size = wheel.stat().st_size
    if size > BYTES_MAX:
        wheel.unlink()
        sys.exit(f"make_wheel: {size} bytes; allowed: {BYTES_MAX}")
    print(f"{wheel}: {size / 1e6:.1f} MB, {len(found)} libraries inside")


if __name__ == "__main__":
    main(*sys.argv[1:])
