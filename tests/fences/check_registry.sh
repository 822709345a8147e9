#!/bin/sh
# Goal: registry, folder and build list agree: X(NAME) in FOLDER/KINDs.def,
# FOLDER/NAME.c that defines it, and that file in a build list.
# Method: compare the three; each .c of the tree must be in some build list.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# names DEF: the first argument of every X(...) line, with '-' as '_'.
names() {
    sed -n 's/^[[:space:]]*X(\([A-Za-z0-9_]*\).*/\1/p' "$1"
}

# lists TREE: every build list, continued lines joined.
lists() {
    (cd "$1" && cat Makefile.am src/*/local.mk sim/local.mk \
        2>/dev/null)
}

# sources TREE: what git tracks, or everything in an unpacked release.
sources() {
    if [ -e "$1/.git" ] && command -v git >/dev/null 2>&1; then
        (cd "$1" && git ls-files -- 'src/*.c' 'sim/*.c')
    else
        (cd "$1" && find src sim -name '*.c' -print)
    fi
}

# check TREE: prints the differences, fails when there are any.
check() {
    tree=$1 differences=0
    lists "$tree" >"$scratch/lists"
    for def in "$tree"/src/*/*.def "$tree"/src/*/*/*.def; do
        [ -e "$def" ] || continue
        folder=$(dirname "$def")
        kind=$(basename "$folder")
        for entry in $(names "$def"); do
            grep -q "kith_[a-z]*_$entry\\>" "$folder/$entry.c" 2>/dev/null &&
                continue
            echo "$kind $entry: not defined in ${folder#"$tree"/}/$entry.c"
            differences=1
        done
        for file in "$folder"/*.c; do
            grep -v '^const struct kith_\(ops\|kernel\) ' "$file" 2>/dev/null |
                grep -q "^const struct kith_[a-z_]* kith_[a-z0-9_]* = {" ||
                continue
            names "$def" | grep -qx "$(basename "$file" .c)" && continue
            echo "${folder#"$tree"/}/$(basename "$file"): no line in $(basename "$def")"
            differences=1
        done
    done
    for file in $(sources "$tree"); do
        tr -s ' \\\n' '\n' <"$scratch/lists" | grep -qx "$file" && continue
        echo "$file: in no build list"
        differences=1
    done
    return $differences
}

check "$top" >"$scratch/differences" || fail "$(cat "$scratch/differences")"

# plant: a sound tree of one plug-in, before something is broken.
plant() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/src/gossip/guard" "$scratch/tree/sim"
    echo 'X(none)' >"$scratch/tree/src/gossip/guard/guards.def"
    echo 'const struct kith_guard kith_guard_none = {' \
        >"$scratch/tree/src/gossip/guard/none.c"
    echo 'a_SOURCES = src/gossip/guard/none.c' >"$scratch/tree/src/gossip/local.mk"
}
plant
check "$scratch/tree" || fail "a sound tree was accused"
echo 'X(lost)' >>"$scratch/tree/src/gossip/guard/guards.def"
canary check "$scratch/tree"
plant
: >"$scratch/tree/src/gossip/guard/guards.def"
canary check "$scratch/tree"
plant
echo 'a_SOURCES =' >"$scratch/tree/src/gossip/local.mk"
canary check "$scratch/tree"
finish
