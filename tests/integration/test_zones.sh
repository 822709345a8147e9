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

# A rate for each two, of a file beside the experiment: the slowest line counts,
# nine flows at 3 Mbit/s, where rounds wait for it. Regions of a matrix are found
# by name.
cat >"$scratch/rates.csv" <<'CSV'
Mbit/s,b,a
a,3,
b,,90
CSV
cp "$scratch/zones.yaml" "$scratch/equal.yaml"
sed -e 's/zone_rate: 9Mbit/zone_rates: rates.csv/' \
    -e 's/topology: complete/&, deadline: never/' "$scratch/equal.yaml" \
    >"$scratch/zones.yaml"
expect 3 sim "$scratch/zones.yaml" --set 'network.zones=[3, 2, 1]'
grep -q 'rates.csv: found 2 regions; allowed: the 3 of network.zones' \
    "$scratch/err" || fail "three zones: $(cat "$scratch/err")"
check 3 "network+={zones: null, matrix: $scratch/regions.csv}"
printf 'to,a,b\na,,3\nb,90,\n' >"$scratch/rates.csv"
check 3 ''
sql "$(json database)" "SELECT value FROM run WHERE key = 'experiment'" \
    >"$scratch/kept"
grep -q "zone_rates: .*$scratch/rates.csv" "$scratch/kept" ||
    fail "no path is kept: $(cat "$scratch/kept")"
expect 0 plan "$scratch/zones.yaml"
grep -q 'zone_rates: the lines that zones share (3 Mbit/s the slowest, 46.5' \
    "$scratch/json" || fail "plan: $(cat "$scratch/json")"
lab 3 "$scratch/zones.yaml"
grep -q 'network.zone_rates needs virtual time: run it with kith sim' \
    "$scratch/err" || fail "the lab: $(cat "$scratch/err")"
# A save is of a run with these rates.
"$kith" sim "$scratch/zones.yaml" --set stop.steps=1000000 --out "$scratch" \
    --save "$scratch/saves" --save-every 20ms >"$scratch/json" \
    2>"$scratch/err" </dev/null &
running=$!
waited=0
until [ -e "$scratch/saves/rank-0.state" ] || [ "$waited" -eq 600 ]; do
    waited=$((waited + 1))
    sleep 0.1
done
kill -9 "$running"
wait "$running" 2>/dev/null
printf 'to,a,b\na,,4\nb,90,\n' >"$scratch/rates.csv"
expect 3 sim "$scratch/zones.yaml" --set stop.steps=1000000 --out "$scratch" \
    --save "$scratch/saves" --resume
grep -q 'another experiment' "$scratch/err" ||
    fail "other rates: $(cat "$scratch/err")"
mv "$scratch/equal.yaml" "$scratch/zones.yaml"

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
