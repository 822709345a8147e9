#!/bin/sh
# Goal: real peers that share gradients are the simulated ones, to the last digit
# that is printed, under AdamW with clipping; what they did is carried out again
# to the same floats; where a leaf of the tree is killed the others end near each
# other: who missed a mean on the way has their x again, and its own moments for
# a while. The last gradients are shared like all others on a line on which that
# takes longer than anybody else is waited for at the end.
# Method: 4 and 5 peers of the digits, dirichlet(0.1), beside kith sim; then one
# is killed; 2 peers on a line on which a message takes .8 s.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written PEERS [YAML...]
written() {
    peers=$1
    shift
    experiment "$peers" 300 "compute: {step: 2ms}" "$@" |
        sed -e 's/^gossip:.*/gossip: {algorithm: sync-sgd, deadline: 2s}/' \
            -e 's/split: iid/split: dirichlet(0.1)/' \
            -e 's/^train:.*/train: {optimiser: adamw, learning_rate: 0.003, clip: 1, batch: 16}/' \
            >"$scratch/sync.yaml"
}

for peers in 4 5; do
    written $peers
    expect 0 sim --json --out "$scratch" "$scratch/sync.yaml"
    sim=$(json accuracy mean)
    lab 0 --record "$scratch/sync.yaml"
    lab=$(json accuracy mean)
    apart=$(json consensus_distance)
    echo "$name: $peers peers: accuracy expected $sim, apart 0," \
        "measured $lab, $apart"
    holds "$lab == $sim and $apart == 0" || fail "$peers peers: not as simulated"
    expect 0 sim --json --replay "$(json database)"
    written $peers "faults: [{at: 300ms, crash: \"peer($((peers - 1)))\"}]"
    lab 0 "$scratch/sync.yaml"
    apart=$(json consensus_distance)
    others=$(steps_below $((peers - 1)))
    echo "$name: $peers peers, one killed: expected $((300 * (peers - 1)))" \
        "steps of the others, apart below 0.02, measured $others, $apart"
    [ "$others" -eq $((300 * (peers - 1))) ] || fail "$others steps"
    # At most .0056 in ten runs beside two busy loops, four of them 0.
    holds "$apart < 0.02" || fail "survivors are $apart apart"
done
written 2 "network: {rate: 100kbit}"
expect 0 sim --json --out "$scratch" --set stop.steps=3 "$scratch/sync.yaml"
sim=$(json loss mean)
lab 0 --set stop.steps=3 "$scratch/sync.yaml"
lab=$(json loss mean)
apart=$(json consensus_distance)
echo "$name: 2 peers, 100 kbit/s: loss expected $sim, apart 0, measured $lab," \
    "$apart"
holds "$lab == $sim and $apart == 0" || fail "the last gradients are not shared"
none_left "the labs"
finish
