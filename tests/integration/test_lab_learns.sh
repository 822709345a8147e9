#!/bin/sh
# Goal: real processes learn together, for any number of peers, and a second run
# does not overwrite the first.
# Method: the bundled digits with 4, 3 and 1 peers.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

learns() {
    experiment "$1" "$2" "compute: {step: 2ms}" >"$scratch/digits.yaml"
    lab 0 "$scratch/digits.yaml" || return
    none_left "$1 peers"
    no_saves "$1 peers"
    averaged=$(json accuracy averaged)
    holds "$averaged >= 0.9" || fail "$1 peers: accuracy $averaged < 0.9"
    steps=$(json steps)
    [ "$steps" -eq $(($1 * $2)) ] || fail "$1 peers: $steps steps in all"
    database=$(json database)
    [ -s "$database" ] || fail "$1 peers: no database $database"
}

learns 4 400
first=$database
done_count=$(json exchanges 'done')
# Each peer initiates one exchange every two steps; a few are refused for good.
holds "0.5 * 800 <= $done_count <= 800" ||
    fail "4 peers: $done_count exchanges"
torn=$(sql "$database" "SELECT value FROM summary WHERE key='exchanges.torn'")
[ "$torn" = 0 ] || fail "4 peers: $torn torn exchanges without a fault"
completed=$(sql "$database" "SELECT value FROM summary WHERE key='completed'")
[ "$completed" = 1 ] || fail "4 peers: completed is $completed"
holds "$(json consensus_distance) < 1" || fail "4 peers: no consensus"

before=$(cksum <"$first")
learns 3 400
learns 1 400
[ "$(json exchanges 'done')" = 0 ] || fail "1 peer: exchanges with nobody"
[ "$first" != "$database" ] || fail "the second run has the first one's name"
[ "$before" = "$(cksum <"$first")" ] || fail "the first run was overwritten"

finish
