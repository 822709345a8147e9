#!/bin/sh
# Goal: a simulation that was killed, or that a signal ended, goes on from its
# save to the trace, summary and rows of one that was never interrupted; so do
# several ranks of which one was killed. What cannot be gone on from is refused
# by name, and changes nothing; a disk that is full ends no run.
# Method: runs of pairs, rounds and pushes with faults, lies, guards, momentum
# and packed formats are killed once their first save is there and gone on with,
# by other numbers of threads and another queue; then files that are damaged,
# foreign or missing, and folders that are full or may not be written.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written NAME PEERS STEPS GOSSIP [LINE...]
written() {
    file=$scratch/$1.yaml
    {
        printf '%s\n' "name: $1" "peers: $2" "stop: {steps: $3}" "gossip: {$4}"
        shift 4
        printf '%s\n' "$@"
    } >"$file"
}
cp -r "$data" "$scratch/digits"
data=$scratch/digits # one that may be changed
quadratic='model: {kind: quadratic, dim: 40}'
network='network: {latency: 1ms, jitter: 2ms}'
compute='compute: {step: 5ms, merge: 200us, spread: exponential}'
digits="model: {kind: mlp, layers: [64, 32, 10]}
data: {kind: idx, path: $data, split: iid}
train: {learning_rate: 0.05, momentum: 0.9, batch: 16}"

# outcome FILE: of the run whose summary is $scratch/json.
outcome() {
    python3 "$top/tests/integration/ranks.py" "$scratch/json" >"$1" ||
        fail "no rows of a run"
}

# expected EXPERIMENT: what it comes to without interruption.
expected() {
    rm -rf "$scratch/whole"
    timeout 300 "$kith" sim "$1" --json --out "$scratch/whole" \
        >"$scratch/json" 2>"$scratch/err" </dev/null ||
        fail "$1: $?: $(cat "$scratch/err")"
    outcome "$scratch/expected"
    [ "$(wc -l <"$scratch/expected")" -gt 100 ] || fail "$1: little to compare"
}

# begun EXPERIMENT [ARGUMENTS...]: goes on by itself, as $running, with a save.
begun() {
    rm -rf "$scratch/parts" "$scratch/saves"
    # shellcheck disable=SC2086
    ${launcher:-} "$kith" sim "$@" --json --out "$scratch/parts" \
        --save "$scratch/saves" --save-every 20ms >"$scratch/json" \
        2>"$scratch/err" </dev/null &
    running=$!
    waited=0
    until [ -e "$scratch/saves/${last:-rank-0.state}" ]; do
        waited=$((waited + 1))
        [ "$waited" -lt 6000 ] || {
            fail "$*: no save: $(cat "$scratch/err")"
            break
        }
        sleep 0.01
    done
}

# killed EXPERIMENT [ARGUMENTS...]: once it has a save. Where it was faster than
# this script the save is its last one, which is gone on from all the same.
killed() {
    begun "$@"
    kill -9 "$running" 2>/dev/null
    wait "$running" 2>/dev/null
}

# resumed EXPERIMENT [ARGUMENTS...]: as if it had never been interrupted.
resumed() {
    # shellcheck disable=SC2086
    timeout 300 ${launcher:-} "$kith" sim "$@" --json --out "$scratch/parts" \
        --save "$scratch/saves" --resume >"$scratch/json" \
        2>"$scratch/err" </dev/null || fail "$*: $?: $(cat "$scratch/err")"
    grep -q "^kith sim: going on from the save at [0-9.]* s" "$scratch/err" ||
        fail "$*: it did not go on: $(cat "$scratch/err")"
    [ "$(find "$scratch/parts" -name '*.db' | wc -l)" -eq 1 ] ||
        fail "$*: it has another database"
    outcome "$scratch/found"
    cmp -s "$scratch/expected" "$scratch/found" || {
        fail "$*: another run"
        diff "$scratch/expected" "$scratch/found" | head -n 6 >&2
    }
}

# same_run EXPERIMENT: killed, and gone on with by other threads, which take its
# events from another queue.
same_run() {
    expected "$1"
    killed "$1"
    resumed "$1" --threads 2 --queue heap
}

