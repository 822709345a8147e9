#!/bin/sh
# Goal: latency by place is the same in both worlds, for a file named from the
# experiment's folder, and what a run keeps of it is enough to do it again.
# Method: three real peers whose rounds take as long as the slowest pair of an
# asymmetrical matrix, against virtual time; a recorded lab is replayed, and a
# matrix that has changed since is told from it.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

cat >"$scratch/far.csv" <<'CSV'
to,a,b,c
a,10,100,150
b,200,20,250
c,300,350,30
CSV
cat >"$scratch/far.yaml" <<'YAML'
name: far
seed: 1
peers: 3
stop: {steps: 4}
model: {kind: consensus, dim: 1000}
compute: {step: 20ms}
gossip: {algorithm: dpsgd, topology: complete}
network: {matrix: far.csv}
YAML
cd / || exit 99

# Twelve rounds less four: without the connections before them, whose sockets
# do not know yet who they are.
virtual=0 real=0
for steps in 4 12; do
    expect 0 sim "$scratch/far.yaml" --json --out "$scratch" \
        --set stop.steps=$steps
    virtual="$(json virtual_s) - $virtual"
    lab 0 "$scratch/far.yaml" --set stop.steps=$steps
    real="$(json wall_s) - $real"
done
python3 - <<PY || fail "rounds: sim $virtual, lab $real"
virtual, real = $virtual, $real
assert 8 * 0.175 <= virtual, virtual
assert 0.99 * virtual <= real <= 1.5 * virtual + 1, (virtual, real)
PY

lab 0 "$scratch/far.yaml" --record
database=$(json database)
sql "$database" "SELECT value FROM run WHERE key = 'experiment'" |
    grep -q "matrix: .*$scratch/far.csv" || fail "no path in $database"
expect 0 sim --replay "$database"
sed 's/350/351/' "$scratch/far.csv" >"$scratch/other"
mv "$scratch/other" "$scratch/far.csv"
expect 3 sim --replay "$database"
mv "$scratch/far.csv" "$scratch/gone.csv"
expect 3 sim "$scratch/far.yaml"
grep -q "far.yaml:8: network.matrix: .*far.csv: cannot be opened" \
    "$scratch/err" || fail "a file that is gone: $(cat "$scratch/err")"
finish
