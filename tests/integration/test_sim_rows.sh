#!/bin/sh
# Goal: --rows says of which peers the database has rows, and changes nothing
# else; a large run's database stays small without being asked; rows are those
# of the experiment, whatever the queue; of a step that is out they count what is
# over.
# Method: one run of 200 peers with each kind, one of 10,001 with none given;
# with both queues one whose messages take longer than its steps, and one whose
# host comes to some too late.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written PEERS
written() {
    cat >"$scratch/rows.yaml" <<YAML
name: rows
peers: $1
stop: {steps: 4}
model: {kind: quadratic, dim: 4}
gossip: {algorithm: adpsgd, every: 1}
network: {latency: 1ms}
compute: {step: 5ms}
YAML
}

# kept NAME [OPTION...]: peers with rows, with marks, rows of all; what the run
# itself came to goes to $scratch/NAME.
kept() {
    kind_=$1
    shift
    expect 0 sim "$scratch/rows.yaml" --json --out "$scratch" "$@"
    database=$(json database)
    for key in trace_hash exchanges loss bytes steps; do json "$key"; done \
        >"$scratch/$kind_"
    sql "$database" "SELECT (SELECT count(DISTINCT peer) FROM series),
        (SELECT count(DISTINCT peer) FROM marks),
        (SELECT count(*) > 1 FROM series WHERE peer IS NULL)"
}

written 200
check() {
    [ "$2" = "$3" ] || fail "$1: expected $2, measured $3"
}
check all "200 200 1" "$(kept all --rows all)"
check default "200 200 1" "$(kept default)"
# Every fourth.
check sampled "50 50 1" "$(kept sampled --rows sampled)"
expect 0 sim "$scratch/rows.yaml" --json --out "$scratch" --rows sampled
"$kith" report "$(json database)" --out "$scratch/page.html" >/dev/null ||
    fail "no page of a sample"
grep -q '"rows.peers","50"' "$scratch/page.html" || fail "the page is not told"
check none "0 0 1" "$(kept none --rows none)"
for kind in default sampled none; do
    cmp "$scratch/all" "$scratch/$kind" || fail "--rows $kind: another run"
done

cat >"$scratch/under_way.yaml" <<YAML
name: under-way
peers: 9
stop: {steps: 100}
model: {kind: quadratic, dim: 40}
gossip: {algorithm: adpsgd, every: 1}
network: {latency: 3ms, jitter: 2ms}
compute: {step: 5ms, merge: 200us, spread: exponential}
YAML
cat >"$scratch/too_late.yaml" <<YAML
name: too-late
peers: 16
stop: {time: 2812ms}
model: {kind: quadratic, dim: 300}
gossip: {algorithm: dpsgd-atc, topology: star, every: 1}
network: {latency: 5ms}
compute: {step: 15ms, spread: exponential}
hosts: {cores: 1, message: 200us, merge: 1GB, wire: 500MB}
faults: [{at: 566ms, for: 28ms, pause: "n(1)"},
  {at: 1030ms, for: 71ms, pause: "n(2)"}]
YAML
for run in under_way too_late; do
    for queue in calendar heap; do
        expect 0 sim "$scratch/$run.yaml" --queue $queue --json \
            --out "$scratch/$queue"
        python3 "$top/tests/integration/ranks.py" "$scratch/json" \
            >"$scratch/$queue.rows" || fail "--queue $queue: no rows"
    done
    cmp "$scratch/calendar.rows" "$scratch/heap.rows" || {
        fail "$run with --queue heap: other rows"
        diff "$scratch/calendar.rows" "$scratch/heap.rows" | head -n 4 >&2
    }
done

# Steps that all take 10 ms, and a model that has no loss.
cat >"$scratch/still.yaml" <<YAML
name: still
peers: 3
stop: {steps: 30}
model: {kind: consensus, dim: 4}
gossip: {algorithm: adpsgd, every: 1}
compute: {step: 10ms}
evaluate: 45ms
YAML
expect 0 sim "$scratch/still.yaml" --json --out "$scratch"
check "rows of steps of 10 ms, and losses" "21 21 0" \
    "$(sql "$(json database)" "SELECT count(*),
        sum(abs(training_s - time_s) < 1e-9), count(loss)
        FROM series WHERE peer IS NOT NULL")"

expect 2 sim "$scratch/rows.yaml" --rows most
grep -q 'allowed.*sampled' "$scratch/err" || fail "$(cat "$scratch/err")"

written 10001
check "10,001 peers" "64 64 1" "$(kept large)"
finish
