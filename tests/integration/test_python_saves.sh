#!/bin/sh
# Goal: peers of a program go on from what was averaged. A second start takes the
# peer's own last save, though all start at once, with nobody there, or with a
# neighbour that is paused; a save that does not fit is refused by name, and
# start="own" reads none. peer.save(), load=: two that are killed and go on from
# there have the bytes of two that ran through; a kill during it leaves a save
# that loads, and a disk that is full the one before.
# Method: start.py, which begins with zeros and moves them to 1 and 2;
# saves_loop.py, with torch, too, where it is; kills.py, whose children save a
# model of one value throughout. KITH_KILLS: how many, 100 unless told; KITH_SEED.
# SKIP without numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
kith_in_python

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
"$python" - "$scratch/0/model/pair.save" <<'PY'
import sys
with open(sys.argv[1], "r+b") as save: # another byte, whatever it was
    save.seek(4000)
    byte = save.read(1)[0]
    save.seek(4000)
    save.write(bytes([byte ^ 1]))
PY
refused "checksum does not match" 1000
start 0 0 1000 own && first=$pid
wait "$first" || fail "own: $(tail -n 3 "$scratch/0/err")"
grep -q '^0.0 0$' "$scratch/0/out" || fail "own: $(cat "$scratch/0/out")"

# The same bytes after a crash as without it.
rm -f "$scratch"/?/model/pair.save*
sed -i 's/^wait: .*/wait: {members: 2, for: 60s}/' "$scratch"/?/peer.yaml
printf '%s\n' "name: pair" "peers: 2" "stop: {steps: 60}" \
    "model: {kind: program}" \
    "gossip: {algorithm: diloco, every: 7, topology: complete, deadline: 60s}" >"$scratch/pair.yaml"
# loops KIND NAME [save AT | load]: of both ranks, as $first and $second.
loops() {
    for rank in 0 1; do
        timeout 200 "$python" "$top/tests/integration/saves_loop.py" "$1" \
            "$scratch/$rank/peer.yaml" "$rank" 60 "$scratch/$rank/$2.npy" \
            ${3:+"$3" "$scratch/$rank/own.save"} ${4:+"$4"} \
            >"$scratch/$rank/out" 2>"$scratch/$rank/err" &
        [ $rank = 0 ] && first=$!
    done
    second=$!
}
ended() {
    wait "$first" && wait "$second" ||
        fail "$1: $(tail -n 2 "$scratch/0/err" "$scratch/1/err")"
}
same_bytes() {
    loops "$1" through && ended "$1, through"
    loops "$1" killed save 30
    for rank in 0 1; do
        until grep -q '^saved' "$scratch/$rank/out"; do
            kill -0 "$first" && kill -0 "$second" || break 2
            sleep 0.05
        done
    done
    kill -KILL $(ps -o pid= --ppid "$first,$second")
    wait "$first" "$second"
    loops "$1" again load && ended "$1, again"
    for rank in 0 1; do
        grep -q '^begins at 30' "$scratch/$rank/out" ||
            fail "$1: $(cat "$scratch/$rank/out")"
        cmp "$scratch/$rank/through.npy" "$scratch/$rank/again.npy" ||
            fail "$1, rank $rank: other bytes after a crash"
        cmp "$scratch/$rank/through.npy" "$scratch/$rank/again.npy" &&
            echo "$1, rank $rank: bytes as without the crash at step 30"
    done
    cmp -s "$scratch/0/again.npy" "$scratch/1/again.npy" &&
        fail "$1: both ranks have the same bytes: no steps of their own"
}
same_bytes numpy
"$python" -c 'import torch' 2>/dev/null && same_bytes torch

# Whose share is done when it starts again knows its count, and can pause; so does
# a step that is late.
"$python" - "$scratch/0/peer.yaml" >"$scratch/said" 2>&1 <<'PYTHON' ||
import sys, numpy, kith
x = numpy.zeros(1000, "f")
sys.stderr = sys.stdout
file = open(sys.argv[1]).read()
alone = sys.argv[1].replace("peer.yaml", "alone.yaml")
open(alone, "w").write(file.replace("members: 2, for: 60s", "members: 1, for: 1s"))
with kith.Peer(x, alone) as peer:
    assert peer.over and peer.stats["step"] == 60, peer.stats
    with peer.paused() as still:
        assert still and peer.over, (still, peer.over)
    assert peer.over
with kith.Peer(x, sys.argv[1], start="own", timeout=0.2) as peer:
    assert not peer.step() and peer.stats["step"] == 1, peer.stats
PYTHON
    fail "counts and pauses: $(tail -n 2 "$scratch/said")"

# Only a plain file makes way for a save; a peer without patience saves, too.
timeout 60 "$python" - "$scratch" >"$scratch/said" 2>&1 <<'PYTHON' ||
import os, stat, sys, numpy, kith
pipe = sys.argv[1] + "/pipe"
os.mkfifo(pipe)
with kith.Peer(numpy.ones(9, "f"), sys.argv[1] + "/0/alone.yaml",
               start="own", timeout=0) as peer:
    peer.save(sys.argv[1] + "/0/at-once.save")
    try:
        peer.save(sys.argv[1] + "/0/at-once.save\0.other")
        sys.exit("saved as another file")
    except ValueError:
        pass
    for path, kind in (pipe, "a FIFO"), (sys.argv[1], "a folder"):
        try:
            peer.save(path)
            sys.exit("took the place of " + kind)
        except kith.Error as error:
            assert f"it is {kind}, not a plain file" in str(error), error
