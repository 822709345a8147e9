#!/bin/sh
# Goal: churn is the same in both worlds, and a trace that is named from the
# experiment's folder is found again.
# Method: a small trace, faster; what happened to real peers and in virtual time
# by the rows of both databases.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

cat >"$scratch/nodes.csv" <<'CSV'
0,add,a
0,add,b
0,add,c
5000,remove,b
8000,remove,a
12000,add,d
15000,add,e
CSV
cat >"$scratch/churn.yaml" <<'YAML'
name: churn
seed: 1
peers: 4
stop: {time: 4s}
model: {kind: consensus, dim: 1000}
compute: {step: 20ms}
gossip: {algorithm: adpsgd, topology: random}
faults:
  - {at: 500ms, churn: "all - peer(0)", trace: nodes.csv, speed: 10}
YAML
cd / || exit 99
happened() {
    sql "$(json database)" "SELECT peer, fault, at_s FROM faults ORDER BY at_s, peer"
}
expect 0 sim "$scratch/churn.yaml" --json --out "$scratch"
happened >"$scratch/virtual"
sql "$(json database)" "SELECT value FROM run WHERE key = 'experiment'" >"$scratch/yaml"
grep -q "trace: .*$scratch/nodes.csv" "$scratch/yaml" || fail "no path in the database"
lab 0 "$scratch/churn.yaml"
happened >"$scratch/real"
cmp "$scratch/virtual" "$scratch/real" || fail "other faults"
[ "$(wc -l <"$scratch/virtual")" -eq 4 ] || {
    fail "other faults than the trace's"
    cat "$scratch/virtual" >&2
}

# A storm and a day are the same in both worlds.
printf '0,add,a\n' >"$scratch/nodes.csv"
cat >"$scratch/day.yaml" <<'YAML'
name: day
seed: 1
peers: 4
stop: {time: 4s}
model: {kind: consensus, dim: 1000}
compute: {step: 20ms}
gossip: {algorithm: adpsgd, topology: random}
faults:
  - {at: "uniform(500ms, 1s)", join: "peer(1)"}
  - {at: 0s, for: 3s, churn: "peer(2..3)", up: 1s, down: 500ms, diurnal: 2s}
YAML
expect 0 sim "$scratch/day.yaml" --json --out "$scratch"
happened >"$scratch/virtual"
lab 0 "$scratch/day.yaml"
happened >"$scratch/real"
cmp "$scratch/virtual" "$scratch/real" || fail "another day"
grep -q '^1|crash|0' "$scratch/virtual" || grep -q '^1.*crash' \
    "$scratch/virtual" || fail "no storm: $(cat "$scratch/virtual")"

# Later than any run can be: refused as what comes behind the end.
for speed in 0.1 0.000001; do
    printf '0,add,a\n922337203685,remove,a\n' >"$scratch/nodes.csv"
    expect 3 sim "$scratch/churn.yaml" --set \
        "faults=[{at: 1s, churn: all, trace: nodes.csv, speed: $speed}]"
    grep -q "found a crash at .* allowed: up to the predicted end" \
        "$scratch/err" || fail "speed $speed: $(cat "$scratch/err")"
done
finish
