#!/bin/sh
# Goal: a sweep runs its whole grid into one database, mean and deviation of
# each cell come out, and an interruption costs the runs under way alone;
# what cannot work is told before anything runs, a cell that fails is kept.
# Method: 2 x 2 cells x 2 seeds of the digits; the same killed in the middle
# with SIGKILL and with Ctrl-C, then gone on with, must leave the same rows;
# cells that diverge; a full disk; a folder of presets, one of them nonsense.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

digits=$top/examples/digits.yaml
grid="--sweep gossip.every=1,4 --sweep train.learning_rate=0.02,0.1 --seeds 2"
quick="--set stop.epochs=2 --set evaluate=10ms --set target_loss=1.5 --set assert=[]"

# sweep EXPECTED ARGUMENTS...: JSON in $scratch/json, messages in $scratch/err.
sweep() {
    expected=$1
    shift
    timeout 300 "$kith" sim "$@" >"$scratch/json" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] || {
        fail "kith sim $*: exit $status, not $expected"
        cat "$scratch/err" >&2
    }
}

# refused WHAT PATTERN EXIT ARGUMENTS...: one line, no database.
refused() {
    what=$1 pattern=$2 code=$3
    shift 3
    mkdir "$scratch/refused"
    sweep "$code" "$@" --out "$scratch/refused"
    one_line "$what" "$pattern"
    [ -z "$(find "$scratch/refused" -mindepth 1)" ] ||
        fail "$what: something was written"
    rm -rf "$scratch/refused"
}

# content DATABASE: all that a run computes, in an order of its own.
content() {
    python3 - "$1" <<'PY'
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
print(base.execute("PRAGMA integrity_check").fetchone())
wall = ("wall_s", "started_utc", "problem")
for table in ("runs", "cells", "settings", "series", "marks", "faults",
              "verdicts", "summary", "run"):
    names = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
    names = [name for name in names if name not in wall]
    key = " WHERE key NOT IN ('wall_s', 'started_utc')" if "key" in names else ""
    rows = base.execute(f"SELECT {','.join(names)} FROM {table}{key}").fetchall()
    for row in sorted(rows, key=repr):
        print(table, *row)
PY
}

# A step that a machine's file says is every run's.
printf '%s\n' 'model: mlp' 'values: 2410' 'cores: 2' \
    'steps: [{batch: 16, threads: 1, time: 900us}]' >"$scratch/machine.yaml"
sed '/^compute:/d' "$digits" >"$scratch/hosts.yaml"
sweep 0 "$scratch/hosts.yaml" $quick --set "data.path=$data" --seeds 2 \
    --set "hosts={file: $scratch/machine.yaml}" --out "$scratch/hosts"

# The whole grid at once.
# shellcheck disable=SC2086
sweep 0 "$digits" $grid $quick --json --out "$scratch/whole"
whole=$(json database)
[ "$(json seeds)" = 2 ] || fail "seeds: $(json seeds)"
python3 - "$scratch/json" <<'PY' || fail "the object does not add up"
import json, statistics, sys
found = json.load(open(sys.argv[1]))
assert len(found["cells"]) == 4 and len(found["runs"]) == 8
assert all(run["state"] == "done" for run in found["runs"])
assert {run["seed"] for run in found["runs"]} == {7, 8}
for cell in found["cells"]:
    assert set(cell["settings"]) == {"gossip.every", "train.learning_rate"}
    for column in ("accuracy", "loss", "bytes_mean", "consensus_distance"):
        values = [run[column] for run in found["runs"]
                  if run["cell"] == cell["cell"]]
        spread = cell[column]
        assert spread["count"] == len(values) == 2
        assert abs(spread["mean"] - statistics.mean(values)) <= 1e-6 * abs(spread["mean"])
        assert abs(spread["deviation"] - statistics.stdev(values)) <= \
            1e-5 * abs(spread["mean"])
    assert 0 < cell["utilisation"]["mean"] <= 1
    assert cell["staleness_max"]["low"] >= cell["staleness_mean"]["low"] >= 0
fast = [run for run in found["runs"]
        if run["settings"]["train.learning_rate"] == "0.1"]
assert all(run["time_to_target_s"] > 0 for run in fast)
PY
[ -e "$whole.parts" ] && fail "parts are left behind"
# One of its runs by itself is the same run.
timeout 60 "$kith" sim "$digits" --set stop.epochs=2 --set evaluate=10ms \
    --set target_loss=1.5 --set "assert=[]" --set gossip.every=4 \
    --set train.learning_rate=0.02 --seed 8 --json --out "$scratch" \
    >"$scratch/json" 2>"$scratch/err" || fail "$(cat "$scratch/err")"