assert stat.S_ISFIFO(os.stat(pipe).st_mode)
PYTHON
    fail "not a plain file: $(tail -n 2 "$scratch/said")"

# What neighbours change waits for the next step(): the file is what the loop has,
# a tree's as step() has returned it.
printf '%s\n' "name: swap" "peers: 2" "stop: {steps: 10000}" \
    "model: {kind: program}" "gossip: {algorithm: adpsgd, every: 2}" \
    >"$scratch/swap.yaml"
for rank in 0 1; do
    sed 's/pair/swap/' "$scratch/$rank/peer.yaml" >"$scratch/$rank/swap.yaml"
done
timeout 100 "$python" - "$scratch" >"$scratch/said" 2>&1 <<'PYTHON' ||
import random, sys, threading, time, numpy, kith
folder, writes = sys.argv[1], [0, 0]
def loop(rank):
    params, draws = {"x": numpy.full(1000, rank, "f")}, random.Random(rank)
    peer = kith.Peer(params, f"{folder}/{rank}/swap.yaml", start="own")
    for step in range(1, 301):
        moved = {"x": params["x"] + numpy.float32(0.01)}
        params = peer.step(moved)
        writes[rank] += params is not moved
        time.sleep(draws.uniform(0, 0.002))
        peer.save(f"{folder}/{rank}/swap.save")
        saved = open(f"{folder}/{rank}/swap.save", "rb").read()
        assert params["x"].tobytes() in saved and peer.params is params, step
        assert b'"step":"%d"' % step in saved, step
    peer.serve(0.5)
    peer.close()
    writes[rank] += 1000
both = [threading.Thread(target=loop, args=(rank,)) for rank in range(2)]
[one.start() for one in both]
[one.join() for one in both]
assert min(writes) > 1000, writes
PYTHON
    fail "saves between exchanges: $(tail -n 2 "$scratch/said")"

# Kills during save().
cat >"$scratch/kills.py" <<'PYTHON'
import os, random, signal, sys, time, numpy, kith
file, saved, kills, seed = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
draws, before, new = random.Random(seed), 0, 0
print("kills", kills, "seed", seed, flush=True)
for kill in range(kills + 1):
    hear, tell = os.pipe()
    child = os.fork()
    if child == 0:
        x = numpy.zeros(500000, "f")
        peer = kith.Peer(x, file, start="own", timeout=60,
                         load=saved if kill > 0 else None)
        assert (x == x[0]).all() and peer.stats["step"] == 0, "torn"
        os.write(tell, b"%d\n" % int(x[0]))
        for value in range(int(x[0]) + 1, 2 ** 24):
            x[:] = value
            peer.save(saved)
            if value == int(x[0]) and kill == 0:
                os._exit(0)
    os.close(tell)
    word = os.read(hear, 20)
    assert word.strip().isdigit(), "a save that does not load"
    assert int(word) >= before
    new, before = new + (int(word) > before), int(word)
    os.close(hear)
    if kill > 0:
        time.sleep(draws.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(kills, "kills:", new, "times a new save, none corrupt; saves:", before)
PYTHON
sed -i 's/^wait: .*/wait: {members: 1, for: 1s}/' "$scratch/0/peer.yaml"
timeout 300 "$python" "$scratch/kills.py" "$scratch/0/peer.yaml" \
    "$scratch/0/kills.save" "${KITH_KILLS:-100}" "${KITH_SEED:-1}" \
    2>"$scratch/0/err" ||
    fail "kills: $(tail -n 3 "$scratch/0/err")"

# A full disk is an error by name; the file before stays, and the peer goes on.
mkdir "$scratch/disk"
if mount -t tmpfs -o size=10m kith-test "$scratch/disk" 2>/dev/null; then
    timeout 60 "$python" - "$scratch/0/peer.yaml" "$scratch/disk/own.save" \
        >"$scratch/said" 2>&1 <<'PYTHON'
import filecmp, shutil, sys, numpy, kith
x = numpy.ones(500000, "f")
peer = kith.Peer(x, sys.argv[1], start="own")
peer.save(sys.argv[2])
shutil.copy(sys.argv[2], sys.argv[1] + ".first")
try:
    peer.save(sys.argv[2])
    sys.exit("no error")
except kith.Error as error:
    assert "own.save" in str(error) and "No space" in str(error), error
assert filecmp.cmp(sys.argv[2], sys.argv[1] + ".first", shallow=False)
assert peer.step() and peer.stats["step"] == 1
peer.close()
PYTHON
    [ $? -eq 0 ] || fail "a full disk: $(tail -n 2 "$scratch/said")"
    umount "$scratch/disk"
else
    echo "$name: mounting a tmpfs is refused, so no full disk" >&2
fi
none_left "loops"
finish
