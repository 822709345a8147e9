#!/bin/sh
# Goal: a cluster that does not talk does not succeed. A peer that waits for
# members ends by name when they do not come, and starts when they do; one whose
# experiment nobody shares, and one that has trained alone, end with exit code 9
# and a line that names `kith doctor`; their databases say failed.
# Method: two peers on this machine, one or both of them started, with and
# without `wait:`, and with another learning rate for one of them.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"

# ends RANK PID STATUS PATTERN
ends() {
    wait "$2"
    status=$?
    echo "peer $1: expected exit $3, measured $status: $(tail -n 1 "$scratch/$1/err")"
    [ "$status" -eq "$3" ] || fail "peer $1: exit $status, not $3"
    grep -q "$4" "$scratch/$1/err" || fail "peer $1 does not say $4"
}
# state RANK N EXPECTED: of the peer's Nth database.
state() {
    found=$(sql "$scratch/$1/model/pair-peer-$2.db" "SELECT state FROM runs")
    [ "$found" = "$3" ] || fail "peer $1: state $found, not $3"
}

make_cluster 2 "experiment: pair.yaml" "wait: {members: 2, for: 1s}"
for rank in 0 1; do
    experiment 2 200 "compute: {step: 1ms}" | sed 's/^name: .*/name: pair/' \
        >"$scratch/$rank/pair.yaml"
done

# Nobody comes: not one step.
start_peer 0
ends 0 "$pid" 9 "found 1; .kith doctor"
grep -q progress "$scratch/0/err" && fail "peer 0 trained before anybody came"
state 0 1 failed

# The other comes later; both start then, and exchange from the first.
sed -i 's/for: 1s/for: 100s/' "$scratch/0/peer.yaml" "$scratch/1/peer.yaml"
start_peer 0 && first=$pid
until_line 0 "$first" "waiting members=2"
start_peer 1 && second=$pid
until_line 0 "$first" "finished step"
until_line 1 "$second" "finished step"
kill -TERM "$first" "$second"
ends 0 "$first" 0 "connected rank=1"
ends 1 "$second" 0 "control line=\"stop signal\""
state 0 2 done

# Without `wait:` it trains, and says that it did so alone.
sed -i '/^wait:/d' "$scratch/0/peer.yaml" "$scratch/1/peer.yaml"
rm -r "$scratch/0/model" "$scratch/1/model"
start_peer 0
until_line 0 "$pid" "finished step"
kill -TERM "$pid"
ends 0 "$pid" 9 "it trained alone.*kith doctor"
state 0 1 failed

# Another configuration: both are told at once, and neither tries for ever.
sed -i 's/steps: 200/steps: 100000/' "$scratch/0/pair.yaml"
sed -i 's/steps: 200/steps: 100000/; s/rate: 0.05/rate: 0.06/' \
    "$scratch/1/pair.yaml"
rm -r "$scratch/0/model"
start_peer 0 && first=$pid
start_peer 1 && second=$pid
ends 0 "$first" 9 "experiment differs.*kith doctor"
ends 1 "$second" 9 "experiment differs.*kith doctor"
state 1 1 failed
state 0 1 failed
none_left "peers"
finish
