#!/bin/sh
# Goal: the databases of a cluster's peers are one run: done, with the ranks, the
# accuracy, the bytes and the utilisation that its peers had, also while they are
# followed; one alone is that peer's, done and not diverged.
# Method: two peers by README's walk-through, on this machine; `kith report` on
# both databases and on each, against the rows that the databases hold, and what
# --follow has served meanwhile.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"

make_cluster 2 "experiment: ../pair.yaml"
experiment 2 300 "compute: {step: 1ms}" | sed 's/^name: .*/name: pair/' \
    >"$scratch/pair.yaml"
mkdir -p "$scratch/0/model" "$scratch/1/model"
follows "$scratch/0/model" "$scratch/1/model"
timeout 100 python3 "$top/tests/integration/follow.py" until "$address" \
    "$scratch/followed.json" &
reader=$!
start_peer 0 && first=$pid
peer_options=--json
start_peer 1 && second=$pid
until_line 0 "$first" "finished step"
until_line 1 "$second" "finished step"
kill -TERM "$first" "$second"
wait "$first" || fail "peer 0: exit $?: $(cat "$scratch/0/err")"
wait "$second" || fail "peer 1: exit $?: $(cat "$scratch/1/err")"

grep -q "starting experiment=pair backend=.* data=idx:.* rows=[0-9].*every=" \
    "$scratch/1/err" || fail "the log does not begin with what it does"
python3 -c 'import json, sys; print(json.load(sys.stdin)["steps"])' \
    <"$scratch/1/out" || fail "--json: $(cat "$scratch/1/out")"

table() {
    "$kith" report "$@" --csv --out "$scratch/table.csv" >"$scratch/printed" ||
        fail "kith report $*: exit $?"
    cat "$scratch/printed"
}
zero=$scratch/0/model/pair-peer-1.db one=$scratch/1/model/pair-peer-1.db

wait "$reader" || fail "not followed to its end"
unfollows
"$kith" report "$zero" "$one" --out "$scratch/page.html" >"$scratch/printed" ||
    fail "no page"
python3 "$top/tests/integration/follow.py" same "$scratch/followed.json" \
    "$scratch/page.html" || fail "what was followed is not the page"

table "$zero" "$one"
grep -q "pair peer, 2 of 2 peers" "$scratch/printed" || fail "no name of the run"
python3 - "$scratch/table.csv" "$zero" "$one" <<'PY' || fail "not one run"
import csv, sqlite3, sys
rows = list(csv.DictReader(open(sys.argv[1])))
ends = []
for path in sys.argv[2:]:
    base = sqlite3.connect(path)
    base.row_factory = sqlite3.Row
    ends.append(dict(base.execute("SELECT * FROM series ORDER BY time_s DESC, "
                                  "accuracy DESC LIMIT 1").fetchone()))
print("expected: 1 run, done, of",
      [(e["peer"], e["step"], e["bytes_sent"], e["accuracy"]) for e in ends])
print("measured:", rows)
assert len(rows) == 1 and rows[0]["state"] == "done"
row = rows[0]
mean = lambda key: sum(float(e[key]) for e in ends) / len(ends)
assert int(row["steps"]) == sum(e["step"] for e in ends)
assert abs(float(row["accuracy"]) - mean("accuracy")) < 1e-6
assert 0.5 < float(row["accuracy"]) <= 1
assert float(row["bytes_mean"]) >= mean("bytes_sent") > 0
assert float(row["bytes_max"]) <= 1.1 * max(e["bytes_sent"] for e in ends)
assert 0 < float(row["utilisation"]) <= 1
PY
"$kith" report "$zero" "$one" --points --out "$scratch/points.csv" >/dev/null
python3 - "$scratch/points.csv" <<'PY' || fail "points without ranks"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
peers = sorted({row["peer"] for row in rows})
print("expected: points of peers 0 and 1; measured:", peers)
assert peers == ["0", "1"]
assert any(row["accuracy"] for row in rows)
PY

# One alone: its own rank, done.
table "$one"
grep -q '"pair peer 1",.*"done"' "$scratch/table.csv" ||
    fail "peer 1 alone: $(cat "$scratch/table.csv")"
# A rank that comes twice is of another run.
cp "$zero" "$scratch/again.db"
table "$zero" "$one" "$scratch/again.db"
[ "$(wc -l <"$scratch/table.csv")" -eq 3 ] || fail "a rank twice in one run"
# The page draws it as one run of two peers.
"$kith" report "$zero" "$one" --out "$scratch/page.html" >/dev/null
python3 - "$scratch/page.html" <<'PY' || fail "the page is not of one run"
import json, re, sys
text = open(sys.argv[1]).read()
data = json.loads(re.search(r'id="kith-data">(.*?)</script>', text, re.S)[1])
print("expected: one run of 2 peers; measured:",
      [(run["file"], run["peers_all"]) for run in data["runs"]])
assert [run["peers_all"] for run in data["runs"]] == [2]
last = data["runs"][0]["last"]
at = last["columns"].index("accuracy")
assert all(row[at] is not None for row in last["rows"])
PY
none_left "peers"
finish
