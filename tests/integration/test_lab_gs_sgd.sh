#!/bin/sh
# Goal: real peers add up sketches and exact values as the simulator does: they
# learn as much, and as much as with the dense mean at equal steps; what they did
# is carried out again to the same floats; where one is killed in the middle of
# collectives the others end, near each other.
# Method: 4 and 5 peers of the digits, dirichlet(0.1), beside kith sim and
# allreduce-tree; then a leaf of the tree is killed, and one comes back.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written PEERS ALGORITHM [YAML...]
written() {
    peers=$1 algorithm=$2
    shift 2
    experiment "$peers" 400 "compute: {step: 2ms}" "$@" |
        sed -e "s/^gossip:.*/gossip: {algorithm: $algorithm, deadline: 2s}/" \
            -e 's/split: iid/split: dirichlet(0.1)/' \
            -e 's/^train:.*/train: {learning_rate: 0.2, schedule: linear, batch: 16}/' \
            >"$scratch/gs.yaml"
}

for peers in 4 5; do
    written $peers allreduce-tree
    expect 0 sim --json --out "$scratch" "$scratch/gs.yaml"
    dense=$(json accuracy mean)
    written $peers gs-sgd
    expect 0 sim --json --out "$scratch" "$scratch/gs.yaml"
    sim=$(json accuracy mean)
    lab 0 --record "$scratch/gs.yaml"
    lab=$(json accuracy mean)
    echo "$name: $peers peers: accuracy expected within 0.02 of $sim (sim)" \
        "and of $dense (dense), measured $lab"
    holds "abs($lab - $sim) <= 0.02" || fail "$peers peers: not as the simulator"
    holds "abs($lab - $dense) <= 0.02" || fail "$peers peers: not as dense"
    [ "$(json steps)" -eq $((400 * peers)) ] || fail "$(json steps) steps"
    database=$(json database)
    expect 0 sim --json --replay "$database"
    # Five of gTop-k have 2.2 points less than dense, in both worlds: T3.5.
    written $peers gtop-k
    expect 0 sim --json --out "$scratch" "$scratch/gs.yaml"
    sim=$(json accuracy mean)
    lab 0 "$scratch/gs.yaml"
    echo "$name: $peers peers, gtop-k: accuracy expected within 0.02 of $sim" \
        "(sim), measured $(json accuracy mean) (dense $dense)"
    holds "abs($(json accuracy mean) - $sim) <= 0.02" || fail "not as simulated"
    written $peers gtop-k "faults: [{at: 300ms, crash: \"peer($((peers - 1)))\"}]"
    lab 0 "$scratch/gs.yaml"
    echo "$name: $peers peers, gtop-k, one killed: expected $((400 * (peers - 1)))" \
        "steps of the others, measured $(steps_below $((peers - 1)))"
    [ "$(steps_below $((peers - 1)))" -eq $((400 * (peers - 1))) ] ||
        fail "$(steps_below $((peers - 1))) steps"
done

# The last peer is a leaf; of four, and of five, whose rounds are one more.
for peers in 4 5; do
    leaf=$((peers - 1))
    written $peers gs-sgd \
        "faults: [{at: 300ms, crash: \"peer($leaf)\"}]"
    lab 0 "$scratch/gs.yaml"
    apart=$(json consensus_distance)
    echo "$name: $peers peers, one killed: expected $((400 * leaf)) steps of the" \
        "others, apart below 0.15, measured $(steps_below $leaf), $apart"
    [ "$(steps_below $leaf)" -eq $((400 * leaf)) ] ||
        fail "$(steps_below $leaf) steps"
    # 0 in five runs beside two busy loops, .069 in one before, which is what who
    # missed a way has not been brought yet by blocks of phi; who is cut off for
    # good is 2 away.
    holds "$apart < 0.15" || fail "survivors are $apart apart"
    written $peers gs-sgd \
        "faults: [{at: 300ms, crash: \"peer($leaf)\", restart: 100ms}]"
    lab 0 "$scratch/gs.yaml"
    echo "$name: $peers peers, one comes back: expected $((400 * peers)) steps," \
        "measured $(json steps), accuracy $(json accuracy mean)"
    [ "$(json steps)" -eq $((400 * peers)) ] || fail "$(json steps) steps"
    holds "$(json accuracy mean) > 0.7" || fail "learnt $(json accuracy mean)"
done
none_left "the labs"
finish
