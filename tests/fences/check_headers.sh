#!/bin/sh
# Goal: each public header compiles alone, as C11 and as C++.
# Method: one file that includes nothing else, twice (include guards), with
# warnings as errors. Without a C++ compiler that half is left out and said.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

case ${CC:-cc} in
*clang*) cxx=clang++ ;;
*) cxx=g++ ;;
esac
command -v $cxx >/dev/null 2>&1 || cxx=
[ -n "$cxx" ] || echo "check_headers: no C++ compiler here, C11 only" >&2

# check FOLDER NAME: the header FOLDER/NAME alone.
check() {
    printf '#include "%s"\n#include "%s"\nextern int unit;\n' "$2" "$2" \
        >"$scratch/alone.c"
    cp "$scratch/alone.c" "$scratch/alone.cc"
    # shellcheck disable=SC2086 # CC may carry flags.
    ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Wundef -Werror -fsyntax-only \
        -I"$1" "$scratch/alone.c" || return 1
    [ -z "$cxx" ] || $cxx -std=c++17 -Wall -Wextra -Werror -fsyntax-only \
        -I"$1" "$scratch/alone.cc"
}

for header in "$top"/include/kith/*.h; do
    header=kith/$(basename "$header")
    check "$top/include" "$header" || fail "$header does not compile alone"
done

mkdir "$scratch/include"
echo 'uint32_t planted(void);' >"$scratch/include/needy.h"
canary check "$scratch/include" needy.h
echo 'struct twice { int i; };' >"$scratch/include/unguarded.h"
canary check "$scratch/include" unguarded.h
if [ -n "$cxx" ]; then
    echo 'int template(int class);' >"$scratch/include/c_only.h"
    canary check "$scratch/include" c_only.h
fi
finish
