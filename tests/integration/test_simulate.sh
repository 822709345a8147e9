#!/bin/sh
# Goal: kith.simulate() trains a loop of NumPy's with virtual peers: twice the
# same run, the rows and the report of any other, exceptions where they belong;
# `kith sim` of the file says who runs it. Method: simulate.py. SKIP without numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
kith_in_python

cat >"$scratch/softmax.yaml" <<EOT
name: softmax
seed: 5
peers: 12
stop: {steps: 60}
model: {kind: program}
train: {batch: 32}
gossip: {algorithm: adpsgd, every: 2, topology: random}
network: {latency: 2ms, rate: 100Mbit}
compute: {step: 10ms}
faults:
  - {at: 155ms, crash: "peer(3)", restart: 100ms}
  - {at: 203ms, for: 150ms, partition: "peer(0..5) <-> peer(6..11)"}
assert:
  - "finally loss <= 0.7"
EOT
timeout 300 "$python" "$top/tests/integration/simulate.py" "$data" \
    "$scratch/softmax.yaml" "$scratch/runs" >"$scratch/out" 2>&1 ||
    fail "simulate.py: $(tail -n 12 "$scratch/out")"
cat "$scratch/out"
expect 0 report "$scratch"/runs/softmax-sim-*.db --out "$scratch/softmax.html"
expect 3 sim "$scratch/softmax.yaml"
grep -q "kith.simulate()" "$scratch/err" || fail "kith sim: $(cat "$scratch/err")"
finish
