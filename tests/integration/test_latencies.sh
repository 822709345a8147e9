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

# Never earlier than the law says, but for connections: the lab's are there at
# once, and their sockets do not know at first who they are.
expect 0 sim "$scratch/far.yaml" --json --out "$scratch" --set stop.steps=16
virtual=$(json virtual_s)
lab 0 "$scratch/far.yaml" --set stop.steps=16
real=$(json wall_s)
python3 - <<PY || fail "16 rounds: sim $virtual s, lab $real s"
virtual, real = $virtual, $real
assert 16 * 0.175 <= virtual, virtual
assert virtual - 1 <= real, (virtual, real)
PY

lab 0 "$scratch/far.yaml" --record
database=$(json database)
sql "$database" "SELECT value FROM run WHERE key = 'experiment'" >"$scratch/yaml"
grep -q "matrix: .*$scratch/far.csv" "$scratch/yaml" || fail "no path in $database"
expect 0 sim --replay "$database"
sed 's/350/351/' "$scratch/far.csv" >"$scratch/other"
mv "$scratch/other" "$scratch/far.csv"
expect 3 sim --replay "$database"
mv "$scratch/far.csv" "$scratch/gone.csv"
expect 3 sim "$scratch/far.yaml"
grep -q "far.yaml:8: network.matrix: .*far.csv: cannot be opened" \
    "$scratch/err" || fail "a file that is gone: $(cat "$scratch/err")"
finish
