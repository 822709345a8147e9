#!/bin/sh
# Goal: the papers speak of what is there.
# Method: every path of this tree that README.md, the other *.md and docs/*.md
# name in backquotes or links exists; the tables of docs/protocol.md hold every
# message, refusal and limit of the headers.
# shellcheck disable=SC2016 # Backquotes are what is searched for.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# paths TREE: "paper path" of all that the papers name; NAME and * stand for
# many files.
paths() {
    for paper in "$1"/*.md "$1"/docs/*.md; do
        [ -e "$paper" ] || continue
        folder=$(dirname "$paper")
        grep -oE '`(src|sim|tests|docs|deploy|include|examples|bench)/[^` ]*`' \
            "$paper" | tr -d '`' | sed "s|^|$paper $1/|"
        grep -oE '\]\([^):# ]+\)' "$paper" | sed "s|^](|$paper $folder/|; s|)\$||"
    done | grep -v 'NAME\|\*'
}

check_paths() {
    missing=0
    paths "$1" >"$scratch/paths"
    while read -r paper path; do
        [ -e "$path" ] && continue
        echo "$(basename "$paper") names ${path#"$1"/}, which is not there"
        missing=1
    done <"$scratch/paths"
    return $missing
}

# check_tables TREE: what the headers list and docs/protocol.md must say.
check_tables() {
    page=$1/docs/protocol.md
    {
        sed -n 's/^    X(\([A-Z]*\), "[a-z]*").*/| \1 |/p' \
            "$1/include/kith/message.h"
        sed -n '/KITH_REFUSALS(X)/,/^$/s/^    X([A-Z_]*, *"\([a-z_]*\)".*/| `\1` |/p' \
            "$1/include/kith/peer.h"
        sed -n -e 's/^#define \(KITH_[A-Z_]*\) (\(.*\))$/| `\1` | `\2` |/p' -e t \
            -e 's/^#define \(KITH_[A-Z_]*\) \(.*\)$/| `\1` | `\2` |/p' \
            "$1/include/kith/limits.h"
    } >"$scratch/rows"
    [ "$(wc -l <"$scratch/rows")" -gt 40 ] || {
        echo "only $(wc -l <"$scratch/rows") rows found in the headers"
        return 1
    }
    absent=0
    while read -r row; do
        grep -qF -- "$row" "$page" && continue
        echo "docs/protocol.md has no row $row"
        absent=1
    done <"$scratch/rows"
    return $absent
}

check_paths "$top" >"$scratch/found" || fail "$(cat "$scratch/found")"
check_tables "$top" >"$scratch/found" || fail "$(cat "$scratch/found")"

mkdir -p "$scratch/tree/docs" "$scratch/tree/include"
echo 'See `src/protocol/core/gone.c`.' >"$scratch/tree/README.md"
canary check_paths "$scratch/tree"
echo 'See [that](docs/gone.md).' >"$scratch/tree/README.md"
canary check_paths "$scratch/tree"
cp -R "$top/include/kith" "$scratch/tree/include/"
grep -v '| `KITH_DEGREE_MAX`' "$top/docs/protocol.md" \
    >"$scratch/tree/docs/protocol.md"
canary check_tables "$scratch/tree"
finish
