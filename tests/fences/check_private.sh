#!/bin/sh
# Goal: a header outside include/kith serves its own folder, and the folders
# below that one, alone: what two folders share is a contract of include/kith.
# Method: every quoted #include of src/ and sim/ against the place where it is
# found, as the preprocessor looks for it: beside the file, then from the root.
# Tests and benches look inside on purpose: they are counted, not refused.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# includes TREE FOLDER...: lines FILE:#include "NAME", but for kith/ headers.
includes() {
    (cd "$1" && shift && find "$@" \( -name '*.[ch]' -o -name '*.cu' \
        -o -name '*.cuh' -o -name '*.cc' \) -print 2>/dev/null | sort |
        xargs grep -H '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' |
        grep -v '"kith/')
}

# strangers TREE FOLDER...: prints the headers that are of another folder.
strangers() {
    includes "$@" | while IFS= read -r line; do
        file=${line%%:*}
        name=${line#*\"}
        name=${name%%\"*}
        folder=${file%/*}
        [ -f "$1/$folder/$name" ] && name=$folder/$name
        [ -f "$1/$name" ] || continue # another tool's, or found by -I
        case $name in *.def) continue ;; esac # the registry reads them all
        case $folder/ in
        "${name%/*}"/*) ;;
        *) echo "$file: $name is private to ${name%/*}" ;;
        esac
    done
}

# check TREE: prints every breach in TREE, fails when there is one.
check() {
    strangers "$1" src sim >"$scratch/strangers"
    cat "$scratch/strangers"
    [ ! -s "$scratch/strangers" ]
}

check "$top" >"$scratch/breaches" || fail "$(cat "$scratch/breaches")"
count=$(strangers "$top" tests bench | grep -c -v ': tests/')
echo "$name: $count includes of tests and benches look inside"

# plant FOLDER LINE: a tree in which src/peer has a private header.
plant() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/$1" "$scratch/tree/src/peer/inner" "$scratch/tree/sim"
    echo '' >"$scratch/tree/src/peer/own.h"
    echo '' >"$scratch/tree/src/peer/inner/own.h"
    echo "$2" >"$scratch/tree/$1/planted.c"
}
plant src/cli '#include "src/peer/own.h"'
canary check "$scratch/tree"
plant src/cli '#include "../peer/own.h"'
canary check "$scratch/tree"
plant src/peer '#include "inner/own.h"'
canary check "$scratch/tree"
plant src/peer/inner '#include "src/peer/own.h"'
check "$scratch/tree" || fail "a folder below its header's was accused"
plant src/peer '#include "own.h"'
check "$scratch/tree" || fail "an innocent tree was accused"
finish
