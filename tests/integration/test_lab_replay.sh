#!/bin/sh
# Goal: a recorded lab run, carried out again by the simulator in the recorded
# order, ends with the same floats; and nothing but the journal of a whole run
# is taken for one.
# Method: lab_replay.py with pairs, rounds, weights and compressed rounds with
# vectors of their own, one run with a crash and a partition, one with loss, one
# with members that lie;
# SEEDS and ALGORITHMS in the environment choose others. Then databases that are
# not ours to replay, and damaged ones.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# shellcheck disable=SC2086
PYTHONDONTWRITEBYTECODE=1 python3 "$top/tests/integration/lab_replay.py" \
    "$kith" "$data" "$scratch" \
    --algorithms "${ALGORITHMS:-adpsgd,dpsgd,gosgd,gt,choco,adpsgd+crash,adpsgd+hostile,adpsgd+loss}" \
    ${SEEDS:-1} || fail "a replay is off"
none_left "the labs"

# refused STATUS PATTERN ARGUMENTS...
refused() {
    wanted=$1 pattern=$2
    shift 2
    expect "$wanted" sim "$@"
    one_line "$*" "$pattern"
}

# What is no recorded run.
experiment 2 20 "compute: {step: 2ms}" >"$scratch/digits.yaml"
lab 0 "$scratch/digits.yaml"
plain=$(json database)
lab 2 --record --resume "$plain"
expect 0 sim --json --out "$scratch" "$scratch/digits.yaml"
virtual=$(json database)
lab 0 --record "$scratch/digits.yaml"
good=$(json database)
[ "$(sql "$good" "SELECT count(*) > 0 FROM journal")" = 1 ] ||
    fail "--record wrote no journal"
[ "$(sql "$plain" "SELECT count(*) FROM sqlite_master WHERE name IN
    ('journal', 'models')")" = 0 ] || fail "a journal that nobody asked for"
refused 3 "no such file" --replay "$scratch/missing.db"
refused 3 "not a run database" --replay "$scratch/digits.yaml"
refused 3 "folder" --replay "$scratch"
refused 3 "has no journal; record one" --replay "$plain"
refused 3 "a run of kith sim" --replay "$virtual"
refused 2 "found --seed .*no other option" --replay "$good" --seed 3
refused 2 "found --trace beside" --replay "$good" --trace "$scratch/trace"
refused 2 "found --dump beside" --replay "$good" --dump "$scratch/dump.npz"
[ ! -e "$scratch/trace" ] && [ ! -e "$scratch/dump.npz" ] ||
    fail "what is refused wrote a file"
refused 2 "beside --replay" --replay "$good" "$scratch/digits.yaml"
refused 2 "did you mean \"--replay\"" --replya "$good"
expect 0 sim --replay "$good"

# damaged SQL: a copy of the good one on which it was carried out.
damaged() {
    cp "$good" "$scratch/damaged.db"
    python3 - "$scratch/damaged.db" "$1" <<'PY'
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.executescript(sys.argv[2])
PY
}
damaged "UPDATE run SET value='9' WHERE key='journal'"
refused 3 "journal of version 9" --replay "$scratch/damaged.db"
damaged "PRAGMA user_version=99"
refused 3 "schema 99" --replay "$scratch/damaged.db"
damaged "INSERT INTO run VALUES(1, 'resumed_utc', '2026-01-01')"
refused 3 "gone on with" --replay "$scratch/damaged.db"
damaged "UPDATE run SET value=replace(value, 'seed: 7', 'seed: 8')
    WHERE key='experiment'"
refused 3 "one of them was changed" --replay "$scratch/damaged.db"
damaged "DELETE FROM journal WHERE peer=1 AND part=2"
refused 3 "part 2 of peer 1's journal (life 0) is missing" \
    --replay "$scratch/damaged.db"
damaged "DELETE FROM journal WHERE peer=1 AND part > 2"
expect 1 sim --replay "$scratch/damaged.db"
one_line "cut short" "replay diverged: peer 0, event [0-9]*"
grep -q "the journal of peer 1 stops at event" "$scratch/err" ||
    fail "cut short: not named"
damaged "UPDATE journal SET bytes=x'42000000000000000000002a'
    WHERE peer=0 AND part=0"
refused 3 "its journal is damaged: part 0 of peer 0" \
    --replay "$scratch/damaged.db"
damaged "UPDATE journal SET bytes=zeroblob(100000) WHERE peer=0 AND part=1"
refused 3 "a part of 100000 bytes" --replay "$scratch/damaged.db"
damaged "UPDATE journal SET bytes=zeroblob(300000000) WHERE peer=0 AND part=1"
refused 3 "too big" --replay "$scratch/damaged.db"
damaged "UPDATE models SET model=zeroblob(8) WHERE peer=0"
refused 3 "final model of peer 0 is damaged" --replay "$scratch/damaged.db"
# What comes after a peer's end is no part of its life.
damaged "INSERT INTO journal SELECT run_id, peer, incarnation, max(part) + 1,
    x'0000004500000000450000000045000000004500' FROM journal WHERE peer=0"
refused 1 "replay diverged: peer 0.*out of order" \
    --replay "$scratch/damaged.db"

# One value of one final model is off: that is found, and counted.
damaged "UPDATE models SET model=zeroblob(8) || substr(model, 9), digest=0
    WHERE peer=1"
timeout 60 "$kith" sim --json --replay "$scratch/damaged.db" >"$scratch/json"
[ $? -eq 1 ] || fail "a value that is off: not exit 1"
differ=$(python3 -c "import json, sys
print([m['differ'] for m in json.load(open(sys.argv[1]))['models']])" \
    "$scratch/json")
holds "$differ == [0, 1] and $(json relative_max) == 1" ||
    fail "a value that is off is not counted"

damaged "UPDATE models SET accuracy=NULL WHERE peer=1"
timeout 60 "$kith" sim --json --replay "$scratch/damaged.db" >"$scratch/json"
[ $? -eq 1 ] || fail "an accuracy that is missing: not exit 1"
holds "$(json accuracy_gap) == 1" || fail "an accuracy that is missing: agrees"

# Bytes at random places: a line or an answer, never a crash.
python3 - "$kith" "$good" "$scratch/damaged.db" <<'PY' || fail "damaged journals"
import random, shutil, sqlite3, subprocess, sys
kith, good, damaged = sys.argv[1:]
random.seed(1)
for turn in range(30):
    shutil.copy(good, damaged)
    database = sqlite3.connect(damaged)
    where = " WHERE peer=? AND incarnation=? AND part=?"
    *key, data = random.choice(database.execute(
        "SELECT peer, incarnation, part, bytes FROM journal").fetchall())
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 4])):
        data[random.randrange(len(data))] = random.randrange(256)
    database.execute("UPDATE journal SET bytes=?" + where, [bytes(data)] + key)
    database.commit()
    done = subprocess.run([kith, "sim", "--replay", damaged], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False, errors="replace")
    lines = done.stderr.splitlines()
    told = done.returncode in (1, 3) and len(lines) == 1
    if not told and done.returncode != 0 and "does not agree" not in done.stdout:
        sys.exit(f"turn {turn}: exit {done.returncode}: {done.stderr}")
PY
none_left "the replays"
left=$(find "$scratch/tmp" -mindepth 1)
[ -z "$left" ] || fail "left behind: $left"
finish
