#!/bin/sh
# Goal: the wheel of this build, put in an empty virtual environment and nothing
# else, is `import kith` and the program `kith`; what it needs comes from inside
# it, under names that nothing else in the process sees; its loops of NumPy's
# are peers; the same build makes the same wheel.
# Method: make_wheel.py, venv, pip; an environment without paths. SKIP by name
# where one of the tools is not here.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
[ "$KITH_INSTRUMENTED" = no ] || skip "sanitizers and gcov need more inside"
[ "$(uname -m)" = x86_64 ] || skip "wheels are of x86_64"
command -v patchelf >/dev/null || skip "patchelf is not here"
command -v dpkg >/dev/null || skip "dpkg, which knows licences, is not here"
numpy || python=python3
"$python" -m venv "$scratch/venv" >/dev/null 2>&1 ||
    skip "$python -m venv does not work: python3-venv is not here"

# make_wheel FOLDER: the wheel of this build there; its path is $wheel.
make_wheel() {
    mkdir "$1"
    ln -s "$PWD/kith" "$PWD/libkith.so.0" "$1"
    python3 "$top/python/make_wheel.py" 9.9.9 "$1" || fail "no wheel"
    wheel=$(echo "$1"/*.whl)
}
make_wheel "$scratch/again"
again=$wheel
make_wheel "$scratch/wheel"
cmp "$wheel" "$again" || fail "the same build made two wheels"
case $(basename "$wheel") in
kith-9.9.9-py3-none-manylinux_2_[0-9]*_x86_64.whl) ;;
*) fail "the name of $wheel" ;;
esac

alone() {
    env -i HOME="$scratch" PYTHONDONTWRITEBYTECODE=1 "$@"
}
alone "$scratch/venv/bin/pip" install --no-deps --no-index "$wheel" \
    >"$scratch/said" 2>&1 || fail "pip: $(cat "$scratch/said")"
alone "$scratch/venv/bin/kith" --version >"$scratch/program" ||
    fail "the program does not start"
# But for where the module of MPI is, which a wheel does not have.
"$kith" --version | grep -v '^MPI: ' >"$scratch/built"
grep -v '^MPI: ' "$scratch/program" | cmp -s "$scratch/built" - ||
    fail "another program: $(cat "$scratch/program")"

alone "$scratch/venv/bin/python" - <<'EOT' || fail "the library in its process"
import ctypes, importlib.metadata, os, re, kith
print(kith.version().splitlines()[0])
inside = os.path.dirname(kith.__file__)
private = set(os.listdir(os.path.join(inside, "lib")))
mapped = set(re.findall(r"/\S*\.so[.\d]*$", open("/proc/self/maps").read(), re.M))
ours = {path for path in mapped if path.startswith(inside)}
print("expected: only private copies of", len(private), "libraries; measured:",
      len(ours), "inside are mapped")
assert len(ours) > 3 and all("kith" in os.path.basename(path) for path in ours)
others = {os.path.basename(path) for path in mapped - ours}
twice = {name for name in private if name.replace("libkith-", "lib") in others}
# Python's zlib and hashlib bring their own.
assert twice <= {"libkith-z.so.1", "libkith-crypto.so.3"}, twice
for name in "cblas_sgemm", "uv_run", "kith_open":
    assert not hasattr(ctypes.CDLL(None), name), f"{name} is seen by others"
files = [str(file) for file in importlib.metadata.files("kith")]
licences = [file for file in files if "/licenses/" in file]
assert len(licences) > 10 and any("GPL-3" in file for file in licences)
assert not [file for file in files if file.endswith(".so") and "cpython" in file]
EOT

if "$python" -c 'import numpy' 2>/dev/null; then
    site=$(echo "$scratch"/venv/lib/python3*/site-packages)
    kith=$scratch/venv/bin/kith
    make_cluster 2 "experiment: ../pair.yaml" "wait: {members: 2, for: 60s}"
    printf '%s\n' "name: pair" "peers: 2" "stop: {steps: 200}" \
        "model: {kind: program}" "gossip: {algorithm: adpsgd, every: 2}" \
        >"$scratch/pair.yaml"
    for rank in 0 1; do
        alone PYTHONPATH="$site" timeout 120 "$python" \
            "$top/tests/integration/loop.py" "$scratch/$rank/peer.yaml" $rank \
            200 >"$scratch/$rank/out" 2>"$scratch/$rank/err" &
    done
    wait
    for rank in 0 1; do
        mean=$(cut -d' ' -f2 "$scratch/$rank/out")
        holds "0.01 < ${mean:-0} < 0.99" ||
            fail "loop $rank: $mean: $(tail -n 3 "$scratch/$rank/err")"
    done
else
    echo "$name: numpy is not here: its loops are left out" >&2
fi
finish
