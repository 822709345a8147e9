#!/bin/sh
# Goal: values that nobody has (model none with a dim) cost no memory and change
# no decision: messages are as long as those of a model that is there, and all
# happens when it would. Where values are needed, that is said.
# Method: every algorithm with quadratic and with none: the same trace, with
# crashes, a partition and lost packets; the bytes of a model; 1,000 peers with
# 10^9 values each; what is refused.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written MODEL GOSSIP [LINE...]
written() {
    printf '%s\n' 'name: absent' 'seed: 3' 'peers: 12' 'stop: {steps: 8}' \
        "model: {kind: $1, dim: 4000}" "gossip: {$2}" >"$scratch/$1.yaml"
    file=$scratch/$1.yaml
    shift 2
    printf '%s\n' 'compute: {step: 50ms, spread: exponential, merge: 1ms}' "$@" \
        >>"$file"
}
network='network: {latency: 3ms, jitter: 2ms, loss: 0.05}'
faults='faults: [{at: 40ms, crash: "peer(1..2)", restart: 300ms},
  {at: 60ms, for: 200ms, partition: "peer(0..4) <-> peer(5..9)"}]'

# compared GOSSIP [LINE...]: fails where the experiment is refused.
compared() {
    written quadratic "$@"
    "$kith" sim "$file" --rows none --json --out "$scratch" >"$scratch/json" \
        2>"$scratch/err" || return 1
    there=$(json trace_hash)
    written none "$@"
    expect 0 sim "$file" --rows none --json --out "$scratch"
    [ "$(json trace_hash)" = "$there" ] || fail "$*: another trace"
    rm -f "$scratch"/*.db
}

"$kith" list algorithms --json >"$scratch/json"
python3 - "$scratch/json" >"$scratch/algorithms" <<'PY'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    for entry in json.load(file)["algorithms"]:
        print(entry["name"])
PY
count=0
while read -r algorithm; do
    count=$((count + 1))
    case $algorithm in
    acid) extra=', mixing: 0.3, strength: 0.2' ;;
    update-sets) extra=', compressor: top-k-2bit, density: 0.01' ;;
    *) extra= ;;
    esac
    for topology in '' ', topology: ring' ', topology: path' refused; do
        [ "$topology" = refused ] && {
            fail "$algorithm: no experiment of it: $(cat "$scratch/err")"
            break
        }
        for lines in "$faults" ''; do
            compared "algorithm: $algorithm$extra$topology, every: 1" \
                "$network" "$lines" && break 2
        done
    done
done <"$scratch/algorithms"
[ "$count" -ge 40 ] || fail "$count algorithms"
compared 'algorithm: adpsgd, every: 1, wire: moniqua4' "$network" "$faults" ||
    fail "$(cat "$scratch/err")"
compared 'algorithm: choco, topology: ring, compressor: top-k, every: 1' \
    "$network" "$faults" || fail "$(cat "$scratch/err")"
compared 'algorithm: adpsgd, every: 1' "$network" 'hosts: {cores: 2, peers: 3}' ||
    fail "$(cat "$scratch/err")"

# A model more of 4,000 values, 16,000 bytes and what seals them.
written none 'algorithm: adpsgd, every: 1' "$network"
expect 0 sim "$file" --json --out "$scratch"
python3 - "$scratch/json" <<'PY' || fail "bytes of models: $(cat "$scratch/json")"
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    run = json.load(file)
assert run["bytes"]["sent"] > run["exchanges"]["done"] * 2 * 16000 > 0
PY

cat >"$scratch/large.yaml" <<'YAML'
name: large
peers: 1000
stop: {steps: 3}
model: {kind: none, dim: 1000000000}
gossip: {algorithm: adpsgd, every: 1}
compute: {step: 1s}
network: {latency: 1ms, rate: 100Gbit, sharing: fair}
YAML
expect 0 sim "$scratch/large.yaml" --rows none --json --out "$scratch"

# Its plan is that of a model that is there.
for kind in none consensus; do
    sed "s/^model: .*/model: {kind: $kind, dim: 5000000}/" \
        "$scratch/large.yaml" >"$scratch/plan.yaml"
    expect 0 plan "$scratch/plan.yaml" --json
    mv "$scratch/json" "$scratch/$kind.json"
done
cmp "$scratch/none.json" "$scratch/consensus.json" || fail "another plan"

# refused PATTERN COMMAND ARGUMENTS...
refused() {
    pattern=$1
    shift
    expect 3 "$@"
    grep -q "$pattern" "$scratch/err" || fail "kith $*: $(cat "$scratch/err")"
}
refused 'model.dim: values that nobody has' lab "$file"
refused 'wire: full seals values' sim "$file" --wire full
refused 'no values to lie about' sim "$file" \
    --set 'faults=[{at: 1ms, hostile: "peer(1..1)", kind: gauss}]'
for quantity in 'finite(model)' conserved 'loss < 1' 'correlation < 1'; do
    refused "found \"${quantity%% *}\", which model none does not have" \
        sim "$file" --set "assert=[\"always $quantity\"]"
done
# What it does have is measured.
expect 0 sim "$file" --rows none --out "$scratch" --set 'assert=[
    finally live, finally done > 0, finally failed >= 0, finally torn >= 0,
    finally waiting_share >= 0]'
expect 0 sim "$file" --threads 2 --rows none --out "$scratch"
grep -q 'one thread takes all of them, because of model.dim' "$scratch/json" \
    "$scratch/err" || fail "threads: $(cat "$scratch/json" "$scratch/err")"
sed '/^gossip:/d' "$file" >"$scratch/central.yaml"
echo 'central: {method: gradient}' >>"$scratch/central.yaml"
refused 'central.payload for that' sim "$scratch/central.yaml"
finish
