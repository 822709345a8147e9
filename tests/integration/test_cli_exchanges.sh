#!/bin/sh
# Goal: kith list exchanges says of every algorithm and wire what a run sends,
# or the words with which its file is refused.
# Method: the table held against the registries; a cell's bytes against those of
# a simulated run; a few figures in closed form; wrong command lines.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

timeout 60 "$kith" list --json >"$scratch/all" || fail "kith list: exit $?"
timeout 60 "$kith" list exchanges --json >"$scratch/json" ||
    fail "kith list exchanges: exit $?"
python3 - "$scratch/json" "$scratch/all" <<'PY' || fail "the table is wrong"
import json, sys
table = json.load(open(sys.argv[1]))["exchanges"]
everything = json.load(open(sys.argv[2]))
facts = {a["name"]: a for a in everything["algorithms"]}
wires = [w["name"] for w in everything["wires"]]
assert [row["name"] for row in table] == list(facts)
for row in table:
    name, fact = row["name"], facts[row["name"]]
    if fact["pattern"] == "none":
        assert row["wires"] == [] and row["sends"] == "0", row
        continue
    assert [cell["wire"] for cell in row["wires"]] == wires, row
    whole = row["wires"][0]
    if name == "update-sets":  # no message of whole models fits its log
        needs = "gossip.compressor: found none, but algorithm update-sets needs"
        assert all(c["refused"].startswith(needs) for c in row["wires"]), row
        continue
    assert whole["refused"] is None and whole["wire_bytes"] == 0, row
    for cell, wire in zip(row["wires"], everything["wires"]):
        if cell["refused"] is not None:
            found = f"gossip.wire: found {cell['wire']}, "
            assert cell["refused"].startswith(found), cell
            assert "message_bytes" not in cell, cell
            continue
        packed = whole["message_bytes"] * wire["bits_per_value"] / 32
        assert abs(cell["message_bytes"] - packed) < 1024, (name, cell)
        memory = cell["slots_bytes"] + cell["wire_bytes"]
        assert abs(cell["memory_share"] * row["model_bytes"] - memory) < 1, cell
        assert (cell["keeps"] is None) == (wire["keeps"] is None), cell
    refused = any(cell["refused"] for cell in row["wires"][1:3])
    assert refused == (fact["exact_messages"] or fact["compresses"]), name

# Four swaps a side: 16 slots. A wire that reads beside one's own keeps Q of the
# eight snapshots, and unpacks into three vectors of a peer.
pair = {cell["wire"]: cell for row in table if row["name"] == "adpsgd"
        for cell in row["wires"]}
assert pair["float32"]["memory_share"] == 16
grids = 2 * 4 * 2 ** 20 // 256
assert pair["moniqua8"]["wire_bytes"] == 11 * 2 ** 22 + grids
PY

# With one that it takes it has a message and memory, as others.
timeout 60 "$kith" list exchanges update-sets --json \
    --set gossip.compressor=top-k-2bit >"$scratch/sets" ||
    fail "kith list exchanges update-sets: exit $?"
python3 - "$scratch/sets" <<'PY' || fail "update-sets has no message"
import json, sys
row = json.load(open(sys.argv[1]))["exchanges"][0]
assert row["wires"][0]["refused"] is None, row
assert 0 < row["wires"][0]["message_bytes"] < row["model_bytes"], row
PY

# What a run sends: its messages, and headers below 1 % of them.
cat >"$scratch/sent.yaml" <<'YAML'
name: sent
peers: 2
seed: 1
stop: {steps: 40}
model: {kind: quadratic, dim: 100000}
gossip: {algorithm: adpsgd, every: 2}
compute: {step: 5ms}
network: {latency: 300us, rate: 1Gbit}
YAML
for wire in $("$kith" list wires | sed -n 's/^  \([a-z0-9]*\) .*/\1/p'); do
    expect 0 sim "$scratch/sent.yaml" --set "gossip.wire=$wire" --json \
        --out "$scratch"
    mv "$scratch/json" "$scratch/run"
    expect 0 list exchanges adpsgd --set model.dim=100000 --set peers=2 --json
    python3 - "$scratch/run" "$scratch/json" "$wire" <<'PY' ||
import json, sys
run, table = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
each = run["bytes"]["sent"] / (2 * run["exchanges"]["done"])
cell = [c for c in table["exchanges"][0]["wires"] if c["wire"] == sys.argv[3]]
assert 1 <= each / cell[0]["message_bytes"] < 1.01, (each, cell)
PY
        fail "$wire: a run sends other bytes"
done

# says EXPECTED PATTERN ARGUMENTS...
says() {
    expected=$1 pattern=$2
    shift 2
    expect "$expected" "$@"
    cat "$scratch/json" "$scratch/err" | grep -q -- "$pattern" ||
        fail "kith $*: does not say $pattern"
}
says 0 "^adpsgd  *0  *1/16 " list exchanges
says 0 "^relaysgd .* -  *- *$" list exchanges
says 0 "moniqua4 .*refused: gossip.wire: found moniqua4" list exchange sgp
says 0 "8 peers on path" list exchange relaysgd
says 0 "16 peers on torus" list exchange dpsgd --set peers=16 \
    --set gossip.topology=torus
says 0 "float32 .*refused: --set gossip.wire_share" list exchange dpsgd \
    --set gossip.wire_share=0.5
says 0 "sends  *nothing" list exchange local
says 2 "found ring, but algorithm allreduce-ring needs" \
    list exchange allreduce-ring --set gossip.topology=ring
says 2 'did you mean "adpsgd"' list exchanges adpgd
says 2 "peers=N" list exchanges adpsgd 16
says 2 "the list is of all wires" list exchanges --set gossip.wire=int8
says 2 'peers: found "many"' list exchanges --set peers=many
finish