written pairs 6 1200 'algorithm: adpsgd, every: 1, guard: clip' "$digits" \
    'compute: {step: 5ms}' 'evaluate: 2s' 'save: 50ms' \
    'faults: [{at: 30ms, crash: "peer(1)", restart: 200ms},
  {at: 50ms, for: 30ms, partition: "peer(0..2) <-> peer(3..5)"},
  {at: 60ms, for: 90ms, pause: "peer(4)"},
  {at: 40ms, hostile: "peer(3)", kind: gauss}]' \
    'assert: ["always finite(model)"]'
same_run "$file"
killed "$file" --threads 2
resumed "$file"
pairs=$file
# Its neighbours go back to their last good models again and again.
written spoilt 6 1200 'algorithm: qg-dsgdm, topology: circulant, every: 2' \
    "$digits" 'network: {latency: 1ms}' 'compute: {step: 5ms}' \
    'faults: [{at: 10ms, for: 20s, huge: "peer(2)", by: 3e38}]'
same_run "$file"
written packed 8 1200 'algorithm: adpsgd, every: 1, wire: int8, topology: ring' \
    "$digits" "$network" 'compute: {step: 5ms}'
same_run "$file"
written modular 7 3000 'algorithm: adpsgd, every: 1, wire: moniqua8' \
    "$quadratic" "$network" "$compute"
same_run "$file"
written rounds 8 600 'algorithm: dpsgd, topology: circulant, every: 1' \
    "$digits" "$network" 'compute: {step: 5ms}'
same_run "$file"
written pushes 8 4000 'algorithm: sgp, topology: exponential, every: 1' \
    "$quadratic" 'network: {latency: 1ms, loss: 0.05}' "$compute"
same_run "$file"
written compressed 8 2500 'algorithm: choco, topology: ring, every: 1' \
    "$quadratic" "$network" "$compute"
same_run "$file"

# A signal saves, and says how to go on.
expected "$pairs"
begun "$pairs"
kill -TERM "$running"
wait "$running"
ended=$?
[ "$ended" -eq 130 ] || fail "a signal: $ended: $(cat "$scratch/err")"
grep -q -- '^go on with the same command and --resume, saved in' "$scratch/err" ||
    fail "a signal: $(cat "$scratch/err")"
resumed "$pairs"

# Two processes do not share a folder.
begun "$pairs" --set stop.steps=100000
expect 8 sim "$pairs" --out "$scratch/other" --save "$scratch/saves" --resume \
    --set stop.steps=100000
grep -q 'another run is saved in' "$scratch/err" ||
    fail "two runs, one folder: $(cat "$scratch/err")"
kill -9 "$running"
wait "$running" 2>/dev/null

# refused STATUS PATTERN ARGUMENTS...: and the folder is as it was.
refused() {
    status_=$1
    pattern=$2
    shift 2
    find "$scratch/saves" -type f -exec cksum {} + | sort >"$scratch/before"
    expect "$status_" sim "$@" --out "$scratch/refused"
    grep -q "^kith sim: .*$pattern" "$scratch/err" ||
        fail "$*: $(cat "$scratch/err")"
    find "$scratch/saves" -type f -exec cksum {} + | sort >"$scratch/after"
    cmp -s "$scratch/before" "$scratch/after" || fail "$*: a save has changed"
}
killed "$pairs"
until [ -e "$scratch/saves/rank-0.state.previous" ]; do
    begun "$pairs"
    sleep 0.2
    kill -9 "$running"
    wait "$running" 2>/dev/null
done
cp -r "$scratch/saves" "$scratch/kept"
again() {
    rm -rf "$scratch/saves"
    cp -r "$scratch/kept" "$scratch/saves"
}
# flip FILE OFFSET: one bit.
flip() {
    python3 - "$1" "$2" <<'PY'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(0, 2)
    at = int(sys.argv[2]) % file.tell()
    file.seek(at)
    byte = file.read(1)[0]
    file.seek(at)
    file.write(bytes([byte ^ 16]))
PY
}
saved="--save $scratch/saves"
refused 3 'has a save already' "$pairs" $saved
[ ! -e "$scratch/refused" ] || fail "a refused run has a database"
refused 3 'another experiment' "$pairs" $saved --resume --seed 4
refused 3 'another experiment' "$pairs" $saved --resume \
    --set compute.step=6ms
