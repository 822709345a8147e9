# shellcheck shell=sh
# What tests of several threads share. Sourced after lab.sh: `outcome one FILE`
# runs it on one, `same FILE --threads N` says whether what came of it is that.

# outcome FOLDER FILE [OPTION...]: what came of it stands in FOLDER.txt, what was
# said in FOLDER.err.
outcome() {
    rm -rf "$scratch/$1"
    folder=$1
    shift
    timeout 300 "$kith" sim "$@" --json --out "$scratch/$folder" \
        >"$scratch/$folder.json" 2>"$scratch/$folder.err" || {
        fail "$*: $(cat "$scratch/$folder.err")"
        return 1
    }
    python3 "$top/tests/integration/ranks.py" "$scratch/$folder.json" \
        >"$scratch/$folder.txt" || fail "$*: no rows"
}

# same FILE [OPTION...]
same() {
    outcome several "$@" || return
    cmp -s "$scratch/one.txt" "$scratch/several.txt" || {
        fail "$*: another run than on one thread"
        diff "$scratch/one.txt" "$scratch/several.txt" | head -n 6 >&2
    }
}
