#!/bin/sh
# Goal: kith list topology NAME PEERS builds and measures every kind, prints the
# figures that theory has, and refuses by name what cannot be.
# Method: every name of the registry at 16 peers, a few figures, a table of
# wrong command lines.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

i=0
: >"$scratch/edges"
while [ $i -lt 15 ]; do
    echo "$i $((i + 1))" >>"$scratch/edges"
    echo "$((i + 1)) $i" >>"$scratch/arcs"
    i=$((i + 1))
done
cat "$scratch/edges" >>"$scratch/arcs"

# list NAME PEERS ARGUMENTS...: --json to $scratch/json.
list() {
    timeout 60 "$kith" list topology "$@" --json >"$scratch/json" \
        2>"$scratch/err" || {
        fail "kith list topology $*: exit $?"
        cat "$scratch/err" >&2
    }
}

# near KEY EXPECTED: to a millionth.
near() {
    python3 -c 'import sys; sys.exit(abs(float(sys.argv[1]) -
float(sys.argv[2])) > 1e-6)' "$(json "$1")" "$2" 2>/dev/null ||
        fail "$1: $(json "$1"), not $2"
}

for kind in $("$kith" list topologies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'); do
    case $kind in
    file) set -- --set "gossip.path=$scratch/edges" ;;
    file-directed) set -- --set "gossip.path=$scratch/arcs" ;;
    *) set -- ;;
    esac
    timeout 60 "$kith" list topology "$kind" 16 "$@" >"$scratch/text" ||
        fail "kith list topology $kind 16: exit $?"
    grep -q "^$kind, 16 peers" "$scratch/text" || fail "$kind: no title"
    grep -q '^  links ' "$scratch/text" || fail "$kind: no links"
    list "$kind" 16 "$@"
    cat "$scratch/json" >>"$scratch/all"
    [ $# -gt 0 ] || list "$kind" 1
    cat "$scratch/json" >>"$scratch/all"
done
python3 - "$scratch/all" <<'PY' || fail "--json is not what it should be"
import json, sys
seen = set()
for line in open(sys.argv[1]):
    said = json.loads(line)
    seen.add(said["name"])
    repeats = said["schedule"] in ("static", "periodic")
    assert repeats == (said["period"] > 0), said
    assert said["links"] is not None or not repeats, said
    if repeats and said["doubly_stochastic"]:
        assert 0 <= said["rho"] < 1, said
    if not repeats and said["peers"] > 1:
        assert said["measured_contraction"] < 1.5, said
    if said["expected_contraction"] is not None:
        gap = said["expected_contraction"] - said["measured_contraction"]
        assert abs(gap) <= 4 * said["standard_error"], said
assert len(seen) >= 24, seen
PY

list ring 16 && near rho .949253 && near spectral_gap .050747
list ring 16 --set gossip.weights=optimal && near rho .926670
list torus 64 && near rho .882843
list exponential 33 && near rho .607800
list one-peer-exponential 24 && near rho .207340
list one-peer-exponential 32
[ "$(json exact_rounds)" = 5 ] ||
    fail "one-peer-exponential-32 is not exact after 5 rounds"
list base 100 --set gossip.degree=3
[ "$(json exact_rounds)" = 6 ] ||
    fail "base-4 of 100 is not exact after 6 rounds"
list random-matching 32 && near expected_contraction .483871
list od-equidyn 16 --set gossip.eta=1 && near expected_contraction .875
list random 16 && near expected_contraction .933333
list regions 32 --set gossip.regions=8 && near rho .804738
list regions 32 --set gossip.regions=8 --set gossip.leaders=true
python3 -c 'import sys; sys.exit(abs(float(sys.argv[1]) - .951184) > 1e-5)' \
    "$(json rate)" || fail "leaders: rate $(json rate), not .951184"

# One seed, one graph; another seed, another.
list random-regular 64 --set seed=3 && rho=$(json rho)
list random-regular 64 --set seed=3
[ "$(json rho)" = "$rho" ] ||
    fail "the same seed, another graph"
list random-regular 64 --set seed=4
[ "$(json rho)" != "$rho" ] ||
    fail "another seed, the same graph"

# refuses PATTERN ARGUMENTS...
refuses() {
    pattern=$1
    shift
    timeout 20 "$kith" list "$@" >"$scratch/json" 2>"$scratch/err"
    [ $? -eq 2 ] || fail "kith list $*: not exit 2"
    grep -q -- "$pattern" "$scratch/err" || {
        fail "kith list $*: does not say $pattern"
        cat "$scratch/err" >&2
    }
}
refuses "more than 64 neighbours" topology complete 66
refuses "a power of two" topology hypercube 12
refuses "topology ring does not have it" topology ring 8 --set gossip.degree=4
refuses "from 1 to 1048576" topology ring none
refuses 'did you mean "ring"' topology rng 8
refuses "gossip.KEY of a topology" topology ring 8 --set peers=4
refuses "gossip.path: not given" topology file 8
refuses "only a topology" algorithms adpsgd 8
refuses "needs a topology" algorithms adpsgd --set gossip.degree=4
finish