[ "$(sql "$whole" "SELECT value FROM summary JOIN runs USING(run_id) JOIN cells
    USING(cell) WHERE key = 'trace_hash' AND runs.seed = 8 AND label =
    'gossip.every=4, train.learning_rate=0.02'")" = "$(json trace_hash)" ] ||
    fail "a run of a sweep has another trace than the run alone"

# Killed in the middle: as soon as two runs are in the database.
# shellcheck disable=SC2086
"$kith" sim "$digits" $grid $quick --set stop.epochs=30 --jobs 1 \
    --out "$scratch/long" >"$scratch/json" 2>"$scratch/err" ||
    fail "long: $(cat "$scratch/err")"
long=$(find "$scratch/long" -name '*.db')
# interrupt SIGNAL FOLDER: starts the sweep there and ends it early.
interrupt() {
    # shellcheck disable=SC2086
    "$kith" sim "$digits" $grid $quick --set stop.epochs=30 --jobs 2 \
        --out "$2" >"$scratch/json" 2>"$scratch/err" &
    pid=$!
    tries=0
    while [ "$tries" -lt 400 ]; do
        broken=$(find "$2" -name '*.db' -not -path '*.parts/*' 2>/dev/null | head -1)
        [ -n "$broken" ] && [ "$(sql "$broken" \
            "SELECT count(*) FROM runs WHERE state = 'done'" 2>/dev/null)" -ge 2 ] \
            2>/dev/null && break
        kill -0 "$pid" 2>/dev/null || break
        tries=$((tries + 1))
        sleep 0.1
    done
    kill -s "$1" "$pid" 2>/dev/null
    wait "$pid"
    status=$?
}
for signal in KILL INT; do
    interrupt "$signal" "$scratch/$signal"
    done=$(sql "$broken" "SELECT count(*) FROM runs WHERE state = 'done'")
    left=$(sql "$broken" "SELECT count(*) FROM runs WHERE state = 'planned'")
    [ "$left" -ge 1 ] || echo "$name: $signal came too late, all was done" >&2
    [ "$left" -eq 0 ] || [ "$signal" = KILL ] || [ "$status" -eq 130 ] ||
        fail "Ctrl-C: exit $status, not 130: $(cat "$scratch/err")"
    if [ "$signal" = INT ] && [ "$left" -ge 1 ]; then
        grep -q "go on with: kith sim --resume" "$scratch/err" ||
            fail "Ctrl-C: no word on how to go on"
    fi
    # The same command goes on; for the other, the file is named.
    if [ "$signal" = KILL ]; then
        # shellcheck disable=SC2086
        sweep 0 "$digits" $grid $quick --set stop.epochs=30 --json \
            --out "$scratch/$signal"
    else
        sweep 0 --resume "$broken" --json
    fi
    [ "$left" -eq 0 ] || [ "$(json database)" = "$broken" ] ||
        fail "$signal: another database was written"
    [ "$left" -eq 0 ] || grep -q "$done of 8 runs are there" "$scratch/err" ||
        fail "$signal: $(cat "$scratch/err")"
    content "$broken" >"$scratch/resumed.txt"
    content "$long" >"$scratch/uninterrupted.txt"
    cmp -s "$scratch/resumed.txt" "$scratch/uninterrupted.txt" || {
        fail "$signal: gone on with, it holds something else"
        diff "$scratch/resumed.txt" "$scratch/uninterrupted.txt" | head -5 >&2
    }
    [ -e "$broken.parts" ] && fail "$signal: parts are left behind"
done

# More seeds are added; what is there is not run again.
before=$(sql "$whole" "SELECT value FROM run WHERE run_id = 1 AND key = 'started_utc'")
sweep 0 --resume "$whole" --seeds 3 --json
python3 - "$scratch/json" <<'PY' || fail "a third seed was not added"
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
assert len(runs) == 12 and {run["seed"] for run in runs} == {7, 8, 9}
PY
[ "$before" = "$(sql "$whole" \
    "SELECT value FROM run WHERE run_id = 1 AND key = 'started_utc'")" ] ||
    fail "a run that was there was run again"

