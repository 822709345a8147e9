#!/bin/sh
# Goal: a search goes through its runs, goes on where it was stopped, finds what
# is violated and says how to see it again; what it draws is a file that
# kith sim runs to the same trace.
# Method: 60 runs of a fixed seed without a violation, in two commands and in
# one; a kept file; a file whose assertion cannot hold; what is refused.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
seed=23

# swarm EXPECTED ARGUMENTS...: output in $scratch/out, messages in $scratch/err.
swarm() {
    expected=$1
    shift
    timeout 100 "$kith" swarm "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] || {
        fail "kith swarm $*: exit $status, not $expected"
        cat "$scratch/err" >&2
    }
}

swarm 0 --random --seed $seed --runs 20 --out "$scratch/two"
swarm 0 --random --seed $seed --runs 60 --out "$scratch/two"
grep -q "60 of 60 runs, seed $seed, 0 violations" "$scratch/out" ||
    fail "two commands are not 60 runs"
swarm 0 --random --seed $seed --runs 60 --jobs 1 --out "$scratch/one" --json
for folder in one two; do
    sort "$scratch/$folder/swarm-random-$seed.log" >"$scratch/$folder.sorted"
done
diff "$scratch/one.sorted" "$scratch/two.sorted" >&2 ||
    fail "two commands and one differ"
python3 - "$scratch/out" <<'END' || fail "coverage"
import json
import sys
found = json.load(open(sys.argv[1]))
assert found["runs"] == 60 and found["violations"] == [], found
for mark in ("merged", "round", "done", "suspect", "adopted", "failed"):
    assert found["marks"][mark]["runs"] > 0, mark
END

# Seeds from 1,000 on draw what joined the lists later, too.
swarm 0 --random --seed 1002 --runs 60 --out "$scratch/late" --json
for run in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
    swarm 0 --random --seed 1002 --run $run --keep "$scratch/late.yaml"
    grep -h -o 'algorithm: [a-z-]*' "$scratch/late.yaml"
done >"$scratch/late.names"
grep -q -E 'gtop-k|gs-sgd|sync-sgd|two-level|sparse-loco|update-sets' \
    "$scratch/late.names" || fail "no late algorithm among 20 draws"

# A journal that lost its end goes on; one of another search is refused.
journal=$scratch/two/swarm-random-$seed.log
head -c 3000 "$journal" >"$scratch/cut" && cp "$scratch/cut" "$journal"
swarm 0 --random --seed $seed --runs 60 --out "$scratch/two"
sort "$journal" | diff "$scratch/one.sorted" - >&2 || fail "a cut journal"
sed -i '1s/^swarm/storm/' "$journal"
swarm 3 --random --seed $seed --runs 60 --out "$scratch/two"
grep -q "another search or build" "$scratch/err" || fail "a foreign journal"

# The kept file is the run.
swarm 0 --random --seed $seed --run 17 --keep "$scratch/kept.yaml"
hash=$(sed -n 's/.*trace \([0-9a-f]*\):.*/\1/p' "$scratch/out")
claims=$(sed -n 's/^# kith sim THIS \(--dishonest .*\)/\1/p' \
    "$scratch/kept.yaml")
# shellcheck disable=SC2086 # an option and its value, or nothing
"$kith" sim "$scratch/kept.yaml" $claims --out "$scratch" >"$scratch/out" ||
    fail "kith sim of a kept file"
grep -q "trace hash  *$hash" "$scratch/out" || fail "another trace: not $hash"

# Settings in the place of what is drawn, where a draw takes them: the command
# that repeats a run names them, and a key that does not exist ends by name.
swarm 0 --random --seed $seed --runs 20 --set gossip.wire=int8 \
    --out "$scratch/wire"
swarm 3 --random --seed $seed --runs 20 --set gossip.wire=bfloat16 \
    --out "$scratch/wire"
grep -q "another search or build" "$scratch/err" || fail "other settings"
swarm 0 --random --seed $seed --run 3 --set gossip.wire=int8 \
    --keep "$scratch/int8.yaml"
grep -q "wire: *int8" "$scratch/int8.yaml" || fail "a kept file without --set"
swarm 3 --random --seed $seed --runs 20 --set gossip.wyre=int8
grep -q 'did you mean "wire"' "$scratch/err" || fail "an unknown key"

# Found, and found again by the command that is told.
cat >"$scratch/broken.yaml" <<'END'
name: broken
seed: 3
peers: 6
stop: {time: 40s}
model: {kind: consensus, dim: 8}
gossip: {algorithm: dpsgd, topology: ring}
network: {latency: 2ms}
compute: {step: 20ms}
assert: ["finally done < 10"]
END
cd "$scratch" || exit 99
swarm 1 broken.yaml --runs 4 --seed 5
grep -q "4 violations" out || fail "not 4 violations"
again=$(sed -n 's/^kith swarm: run 2: .*; again: kith //p' err)
[ "$again" = "swarm broken.yaml --seed 5 --run 2" ] || fail "again: $again"
swarm 1 broken.yaml --seed 5 --run 2 --keep 2.yaml
grep -q "broken: finally done < 10" out || fail "not found again"
"$kith" sim 2.yaml >out 2>&1 && fail "kith sim does not find it"
grep -q "1 broken" out || fail "kith sim finds something else"

swarm 2
swarm 2 --random broken.yaml
swarm 2 --random --keep x.yaml
swarm 3 nowhere.yaml --run 1
"$kith" sim 2.yaml --dishonest 9=silent >out 2>&1 && fail "a peer beyond"
grep -q "peers below 6" out || fail "what claims are"
"$kith" sim 2.yaml --dishonest 1=modest >out 2>&1 && fail "an unknown claim"
finish
