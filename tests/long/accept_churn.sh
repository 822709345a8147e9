#!/bin/sh
# Goal: 10,000 peers with heterogeneous shards, as far from each other as AWS's
# regions, that come and go as spot instances do, learn to at least 95 % of the
# accuracy of central training, in 60 s of processor time.
# Method: softmax regression on Gaussian classes, 6 rows a peer (the bundled
# digits have 1,440 rows, and a peer needs one); ten peers stay. Processor time
# and time are told. SKIP without traces/ of the test data.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
for folder in "${KITH_TESTDATA:-}" "$top/../shared/data"; do
    [ -r "$folder/traces/spot-p3.csv" ] && break
done
traces=$folder/traces
[ -r "$traces/spot-p3.csv" ] || skip "no traces/ under \$KITH_TESTDATA"

cat >"$scratch/central.yaml" <<'YAML'
name: churn
seed: 7
peers: 1
stop: {epochs: 10}
model: {kind: mlp, layers: [64, 10]}
data: {kind: gaussian, rows: 60000}
train: {learning_rate: 0.05, schedule: linear, batch: 8}
YAML
cat >"$scratch/churn.yaml" <<YAML
name: churn
seed: 7
peers: 10000
stop: {steps: 120}
model: {kind: mlp, layers: [64, 10]}
data: {kind: gaussian, rows: 60000, split: "dirichlet(0.1)"}
train: {learning_rate: 1, batch: 8}
gossip: {algorithm: adpsgd, topology: random}
compute: {step: 100ms}
network:
  matrix: $traces/aws-p50.json
  matrix_p90: $traces/aws-p90.json
  rate: 1Gbit
faults:
  - {at: 0s, churn: "all - peer(0..9)", trace: $traces/spot-p3.csv, speed: 3450}
evaluate: end
YAML
python3 - "$kith" "$scratch" <<'PY' || fail "not met"
import json, resource, subprocess, sys, time
kith, scratch = sys.argv[1:]

def run(command, name, *more):
    out = subprocess.run([kith, command, f"{scratch}/{name}.yaml", "--json",
                          "--out", scratch, *more],
                         check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)

central = run("train", "central")["accuracy"]["averaged"]
began, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
churned = run("sim", "churn", "--rows", "none")
after = resource.getrusage(resource.RUSAGE_CHILDREN)
processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
averaged = churned["accuracy"]["averaged"]
print(f"central {central:.4f}, averaged {averaged:.4f}: "
      f"{100 * averaged / central:.1f} %; {processor:.1f} s of processor time, "
      f"{time.time() - began:.1f} s, {churned['faults']} faults")
assert averaged >= 0.95 * central
assert processor <= 60
PY
finish