# Keys that go together, files among them, and a key of one algorithm alone;
# what the mapping does not say stays as the file has it.
mkdir "$scratch/own"
sed "s|path: data/digits|path: $data|; s|algorithm: adpsgd|algorithm: elastic, elasticity: 0.3|" \
    "$digits" >"$scratch/own/own.yaml"
printf 'from,to\n0,1\n1,2\n2,3\n' >"$scratch/own/a,1.csv"
own=$scratch/own/own.yaml
# shellcheck disable=SC2086
sweep 0 "$own" $quick --sweep \
    'gossip={topology: file, path: "a,1.csv"}|{topology: ring}|{algorithm: sgp, elasticity: null}' \
    --json --out "$scratch/coupled"
python3 - "$scratch/json" <<'PY' || fail "keys that go together are not"
import json, sys
found = json.load(open(sys.argv[1]))
assert [cell["settings"]["gossip"] for cell in found["cells"]] == [
    '{topology: file, path: "a,1.csv"}', "{topology: ring}",
    "{algorithm: sgp, elasticity: null}"], found["cells"]
assert all(run["state"] == "done" for run in found["runs"])
PY
coupled=$(json database)
[ "$(sql "$coupled" "SELECT group_concat(value) FROM (SELECT value FROM run
    WHERE key = 'topology' ORDER BY run_id)")" = file,ring,random ] ||
    fail "the mappings' topologies did not run"
[ "$(sql "$coupled" "SELECT group_concat(value) FROM (SELECT value FROM run
    WHERE key = 'algorithm' ORDER BY run_id)")" = elastic,elastic,sgp ] ||
    fail "the mappings' algorithms did not run"
[ "$(sql "$coupled" "SELECT count(*) FROM cells WHERE experiment LIKE
    '%every: 2%'")" = 3 ] || fail "a key that no mapping says was lost"
# Lists of files, with commas in their names.
cp -r "$data" "$scratch/own/b,1"
cp -r "$data" "$scratch/own/c"
# shellcheck disable=SC2086
sweep 0 "$own" $quick --sweep 'data.path=b,1|c' --json --out "$scratch/files"
python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))["cells"]
assert [cell["label"] for cell in found] == ["data.path=b,1", "data.path=c"]' \
    "$scratch/json" || fail "data.path=b,1|c is not two files"
# shellcheck disable=SC2086
sweep 0 "$own" $quick --sweep 'data.path="b,1",c' --json --out "$scratch/files"

# Refused before anything runs, and by name.
refused "an unknown key" "cell 1 (gossip.evry=1).*evry" 3 \
    "$digits" --sweep gossip.evry=1,2
refused "an empty list" "its list is empty" 2 "$digits" --sweep gossip.every=
refused "an empty value" "a value is empty" 2 "$digits" --sweep gossip.every=1,,2
refused "a value twice" "twice" 2 "$digits" --sweep gossip.every=1,2,1
refused "a value out of range" 'cell 3 (gossip.every=0).*found "0"' 3 \
    "$digits" --sweep gossip.every=1,2,0
refused "seeds swept" "seeds are counted" 2 "$digits" --sweep seed=1,2
refused "a key twice" "given twice" 2 \
    "$digits" --sweep gossip.every=1 --set gossip.every=2
refused "a key of a mapping twice" "given twice" 2 \
    "$digits" --sweep 'gossip={every: 1, topology: ring}|{every: 2}' --set gossip.every=2
refused "a key of two sweeps" "given twice" 2 \
    "$digits" --sweep 'gossip={topology: ring}|{every: 2}' --sweep gossip.every=1,2
refused "a mapping of a key" "changes keys of a mapping" 3 \
    "$digits" --sweep 'peers={a: 1}|{a: 2}'
refused "an unknown key of a mapping" "cell 2 .*evry" 3 \
    "$digits" --sweep 'gossip={every: 1}|{evry: 2}'
refused "no key" "no key" 2 "$digits" --sweep =1
refused "no seed" "1 to" 2 "$digits" --seeds 0
refused "a trace" "one run" 2 "$digits" --seeds 2 --trace "$scratch/trace"
refused "jobs alone" "go with" 2 "$digits" --jobs 2
refused "no experiment" "which experiment" 2 --seeds 2
refused "no presets" "cells" 3 --all-cells --cells "$scratch/nowhere"
sweep 3 --resume "$scratch/digits-sim-1.db"
one_line "one run gone on with" "holds one run"
sweep 3 --resume "$scratch/json"
one_line "no database" "not a run database\|not a database"

