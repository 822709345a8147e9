#!/bin/sh
# Goal: `failed` of JSON, summary and assertions is what happened: as many as the
# database holds failed marks, whoever is there to see it.
# Method: a quarter of the peers crash for good, with pairs and with rounds; the
# count of the summary against the marks, and an assertion on it.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

for gossip in "adpsgd, every: 2, topology: random" \
    "dpsgd, every: 2, topology: ring" \
    "sgp-sync, every: 2, topology: exponential" \
    "allreduce-tree, every: 4"; do
    experiment 8 300 "compute: {step: 3ms}" \
        'faults: [{at: 200ms, crash: "n(2)"}]' \
        'assert: ["finally failed <= 50"]' |
        sed "s/^gossip:.*/gossip: {algorithm: $gossip}/" >"$scratch/run.yaml"
    rm -rf "$scratch/runs"
    "$kith" sim "$scratch/run.yaml" --json --out "$scratch/runs" \
        >"$scratch/json" 2>"$scratch/err"
    status=$?
    marks=$(sql "$(find "$scratch/runs" -name '*.db')" \
        "SELECT count(*) FROM marks JOIN mark_kinds USING(kind) WHERE name = 'failed'")
    failed=$(json exchanges failed)
    expected=$([ "$marks" -gt 50 ] && echo 1 || echo 0)
    echo "$gossip: expected $marks, measured $failed; exit $status of $expected"
    [ "$failed" = "$marks" ] || fail "$gossip: failed $failed, marks $marks"
    [ "$status" -eq "$expected" ] || fail "$gossip: exit $status"
done
finish
