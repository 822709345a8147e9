#!/bin/sh
# Goal: who installs libkith can build against it: header alone as C11 and C++,
# kith.pc, shared and static; both export the public names and nothing else; no
# name, size, offset or value of libkith.abi has changed; Python's structs are
# the header's.
# Method: an installation into a folder of this test, and a program written from
# libkith.abi.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
command -v pkg-config >/dev/null || skip "pkg-config is not here"
[ "$KITH_INSTRUMENTED" = no ] || skip "sanitizers and gcov link more"
abi=$top/tests/integration/libkith.abi
root=$scratch/root
# Not a job of the make that runs this test.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make install-exec-local \
    prefix="$root" >"$scratch/install" 2>&1 || fail "$(cat "$scratch/install")"
export PKG_CONFIG_PATH="$root/lib/pkgconfig" LD_LIBRARY_PATH="$root/lib"

# exported FILE [OPTION]: names that a program could link with.
exported() {
    nm --defined-only --extern-only ${2:-} "$1" |
        awk 'NF == 3 && $2 == "T" { sub("@.*", "", $3); print "symbol " $3 }
             NF == 3 && $2 != "T" && $2 != "A" { print }' | sort
}
grep '^symbol' "$abi" | sort >"$scratch/symbols"
exported "$root/lib/libkith.so.0" -D >"$scratch/shared"
exported "$root/lib/libkith.a" >"$scratch/static"
sed -n 's/^[a-z].*[ *]\(kith_[a-z_]*\)(.*/symbol \1/p' \
    "$root/include/kith/kith.h" | sort >"$scratch/header"
for kind in shared static header; do
    diff "$scratch/symbols" "$scratch/$kind" ||
        fail "$kind: its names are not those of libkith.abi"
done

awk 'BEGIN {
    print "#include <kith/kith.h>\n#include <stdio.h>"
    print "int main(void)\n{\n    (void)kith_version();"
}
$1 == "sizeof" { arg = "sizeof(struct " $3 ")"; what = $1 " struct " $3 }
$1 == "offset" { arg = "offsetof(struct " $3 ", " $4 ")"
                 what = $1 " struct " $3 " " $4 }
$1 == "value" { arg = $2; what = $1 " " $2 }
/^(sizeof|offset|value)/ {
    print "    printf(\"" what " %d\\n\", (int)" arg ");"
}
END { print "    return 0;\n}" }' "$abi" >"$scratch/abi.c"
cp "$scratch/abi.c" "$scratch/abi.cc"
grep -E '^(sizeof|offset|value)' "$abi" >"$scratch/expected"

# built HOW COMMAND...: it builds abi, which prints what libkith.abi says.
built() {
    how=$1
    shift
    "$@" -o "$scratch/abi" >"$scratch/said" 2>&1 &&
        "$scratch/abi" >"$scratch/printed" 2>&1 &&
        diff "$scratch/expected" "$scratch/printed" ||
        fail "$how: $(cat "$scratch/said")"
}
# shellcheck disable=SC2046,SC2086 # Lists of words; CC may carry flags.
{
    flags="-Wall -Wextra -Wpedantic -Werror"
    built "C11, shared" ${CC:-cc} -std=c11 $flags "$scratch/abi.c" \
        $(pkg-config --cflags --libs kith)
    ldd "$scratch/abi" | grep -q "$root/lib/libkith.so.0" ||
        fail "the program does not use the installed library"
    built "C11, static" ${CC:-cc} -std=c11 $flags "$scratch/abi.c" \
        $(pkg-config --cflags kith) "$root/lib/libkith.a" \
        $(pkg-config --libs --static kith | sed 's/-lkith//')
    ldd "$scratch/abi" | grep -q libkith && fail "static: it wants libkith"
    if command -v g++ >/dev/null; then
        built "C++" g++ -std=c++17 $flags "$scratch/abi.cc" \
            $(pkg-config --cflags --libs kith)
    else
        echo "$name: no C++ compiler here, C11 only" >&2
    fi
}

PYTHONPATH=$top/python PYTHONDONTWRITEBYTECODE=1 python3 - "$abi" <<'EOT' ||
import ctypes, importlib, sys
from kith import _library
structs = {"kith_vector": _library.Vector, "kith_options": _library.Options,
           "kith_simulation": importlib.import_module("kith.simulate")._Simulation}
for line in open(sys.argv[1]):
    kind, *words = line.split()
    if kind == "sizeof":
        found = ctypes.sizeof(structs[words[1]])
    elif kind == "offset":
        found = getattr(structs[words[1]], words[2]).offset
    else:
        continue
    assert found == int(words[-1]), f"{line.strip()}: Python has {found}"
EOT
    fail "python/kith/_library.py is not what kith.h says"
finish
