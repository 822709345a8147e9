#!/bin/sh
# Goal: the page of a run of many peers in zones has a node a zone, with what all
# peers did and not those alone that have rows; a region's name is text whatever
# stands in it; one thread or two count alike, and older databases open.
# Method: 1,500 peers that all keep their marks, counted again by Python; the
# same with the rows of 64; the document that chromium draws, where there is one.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
counts=$top/tests/integration/report_map.py

# run NAME NETWORK FAULTS ARGUMENTS...: a database and a page of that name.
run() {
    name_=$1
    cat >"$scratch/$name_.yaml" <<EOF
name: $name_
seed: 3
peers: 1500
stop: {steps: 8}
model: {kind: none}
compute: {step: 100ms, spread: exponential}
gossip: {algorithm: adpsgd, topology: random-regular, degree: 4}
network: {$2}
faults: [$3]
EOF
    shift 3
    expect 0 sim "$scratch/$name_.yaml" --json --out "$scratch" "$@"
    expect 0 report "$scratch/$name_-sim-1.db" --out "$scratch/$name_.html"
}

# As a name: what a page must not carry out.
evil='<b>y"; </script>'
cat >"$scratch/three.csv" <<EOF
ms,near,$evil,far
near,1,10,200
$evil,10,1,190
far,200,190,1
EOF
cut='{at: 300ms, for: 300ms, partition: "peer(0..499) <-> peer(500..1499)"}'
run matrix "matrix: $scratch/three.csv" "$cut"
python3 "$counts" "$scratch/matrix.html" "$scratch/matrix-sim-1.db" \
    near "$evil" far || fail "regions of a matrix are not counted right"
run zones "latency: 5ms, zones: [1000, 300, 200]" "$cut"
python3 "$counts" "$scratch/zones.html" "$scratch/zones-sim-1.db" \
    "zone 0" "zone 1" "zone 2" || fail "zones by number are not counted right"

# Of 64 peers' rows, on one thread and on two, the same traffic; far is far.
run one "matrix: $scratch/three.csv" "" --rows sampled
run two "matrix: $scratch/three.csv" "" --rows sampled --threads 2
python3 - "$scratch/one-sim-1.db" "$scratch/two-sim-1.db" <<EOF || fail "two threads count otherwise"
import sqlite3, sys
one, two = ([sqlite3.connect(path).execute("SELECT * FROM " + table).fetchall()
             for table in ("zone_traffic", "places", "zones")]
            for path in sys.argv[1:])
x = [place[4] for place in one[1]]
print(len(one[0]), "rows of traffic; x:", x)
sys.exit(one != two or not abs(x[0] - x[1]) < 10 < 80 < abs(x[0] - x[2]))
EOF

# A run that was stopped has counted up to there; one that goes on counts all.
mkdir "$scratch/saves" "$scratch/again"
sed 's/^name.*/name: again/; s/steps: 8/steps: 400/' "$scratch/one.yaml" \
    >"$scratch/again.yaml"
timeout --foreground -s INT 1 "$kith" sim "$scratch/again.yaml" --save "$scratch/saves" \
    --out "$scratch/again" >/dev/null 2>&1
echo "$name: stopped: exit $?, 124 where it had not ended"
[ -z "$(ls "$scratch/saves")" ] ||
    expect 0 sim "$scratch/again.yaml" --json --save "$scratch/saves" --resume \
        --out "$scratch/again"
expect 0 sim "$scratch/again.yaml" --json --out "$scratch"
python3 - "$scratch/again-sim-1.db" "$scratch"/again/*.db <<EOF || fail "counts are others after a stop"
import sqlite3, sys
whole, again = (sqlite3.connect(path).execute(
    "SELECT * FROM zone_traffic").fetchall() for path in sys.argv[1:])
print(len(whole), "rows of traffic after a stop")
sys.exit(whole != again or not whole)
EOF

# A run of so few that each is a node has none of it; without the tables, as in
# a database of before, the regions are neighbouring ranks.
sed 's/peers: .*/peers: 900/; s/^faults.*//' "$scratch/one.yaml" >"$scratch/few.yaml"
sed -i 's/^name.*/name: few/' "$scratch/few.yaml"
expect 0 sim "$scratch/few.yaml" --json --out "$scratch"
python3 - "$scratch/few-sim-1.db" "$scratch/one-sim-1.db" <<EOF || fail "few peers have a map"
import sqlite3, sys
few, one = (sqlite3.connect(path) for path in sys.argv[1:])
found, = few.execute("SELECT count(*) FROM sqlite_schema "
                     "WHERE name = 'places'").fetchone()
