#!/bin/sh
# Goal: zones as a user writes them: k flows over a line between two zones take
# k times as long, regions of a matrix are zones, and kith lab refuses by name
# what its sockets do not shape.
# Method: virtual time of short runs beside closed forms.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# Rounds of 125,000 bytes each way between all: 1 s at 1 Mbit/s.
cat >"$scratch/zones.yaml" <<'YAML'
name: zones
seed: 1
peers: 6
stop: {steps: 4}
model: {kind: consensus, dim: 31250}
compute: {step: 1ms}
gossip: {algorithm: dpsgd, topology: complete}
network: {sharing: fair, rate: 1Gbit, zones: [3, 3], zone_rate: 9Mbit}
YAML
cat >"$scratch/regions.csv" <<'CSV'
to,a,b
a,0,0
b,0,0
CSV
# check SECONDS SET: four rounds of so long, whose headers take some more.
check() {
    expect 0 sim "$scratch/zones.yaml" --json --out "$scratch" ${2:+--set "$2"}
    virtual=$(json virtual_s)
    python3 - <<PY || fail "$2: $virtual s, not 4 times $1"
assert 4 * $1 <= $virtual <= 4 * $1 * 1.02 + .02, $virtual
PY
}
check 1 ''
check .001 'network+={zone_rate: unlimited}'
check 2 'network+={zone_rate: 4500kbit}'
check 1 'network+={zone_rate: null, zone_uplink: 9Mbit}'
# Six zones of one: five flows out of each.
check 1 'network+={zones: 6, zone_rate: null, zone_uplink: 5Mbit}'
check 1 "network+={zones: null, matrix: $scratch/regions.csv}"

lab 3 "$scratch/zones.yaml"
grep -q 'network.zone_rate needs virtual time: run it with kith sim' \
    "$scratch/err" || fail "the lab: $(cat "$scratch/err")"
expect 3 sim "$scratch/zones.yaml" --set network.sharing=queue
grep -q 'network.zone_rate: found with network.sharing: queue.*allowed: network.sharing: fair' \
    "$scratch/err" || fail "a queue: $(cat "$scratch/err")"
expect 3 sim "$scratch/zones.yaml" --set 'network.zones=[3, 4]'
grep -q 'network.zones: found "4"; allowed: how many, 1 to 6, or' \
    "$scratch/err" || fail "seven: $(cat "$scratch/err")"
finish
