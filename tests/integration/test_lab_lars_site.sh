#!/bin/sh
# Goal: real peers that divide LARS' norms are the simulated ones, and those
# that each find all of them, to the last digit that is printed (T4.6); where
# one is killed the others take all their steps, and learn what they learn then
# without.
# Method: 4 peers of the digits, dirichlet(0.1), with and without `norms`,
# beside kith sim; a record of it carried out again; then one is killed.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written NORMS [YAML...]
written() {
    norms=$1
    shift
    experiment 4 300 "compute: {step: 2ms}" "$@" |
        sed -e "s/^gossip:.*/gossip: {algorithm: two-level, regions: 1, norms: $norms, deadline: 2s}/" \
            -e 's/^train:.*/train: {optimiser: lars, trust: 0.02, learning_rate: 0.5, batch: 4}/' \
            -e 's/split: iid/split: dirichlet(0.1)/' >"$scratch/site.yaml"
}

# figures: of the last run, what a difference in one value would change
figures() {
    echo "$(json accuracy mean) $(json loss mean) $(json consensus_distance)"
}

written false
lab 0 "$scratch/site.yaml"
alone=$(figures)
written true
expect 0 sim --json --out "$scratch" "$scratch/site.yaml"
sim=$(figures)
lab 0 --record "$scratch/site.yaml"
lab=$(figures)
echo "$name: T4.6 accuracy, loss and distance of real peers: expected $alone" \
    "(each finds all norms), $sim (sim), measured $lab"
[ "$lab" = "$alone" ] || fail "not as without norms"
[ "$lab" = "$sim" ] || fail "not as simulated"
expect 0 sim --json --replay "$(json database)"
for norms in false true; do
    written $norms "faults: [{at: 300ms, crash: \"peer(3)\"}]"
    lab 0 "$scratch/site.yaml"
    [ "$norms" = true ] || alone=$(json accuracy mean)
done
echo "$name: one killed: expected 900 steps of the others, accuracy $alone" \
    "(each finds all norms), measured $(steps_below 3), $(json accuracy mean)"
[ "$(steps_below 3)" -eq 900 ] || fail "$(steps_below 3) steps"
holds "abs($(json accuracy mean) - $alone) < 0.1" || fail "survivors learnt less"
none_left "the labs"
finish
