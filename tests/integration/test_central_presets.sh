#!/bin/sh
# Goal: every central preset of examples/taxonomy runs, learns, fills every
# column of the comparison and repeats its trace; other worlds refuse it.
# Method: a hundred steps of each file with `central:`, one of them twice, with
# another queue and other threads.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# run FILE ARGUMENTS...: --json to $scratch/json.
run() {
    timeout 120 "$kith" sim "$@" --out "$scratch" --json >"$scratch/json" \
        2>"$scratch/err" || {
        fail "kith sim $*: exit $?"
        cat "$scratch/err" >&2
    }
}

presets=0
for file in $(grep -l '^central:' "$top"/examples/taxonomy/*.yaml); do
    run "$file" --set stop.steps=100
    presets=$((presets + 1))
    python3 - "$scratch/json" <<'END' || fail "$file: columns are missing"
import json, math, sys
run = json.load(open(sys.argv[1]))
columns = {
    "loss": run["loss"]["averaged"],
    "steps": run["steps"],
    "bytes": run["bytes"]["per_peer_max"],
    "staleness": run["staleness"]["mean"],
    "staleness_max": run["staleness"]["max"],
    "consensus_distance": run["consensus_distance"],
    "utilisation": run["utilisation"],
}
missing = [key for key, value in columns.items() if value is None]
print(run["experiment"], columns)
assert not missing, missing
assert run["loss"]["mean"] < 2.6, "it learns"
assert 0 < run["utilisation"] <= 1
END
done
[ "$presets" -ge 15 ] || fail "only $presets central presets"

file=$top/examples/taxonomy/petuum.yaml
run "$file" --set stop.steps=50
cp "$scratch/json" "$scratch/first"
run "$file" --set stop.steps=50 --queue heap --threads 3
python3 - "$scratch/first" "$scratch/json" <<'END' || fail "another trace"
import json, sys
first, second = (json.load(open(name)) for name in sys.argv[1:])
for key in "trace_hash", "loss", "virtual_s", "events":
    assert first[key] == second[key], key
END

for command in train lab; do
    timeout 60 "$kith" $command "$file" --out "$scratch" 2>"$scratch/err" &&
        fail "kith $command ran a central baseline"
    grep -q 'exist in the simulator only' "$scratch/err" ||
        fail "kith $command does not say why it refuses"
done
finish
