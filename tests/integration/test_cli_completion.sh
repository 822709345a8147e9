#!/bin/sh
# Goal: bash, zsh and fish complete commands, options and keys.
# Method: bash answers for words that are half typed; each script is parsed by
# its shell where it is installed. SKIP without bash.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
command -v bash >/dev/null || skip "no bash"

for shell in bash zsh fish; do
    "$kith" completion $shell >"$scratch/$shell" || fail "$shell"
    if command -v $shell >/dev/null; then
        $shell -n "$scratch/$shell" || fail "$shell does not parse its script"
    fi
done

# completes EXPECTED WORD...: the last word is half typed.
completes() {
    expected=$1
    shift
    found=$(bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); \
        compopt() { :; }; _kith; echo "${COMPREPLY[*]}"' "$scratch/bash" "$@")
    [ "$found" = "$expected" ] || fail "$*: found '$found', not '$expected'"
}
completes report kith rep
completes "--figure" kith report --fi
completes "" kith report --runs
completes "gossip.wire= gossip.wire_share=" kith sim x.yaml --set gossip.wire
mkdir "$scratch/folder" && touch "$scratch/folder/one.yaml"
completes "$scratch/folder/one.yaml" kith lab "$scratch/folder/o"
"$kith" completion bsh 2>"$scratch/err" && fail "took an unknown shell"
one_line "unknown" 'unknown shell "bsh"'
finish
