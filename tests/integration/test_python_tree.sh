#!/bin/sh
# Goal: arrays that nothing changes in place are a peer's: `params =
# peer.step(params)` gives new ones where an exchange came about, else the same
# objects; whatever dict orders there are; what is wrong is said by name.
# Method: tree.py, whose mean goes to its rank alone and is moved by the other's:
# NumPy's arrays with ones that speak DLPack alone, then JAX's. SKIP without
# numpy; without JAX (PYTHON=.../python3 of an environment that has it) its part
# is left out by name.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
kith_in_python

make_cluster 2 "experiment: ../pair.yaml" "wait: {members: 2, for: 60s}"
cat >"$scratch/pair.yaml" <<EOF
name: pair
peers: 2
stop: {steps: 300}
model: {kind: program}
gossip: {algorithm: adpsgd, every: 4}
EOF

loop() {
    timeout 200 "$python" "$top/tests/integration/tree.py" \
        "$scratch/$1/peer.yaml" "$1" 300 "$2" >"$scratch/$1/out" \
        2>"$scratch/$1/err" &
    pid=$!
}
# pair LIBRARY LIBRARY
pair() {
    rm -rf "$scratch"/[01]/model
    loop 0 "$1" && first=$pid
    loop 1 "$2" && second=$pid
    wait "$first" || fail "$1: $(tail -n 3 "$scratch/0/err")"
    wait "$second" || fail "$2: $(tail -n 3 "$scratch/1/err")"
    cat "$scratch/0/out" "$scratch/1/out" | "$python" -c '
import sys
rows = [line.split() for line in sys.stdin]
print("expected: two peers, 300 steps, moved; measured:", rows)
assert len(rows) == 2
for rank, mean, moved, steps, same in rows:
    assert float(moved) > 0.01 and 0 <= float(mean) <= 1
    assert int(steps) == 300 and 100 <= int(same) < 300
' || fail "$1 and $2: no averaging"
}
pair numpy dlpack
if "$python" -c 'import jax' 2>/dev/null; then
    pair jax numpy
else
    echo "left out: jax is not here"
fi

# What is wrong, by name: a step of what, and what it says.
sed -i 's/^wait: .*/wait: {members: 1, for: 1s}/' "$scratch/0/peer.yaml"
timeout 100 "$python" - "$scratch/0/peer.yaml" >"$scratch/said" 2>&1 <<'EOF'
import sys, numpy as np, kith

def refused(call, *parts):
    try:
        call()
    except (TypeError, ValueError, kith.Error) as error:
        assert all(part in str(error) for part in parts), error
        return
    raise AssertionError(f"not refused: {parts}")

class Elsewhere:
    dtype = "float32"
    def __dlpack__(self, **_): raise AssertionError("it was asked for")
    def __dlpack_device__(self): return 2, 0

def opened(tree, **options):
    return lambda: kith.Peer(tree, sys.argv[1], **options)

a, b = np.zeros((3, 4), "f"), np.zeros(5, "f")
refused(opened({"a": Elsewhere()}), "params['a'] lies on device (2, 0)")
refused(opened({"a": a.T}), "params['a'] is not contiguous")
refused(opened([[b], a.astype(float)]), "params[1] has float64")
refused(opened({"a": 1.5}), "params['a']: found float")
refused(opened({"a": a}, params=["a"]), "a tree of arrays")
refused(opened({}), "found 0")
read_only = b.copy()
read_only.flags.writeable = False  # nobody writes there
peer = kith.Peer({"a": a, "b": [read_only]}, sys.argv[1], start="own")
step = lambda tree: lambda: peer.step(tree)
refused(lambda: peer.step(0.5), "params = peer.step(params, loss=loss)")
refused(lambda: peer.step(), "params = peer.step(params, loss=loss)")
refused(step({"a": a}), "found 1 arrays", "with 2")
refused(step({"a": a, "c": [b]}), "found params['c'][0]", "params['b'][0]")
refused(step({"a": a, "b": [a]}), "float32 of (3, 4)", "float32 of (5,)")
refused(step({"a": a, "b": [b.astype("float16")]}), "float16 of (5,)")
refused(step({"a": a[:, ::-1], "b": [b]}), "not contiguous")
tree = {"b": [read_only], "a": a + 1}
for _ in range(3):
    assert peer.step(tree, loss=0.1) is tree and peer.params is tree
assert peer.stats["steps"] == 3, peer.stats
peer.close()
assert peer.params["a"].tolist() == tree["a"].tolist(), peer.params
flat = kith.Peer([a, b], sys.argv[1], start="own")
refused(lambda: flat.step({"a": a}), "changed in place")
assert flat.step(0.5) and flat.params[0] is a
flat.close()
EOF
[ $? -eq 0 ] || fail "by name: $(tail -n 5 "$scratch/said")"
none_left "loops"
finish
