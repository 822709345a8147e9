#!/bin/sh
# Goal: no file above 256 KB in the repository.
# Method: what git tracks, or every file of an unpacked release.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# check TREE
check() {
    if [ -e "$1/.git" ] && command -v git >/dev/null 2>&1; then
        (cd "$1" && git ls-files)
    else
        (cd "$1" && find bench deploy docs examples include sim src tests \
            -type f -print 2>/dev/null)
    fi >"$scratch/files"
    (cd "$1" && while read -r file; do
        [ -f "$file" ] || continue
        size=$(wc -c <"$file")
        [ "$size" -le 262144 ] || echo "$file: $size bytes"
    done) <"$scratch/files" >"$scratch/breaches"
    cat "$scratch/breaches"
    [ ! -s "$scratch/breaches" ]
}

check "$top" || fail "files above 256 KB, see above"

mkdir -p "$scratch/tree/src"
head -c 262144 /dev/zero >"$scratch/tree/src/blob"
check "$scratch/tree" || fail "256 KB to the byte were refused"
echo >>"$scratch/tree/src/blob"
canary check "$scratch/tree"
finish
