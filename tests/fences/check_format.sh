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
    [ ! -f "$file" ] || echo "$file"
done <"$scratch/files" >"$scratch/there"
# Many files a process, and a process a core: starting it is most of its time.
tr '\n' '\0' <"$scratch/there" |
    xargs -0 -n 40 -P "$(nproc)" "$tool" --style=file --dry-run -Werror \
        >"$scratch/out" 2>&1 ||
    fail "run $tool -i on these, or mend what it says:
$(sed -n 's/^\(.*\):[0-9]*:[0-9]*: error: .*/    \1/p' "$scratch/out" | sort -u)
$(grep -v ': error: ' "$scratch/out" | grep -i "$tool" | head -n 5)"

cp .clang-format "$scratch/"
printf 'int planted( void ){ return 0;}\n' >"$scratch/planted.c"
canary check "$scratch/planted.c"
finish
