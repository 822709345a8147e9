#!/bin/sh
# Goal: a page draws what the database holds, loads nothing, and stays a page
# when the database is hostile; a bad database is told in one line.
# Method: two tiny simulated runs, one page and one table of them; a copy with
# scripts in every text; broken copies; where chromium is installed the drawn
# document is looked at, otherwise that part is left out.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# report EXPECTED ARGUMENTS...: what it printed is in $scratch/err.
report() {
    expected=$1
    shift
    timeout 60 "$kith" report "$@" >"$scratch/stdout" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] || {
        fail "kith report $*: exit $status, not $expected"
        cat "$scratch/err" >&2
    }
}

# refused WHAT PATTERN DATABASE: one clear line, no page.
refused() {
    rm -f "$scratch/no.html"
    report 4 "$3" --out "$scratch/no.html"
    one_line "$1" "$2"
    [ -e "$scratch/no.html" ] && fail "$1: left a page"
}

experiment 3 60 "compute: {step: 1ms}" \
    "faults: [{at: 10ms, crash: \"peer(1)\", restart: 10ms}]" \
    'assert: ["always finite(model)", "finally accuracy >= 0.99"]' \
    >"$scratch/tiny.yaml"
for seed in 7 8; do
    timeout 60 "$kith" sim "$scratch/tiny.yaml" --seed $seed --json \
        --out "$scratch" >"$scratch/json" 2>"$scratch/err"
    # 0.99 after 60 steps is out of reach: the verdict is part of the page.
    [ $? -eq 1 ] || fail "kith sim: $(cat "$scratch/err")"
done
first=$(find "$scratch" -name '*-1.db') second=$(find "$scratch" -name '*-2.db')
if [ -z "$first" ] || [ -z "$second" ]; then
    fail "kith sim wrote no database"
    finish
fi

report 0 "$first" --out "$scratch/one.html"
report 0 "$first" "$second" --out "$scratch/two.html"
for page in one two; do
    [ "$(grep -c '<script>' "$scratch/$page.html")" -eq 2 ] ||
        fail "$page.html: not two scripts"
    # dygraphs' own notice has addresses, but nothing asks for one.
    grep -E '(src|href)=.?(https?:)?//|@import|fetch\(|XMLHttpRequest\(\)' \
        "$scratch/$page.html" >"$scratch/hits" &&
        fail "$page.html reaches out: $(cut -c 1-200 "$scratch/hits")"
done

# The table has a row for each run; the points every row of both.
report 0 "$first" "$second" --csv --target-loss 100 --out "$scratch/table.csv"
grep -q "time to target" "$scratch/stdout" || fail "no table is printed"
python3 - "$scratch/table.csv" <<'PY' || fail "table.csv is not as it should be"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert [row["seed"] for row in rows] == ["7", "8"]
for row in rows:
    assert row["state"] == "done" and row["violations"] == "1"
    assert int(row["steps"]) >= 2 * 60
    assert float(row["bytes_max"]) >= float(row["bytes_mean"]) > 0
    assert float(row["staleness_max"]) >= float(row["staleness_mean"]) >= 0
    assert 0 < float(row["utilisation"]) <= 1
    assert float(row["time_to_target_s"]) > 0
    assert float(row["consensus_distance"]) >= 0
PY
report 2 "$first" --target-loss none
# Two tables are two files.
report 2 "$first" --csv --points
one_line "--csv and --points" "two files"
cp "$first" "$scratch/both.db"
report 0 "$scratch/both.db" --csv
report 0 "$scratch/both.db" --points
head -n 1 "$scratch/both.csv" | grep -q "^database," ||
    fail "--points wrote over the table of --csv"
[ -s "$scratch/both.points.csv" ] || fail "no points beside the table"
report 0 "$first" "$second" --points --out "$scratch/series.csv"
rows=$(($(sql "$first" "SELECT count(*) FROM series") +
    $(sql "$second" "SELECT count(*) FROM series") + 1))
[ "$(wc -l <"$scratch/series.csv")" -eq "$rows" ] ||
    fail "series.csv has $(wc -l <"$scratch/series.csv") lines, not $rows"

# Hostile text everywhere.
cp "$first" "$scratch/evil.db"
python3 - "$scratch/evil.db" <<'PY'
import sqlite3, sys
evil = ("</script><script>document.title='OWNED'</script>"
        "<img src=x onerror=\"document.title='OWNED'\">\u2028\"'&")
base = sqlite3.connect(sys.argv[1])
for sql in ("UPDATE run SET value=? WHERE key NOT IN ('peers', 'schema')",
            "UPDATE verdicts SET assertion=?", "UPDATE faults SET fault=?",
            "INSERT INTO run VALUES(1, ?1, ?1)",
            "INSERT INTO summary VALUES(1, '__proto__', ?)"):
    base.execute(sql, (evil,))
base.execute("UPDATE run SET value=CAST(x'ff3c2f' AS TEXT) WHERE key='build'")
base.execute("UPDATE series SET loss=9e999 WHERE step < 5")
base.commit()
PY
report 0 "$scratch/evil.db" --out "$scratch/evil.html"
[ "$(grep -ci '<script>' "$scratch/evil.html")" -eq 2 ] ||
    fail "a hostile name became a script"
