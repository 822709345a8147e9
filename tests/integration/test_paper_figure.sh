#!/bin/sh
# Goal: a figure for a paper takes two commands: five algorithms, five seeds,
# dirichlet(0.1), the user's own graph from a CSV beside the experiment, accuracy
# against bytes, mean and band.
# Method: the two commands as docs/report.md has them; every run has that graph
# and that split. SKIP without cairo.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

sed "s|path: data/digits|path: $data|" "$top/examples/digits.yaml" \
    >"$scratch/mine.yaml"
printf 'from,to\n0,1\n1,2\n2,3\n3,0\n0,2\n' >"$scratch/graph.csv"
cd "$scratch" || exit 99

expect 0 sim mine.yaml --set 'gossip+={topology: file, path: graph.csv}' \
    --set 'data.split=dirichlet(0.1)' --set 'assert=[]' \
    --sweep gossip.algorithm=adpsgd,sgp,dpsgd,elastic,d2 --seeds 5
"$kith" report digits-sweep-1.db --figure accuracy:bytes --out figure.svg \
    >"$scratch/stdout" 2>"$scratch/err"
status=$?
grep -q "built without cairo" "$scratch/err" && skip "no cairo"
[ "$status" -eq 0 ] || fail "kith report: exit $status: $(cat "$scratch/err")"
grep -q '<svg' figure.svg || fail "no SVG"
[ "$(sql digits-sweep-1.db "SELECT count(*), count(DISTINCT seed) FROM runs
    WHERE state = 'done'")" = "25 5" ] || fail "not 25 runs of 5 seeds are done"
[ "$(sql digits-sweep-1.db "SELECT count(*) FROM run WHERE key = 'experiment'
    AND value LIKE '%graph.csv%' AND value LIKE '%dirichlet(0.1)%'")" = 25 ] ||
    fail "a run has another graph or split"
finish
