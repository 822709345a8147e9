#!/bin/sh
# Goal: kith swarm --lab runs its draws with real processes: interrupted it goes
# on, what is violated comes with its command and its rows, nothing is left.
# Method: a file of its own with ten seconds a run, three at a time: a ring,
# paced so that a run is a few percent of a core. In full, with everything
# drawn: tests/long/accept_swarm_lab.sh.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
cd "$scratch" || exit 99

# swarm EXPECTED ARGUMENTS...: output in out, messages in err.
swarm() {
    expected=$1
    shift
    timeout 60 "$kith" swarm "$@" >out 2>err
    status=$?
    [ "$status" -eq "$expected" ] || {
        fail "kith swarm $*: exit $status, not $expected"
        cat err >&2
    }
}

cat >ring.yaml <<'END'
name: ring
seed: 3
peers: 4
stop: {time: 10s}
model: {kind: consensus, dim: 8}
gossip: {algorithm: dpsgd, topology: ring}
network: {latency: 2ms}
compute: {step: 20ms}
assert: ["always finite(model)", "finally live"]
END
sed 's/^name: ring/name: broken/; s/"finally live"/"finally done < 10"/' \
    ring.yaml >broken.yaml

timeout 60 "$kith" swarm broken.yaml --lab --runs 1 >broken.out 2>broken.err &
broken=$!
timeout --foreground --preserve-status -s INT 2 "$kith" swarm ring.yaml \
    --lab --runs 3 --seed 5 --jobs 3 >out 2>err
status=$?
[ "$status" -eq 130 ] || fail "interrupted: exit $status"
grep -q "the same command goes on" err || fail "how to go on"
journal=swarm-ring.yaml-lab-5.log
runs=$(grep -c '^[0-9]' "$journal")
[ "$runs" -eq 0 ] || fail "$runs interrupted runs are in the journal"
swarm 0 ring.yaml --lab --runs 3 --seed 5 --jobs 3 --json
python3 - out <<'END' || fail "coverage"
import json
import sys
found = json.load(open(sys.argv[1]))
assert found["runs"] == 3 and found["violations"] == [], found
for mark in ("step", "merged", "round"):
    assert found["marks"][mark]["runs"] == 3, mark
END
left=$(find . -name 'ring-lab-*')
[ -z "$left" ] || fail "$left: rows of what violates nothing"

wait "$broken"
status=$?
[ "$status" -eq 1 ] || fail "violated: exit $status"
database=$(sed -n 's/.*broken: finally done < 10 (\(.*\)); again: .*/\1/p' \
    broken.err)
[ -f "$database" ] || fail "no rows in '$database'"
grep -q "again: kith swarm broken.yaml --seed 1 --run 0 --lab" broken.err ||
    fail "how to see it again"

swarm 2 --random --lab --run 3 --trace trace
grep -q "of simulations" err || fail "--trace"
swarm 3 ring.yaml --lab --runs 1 --set compute.spread=exponential
none_left "swarm --lab"
finish
