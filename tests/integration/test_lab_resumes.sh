#!/bin/sh
# Goal: a lab that was interrupted, or whose launcher was killed, goes on from
# its peers' saves, in its own database, and ends as one that was not; an early
# stop is a regular end.
# Method: Ctrl-C, kill -9, then --resume until the share is done.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

experiment 4 1200 "compute: {step: 5ms}" "save: 100ms" \
    'faults: [{at: 500ms, crash: "peer(1)", restart: 200ms}]' \
    >"$scratch/digits.yaml"

# begin ARGUMENTS...: kith lab in the background; sets launcher.
begin() {
    (
        trap - INT
        exec "$kith" lab --json --out "$out" "$@"
    ) >"$scratch/json" 2>"$scratch/err" &
    launcher=$!
}

# until_step STEP: the database has a row past it.
until_step() {
    for _ in $(seq 100); do
        sleep 0.1
        step=$(sql "$out/digits-lab-1.db" \
            "SELECT coalesce(max(step), 0) FROM series" 2>/dev/null)
        [ "${step:-0}" -gt "$1" ] && return
    done
    fail "step $1 was not reached"
}

begin "$scratch/digits.yaml"
until_step 150
# The saves of a run that goes on belong to it.
lab 8 --resume "$out/digits-lab-1.db"
begin_err=$(grep -c "belong to a kith lab that is running" "$scratch/err")
[ "$begin_err" = 1 ] || fail "two labs on one folder"
kill -INT "$launcher"
wait "$launcher"
[ $? -eq 130 ] || fail "Ctrl-C: not exit 130"
none_left "Ctrl-C"
[ -s "$out/digits-lab-1.saves/peer-0.save" ] || fail "Ctrl-C: no saves"
sent=$(sql "$out/digits-lab-1.db" \
    "SELECT max(bytes_sent) FROM series WHERE peer = 0")

# Once more, without a name, and the launcher is killed.
reached=$(sql "$out/digits-lab-1.db" "SELECT max(step) FROM series")
begin --resume "$scratch/digits.yaml"
until_step $((reached + 100))
kill -9 "$launcher"
wait "$launcher" 2>/dev/null
none_left "kill -9"

# A save that was damaged: told, and the one before it taken.
# In a copy: a kill between two renames leaves one file with both names.
save=$out/digits-lab-1.saves/peer-2.save
cp "$save" "$scratch/copy"
printf xyz | dd of="$scratch/copy" bs=1 seek=400 conv=notrunc 2>/dev/null
mv "$scratch/copy" "$save"
lab 0 --resume "$out/digits-lab-1.db"
grep -q "peer 2: resumed note=.*checksum.*previous" "$scratch/err" ||
    fail "the damaged save is not told"
[ "$(json steps)" = 4800 ] || fail "$(json steps) steps, not 4800"
holds "$(json accuracy averaged) > 0.9" || fail "accuracy"
database=$(json database)
[ "$database" = "$out/digits-lab-1.db" ] || fail "another database: $database"
no_saves "the end"
count=$(sql "$database" "SELECT count(DISTINCT incarnation) FROM marks
    WHERE peer = 0 AND initiator")
[ "$count" -eq 3 ] || fail "$count incarnations of peer 0, not 3"
count=$(sql "$database" "SELECT count(*) FROM faults WHERE fault = 'crash'")
[ "$count" -eq 1 ] || fail "the crash happened $count times"
back=$(sql "$database" "SELECT count(*) FROM series WHERE peer = 0 AND
    bytes_sent < $sent AND time_s > (SELECT min(time_s) FROM series WHERE
    peer = 0 AND bytes_sent = $sent)")
[ "$back" = 0 ] || fail "the counters began again"
[ "$(sql "$database" "PRAGMA integrity_check")" = ok ] || fail "the database"

# Nothing to go on with; another experiment.
lab 3 --resume "$database"
one_line "a run at its end" "came to its end"
lab 3 --resume "$scratch/digits.yaml"
one_line "no saves" "there is no digits-lab-N.saves"
lab 2 --resume "$scratch/nothing.save"
one_line "not a database" "allowed: the run database"
mkdir "$out/digits-lab-1.saves"
lab 3 --resume "$database" --seed 8 "$scratch/digits.yaml"
one_line "another seed" "its seed is 7, this run's is 8"
rmdir "$out/digits-lab-1.saves"

# Nothing gets better at a rate of nothing.
lab 0 --set train.learning_rate=0 --set "stop={steps: 60000, patience: 3}" \
    --set evaluate=200ms "$scratch/digits.yaml"
grep -q "stopped early" "$scratch/err" || fail "no early stop"
holds "$(json steps) < 100000" || fail "early stop: $(json steps) steps"
lab 3 --set stop.patience=3 "$scratch/digits.yaml"
one_line "patience without evaluations" "evaluate=5s"
finish
