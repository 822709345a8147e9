#!/bin/sh
# Goal: real peers whose gradients travel in buckets, while the rest of them is
# computed, are the simulated ones and those that send whole gradients, to the
# last digit that is printed; what they did is carried out again to the same
# floats; where one is killed in the middle the others finish, near each other,
# and the simulator's books of the same crash balance.
# Method: 4 and 5 peers of the digits, dirichlet(0.1), under AdamW, of 4 with
# clipping and of 5 with the next step's way forward begun meanwhile, beside kith
# sim; then one is killed.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written PEERS BUCKETS [YAML...]
written() {
    peers=$1
    buckets=$2
    [ "$peers" = 4 ] && more="clip: 1, " || more=
    shift 2
    experiment "$peers" 300 "compute: {step: 2ms}" "$@" |
        sed -e "s/^gossip:.*/gossip: {algorithm: sync-sgd, buckets: $buckets, urgent: $buckets, deadline: 2s}/" \
            -e 's/split: iid/split: dirichlet(0.1)/' \
            -e "s/^train:.*/train: {optimiser: adamw, learning_rate: 0.003, ${more}batch: 16}/" \
            >"$scratch/sync.yaml"
}

# losses DB: of each simulated peer the sum of its steps', by the rows: a step in
# parts counts once.
losses() {
    python3 - "$1" <<'PY'
import sqlite3, sys
sums = {}
for peer, step, loss in sqlite3.connect(sys.argv[1]).execute(
        "SELECT peer, step, loss FROM series WHERE loss IS NOT NULL "
        "AND peer IS NOT NULL ORDER BY peer, time_s"):
    before, total = sums.get(peer, (0, 0))
    sums[peer] = step, total + loss * (step - before)
print({peer: (step, f"{total:.6g}") for peer, (step, total) in sums.items()})
PY
}

for peers in 4 5; do
    written $peers 1
    expect 0 sim --json --out "$scratch" "$scratch/sync.yaml"
    whole=$(json loss mean)
    rows=$(losses "$(json database)")
    written $peers 4
    expect 0 sim --json --out "$scratch" "$scratch/sync.yaml"
    sim=$(json accuracy mean)
    loss=$(json loss mean)
    [ "$(losses "$(json database)")" = "$rows" ] ||
        fail "losses of rows: $(losses "$(json database)"), whole $rows"
    lab 0 --record "$scratch/sync.yaml"
    lab=$(json accuracy mean)
    apart=$(json consensus_distance)
    echo "$name: $peers peers: accuracy expected $sim, apart 0," \
        "measured $lab, $apart; loss of whole gradients $whole, of buckets" \
        "$loss, of real peers $(json loss mean)"
    holds "$lab == $sim and $apart == 0" || fail "$peers peers: not as simulated"
    holds "$whole == $loss == $(json loss mean)" ||
        fail "$peers peers: not as whole gradients"
    expect 0 sim --json --replay "$(json database)"
    crash="faults: [{at: 301ms, crash: \"peer($((peers - 1)))\"}]"
    written $peers 4 "$crash" "assert: [\"finally conserved\"]"
    expect 0 sim --json --out "$scratch" "$scratch/sync.yaml"
    written $peers 4 "$crash"
    lab 0 "$scratch/sync.yaml"
    apart=$(json consensus_distance)
    others=$(steps_below $((peers - 1)))
    echo "$name: $peers peers, one killed: expected $((300 * (peers - 1)))" \
        "steps of the others, apart below 0.05, measured $others, $apart"
    [ "$others" -eq $((300 * (peers - 1))) ] || fail "$others steps"
    # Without clipping at most .018 in ten runs, most of them 0; whole gradients
    # likewise, .0156.
    holds "$apart < 0.05" || fail "survivors are $apart apart"
done
none_left "the labs"
finish