# What diverges is a result, and the others are run.
# shellcheck disable=SC2086
sweep 1 "$digits" --sweep train.learning_rate=0.05,1e6 $quick \
    --set train.weight_decay=0.5 --json \
    --out "$scratch/diverge"
python3 - "$scratch/json" <<'PY' || fail "a run that diverged is not kept as such"
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
assert [run["state"] for run in runs] == ["done", "diverged"], runs
assert runs[1]["loss"] is None and runs[0]["loss"] > 0
PY

# What dies is kept as failed, and tried again when the sweep goes on.
# shellcheck disable=SC2086
"$kith" sim "$digits" --seeds 3 $quick --set stop.epochs=150 --jobs 1 \
    --out "$scratch/fail" --json >"$scratch/json" 2>"$scratch/err" &
pid=$!
python3 - "$pid" <<'PY' || fail "no run to kill was found"
import os, signal, sys, time
for _ in range(500):
    try:
        children = open(f"/proc/{sys.argv[1]}/task/{sys.argv[1]}/children").read()
    except OSError:
        break
    if children.split():
        os.kill(int(children.split()[0]), signal.SIGKILL)
        sys.exit(0)
    time.sleep(0.01)
sys.exit(1)
PY
wait "$pid"
[ $? -eq 1 ] || fail "a run that died is not exit 1: $(cat "$scratch/err")"
python3 - "$scratch/json" <<'PY' || fail "a run that died is not kept as such"
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
assert sorted(run["state"] for run in runs) == ["done", "done", "failed"], runs
assert any("signal 9" in (run["problem"] or "") for run in runs)
PY
sweep 0 --resume "$(json database)"

# A folder of presets; nonsense is listed by name, and the others run.
mkdir "$scratch/presets"
for algorithm in adpsgd dpsgd; do
    experiment 3 20 "compute: {step: 1ms}" "evaluate: 5ms" |
        sed "s/adpsgd/$algorithm/; s/topology: random/topology: complete/" \
            >"$scratch/presets/$algorithm.yaml"
done
experiment 3 20 "compute: {step: 1ms}" | sed "s/adpsgd/nonsense/" \
    >"$scratch/presets/absurd.yaml"
sweep 0 --all-cells --cells "$scratch/presets" --seeds 2 --json \
    --out "$scratch/cells"
python3 - "$scratch/json" <<'PY' || fail "the presets are not as they should be"
import json, sys
found = json.load(open(sys.argv[1]))
cells = {cell["label"]: cell for cell in found["cells"]}
assert set(cells) == {"absurd", "adpsgd", "dpsgd"}, cells.keys()
assert "nonsense" in cells["absurd"]["refused"] and cells["absurd"]["runs"] == 0
assert cells["adpsgd"]["runs"] == cells["dpsgd"]["runs"] == 2
steps = cells["dpsgd"]["steps"]["mean"]
print("expected: the folder's own 3 peers, 60 steps; measured:", steps)
assert steps == 3 * 20
PY
cells=$(json database)
timeout 60 "$kith" report "$cells" "$whole" --csv --target-loss 2.2 \
    --out "$scratch/table.csv" >"$scratch/stdout" 2>"$scratch/err" ||
    fail "kith report: $(cat "$scratch/err")"
grep -q "refused: absurd" "$scratch/stdout" || fail "the refused cell is not told"
[ "$(wc -l <"$scratch/table.csv")" -eq 17 ] ||
    fail "the table has $(wc -l <"$scratch/table.csv") lines, not 17"

# A full disk: one line, exit 5, and what there is can be read.
small=$scratch/small
mkdir "$small"
if mount -t tmpfs -o size=400k,mode=0777 kith-test "$small" 2>/dev/null; then
    trap 'umount -l "$small"; rm -rf "$scratch"' EXIT
    # shellcheck disable=SC2086
    sweep 5 "$digits" $grid $quick --set stop.epochs=20 --jobs 1 --out "$small"
    grep -q "no space left" "$scratch/err" ||
        fail "full disk: $(cat "$scratch/err")"
    full=$(find "$small" -name '*.db' -not -path '*.parts/*')
    [ "$(sql "$full" "PRAGMA integrity_check")" = ok ] ||
        fail "full disk: the database is damaged"
    timeout 60 "$kith" report "$full" --csv --out "$scratch/full.csv" \
        >"$scratch/stdout" 2>"$scratch/err" ||
        fail "full disk: $(cat "$scratch/err")"
else
    echo "$name: mounting a tmpfs is refused: a full disk was not tried" >&2
fi
finish
