#!/bin/sh
# Goal: real processes learn together, for any number of peers, and a second run
# does not overwrite the first; what peers log is shown where it is asked for.
# Method: the bundled digits with 4, 3 and 1 peers.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# learns PEERS STEPS [OPTIONS...]
learns() {
    peers=$1 steps=$2
    shift 2
    experiment "$peers" "$steps" "compute: {step: 2ms}" >"$scratch/digits.yaml"
    lab 0 "$@" "$scratch/digits.yaml" || return
    none_left "$peers peers"
    no_saves "$peers peers"
    averaged=$(json accuracy averaged)
    holds "$averaged >= 0.9" || fail "$peers peers: accuracy $averaged < 0.9"
    all=$(json steps)
    [ "$all" -eq $((peers * steps)) ] || fail "$peers peers: $all steps in all"
    database=$(json database)
    [ -s "$database" ] || fail "$peers peers: no database $database"
}

learns 4 400
grep -q "peer [0-9]: " "$scratch/err" && fail "4 peers: unasked-for lines"
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
learns 3 400 --log
for peer in 0 1 2; do
    grep -q "s  peer $peer: connected rank=" "$scratch/err" ||
        fail "--log: peer $peer says nothing of its connections"
done
learns 1 400
[ "$(json exchanges 'done')" = 0 ] || fail "1 peer: exchanges with nobody"
[ "$first" != "$database" ] || fail "the second run has the first one's name"
[ "$before" = "$(cksum <"$first")" ] || fail "the first run was overwritten"

finish
