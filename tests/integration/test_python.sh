#!/bin/sh
# Goal: loops of NumPy's in two processes are two peers, by README's keys and
# peer files; what is wrong is said by name; a killed loop leaves the other going.
# Method: loop.py, whose mean goes to its rank, 0 and 1, alone, and is moved by
# the other's. SKIP without numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
kith_in_python

make_cluster 2 "experiment: ../pair.yaml" "wait: {members: 2, for: 60s}"
cat >"$scratch/pair.yaml" <<EOT
name: pair
peers: 2
stop: {steps: 400}
model: {kind: program}
gossip: {algorithm: adpsgd, every: 2}
EOT

loop() {
    : >"$scratch/$1/err" # or a look at it could find the last loop's
    timeout 120 "$python" "$top/tests/integration/loop.py" \
        "$scratch/$1/peer.yaml" "$1" "$2" >"$scratch/$1/out" \
        2>"$scratch/$1/err" &
    pid=$!
}
loop 0 400 && first=$pid
loop 1 400 && second=$pid
wait "$first" || fail "loop 0: $(tail -n 3 "$scratch/0/err")"
wait "$second" || fail "loop 1: $(tail -n 3 "$scratch/1/err")"
cat "$scratch/0/out" "$scratch/1/out" | "$python" -c '
import sys
rows = [line.split() for line in sys.stdin]
print("expected: two peers, 400 steps, moved by the other; measured:", rows)
assert len(rows) == 2
for rank, mean, moved, steps, items in rows:
    assert float(moved) > 0.01 and 0 < float(mean) < 1
    assert int(steps) == 400 and int(items) > 0
' || fail "no averaging"
[ -s "$scratch/0/model/pair.save" ] || fail "no save"

# One is killed: the other goes on to its end. Saves of another number of steps
# are another experiment's.
refused_save() {
    "$python" - "$scratch/0/peer.yaml" <<EOP >"$scratch/said" 2>&1
import sys, numpy, kith
kith.Peer([numpy.zeros(1000, "f"), numpy.zeros((20, 30), "f")], sys.argv[1])
EOP
    grep -q "pair.save: .*its stop.steps is 400" "$scratch/said" ||
        fail "another experiment's save: $(cat "$scratch/said")"
}
sed -i 's/^stop: .*/stop: {steps: 100000}/' "$scratch/pair.yaml"
refused_save
rm -f "$scratch"/?/model/pair.save*
loop 0 100000 && first=$pid
loop 1 1000 && second=$pid
until_line 1 "$second" "first step"
# What a visitor cannot compare is left out; another experiment is not.
sed 's/: 100000/: 9/' "$scratch/pair.yaml" >"$scratch/other.yaml"
sed 's/pair/other/' "$scratch/1/peer.yaml" >"$scratch/1/other.yaml"
"$kith" doctor "$scratch/1/peer.yaml" --links >"$scratch/said" &&
    grep -q "link *ok *latency .*, rate " "$scratch/said" &&
    grep -q "model *ok *program, 1600 parameters" "$scratch/said" ||
    fail "kith doctor: $(cat "$scratch/said")"
expect 6 doctor "$scratch/1/other.yaml"
grep -q "model *FAIL *the peer has another experiment" "$scratch/json" ||
    fail "kith doctor of another experiment: $(cat "$scratch/json")"
kill -KILL $(ps -o pid= --ppid "$first")
wait "$second" || fail "the survivor: $(tail -n 3 "$scratch/1/err")"

# An exception in a loop whose log goes on ends it, as Python does.
sed 's/^    for step in .*/&\n        assert step < 20, "enough"/' \
    "$top/tests/integration/loop.py" | sed 's/^with .* as peer:/peer = kith.Peer(x, file, log=print)\nif True:/' \
    >"$scratch/raises.py"
sed -i 's/^wait: .*/wait: {members: 1, for: 1s}/' "$scratch/0/peer.yaml"
timeout 60 "$python" "$scratch/raises.py" "$scratch/0/peer.yaml" 0 1000 \
    >"$scratch/out" 2>&1
[ $? -eq 1 ] && grep -q "AssertionError: enough" "$scratch/out" &&
    grep -q "saved path" "$scratch/out" ||
    fail "an exception: $(tail -n 5 "$scratch/out")"

# A loop that ends early hands in its last steps, which ran ahead of kith's; two
# threads wait for one another; a log cannot use its peer.
sed -i 's/every: 2/every: 100000/' "$scratch/pair.yaml"
timeout 60 "$python" - "$scratch/0/peer.yaml" >"$scratch/out" 2>&1 <<'EOT'
import sys, threading, numpy, kith
said, refused = [], []

def log(line):
    said.append(line)
    try:
        peer.step(0.5)
    except (NameError, kith.Error) as error:
        refused.append(str(error))

class Loss:  # PyTorch's, whose __float__ warns while it has its graph
    def detach(self):
        return 0.5

peer = kith.Peer(numpy.zeros(9, "f"), sys.argv[1], log=log, start="own")
threads = [threading.Thread(
    target=lambda: [peer.step(Loss()) for _ in range(300)])
           for _ in range(2)]
[one.start() for one in threads]
[one.join() for one in threads]
assert peer.stats["steps"] == 600, peer.stats
peer.close()
print("expected: 600 steps saved; measured:", said)
assert any(line.endswith("step=600") for line in said)
assert any("within its own log" in error for error in refused), refused
EOT
[ $? -eq 0 ] || fail "early, threads, a log: $(tail -n 5 "$scratch/out")"
sed -i 's/every: 100000/every: 2/' "$scratch/pair.yaml"

# What is wrong, by name.
refused() {
    "$python" - "$scratch/0/peer.yaml" <<EOT >"$scratch/said" 2>&1
import sys, numpy, kith
kith.Peer($1, $2)
EOT
    grep -q "$3" "$scratch/said" || fail "$1, $2: $(cat "$scratch/said")"
}
refused 'numpy.zeros(3)' 'sys.argv[1]' 'a parameter of float64'
refused 'numpy.zeros((3, 3), "f")[:, 1]' 'sys.argv[1]' 'not contiguous'
refused '[]' 'sys.argv[1]' 'vectors: found 0'
refused 'numpy.zeros(3, "f")' '"/nowhere.yaml"' 'nowhere.yaml'
refused 'numpy.zeros(3, "f")' 'sys.argv[1] + "\0"' 'embedded null byte'
"$kith" list algorithms --python >"$scratch/said"
grep -q 'adpsgd  *works' "$scratch/said" &&
    grep -q 'acid  *it changes the model after each step' "$scratch/said" ||
    fail "kith list algorithms --python: $(cat "$scratch/said")"
expect 2 list models --python
sed -i 's/adpsgd/acid, mixing: 0.1, strength: 0.5/' "$scratch/pair.yaml"
refused 'numpy.zeros(3, "f")' 'sys.argv[1]' 'gossip.algorithm: acid does not work'
sed -i 's/algorithm: .*}/algorithm: adpsgd}/; s/program/quadratic, dim: 3/' "$scratch/pair.yaml"
refused 'numpy.zeros(3, "f")' 'sys.argv[1]' 'model.kind: found quadratic'
none_left "loops"
finish
