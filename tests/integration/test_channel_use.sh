#!/bin/sh
# Goal: run databases say how the channel was used, with the same bytes however
# a simulation is carried out, and with figures that a lab can have.
# Method: two peers in virtual time, whose messages and times are known; the
# same file with other threads, queues and wire modes; a short lab.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

cat >"$scratch/use.yaml" <<'YAML'
name: use
peers: 4
seed: 1
stop: {steps: 40}
model: {kind: quadratic, dim: 20000}
gossip: {algorithm: adpsgd, every: 2}
compute: {step: 5ms}
network: {latency: 300us, rate: 100Mbit}
evaluate: 50ms
faults:
  - {at: 60ms, crash: "peer(1)", restart: 20ms}
YAML
columns='run_id, peer, time_s, in_flight_most, in_flight_byte_s, sending_s,
exchange_s, idle_s, passes'
rows() {
    expect 0 sim "$scratch/use.yaml" --json --out "$scratch" "$@"
    sql "$(json database)" "SELECT $columns FROM series"
}
rows >"$scratch/first"
for how in "--threads 3" "--queue heap" "--wire full"; do
    # shellcheck disable=SC2086 # Two words.
    rows $how >"$scratch/again"
    cmp "$scratch/first" "$scratch/again" || fail "$how: other rows"
done

# Two that ask at once, every 20 steps: two messages of 80,000 bytes and their
# headers share an uplink of 6.4 ms each. What is prepared to answer with is
# copied, or packed, in every step, so there are more passes than exchanges need.
# pair ARGUMENTS...
pair() {
    expect 0 sim "$scratch/use.yaml" --json --out "$scratch" --set peers=2 \
        --set "faults=[]" "$@"
}
pair --set gossip.every=20
python3 - "$scratch/json" <<'PY' || fail "other figures than a pair has"
import json, sys
run = json.load(open(sys.argv[1]))
channel = run["channel"]
assert run["exchanges"]["done"] == 4, run
assert 2 * 80000 < channel["in_flight_max"] < 2.01 * 80000, channel
assert 80000 < channel["in_flight_mean"] < channel["in_flight_max"], channel
# A round trip and the wait for a step's end, of either side's two exchanges.
assert 4 * 0.6e-3 <= channel["idle_s"] <= 4 * 12e-3, channel
assert 0 < channel["idle_share"] < 1 and channel["passes"] > 8, channel
PY

# At each end: seal, open, merge, and a copy as x moves on. int8 packs in its
# place, moniqua8 unpacks what comes, too, and leaves out what it cannot read.
for wire in float32:8:8 int8:8:8.5 moniqua8:8:10.5; do
    bounds=${wire#*:}
    pair --set network.rate=1Gbit --set gossip.wire="${wire%%:*}"
    holds "${bounds%:*} <= $(json channel passes) <= ${bounds#*:}" ||
        fail "$wire: $(json channel passes) passes"
done

# A central baseline has no peers that exchange.
sed '/^gossip:/d; /crash/d; s/^faults:/central: {method: gradient}/' \
    "$scratch/use.yaml" >"$scratch/central.yaml"
expect 0 sim "$scratch/central.yaml" --json --out "$scratch"
[ "$(json channel passes)" = None ] || fail "a central run has passes"

# Real processes: a window of three bursts a link at most, idle time within the
# exchanges', and as many passes as in virtual time, but for exchanges that end
# otherwise.
sed 's/^faults:.*//; /crash/d; s/^network:.*//; s/dim: .*/dim: 1000000}/
    s/^evaluate:.*//' "$scratch/use.yaml" >"$scratch/lab.yaml"
expect 0 lab "$scratch/lab.yaml" --json --out "$scratch"
sql "$(json database)" "SELECT count(*) FROM peers WHERE idle_s > exchange_s OR
    in_flight_most IS NULL OR sending_s > time_s" >"$scratch/bad"
[ "$(cat "$scratch/bad")" = 0 ] || fail "rows of a lab make no sense"
python3 - "$scratch/json" <<'PY' || fail "a lab has other figures"
import json, sys
run = json.load(open(sys.argv[1]))
channel = run["channel"]
assert run["exchanges"]["done"] > 0, run
window = 3 * 1.05 * 2 ** 20 * (run["peers"] - 1)
assert 0 < channel["in_flight_mean"] <= channel["in_flight_max"] <= window, run
assert 0 <= channel["idle_share"] <= 1 and channel["passes"] > 5, channel
PY
expect 0 report "$(json database)" --points --out "$scratch/points.csv"
head -1 "$scratch/points.csv" | grep -q '"idle_s","passes"' ||
    fail "points have no use of the channel"
finish
