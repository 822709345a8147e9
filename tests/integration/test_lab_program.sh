#!/bin/sh
# Goal: model.run: processes of a program are a lab's peers, and every fault
# meets them; how good each is, and their average, stands in the database; a
# program that cannot start, dies, opens no peer or ends early is told by name,
# with its last lines.
# Method: lab_program.py, NumPy's gradient descent towards one's rank, does the
# one or the other as its arguments say. SKIP without numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
kith_in_python

# program COMMAND STEPS [YAML...]: four peers of it.
program() {
    cat <<YAML
name: own
peers: 4
stop: {steps: $2}
model: {kind: program, run: "$1"}
gossip: {algorithm: adpsgd, every: 2}
compute: {step: 4ms}
save: 300ms
YAML
    shift 2
    [ $# -eq 0 ] || printf '%s\n' "$@"
}
cp "$top/tests/integration/lab_program.py" "$scratch/own.py"
run="$python own.py"
# says WHAT PATTERN: the launcher said so.
says() {
    grep -q "$2" "$scratch/err" || {
        fail "$1: not said: $2"
        tail -5 "$scratch/err" >&2
    }
}

# Every fault, on processes that Python runs; the average, evaluated.
program "$run" 800 "evaluate: 1s" \
    "faults:" \
    "  - {at: 500ms, crash: \"peer(2)\", restart: 500ms}" \
    "  - {at: 700ms, crash: \"peer(3)\"}" \
    "  - {at: 1s, for: 500ms, partition: \"peer(0) <-> peer(1..2)\"}" \
    "  - {at: 1500ms, for: 300ms, pause: \"peer(1)\"}" \
    "  - {at: 2s, for: 400ms, slow: \"peer(0)\", by: 4}" \
    "assert:" \
    "  - \"always finite(model)\"" \
    "  - \"finally accuracy >= 0.5\"" >"$scratch/own.yaml"
lab 0 "$scratch/own.yaml"
none_left "faults"
no_saves "faults"
database=$(json database)
seen=$(sql "$database" "SELECT group_concat(fault || ' ' || number, ', ') FROM
    (SELECT fault, count(*) AS number FROM faults GROUP BY fault ORDER BY fault)")
expect="crash 2, cut 4, heal 4, pause 1, restart 1, resume 1, slow 2"
[ "$seen" = "$expect" ] || fail "faults that happened: $seen"
# The four ranks' mean is 1.5; without peer 3, after a while, 1. own.py's
# accuracy is 1 where it is 1, and 0 where it is 4 away.
holds "0.5 <= $(json accuracy averaged) < 1" || fail "$(json accuracy averaged)"
holds "0 < $(json accuracy mean) < 1" || fail "mean: $(json accuracy mean)"
points=$(sql "$database" "SELECT count(*) FROM series WHERE peer IS NULL")
holds "$points >= 2" || fail "$points evaluations of the average"
full=$(sql "$database" "SELECT count(*) FROM (SELECT peer, max(step) AS most
    FROM series WHERE peer IS NOT NULL GROUP BY peer) WHERE most = 800")
holds "$full >= 2" || fail "only $full peers did all their steps"
adopted=$(sql "$database" "SELECT count(*) FROM marks JOIN mark_kinds USING (kind)
    WHERE mark_kinds.name = 'adopted' AND peer = 2")
[ "$adopted" -eq 1 ] || fail "peer 2 adopted $adopted models"
pauses=$(sql "$database" "SELECT count(*) FROM series
    WHERE peer = 1 AND time_s BETWEEN 1.6 AND 1.75")
holds "$pauses <= 1" || fail "peer 1 spoke $pauses times while paused"
grep -q "peer 1: own.py began" "${database%.db}.peer-1.out" ||
    fail "what peer 1 printed is not in ${database%.db}.peer-1.out"

# The processes stand in the file's folder, the run where it was started.
program "$run" 100 >"$scratch/own.yaml"
mkdir "$scratch/else"
(cd "$scratch/else" && timeout 60 "$kith" lab ../own.yaml >out 2>err) ||
    fail "from another folder: $(tail -n 3 "$scratch/else/err")"

# Programs that do not do their part. none_left: and nothing runs on.
set=
wrong() {
    what=$1 expected=$2 pattern=$3
    shift 3
    program "$@" >"$scratch/own.yaml"
    # shellcheck disable=SC2086 # none, or one option
    lab "$expected" $set "$scratch/own.yaml"
    [ -z "$pattern" ] || says "$what" "$pattern"
    none_left "$what"
}
wrong "no such command" 3 "cannot start model.run .nosuch own.py.*No such file" \
    "nosuch own.py" 50
wrong "no peer" 8 "peer [0-3]: its program ended without opening a peer" \
    "$run no-peer" 50
wrong "an exception before" 8 "peer [0-3]: exited with status 1.*ZeroDivision" \
    "$run early-error" 50
wrong "an exception at step 20" 0 "peer 2 died: exited with status 1.*peer-2.out ends.*KeyError: 'no such key'" \
    "$run error" 200
set="--set gossip.algorithm=acid --set gossip.mixing=0.1 --set gossip.strength=0.5"
wrong "a method that it cannot serve" 8 "gossip.algorithm: acid does not work" \
    "$run" 50
set=
wrong "an early end" 0 "peer 2 left: its program ended before its share of steps, after 20" \
    "$run early" 200
wrong "not closed" 0 "peer 2 died: its program ended without closing its peer" \
    "$run exit" 200
wrong "other models" 3 "its model has 10[0-9]* values, that of others 10[0-9]*; every process" \
    "$run odd" 50
wrong "a process left behind" 0 "" "$run child" 50
wrong "a shell's command" 0 "" "exec $run && true" 50
wrong "the average is changed" 0 "the averaged model was not evaluated.*has changed it since" \
    "$run blind" 50

# A peer that pauses: others hear that it is busy, and all do their share.
wrong "paused" 0 "" "$run paused" 400
holds "$(json steps) == 1600 and $(json exchanges refused) > 0" ||
    fail "paused: $(json steps) steps, $(json exchanges refused) refused"

# From its step 100 on each says how many examples it was of: 10 + rank.
samples=$(sql "$(json database)" "SELECT group_concat(samples) FROM (SELECT
    max(samples) AS samples FROM series WHERE peer IS NOT NULL
    GROUP BY peer ORDER BY peer)")
expect=4600,4900,5200,5500 # 100 steps of train.batch, 16, and 300 of its own
[ "$samples" = "$expect" ] || fail "samples: $samples, not $expect"

# Far fewer than train.batch, in steps that the loop is ahead of its peer with,
# and a row at every third: what the rows count never falls.
cat >"$scratch/few.py" <<'PYTHON'
import numpy as np
import kith
peer, step = kith.Peer(np.zeros(10, np.float32)), 0
while not peer.over:
    peer.step(0.1, samples=1)
    step += 1
    if step % 3 == 0:
        peer.report(0.5)
peer.close()
PYTHON
program "$python few.py" 3000 | sed -e '/^compute/d' \
    -e 's/every: 2}/every: 1000}\ntrain: {batch: 60000}/' >"$scratch/few.yaml"
lab 0 "$scratch/few.yaml"
samples=$(sql "$(json database)" "SELECT group_concat(samples) FROM (SELECT
    max(samples) AS samples FROM series WHERE peer IS NOT NULL GROUP BY peer)")
[ "$samples" = 3000,3000,3000,3000 ] || fail "samples of one: $samples"
# Many rows; rates are over a quarter of a second at least.
rates=$(sql "$(json database)" "SELECT max(rates - 4 * duration), min(number)
    FROM (SELECT count(DISTINCT samples_per_s) AS rates, count(*) AS number,
        max(time_s) AS duration FROM series
    WHERE peer IS NOT NULL GROUP BY peer)")
holds "${rates% *} <= 2 and ${rates#* } > 10" || fail "rates, rows: $rates"

# Halves that nothing but exchanges changes: the sum over all peers is that at
# the start, and what rounding lost by each peer's books.
cat >"$scratch/halves.py" <<'PYTHON'
import json, os, sys, time
import numpy as np
import kith
x = np.zeros(3000, np.float16)
with kith.Peer(x) as peer:
    rank, before = peer.stats["rank"], x.sum(dtype=np.float64)
    x[:] = np.random.default_rng(rank).normal(rank, 1, x.shape)
    said = {"start": x.sum(dtype=np.float64) - before}
    while not peer.over:
        peer.step(0.0)
    with peer.paused() as still:  # until all have looked
        said.update(end=x.sum(dtype=np.float64), still=still, **peer.stats)
        with open(f"{sys.argv[1]}/halves.{rank}.new", "w") as out:
            json.dump(said, out)
        os.rename(out.name, out.name[:-4])
        for _ in range(3000):
            if all(os.path.exists(f"{sys.argv[1]}/halves.{i}")
                   for i in range(4)):
                break
            time.sleep(0.01)
PYTHON
wrong "halves" 0 "" "$python halves.py $scratch" 300
"$python" - "$scratch" >"$scratch/out" <<'PYTHON' || fail "$(cat "$scratch/out")"
import json, sys
peers = [json.load(open(f"{sys.argv[1]}/halves.{i}")) for i in range(4)]
start, end, lost = (sum(one[key] for one in peers)
                    for key in ("start", "end", "rounded"))
print(f"from {start} to {end}; rounding: {lost}, {peers}")
assert all(one["still"] and one["items"] > 100 for one in peers)
assert all(one["rounded_norm"] > 0 for one in peers)
assert sum(abs(one["rounded"]) for one in peers) > 0.1
assert abs(end - start - lost) < 0.01
PYTHON
cat "$scratch/out"

# What the lab alone knows, and what is no program's.
program "$run" 50 | sed 's/, run: .*}/}/' >"$scratch/own.yaml"
lab 3 "$scratch/own.yaml"
one_line "no command" "model.run: not given"
program "$run" 50 >"$scratch/own.yaml"
expect 3 sim "$scratch/own.yaml"
one_line "sim" "kith.simulate()"
"$python" -c 'import kith, numpy; kith.Peer(numpy.zeros(3, "f"))' \
    2>"$scratch/err" && fail "a peer without a place"
says "no lab" "no kith lab has started this process"

# An end that is asked for: the programs end in order, and their saves wait for
# --resume. One of them is gone meanwhile: the one before it, .previous, is what
# goes on, and not the program's own first values.
program "$run" 3000 >"$scratch/own.yaml"
mkdir "$scratch/stop"
"$kith" lab --json --out "$scratch/stop" "$scratch/own.yaml" \
    >"$scratch/json" 2>"$scratch/err" &
pid=$!
while kill -0 $pid 2>/dev/null &&
    [ ! -e "$(echo "$scratch"/stop/*.saves/peer-3.save.previous)" ]; do
    sleep 0.1
done
kill -TERM $pid
wait $pid
none_left "stopped"
save=$(echo "$scratch"/stop/*.saves/peer-3.save)
mv "$save" "$save.previous" || fail "peer 3 has no two saves"
lab 0 --out "$scratch/stop" --resume "$scratch/own.yaml"
back=$(sql "$(json database)" "SELECT count(*) FROM (SELECT step, lag(step)
    OVER (PARTITION BY peer ORDER BY time_s) AS before FROM series
    WHERE peer IS NOT NULL AND test_loss IS NULL) WHERE step < before")
holds "$back == 0" || fail "$back times a peer went back"
began=$(sed -n 's/.*own.py began at //p' "$scratch"/stop/*.peer-3.out |
    tail -n 1)
holds "$began > 0.5" || fail "peer 3 begins with $began, its first value"
none_left "resumed"
finish
