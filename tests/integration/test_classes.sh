#!/bin/sh
# Goal: lines, latency and speeds of peers' own are the same in both worlds.
# Method: real peers whose rounds take as long as the slowest line says, and
# whose steps take as long as their class says, against virtual time.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# Four rounds of 40 kB each way between two peers: 320 ms at 1 Mbit/s, and half
# of 40 and of 20 ms of latency.
cat >"$scratch/lines.yaml" <<'YAML'
name: lines
seed: 1
peers: 2
stop: {steps: 4}
model: {kind: consensus, dim: 10000}
compute: {step: 20ms}
gossip: {algorithm: dpsgd, topology: complete}
network: {latency: 20ms, rate: 1Gbit}
classes:
  - {peers: peer(1), up: 1Mbit, latency: 40ms}
YAML
# The least is the law's; connections take some more, in the lab none.
check() {
    expect 0 sim "$scratch/lines.yaml" --json --out "$scratch" --set "$1"
    virtual=$(json virtual_s)
    lab 0 "$scratch/lines.yaml" --set "$1"
    real=$(json wall_s)
    python3 - <<PY || fail "$1: sim $virtual s, lab $real s, from $2 s on"
virtual, real = $virtual, $real
assert $2 <= virtual <= 1.25 * $2, virtual
assert .9 * virtual <= real, (virtual, real)
PY
}
check seed=1 1.48
check 'classes=[{peers: peer(0), down: 1Mbit}]' 1.44
check 'classes=[{peers: peer(1), down: 2Mbit, up: 4Mbit}]' .8
# Nothing slow: a tenth of it.
check network.up=unlimited 1.48

# Steps of 10, 20 and 80 ms of three peers that wait for nobody.
cat >"$scratch/speeds.yaml" <<'YAML'
name: speeds
seed: 1
peers: 3
stop: {time: 4s}
model: {kind: consensus, dim: 10}
compute: {step: 20ms}
gossip: {algorithm: adpsgd, topology: random}
classes:
  - {peers: peer(1), speed: 2}
  - {peers: peer(2), speed: 0.25}
YAML
steps() {
    sql "$(json database)" "SELECT step FROM peers ORDER BY peer" | tr '\n' ' '
}
expect 0 sim "$scratch/speeds.yaml" --json --out "$scratch"
virtual=$(steps)
lab 0 "$scratch/speeds.yaml"
real=$(steps)
python3 - <<PY || fail "steps: sim $virtual, lab $real"
virtual, real = [list(map(int, words.split())) for words in ("$virtual", "$real")]
assert virtual == [201, 401, 51], virtual
assert all(r <= v + 2 for v, r in zip(virtual, real)), (virtual, real)
assert real[2] > 0 and real[0] > 1.5 * real[2], real
PY

# A factor of each peer's own, drawn from the seed: one file, one cluster.
expect 0 sim "$scratch/speeds.yaml" --json --out "$scratch" \
    --set 'classes=[{peers: 100%}]' --set 'compute.speeds=lognormal(1)'
first=$(steps)
expect 0 sim "$scratch/speeds.yaml" --json --out "$scratch" \
    --set 'classes=[{peers: 100%}]' --set 'compute.speeds=lognormal(1)'
[ "$first" = "$(steps)" ] || fail "other speeds of one seed"
echo "$first" | python3 -c '
steps = sorted(map(int, input().split()))
assert steps[0] < steps[1] < steps[2], steps' || fail "alike: $first"

expect 3 sim "$scratch/speeds.yaml" --set 'classes=[{peers: 120%}]'
grep -q 'speeds.yaml: --set classes=.*: classes\[0\]: peers: found "120%"; allowed: all' \
    "$scratch/err" || grep -q 'classes\[0\]: peers: found "120%"; allowed: all' \
    "$scratch/err" || fail "refused: $(cat "$scratch/err")"
finish