refused 3 'another experiment' "$file" $saved --resume
cp "$data/train-labels-idx1-ubyte.gz" "$scratch/labels.gz"
python3 - "$data/train-labels-idx1-ubyte.gz" <<'PY'
import gzip
import sys
with gzip.open(sys.argv[1]) as file:
    labels = bytearray(file.read())
labels[-1] = (labels[-1] + 1) % 10
with gzip.open(sys.argv[1], "w") as file:
    file.write(labels)
PY
refused 3 'data set' "$pairs" $saved --resume
cp "$scratch/labels.gz" "$data/train-labels-idx1-ubyte.gz"
of_other_sources "$scratch/kith"
built=$kith
kith=$scratch/kith
refused 3 'of another build' "$pairs" $saved --resume
kith=$built
refused 2 'is of one run' "$pairs" $saved --resume --seeds 2
refused 2 'save-every: found "soon"' "$pairs" $saved --save-every soon
refused 2 'save-every is of a --save' "$pairs" --save-every 1s
refused 8 'wire: full is not saved' "$pairs" $saved --resume --wire full

# The save before the damaged one is gone on from, to the same end.
flip "$scratch/saves/rank-0.state" 20000
resumed "$pairs"
grep -q 'body has another hash; going on from the save before' \
    "$scratch/err" || fail "a flipped bit: $(cat "$scratch/err")"
for at in 3 20 60 1100 3000 -1; do
    again
    rm "$scratch/saves/rank-0.state.previous"
    flip "$scratch/saves/rank-0.state" $at
    refused 3 'cannot go on from .*rank-0.state: ' "$pairs" $saved --resume
done
again
flip "$scratch/saves/rank-0.log" 50
refused 3 'log is damaged' "$pairs" $saved --resume
again
: >"$scratch/saves/rank-0.log"
refused 3 'log is cut off: found 0' "$pairs" $saved --resume
again
truncate -s 5000 "$scratch/saves/rank-0.state"
rm "$scratch/saves/rank-0.state.previous"
refused 3 'cut off' "$pairs" $saved --resume

# Without its database a new one has all rows; without a save the run starts.
again
rm -r "$scratch/parts"
resumed "$pairs"
grep -q 'the database .* is gone: a new one' "$scratch/err" ||
    fail "no database: $(cat "$scratch/err")"
rm -rf "$scratch/saves" "$scratch/whole"
expect 0 sim "$pairs" --json --out "$scratch/whole" $saved --resume
grep -q 'no save in .* yet: the run starts' "$scratch/err" ||
    fail "no save: $(cat "$scratch/err")"
outcome "$scratch/found"
cmp -s "$scratch/expected" "$scratch/found" || fail "no save: another run"

# A folder that may not be written is said before the first step; one that is
# full ends no run.
expect 5 sim "$pairs" --out "$scratch/whole" --save "$scratch/no/where"
grep -q 'cannot write in the folder' "$scratch/err" || fail "no folder"
if unshare --user --map-root-user --mount true 2>/dev/null; then
    mkdir -p "$scratch/full"
    unshare --user --map-root-user --mount sh -c "
        mount -t tmpfs -o size=64k none '$scratch/full' &&
        timeout 100 '$kith' sim '$pairs' --json --out '$scratch/whole' \
            --save '$scratch/full/saves' --save-every 20ms &&
        ls '$scratch/full/saves' >'$scratch/left'
        mount -o remount,ro '$scratch/full' &&
        ! timeout 100 '$kith' sim '$pairs' --save '$scratch/full/other' \
            --out '$scratch/refused' >'$scratch/said' 2>&1" \
        >"$scratch/json" 2>"$scratch/err" || fail "full: $(cat "$scratch/err")"
    [ "$(grep -c 'cannot save the run in .*No space left' "$scratch/err")" \
        -eq 1 ] || fail "a full disk was not said once: $(cat "$scratch/err")"
    grep -q 'partial' "$scratch/left" && fail "parts of a save are left"
    grep -q 'cannot write in the folder .*Read-only' "$scratch/said" ||
        fail "read-only: $(cat "$scratch/said")"
    outcome "$scratch/found"
    cmp -s "$scratch/expected" "$scratch/found" || fail "full: another run"
