#!/bin/sh
# Goal: the summary for people stands in 80 columns, under four headings, and
# says of exchanges that nobody was hurt by being put off.
# Method: sim, lab and train; a simulated run with a crash and busy peers.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# summary HEADINGS ARGUMENTS...: in short names of files.
cd "$scratch" || exit 99
summary() {
    headings=$1
    shift
    expect 0 "$@" --set "stop={epochs: 2}" --set "assert=[]"
    found=$(grep -xE 'result|work|exchanges|run' json | tr '\n' ' ')
    [ "$found" = "$headings " ] || fail "$*: the headings are $found"
    long=$(awk 'length($0) > 80' json)
    [ -z "$long" ] || fail "$*: wider than 80 columns: $long"
}
summary "result work exchanges run" sim "$top/examples/digits.yaml"
summary "result work exchanges run" lab "$top/examples/digits.yaml"
summary "result work run" train "$top/examples/digits.yaml"
experiment 6 60 "compute: {step: 1ms}" "network: {latency: 2ms}" \
    'faults: [{at: 20ms, crash: "peer(2)"}]' >crash.yaml
expect 0 sim crash.yaml
grep -q "put off .*as usual" json || fail "busy peers: $(cat json)"
grep -q "failed .*training went on" json || fail "a crash: $(cat json)"
finish
