#!/bin/sh
# Goal: a build says of which sources it is: the same in a checkout and a copy
# of it, another one for each byte and name that is compiled.
# Method: the program's digest against its sources', then those of a copy that
# is changed, and changed back.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

digest() {
    sh "$top/src/base/source_digest.sh" "$1" || fail "no digest of $1"
}

own=$(digest "$top")
case $own in
*[!0-9a-f]*) fail "a digest: $own" ;;
????????????????) ;;
*) fail "a digest: $own" ;;
esac
"$kith" --version | grep -q "^kith .*), source $own\$" ||
    fail "a build of other sources than $own: $("$kith" --version)"

copy=$scratch/copy
mkdir "$copy"
(cd "$top" && tar cf - include sim src) | (cd "$copy" && tar xf -)
chmod -R u+w "$copy"
# same|other WHAT
same() { [ "$(digest "$copy")" = "$own" ] || fail "another digest: $1"; }
other() { [ "$(digest "$copy")" != "$own" ] || fail "the same digest: $1"; }
same "of a copy"
mkdir -p "$copy/src/base/.deps"
touch "$copy/src/base/build.o" "$copy/src/base/.deps/build.Po" "$copy/sim/x.c~"
touch "$copy/src/base/build.c"
same "with what a build and an editor leave"

for file in src/base/heap.c include/kith/limits.h sim/engine.c \
    src/gossip/algorithm/algorithms.def src/training/cuda/norm.cu; do
    cp "$copy/$file" "$scratch/kept"
    echo >>"$copy/$file"
    other "$file has a line more"
    cp "$scratch/kept" "$copy/$file"
    mv "$copy/$file" "$copy/$(dirname "$file")/a.c"
    other "$file has another name"
    mv "$copy/$(dirname "$file")/a.c" "$copy/$file"
    rm "$copy/$file"
    other "without $file"
    cp "$scratch/kept" "$copy/$file"
    same "$file as it was"
done
finish
