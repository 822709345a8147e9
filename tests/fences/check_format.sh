#!/bin/sh
# Goal: C and CUDA are formatted as .clang-format says.
# Method: clang-format 14, the pinned version: others wrap differently.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

tool=
for candidate in clang-format-14 clang-format; do
    if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then
        tool=$candidate
        break
    fi
done
[ -n "$tool" ] || skip "clang-format 14 is not installed"

# check FILE...
check() {
    "$tool" --style=file --dry-run -Werror "$@"
}

# What git tracks, or everything in an unpacked release.
cd "$top" || exit 99
if [ -e .git ] && command -v git >/dev/null 2>&1; then
    git ls-files -- '*.c' '*.h' '*.cu' '*.cuh' '*.cc'
else
    find include src sim tests bench \
        \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cc' \) -print
fi >"$scratch/files"
while read -r file; do
    [ -f "$file" ] || continue
    check "$file" >"$scratch/out" 2>&1 || fail "$file: run $tool -i on it"
done <"$scratch/files"

cp .clang-format "$scratch/"
printf 'int planted( void ){ return 0;}\n' >"$scratch/planted.c"
canary check "$scratch/planted.c"
finish