else
    echo "$name: no mount namespaces here: no full disk" >&2
fi

# Files that an experiment names are a part of it, by what they say: a machine
# that is another, a trace with another end, which the run has not come to.
machine() {
    printf '%s\n' '# of a test' 'model: quadratic' 'values: 40' 'cores: 2' \
        'steps: [{batch: 32, threads: 1, time: 5ms}]' "message: $1" \
        >"$scratch/machine.yaml"
}
left() {
    printf '0,add,a\n0,add,b\n%s,remove,a\n' "$1" >"$scratch/left.csv"
}
machine 10us
left 90000000
written named 4 20000000 'algorithm: adpsgd, every: 2' "$quadratic" "$network" \
    "$compute" 'hosts: {file: machine.yaml}' \
    'faults: [{at: 0s, churn: "peer(1..3)", trace: left.csv}]'
killed "$file"
left 90000001
refused 3 'a file that it names' "$file" --save "$scratch/saves" --resume
left 90000000
machine 20us
refused 3 'a file that it names' "$file" --save "$scratch/saves" --resume
sed 's/^# .*/# of another day/' "$scratch/machine.yaml" >"$scratch/machine.new"
mv "$scratch/machine.new" "$scratch/machine.yaml"
sed -i 's/20us/10us/' "$scratch/machine.yaml"
timeout --foreground -s INT 2 "$kith" sim "$file" --save "$scratch/saves" --resume --out \
    "$scratch/parts" >/dev/null 2>"$scratch/err" </dev/null
grep -q 'going on from the save' "$scratch/err" ||
    fail "the same machine and trace: $(cat "$scratch/err")"

# Of several ranks, one is killed: mpirun ends the others.
if command -v mpirun >/dev/null && [ -r "$(dirname "$kith")/kith-mpi.so" ]; then
    # shellcheck source=tests/integration/ranks.sh
    . "$top/tests/integration/ranks.sh"
    launcher='mpirun -n 2'
    last=rank-1.state
    for file in "$pairs" "$scratch/packed.yaml"; do
        expected "$file"
        begun "$file"
        victim=$(processes)
        [ -z "$victim" ] || kill -9 "${victim%% *}"
        wait "$running" && [ -n "$victim" ] &&
            fail "a rank was killed, the run was not ended"
        resumed "$file" --threads 2
    done
    # One rank's save cannot be put in its place, again and again: the last one
    # that all have is the one to go on from.
    sed 's/steps: 1200/steps: 6000/' "$pairs" >"$scratch/lasting.yaml"
    pairs=$scratch/lasting.yaml
    begun "$pairs"
    until mkdir -p "$scratch/saves/rank-1.state.previous/x" 2>/dev/null; do
        rm -f "$scratch/saves/rank-1.state.previous"
    done
    until grep -q 'cannot save the run' "$scratch/err"; do
        kill -0 "$running" 2>/dev/null || break
        sleep 0.01
    done
    sleep 0.3
    victim=$(processes)
    [ -z "$victim" ] || kill -9 "${victim%% *}"
    wait "$running" && fail "rank 1's saves: the run was not ended"
    expected "$pairs"
    resumed "$pairs"
    ranks 2 "$pairs" --out "$scratch/refused" --save "$scratch/kept" \
        --resume && fail "two ranks went on from one's save"
    grep -q 'of rank 0 of 1; this is rank 0 of 2' "$scratch/err" ||
        fail "two ranks: $(cat "$scratch/err")"
    [ ! -e "$scratch/kept/rank-1.log" ] || fail "the second rank left a log"
fi
none_left "killed simulations"
finish
