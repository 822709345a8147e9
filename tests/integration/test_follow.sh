#!/bin/sh
# Goal: `kith report --follow` serves this machine alone a page that has, when the
# run has ended, what `kith report` writes; before it has begun, too; hostile
# names stay text; nobody else gets anything.
# Method: a lab runs while Python, and where there is one a browser, follow its
# events.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
follow=$top/tests/integration/follow.py

mkdir "$scratch/runs"
experiment 4 600 "compute: {step: 10ms}" >"$scratch/follow.yaml"

# Of a run that has not begun, by its folder.
follows "$scratch/runs"
case $address in
http://127.0.0.1:*/????????????????????????????????/) ;;
*) fail "the address is $address" ;;
esac
python3 "$follow" refused "$address" || fail "somebody was not refused"
chromium=$(command -v chromium || command -v chromium-browser || true)
python3 "$follow" until "$address" "$scratch/followed.json" >"$scratch/events" &
reader=$!
if [ -n "$chromium" ]; then
    python3 "$follow" browser "$address" >"$scratch/browser" 2>&1 &
    drawer=$!
fi
timeout 100 "$kith" lab "$scratch/follow.yaml" --out "$scratch/runs" \
    >"$scratch/json" 2>"$scratch/lab.err" || fail "$(cat "$scratch/lab.err")"
wait "$reader" || fail "not followed to its end"
cat "$scratch/events"
if [ -n "$chromium" ]; then
    wait "$drawer" || fail "not drawn while it ran"
    cat "$scratch/browser"
fi
grep -q "the run has ended" "$scratch/served" || fail "the end is not said"
database=$(find "$scratch/runs" -name '*.db')
timeout 60 "$kith" report "$database" --out "$scratch/page.html" >/dev/null ||
    fail "no page"
python3 "$follow" same "$scratch/followed.json" "$scratch/page.html" ||
    fail "what was followed is not what kith report writes"

# What comes later is added, and what was there is not sent again.
python3 "$follow" grows "$address" "$database" "$scratch/followed.json" ||
    fail "more was sent than is new"
timeout 60 "$kith" report "$database" --out "$scratch/page.html" >/dev/null
python3 "$follow" same "$scratch/followed.json" "$scratch/page.html" ||
    fail "what was added is not what kith report writes"
python3 "$follow" locked "$address" "$database" || fail "a writer was waited for"
grep -q locked "$scratch/err" && fail "a busy run is told as an error"
unfollows

# More databases than a page has: said.
mkdir "$scratch/crowd"
for i in $(seq 66); do cp "$database" "$scratch/crowd/$i.db"; done
follows "$scratch/crowd"
grep -q "found 66 databases; a page has at most 64" "$scratch/err" ||
    fail "what is left out is not said: $(cat "$scratch/err")"
unfollows

# Hostile names, and a file that is no database yet.
python3 - "$database" <<'PY'
import sqlite3, sys
evil = "</script><script>document.title='OWNED'</script>\u2028\"'&\r\n\r\nid: 1"
base = sqlite3.connect(sys.argv[1])
base.execute("UPDATE run SET value=? WHERE key IN ('name', 'algorithm')", (evil,))
base.execute("UPDATE faults SET fault=?", (evil,))
base.execute("INSERT INTO summary VALUES(1, ?1, ?1)", (evil,))
base.commit()
PY
: >"$scratch/later.db"
follows "$database" "$scratch/later.db"
python3 "$follow" refused "$address" || fail "a hostile name became a script"
unfollows

expect 2 report --follow "$database" --csv
grep -q "leave --csv out" "$scratch/err" || fail "--csv beside --follow"
[ -n "$chromium" ] || {
    [ "$failures" -eq 0 ] && skip "no chromium: all but the drawing passed"
}
finish
