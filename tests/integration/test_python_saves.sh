#!/bin/sh
# Goal: peers of a program go on from what was averaged. A second start takes the
# peer's own last save, though all start at once, with nobody there, or with a
# neighbour that is paused; a save that does not fit is refused by name, and
# start="own" reads none.
# Method: start.py, which begins with zeros and moves them to 1 and 2.
# SKIP without numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
for python in ${PYTHON:-python3 /usr/bin/python3}; do
    "$python" -c 'import numpy' 2>/dev/null && break
done
"$python" -c 'import numpy' 2>/dev/null || skip "numpy is not here"
[ -e libkith.so.0 ] || skip "this build has no shared library"
export KITH_LIBRARY="$PWD/libkith.so.0" PYTHONPATH="$top/python"
export PYTHONDONTWRITEBYTECODE=1

make_cluster 2 "experiment: ../pair.yaml" "wait: {members: 2, for: 60s}"
printf '%s\n' "name: pair" "peers: 2" "stop: {steps: 10000}" \
    "model: {kind: program}" "gossip: {algorithm: adpsgd, every: 2}" \
    >"$scratch/pair.yaml"

# start.py PEER.yaml RANK STEPS [SIZE [START [HOLD]]]: prints mean and count of
# steps as it begins; HOLD: paused until that file is there.
cat >"$scratch/start.py" <<'PYTHON'
import os, sys, time, numpy, kith
file, rank, steps, size, start, hold = (
    sys.argv[1:] + ["1000", "auto", ""][len(sys.argv) - 4:])
x = numpy.zeros(int(size), "f")
with kith.Peer(x, file, start=start,
               log=lambda line: print(line, file=sys.stderr)) as peer:
    print(float(x.mean()), peer.stats["step"], flush=True)
    for _ in range(int(steps)):
        x -= 0.1 * (x - 1 - int(rank))
        peer.step()
    if hold:
        with peer.paused():
            print("paused", file=sys.stderr, flush=True)
            while not os.path.exists(hold):
                time.sleep(0.01)
PYTHON
# start RANK STEPS [SIZE [START [HOLD]]]: in the background, as $pid.
start() {
    rank=$1
    : >"$scratch/$rank/err"
    timeout 120 "$python" "$scratch/start.py" "$scratch/$rank/peer.yaml" "$@" \
        >"$scratch/$rank/out" 2>"$scratch/$rank/err" &
    pid=$!
}
# began RANK MEAN STEP: both at least that, as it began.
began() {
    echo "rank $1 began with (mean, step): $(cat "$scratch/$1/out")"
    awk -v mean="$2" -v step="$3" '{ exit !($1 >= mean && $2 >= step) }' \
        "$scratch/$1/out" || fail "rank $1: expected mean $2, step $3 or more"
}
both() {
    start 0 "$1" && first=$pid
    start 1 "$1" && second=$pid
    for rank in 0 1; do
        wait "$first" && wait "$second" ||
            fail "loop $rank: $(tail -n 3 "$scratch/$rank/err")"
    done
}
both 50
began 0 0 0
both 50 # all start again at once: what they had, and neither has more
began 0 0.9 50
began 1 0.9 50

# The neighbour is paused, and nobody's model is there to adopt; then no
# neighbour at all.
sed -i 's/^wait: .*/wait: {members: 1, for: 1s}/' "$scratch"/?/peer.yaml
start 1 10 1000 auto "$scratch/go" && second=$pid
until_line 1 "$second" "^paused"
start 0 0 && first=$pid
wait "$first" || fail "beside a pause: $(tail -n 3 "$scratch/0/err")"
began 0 0.9 100
: >"$scratch/go"
wait "$second" || fail "paused: $(tail -n 3 "$scratch/1/err")"
start 0 0 && first=$pid
wait "$first" || fail "alone: $(tail -n 3 "$scratch/0/err")"
began 0 0.9 100

# What does not fit, by name; "own" does not look at it.
refused() { # TEXT SIZE: of that text the last word is that it has not started
    start 0 0 "$2" && first=$pid
    wait "$first" && fail "it has started on a save that is $1"
    grep -q "pair.save.*$1" "$scratch/0/err" ||
        fail "expected: $1; found: $(tail -n 1 "$scratch/0/err")"
}
rm -f "$scratch"/0/model/pair.save.previous
refused "another number of values" 9
printf x | dd of="$scratch/0/model/pair.save" bs=1 seek=4000 conv=notrunc \
    2>/dev/null
refused "checksum does not match" 1000
start 0 0 1000 own && first=$pid
wait "$first" || fail "own: $(tail -n 3 "$scratch/0/err")"
grep -q '^0.0 0$' "$scratch/0/out" || fail "own: $(cat "$scratch/0/out")"
none_left "loops"
finish
