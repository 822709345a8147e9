#!/bin/sh
# Goal: crash, restart, partition, pause and slow happen to real processes as
# the file says, and the peers learn all the same.
# Method: 7 peers of the digits for about ten seconds; the database says what
# happened when.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

experiment 7 2000 \
    "compute: {step: 4ms}" \
    "save: 500ms" \
    "faults:" \
    "  - {at: 1s, crash: \"peer(2)\", restart: 1s}" \
    "  - {at: 1500ms, crash: \"peer(3)\"}" \
    "  - {at: 3s, for: 1s, partition: \"peer(0..1) <-> peer(4..6)\"}" \
    "  - {at: 4500ms, for: 500ms, pause: \"peer(1)\"}" \
    "  - {at: 5s, for: 1s, slow: \"peer(4)\", by: 4}" \
    "assert:" \
    "  - \"always finite(model)\"" \
    "  - \"finally live\"" \
    "  - \"finally accuracy >= 0.9\"" >"$scratch/digits.yaml"
lab 0 "$scratch/digits.yaml"
none_left "faults"
database=$(json database)

# Atoms, as they were carried out: kind and count. 2 x 3 directions each way.
expect="crash 2
cut 12
heal 12
pause 1
restart 1
resume 1
slow 2"
seen=$(sql "$database" \
    "SELECT fault, count(*) FROM faults GROUP BY fault ORDER BY fault")
[ "$seen" = "$expect" ] || fail "faults that happened: $seen"
late=$(sql "$database" "SELECT max(happened_s - at_s) FROM faults")
holds "$late < 0.5" || fail "a fault came $late s late"
early=$(sql "$database" "SELECT min(happened_s - at_s) FROM faults")
holds "$early >= 0" || fail "a fault came early"

# The dead stay silent, the restarted one speaks again and goes on from a save.
last=$(sql "$database" "SELECT max(time_s) FROM series WHERE peer = 3 AND accuracy IS NULL")
holds "$last < 2" || fail "peer 3 still spoke at $last s"
after=$(sql "$database" \
    "SELECT max(step) FROM series WHERE peer = 2 AND time_s > 2.2")
holds "${after:-0} > 300" || fail "peer 2 did not come back: step $after"
adopted=$(sql "$database" "SELECT count(*) FROM marks JOIN mark_kinds USING (kind)
    WHERE mark_kinds.name = 'adopted' AND peer = 2")
[ "$adopted" -eq 1 ] || fail "peer 2 adopted $adopted models"

# Healthy peers did all their steps; the one that stays dead did not.
full=$(sql "$database" "SELECT count(*) FROM (SELECT peer, max(step) AS most
    FROM series WHERE peer IS NOT NULL GROUP BY peer) WHERE most = 2000")
holds "$full >= 5" || fail "only $full peers did all their steps"
pauses=$(sql "$database" "SELECT count(*) FROM series
    WHERE peer = 1 AND time_s BETWEEN 4.6 AND 4.95")
holds "$pauses <= 1" || fail "peer 1 spoke $pauses times while paused"
finish
