#!/bin/sh
# Goal: `kith sim --timeline` says what chosen peers did when, as Perfetto and
# chrome://tracing read it, and changes nothing.
# Method: a run with a crash and with hosts, beside its --trace as text: the same
# messages at the same times, items of a peer one after another, each span of a
# message closed, nothing of another peer or time; misuse by name; a full disk.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

cat >"$scratch/time.yaml" <<YAML
name: time
seed: 3
peers: 24
stop: {steps: 20}
model: {kind: quadratic, dim: 16}
gossip: {algorithm: adpsgd, every: 2}
network: {latency: 50us}
compute: {step: 1ms, merge: 100us}
hosts: {cores: 4, peers: 8, message: 5us}
faults: [{at: 5ms, crash: peer(2), restart: 5ms}]
YAML
timeline() {
    expect 0 sim "$scratch/time.yaml" --json --out "$scratch" "$@"
    json trace_hash
}
plain=$(timeline)
[ "$(timeline --timeline "$scratch/some.json" --trace "$scratch/trace")" = \
    "$plain" ] || fail "another hash"
[ "$(timeline --timeline "$scratch/cut.json" --window 3..40,4ms..9ms)" = \
    "$plain" ] || fail "another hash in a window"
python3 - "$scratch" <<'PY' || fail "not what the trace says"
import collections, json, sys
folder = sys.argv[1]

def read(name):
    events = json.load(open(f"{folder}/{name}.json"))["traceEvents"]
    kinds = collections.defaultdict(list)
    for event in events:
        kinds[event["ph"]].append(event)
    return kinds

some = read("some")
print({kind: len(events) for kind, events in some.items()})
# Messages of the trace to or from peers 0..15, with their times.
wanted = collections.Counter()
for line in open(f"{folder}/trace"):
    words = line.split()
    if words[2:3] == ["<"]:
        at, to, kind, by = words[0], int(words[1]), words[3], int(words[5])
        if to < 16 or by < 16:
            wanted[round(float(at) * 1e6, 3), by, f"{kind} to {to}"] += 1
found = collections.Counter((round(e["ts"], 3), e["pid"], e["name"])
                            for e in some["e"])
assert found == wanted, (found - wanted, wanted - found)
begun = {e["id"]: e for e in some["b"]}
assert len(begun) == len(some["b"]) == len(some["e"])
assert all(begun[e["id"]]["ts"] + 50 <= e["ts"] for e in some["e"])
# One item after another; all steps of those that nothing happened to.
ends, trained = collections.Counter(), collections.Counter()
for span in some["X"]:
    assert span["ts"] >= ends[span["pid"]] - 1e-3, span
    ends[span["pid"]] = span["ts"] + span["dur"]
    trained[span["pid"]] += span["name"] == "train"
assert all(trained[peer] == 20 for peer in range(16) if peer != 2), trained
faults = [e["name"] for e in some["i"] if e["cat"] == "fault"]
assert faults == ["crash", "restart"], faults
assert {e["args"]["name"] for e in some["M"] if e["name"] == "thread_name"} == \
    {f"peer {peer}" for peer in range(16)}
cut = read("cut")
assert {e["pid"] for e in cut["X"]} == set(range(3, 24))
for span in cut["X"]:
    assert span["ts"] <= 9000 and span["ts"] + span["dur"] >= 4000
assert all(4000 <= e["ts"] <= 9000 for e in cut["i"])
PY

# refused TEXT STATUS ARGUMENTS
refused() {
    words=$1 status=$2
    shift 2
    expect "$status" sim "$scratch/time.yaml" --out "$scratch" "$@"
    grep -q "$words" "$scratch/err" || fail "$*: $(cat "$scratch/err")"
}
for window in x 5..2 0..7,2s..1s 0..7,1 0..99999999999 1,2,3 ""; do
    refused "window: found \"$window\"; allowed: peers" 2 \
        --timeline "$scratch/none.json" --window "$window"
done
refused "is of a --timeline" 2 --window 0..3
refused "found peer 24; allowed: 0 to 23" 3 --timeline "$scratch/none.json" \
    --window 24..30
refused "belong to one run" 2 --timeline "$scratch/none.json" --seeds 2
expect 3 sim "$top/examples/taxonomy/petuum.yaml" --out "$scratch" \
    --timeline "$scratch/none.json"
grep -q "a central method have no work items" "$scratch/err" ||
    fail "a central method: $(cat "$scratch/err")"
[ ! -e "$scratch/none.json" ] || fail "what is refused wrote a file"
expect 5 sim "$scratch/time.yaml" --out "$scratch" --timeline /dev/full
grep -q "cannot write the timeline to /dev/full: No space" "$scratch/err" ||
    fail "a full disk: $(cat "$scratch/err")"
finish