grep -q '<img' "$scratch/evil.html" && fail "a hostile name became an element"
report 0 "$scratch/evil.db" --csv --out "$scratch/evil.csv"
report 0 "$scratch/evil.db" --points --out "$scratch/evil.csv"

# The cells of a sweep, their labels hostile, too.
timeout 60 "$kith" sim "$scratch/tiny.yaml" --sweep gossip.every=1,3 --seeds 2 \
    --set evaluate=10ms --out "$scratch/sweep" >"$scratch/json" 2>"$scratch/err"
[ $? -eq 1 ] || fail "kith sim --sweep: $(cat "$scratch/err")"
sweep=$(find "$scratch/sweep" -name '*.db')
report 0 "$sweep" "$first" --out "$scratch/cells.html"
cp "$sweep" "$scratch/evil-sweep.db"
python3 - "$scratch/evil-sweep.db" <<'PY'
import sqlite3, sys
evil = "</script><script>document.title='OWNED'</script>\u2028\"'&"
base = sqlite3.connect(sys.argv[1])
base.execute("UPDATE cells SET label = label || ?, refused = ?", (evil, evil))
base.execute("UPDATE runs SET problem = ?, state = ? WHERE run_id = 2",
             (evil, evil))
base.execute("UPDATE runs SET cell = 99, loss = 9e999 WHERE run_id = 3")
base.execute("UPDATE settings SET value = ?", (evil,))
base.commit()
PY
report 0 "$scratch/evil-sweep.db" --out "$scratch/evil-sweep.html"
[ "$(grep -ci '<script>' "$scratch/evil-sweep.html")" -eq 2 ] ||
    fail "a hostile label became a script"
report 0 "$scratch/evil-sweep.db" --csv --out "$scratch/evil.csv"

# Not a run database.
: >"$scratch/empty.db"
echo hello >"$scratch/junk.db"
head -c 9000 "$first" >"$scratch/cut.db"
cp "$first" "$scratch/later.db"
sql "$scratch/later.db" "PRAGMA user_version=99"
refused "an absent database" "No such file" "$scratch/absent.db"
refused "a folder" "it is a folder, not a plain file; give a .db" "$scratch"
refused "an empty file" "no run database" "$scratch/empty.db"
refused "a text file" "not a database" "$scratch/junk.db"
refused "a database cut short" "malformed\|not a database" "$scratch/cut.db"
refused "a later schema" "version 99" "$scratch/later.db"
report 5 "$first" --out "$scratch/nowhere/one.html"
one_line "a folder that is not there" "nowhere"
report 2
[ "$(find "$scratch" -name '*.tmp')" = "" ] || fail "a temporary file is left"

# draws PAGE: renders it; the document is in $scratch/dom.
draws() {
    timeout 100 "$chromium" --headless --no-sandbox --disable-gpu \
        --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
        --enable-logging=stderr --virtual-time-budget=60000 --dump-dom \
        "file://$scratch/$1.html" >"$scratch/dom" 2>"$scratch/console"
    grep -q 'data-ready="yes"' "$scratch/dom" || fail "$1: not drawn"
    grep 'CONSOLE' "$scratch/console" >"$scratch/hits" &&
        fail "$1: the console says $(cat "$scratch/hits")"
    for chart in accuracy loss consensus_distance bytes_sent; do
        grep -o "id=\"chart-$chart\"[^>]*" "$scratch/dom" |
            grep -q 'data-lines="[1-9]' || fail "$1: no line in $chart"
    done
    grep -q '<canvas' "$scratch/dom" || fail "$1: no canvas"
}

chromium=$(command -v chromium || command -v chromium-browser || true)
if [ -n "$chromium" ] && [ "$failures" -eq 0 ]; then
    draws one
    grep -q 'broken' "$scratch/dom" || fail "the broken assertion is not shown"
    grep -q '>crash<' "$scratch/dom" || fail "the crash is not shown"
    draws two
    # Two seeds of one experiment are one setting, one line, one colour.
    grep -q 'The mean of 2 seeds' "$scratch/dom" || fail "no mean of seeds"
    grep -q 'A, B · digits' "$scratch/dom" || fail "no line of both seeds"
    grep -o 'id="chart-accuracy"[^>]*' "$scratch/dom" |
        grep -q 'data-lines="1"' || fail "seeds are not one line"
    draws evil
    grep -q '<title>.*OWNED.*</title>' "$scratch/dom" ||
        fail "the hostile name is not shown as text"
    grep -q '<title>OWNED</title>' "$scratch/dom" && fail "a script ran"
    draws cells
    grep -q 'id="comparison"' "$scratch/dom" || fail "no comparison is shown"
    grep -q 'gossip.every=3' "$scratch/dom" || fail "no cell is shown"
    grep -q '1 assertion' "$scratch/dom" || fail "no broken run is told"
    draws evil-sweep
    grep -q '<title>OWNED</title>' "$scratch/dom" && fail "a label ran"
elif [ -z "$chromium" ]; then
    echo "$name: no chromium: that the page draws was not checked" >&2
    [ "$failures" -eq 0 ] && skip "all but the drawing passed"
fi
finish
