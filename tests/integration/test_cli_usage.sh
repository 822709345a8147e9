#!/bin/sh
# Goal: the program explains itself, understands near misses, and a wrong
# command line is one line with exit 2.
# Method: every command's --help; a table of wrong command lines.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# says EXPECTED PATTERN ARGUMENTS...: exit status, and a word of the output.
says() {
    expected=$1 pattern=$2
    shift 2
    timeout 20 "$kith" "$@" >"$scratch/json" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] || fail "kith $*: exit $status, not $expected"
    cat "$scratch/json" "$scratch/err" | grep -q -- "$pattern" || {
        fail "kith $*: does not say $pattern"
        cat "$scratch/json" "$scratch/err" >&2
    }
}

says 0 "usage: kith COMMAND" --help
says 0 "usage: kith COMMAND" help
says 2 "usage: kith COMMAND"
says 0 "^kith [0-9]" --version
says 0 "^wire version: [0-9]" --version
says 0 "^MPI: .*kith-mpi.so" --version
for command in train eval sample export sim lab peer keys report doctor list; do
    says 0 "Example: kith $command" "$command" --help
    says 0 "usage: kith $command" "$command" -h
    says 0 "usage: kith $command" help "$command"
done
says 0 "--out DIR " sim --help
says 0 "--out FILE " report --help
says 0 "--out FILE " keys --help
says 0 "--out FILE " export --help
says 2 'did you mean "train"' help trian

# Nothing is guessed, everything is answered.
says 2 'did you mean "train"' trian
says 2 'did you mean "--json"' train --jsn x.yaml
says 2 'unknown option "--threads"' lab --threads 2 x.yaml
says 2 "takes no value" train --json=yes x.yaml
says 2 "needs a value" train x.yaml --set
says 2 'found "gossip.every"; allowed: KEY=VALUE' sim x.yaml --set gossip.every
says 2 'found "=4"; allowed: KEY=VALUE' lab x.yaml --set =4
says 2 "found 0 arguments" sim
says 2 "found 2 arguments" sim a.yaml b.yaml
grep -q "?" "$scratch/err" && fail "the usage is not one line: $(cat "$scratch/err")"
says 2 'whole number from 1 to 64' sim --threads 0 x.yaml
says 2 'did you mean "heap"' sim --queue hep x.yaml
says 2 'did you mean "full"' sim --wire=ful x.yaml
says 2 "whole number" train --seed -1 x.yaml
says 2 "whole number from 1 to 65535" lab --port 70000 x.yaml
says 2 'did you mean "certify"' keys certfy
says 2 "usage: kith keys new" keys new
says 2 "one of --authority and --name" keys new "$scratch/k"
says 2 "found \"boss\"" keys certify a b --roles boss
says 2 "names train twice" keys certify a b --roles train,seed,train
says 2 'did you mean "algorithms"' list algoritms
says 2 'did you mean "adpsgd"' list algorithms adpgd

# The registries, for people and for scripts.
says 0 "^adpsgd" list algorithms adpsgd
says 0 "gossip.every" list keys
says 0 '"name": "adpsgd"' list --json
python3 - "$scratch/json" <<'PY' || fail "kith list --json is not what it should be"
import json, sys
everything = json.load(open(sys.argv[1]))
for kind in ("algorithms", "compressors", "topologies", "guards", "models",
             "optimisers", "backends", "faults", "datasets", "checks"):
    assert everything[kind], kind
    for entry in everything[kind]:
        assert entry["name"] and "paper" in entry and entry["summary"], entry
for model in everything["models"]:
    # Every model that reads data has a shape to show.
    assert (model["parameters"] or 0) > 0 or model["input"] == "none", model
for backend in everything["backends"]:
    assert backend["here"] == (backend["missing"] is None), backend
assert any(backend["here"] for backend in everything["backends"])
PY

# A closed pipe or a full disk behind standard output is told, not ignored.
"$kith" list >/dev/full 2>/dev/null && fail "kith list > /dev/full: exit 0"
finish
