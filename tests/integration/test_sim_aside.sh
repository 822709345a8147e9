#!/bin/sh
# Goal: a run whose merges other threads have while events of other peers go on
# is one thread's: trace hash, summary, every row and mark, whatever the method,
# the end, and what is looked at on the way.
# Method: random experiments with vectors, on one thread and on several, with
# both queues; then what must wait for each merge, where none may run beside.
# ASIDE_SEEDS="FIRST LAST" tries others.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/threads.sh
. "$top/tests/integration/threads.sh"

file=$scratch/aside.yaml
beside=0
set -- ${ASIDE_SEEDS:-1 20}
for seed in $(seq "$1" "$2"); do
    python3 "$top/tests/integration/aside.py" "$seed" \
        "$top/examples/data/digits" "$file" || exit 99
    outcome one "$file" || continue
    same "$file" --threads 2
    grep -q '^events: .* [1-9][0-9]* merges beside' "$scratch/several.err" &&
        beside=$((beside + 1))
    same "$file" --threads $((3 + seed % 3)) --queue heap
done
[ "$beside" -gt $((($2 - $1) / 2)) ] ||
    fail "in $beside of the runs merges ran beside other events"

# waits OPTION... -- LINE...: an observer of each event has none beside it.
waits() {
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    printf '%s\n' 'name: waits' 'peers: 20' 'stop: {steps: 8}' \
        'model: {kind: quadratic, dim: 300}' 'train: {learning_rate: 0.05}' \
        'gossip: {algorithm: adpsgd, every: 1}' 'compute: {step: 5ms}' \
        "$@" >"$file"
    # shellcheck disable=SC2086
    outcome one "$file" $options || return
    # shellcheck disable=SC2086
    same "$file" $options --threads 2
    if grep -q 'merges beside' "$scratch/several.err"; then
        fail "beside:$options $*: $(cat "$scratch/several.err")"
    fi
}
waits -- 'network: {latency: 0s}'
waits -- 'network: {latency: 1ms, wire: full}'
waits -- 'network: {latency: 1ms, rate: 1Gbit, sharing: fair}'
waits -- 'network: {latency: 1ms}' 'faults: [{at: 10ms, crash: "n(1)"}]'
waits -- 'network: {latency: 1ms}' 'assert: ["finally conserved"]'
waits --trace "$scratch/trace" -- 'network: {latency: 1ms}'

finish
