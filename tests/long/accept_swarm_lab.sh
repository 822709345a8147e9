#!/bin/sh
# Goal: what the swarm draws breaks no promise with real processes either.
# Method: 200 draws, 8 a core at a time, twenty minutes on two cores; all that
# can go wrong with sessions and rounds was reached.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
cd "$scratch" || exit 99

"$kith" swarm --random --lab --seed 7 --runs 200 --json >out 2>err ||
    fail "exit $?"
grep "^kith swarm: run" err >&2
python3 - out <<'END' || fail "violations, or what was not reached"
import json
found = json.load(open("out"))
print({name: mark["runs"] for name, mark in found["marks"].items()})
assert found["runs"] == 200 and found["violations"] == [], found
for mark, least in (("merged", 180), ("round", 150), ("done", 80),
                    ("suspect", 100), ("adopted", 50), ("gated", 1)):
    assert found["marks"][mark]["runs"] >= least, mark
END
none_left "swarm --lab"
finish