one.executescript("DROP TABLE places; DROP TABLE zone_traffic")
sys.exit(found != 0)
EOF
expect 0 report "$scratch/one-sim-1.db" --out "$scratch/old.html"
grep -q '"nodes":64' "$scratch/old.html" || grep -q '"nodes": *+*64' \
    "$scratch/old.html" || fail "a database without a map has no regions"

# Nor has a sweep, whose page has no graph.
expect 0 sim "$scratch/one.yaml" --seeds 2 --json --out "$scratch"
[ "$(sql "$scratch/one-sweep-1.db" "SELECT count(*) FROM run WHERE
    key = 'zone_slot_s'")" -eq 0 ] || fail "a sweep's runs have made a map"

# One of anybody's is drawn somehow.
cp "$scratch/two-sim-1.db" "$scratch/wrong.db"
python3 - "$scratch/wrong.db" <<EOF || fail "no wrong database was made"
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.executescript("""
INSERT INTO zone_traffic VALUES(1, 9223372036854775807, 70, -3, 1, 1, 1);
INSERT INTO zone_traffic VALUES(1, -5, 1, 2, 'x', 1e300, -1);
INSERT INTO zone_traffic VALUES(1, 1, 63, 62, 9, 9, 9);
INSERT INTO places VALUES(1, 99, 'x', -1, NULL, 'y');
UPDATE places SET x = NULL WHERE place = 1;
UPDATE zones SET place = 77 WHERE zone = 0;
UPDATE run SET value = 'x' WHERE key = 'zone_slot_s';
""")
EOF
expect 0 report "$scratch/wrong.db" --out "$scratch/wrong.html"

# So is one of text and holes where numbers are: names that are none, no peers,
# zones of no place, more than integers hold, no length of a slot. Places with a
# number that is missing are no map.
run odd "matrix: $scratch/three.csv" \
    '{at: 300ms, for: 300ms, partition: "peer(1) <-> peer(2)"}' --rows sampled
cp "$scratch/odd-sim-1.db" "$scratch/gap.db"
python3 - "$scratch/odd-sim-1.db" "$scratch/gap.db" <<EOF || fail "no odd database was made"
import sqlite3, sys
odd, gap = (sqlite3.connect(path) for path in sys.argv[1:])
odd.executescript("""
UPDATE places SET name = x'ff00', peers = 'x';
UPDATE zones SET place = 50;
DELETE FROM run WHERE key = 'zone_slot_s';
INSERT INTO zone_traffic SELECT 1, 900000 + slot, place, other,
  9223372036854775807, 9223372036854775807, 9223372036854775807
  FROM zone_traffic;
""")
gap.executescript("UPDATE places SET place = 20 * place;"
                  "UPDATE zones SET place = 20 * place")
EOF
expect 0 report "$scratch/odd-sim-1.db" --out "$scratch/odd.html"
expect 0 report "$scratch/gap.db" --out "$scratch/gap.html"
grep -q '"nodes":64' "$scratch/gap.html" || grep -q '"nodes": *+*64' \
    "$scratch/gap.html" || fail "places with a gap are a map"

chromium=$(command -v chromium || command -v chromium-browser || true)
[ -n "$chromium" ] || {
    [ "$failures" -eq 0 ] && skip "no chromium: all but the drawing passed"
    finish
}
for one in matrix zones old wrong odd gap; do
    timeout 100 "$chromium" --headless --no-sandbox --disable-gpu \
        --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
        --enable-logging=stderr --virtual-time-budget=4000 --dump-dom \
        "file://$scratch/$one.html#slot=4&failures" \
        >"$scratch/$one.dom" 2>"$scratch/console"
    grep -q 'data-ready="yes"' "$scratch/$one.dom" || fail "$one: not drawn"
    grep 'CONSOLE' "$scratch/console" >"$scratch/hits" &&
        fail "$one: the console says $(cat "$scratch/hits")"
done
for text in 'near (500 peers)' '&lt;b&gt;y"; &lt;/script&gt; (500 peers)' \
    'cut of peers 0..499' '1,500 peers in 3 zones; the nearer' \
    'exchanges done, [1-9][0-9,]* failed'; do
    grep -q "$text" "$scratch/matrix.dom" || fail "no '$text' on the map"
done
grep -q '<b>y' "$scratch/matrix.dom" && fail "a region's name is no text"
grep -q 'Messages alone: no peer has a model' "$scratch/zones.dom" ||
    fail "no word of what was simulated"
grep -q 'zone 1 (300 peers)' "$scratch/zones.dom" || fail "no zone on the ring"
grep -q '>place 2<' "$scratch/odd.dom" || fail "a place without a name is not drawn"
grep -q 'regions of neighbouring ranks' "$scratch/old.dom" ||
    fail "a database without a map is not drawn as before"
finish
