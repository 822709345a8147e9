#!/bin/sh
# Goal: includes never point upwards, and a library stays on its own floor.
# Method: every #include of src/, sim/ and include/kith/ against floors.txt and
# libraries.txt. Folders and headers that the tables do not know are breaches.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"
fences=$top/tests/fences

# check TREE: prints every breach in TREE, fails when there is one.
check() {
    (cd "$1" && find include/kith src sim \( -name '*.[ch]' -o -name '*.cu' \
        -o -name '*.cuh' \) -print 2>/dev/null |
        sort | xargs grep -H '^[[:space:]]*#[[:space:]]*include') |
        awk -v floors="$fences/floors.txt" -v libs="$fences/libraries.txt" '
    function level_of(folder) {
        return (folder in level) ? level[folder] : 0
    }
    function breach(text) {
        print file ": " text
        breaches++
    }
    function folder_of(path) {
        sub(/\/[^\/]*$/, "", path)
        return path
    }
    BEGIN {
        while ((getline line < floors) > 0) {
            if (line ~ /^#/ || line == "") continue
            n = split(line, word, /[ \t]+/)
            level[word[2]] = word[1]
            for (i = 3; i <= n; i++)
                header["kith/" word[i] ".h"] = \
                    header["kith/" word[i] ".def"] = word[1]
        }
        while ((getline line < libs) > 0) {
            if (line ~ /^#/ || line == "") continue
            n = split(line, word, /[ \t]+/)
            owner[word[1]] = line " "
        }
    }
    {
        file = $0
        sub(/:.*/, "", file)
        name = $0
        sub(/^[^"<]*["<]/, "", name)
        sub(/[">].*/, "", name)
        folder = folder_of(file)
        mine = level_of(folder)
        if (folder == "include/kith") {
            own = file
            sub(/^include\//, "", own)
            mine = header[own] + 0
        }
        if (mine == 0) {
            breach("is on no floor of floors.txt")
            next
        }
        if ($0 ~ /include[ \t]*</) {
            for (prefix in owner)
                if (index(name, prefix) == 1 &&
                    index(owner[prefix], " " folder " ") == 0)
                    breach("may not include <" name ">")
            next
        }
        if (name ~ /^kith\//) {
            if (!(name in header)) breach(name " is on no floor")
            else if (header[name] + 0 > mine + 0) breach("reaches up to " name)
        } else if (name ~ /\//) {
            theirs = level_of(folder_of(name))
            if (theirs == 0) breach(name " is on no floor")
            else if (theirs + 0 > mine + 0) breach("reaches up to " name)
        }
    }
    END { exit breaches > 0 }'
}

check "$top" >"$scratch/breaches" || fail "$(cat "$scratch/breaches")"

# plant FOLDER LINE: a tree whose only sin is LINE.
plant() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/$1" "$scratch/tree/include/kith" \
        "$scratch/tree/src" "$scratch/tree/sim"
    echo "$2" >"$scratch/tree/$1/planted.c"
}
plant src/base '#include "kith/node.h"'
canary check "$scratch/tree"
plant src/gossip/algorithm '#include "src/protocol/core/node_state.h"'
canary check "$scratch/tree"
plant sim '#include <uv.h>'
canary check "$scratch/tree"
plant src/protocol/core '#include <sodium.h>'
canary check "$scratch/tree"
plant src/training/backend '#include <cuda_runtime.h>'
canary check "$scratch/tree"
plant src/attic '#include <stdio.h>'
canary check "$scratch/tree"
plant src/protocol/core '#include "kith/base.h"'
canary check "$scratch/tree"
plant src/protocol/core '#include "kith/node.h"'
check "$scratch/tree" || fail "an innocent tree was accused"
finish
