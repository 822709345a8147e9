#!/bin/sh
# Goal: a recorded lab of a program's peers is carried out again without the
# program: every decision is the record's, or where not is named; what is not
# checked is said in a line.
# Method: lab_program.py in pairs, with a crash, a partition and a pause, with a
# peer that pauses itself, in rounds and with weights; then records that say
# something else. ALGORITHMS in the environment: gossip sections, one a line.
# SKIP without numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
kith_in_python
cp "$top/tests/integration/lab_program.py" "$scratch/own.py"

# recorded GOSSIP ARGUMENTS [YAML...]: its database is $good.
recorded() {
    cat >"$scratch/own.yaml" <<YAML
name: own
peers: 4
stop: {steps: 300}
model: {kind: program, run: "$python own.py $2"}
gossip: {$1}
compute: {step: 2ms}
save: 200ms
YAML
    what="$1 $2"
    shift 2
    [ $# -eq 0 ] || printf '%s\n' "$@" >>"$scratch/own.yaml"
    lab 0 --record "$scratch/own.yaml"
    good=$(json database)
    steps=$(json steps)
    none_left "$what"
}
# replays RESTARTS
replays() {
    expect 0 sim --replay "$good" --json
    holds "$(json restarts) == $1 and $(json steps) == $steps and
        $(json events) > 1000 and $(json decisions) and $(json agrees) and
        len($(json models)) == 4 and $(json losses compared) == 0" ||
        fail "$what: $(cat "$scratch/json")"
}
recorded "algorithm: adpsgd, every: 2" ""
replays 0
pairs=$good
expect 0 sim --replay "$good"
grep -q "decisions agree .* 4 final models; not checked: values" \
    "$scratch/json" || fail "not said: $(cat "$scratch/json")"
[ "$(sql "$good" "SELECT count(*) FROM models WHERE model IS NOT NULL")" = 0 ] ||
    fail "values of a program's models were kept"
recorded "algorithm: adpsgd, every: 2" paused
replays 0
recorded "algorithm: adpsgd, every: 2" "" \
    "faults:" \
    "  - {at: 200ms, crash: \"peer(2)\", restart: 200ms}" \
    "  - {at: 300ms, for: 200ms, partition: \"peer(0) <-> peer(1..2)\"}" \
    "  - {at: 400ms, for: 100ms, pause: \"peer(1)\"}"
# A killed peer's steps are counted twice, or lost.
expect 0 sim --replay "$good" --json
holds "$(json restarts) == 1 and $(json agrees) and $(json steps) > 900" ||
    fail "faults: $(cat "$scratch/json")"
printf '%s\n' "${ALGORITHMS:-algorithm: dpsgd, every: 2, topology: ring
algorithm: sgp
algorithm: diloco, every: 10, topology: complete}" >"$scratch/gossip"
while read -r gossip; do
    recorded "$gossip" "" </dev/null
    replays 0
done <"$scratch/gossip"

# says STATUS PATTERN SQL: of a copy of the pairs' database.
says() {
    cp "$pairs" "$scratch/other.db"
    python3 - "$scratch/other.db" "$3" <<'PY'
import sqlite3, sys
sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])
PY
    expect "$1" sim --replay "$scratch/other.db"
    one_line "$3" "$2"
}
says 1 "replay diverged: peer [0-3], event [0-9]*.*expected a [a-z]* of swap" \
    "UPDATE run SET value = '999' WHERE key = 'vectors'"
says 3 "how large the program's model is, is damaged" \
    "UPDATE run SET value = '-1' WHERE key = 'vectors'"
says 3 "how large the program's model is, is damaged" \
    "UPDATE run SET value = '1001' WHERE key = 'buffers'"
finish
