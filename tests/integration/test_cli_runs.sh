#!/bin/sh
# Goal: train and sim run to their end with any number of peers, keep every
# run, print one JSON object with the promised keys, and can be interrupted.
# Method: the bundled digits, a few steps.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

file=$scratch/digits.yaml
experiment 4 60 "compute: {step: 1ms}" >"$file"

run() {
    expect "$@" --out "$scratch/out"
}

keys() {
    python3 - "$scratch/json" <<'PY' || fail "$1: wrong keys"
import json, sys
text = open(sys.argv[1]).read()
assert text.count("\n") == 1, "one line"
found = json.loads(text)
assert list(found) == [
    "experiment", "world", "peers", "seed", "build", "trace_hash",
    "virtual_s", "wall_s", "events", "steps", "samples", "accuracy", "loss",
    "consensus_distance", "correlation", "exchanges", "bytes", "staleness",
    "utilisation", "channel", "curve",
    "time_to_target_s", "speed", "compute", "pieces", "faults",
    "violations", "database"], list(found)
assert list(found["accuracy"]) == ["averaged", "mean", "worst", "peers",
                                   "mean_error"]
assert found["accuracy"]["peers"] == (1 if found["world"] == "train" else 4)
assert found["accuracy"]["mean_error"] == 0
assert list(found["exchanges"]) == ["done", "failed", "refused"]
assert list(found["bytes"]) == ["sent", "per_peer_max"]
PY
}

run 0 train "$file" --json
keys train
[ "$(json steps)" = 240 ] || fail "train: $(json steps) steps, not 240"
[ "$(json trace_hash)" = None ] || fail "train has a trace hash"
first=$(json database)
run 0 train "$file" --json
[ "$(json database)" = "$first" ] && fail "the second run overwrote the first"
[ -s "$first" ] || fail "the first database is gone"

# The seed of the file, then another one: the same and another trace.
run 0 sim "$file" --json
keys sim
hash=$(json trace_hash)
for again in "" "--queue heap" "--threads 2" "--wire full"; do
    # shellcheck disable=SC2086 # A word or two, or none.
    run 0 sim "$file" --json $again
    [ "$(json trace_hash)" = "$hash" ] || fail "sim $again: another trace"
done
run 0 sim "$file" --json --seed 8
[ "$(json seed)" = 8 ] || fail "--seed 8 gave $(json seed)"
[ "$(json trace_hash)" = "$hash" ] && fail "another seed, the same trace"

# What the database keeps repeats the run.
database=$(json database)
sql "$database" "SELECT value FROM run WHERE key = 'experiment'" \
    >"$scratch/again.yaml"
hash=$(json trace_hash)
run 0 sim "$scratch/again.yaml" --json
[ "$(json trace_hash)" = "$hash" ] || fail "the kept experiment is another one"

# Any number of peers; an assertion that breaks.
for peers in 1 2 5; do
    run 0 sim "$file" --json --set "peers=$peers"
    [ "$(json peers)" = "$peers" ] || fail "$peers peers: $(json peers)"
    [ "$(json steps)" = $((60 * peers)) ] || fail "$peers peers: steps"
    run 0 train "$file" --json --set "peers=$peers"
done
run 1 sim "$file" --json --set 'assert=["finally accuracy >= 1"]'
[ "$(json violations)" = 1 ] || fail "the broken assertion is not counted"
run 1 train "$file" --set 'assert=["finally loss < 0"]'
grep -q "1 broken" "$scratch/json" || fail "the table hides the broken one"
grep -q "broken *finally loss < 0: [0-9]" "$scratch/json" ||
    fail "the table does not say which one is broken"

# --calibrate writes a step once, wherever compute stands.
for compute in "" "compute: {merge: 1us}" "compute:
  merge: 1us"; do
    experiment 2 20 "$compute" >"$scratch/calibrate.yaml"
    run 0 sim "$scratch/calibrate.yaml" --calibrate
    grep -q "step: *[1-9][0-9]*us" "$scratch/calibrate.yaml" ||
        fail "--calibrate wrote no step into $compute"
    cp "$scratch/calibrate.yaml" "$scratch/before.yaml"
    run 0 sim "$scratch/calibrate.yaml" --calibrate
    cmp -s "$scratch/calibrate.yaml" "$scratch/before.yaml" ||
        fail "--calibrate changed a given step"
done

# Ctrl-C and SIGTERM: exit 130, a readable database, no process.
for world in train sim; do
    for signal in INT TERM; do
        before=$(find "$scratch/out" -name '*.db' | wc -l)
        (
            trap - INT
            exec timeout --foreground 60 "$kith" "$world" "$file" \
                --set stop.steps=100000000 --set stop.time=100h \
                --out "$scratch/out" --json
        ) >"$scratch/json" 2>"$scratch/err" &
        child=$!
        for _ in $(seq 300); do
            [ "$(find "$scratch/out" -name '*.db' | wc -l)" -gt "$before" ] &&
                break
            sleep 0.1
        done
        sleep 0.5
        kill -"$signal" "$child"
        wait "$child"
        status=$?
        [ "$status" -eq 130 ] || fail "$world, SIG$signal: exit $status"
        after=$(find "$scratch/out" -name '*.db' | wc -l)
        [ "$after" -eq $((before + 1)) ] || fail "$world: no database"
        [ "$(sql "$(json database)" "PRAGMA integrity_check")" = ok ] ||
            fail "$world, SIG$signal: the database is damaged"
    done
done
none_left "interrupted runs"

# More messages at one time than the pool of packets had room for.
cat >"$scratch/many.yaml" <<'YAML'
name: many
peers: 64
stop: {steps: 20}
model: {kind: none}
gossip: {algorithm: gossip-pga, topology: global-rounds}
compute: {step: 1s}
save: never
YAML
run 0 sim "$scratch/many.yaml"
finish
