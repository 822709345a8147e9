#!/bin/sh
# Goal: a sweep that is split in four shards, merged, has the rows of the one in
# one piece, in every table; a shard that is not there can be run afterwards;
# what does not belong together is refused, and leaves nothing.
# Method: 3 x 2 cells and 2 seeds of the digits, whole and as 1/4 to 4/4, tables
# compared as text but for clocks; three of the four; wrong files.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

digits=$top/examples/digits.yaml
grid="--sweep gossip.every=1,2,4 --sweep gossip.algorithm=adpsgd,sgp --seeds 2"

# rows DATABASE: every table, a row a line, in an order of its own; only what a
# clock said is left out.
rows() {
    python3 - "$1" <<'PY'
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
for table, in base.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"
                           " ORDER BY name").fetchall():
    names = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
    names = [name for name in names if name != "wall_s"]
    key = " WHERE key NOT IN ('wall_s', 'started_utc')" if "key" in names else ""
    for row in sorted(map(repr, base.execute(
            f"SELECT {','.join(names)} FROM {table}{key}"))):
        print(table, row)
PY
}

# series DATABASE: in the order in which a run wrote its rows.
series() {
    sql "$1" "SELECT * FROM series ORDER BY run_id, rowid"
    sql "$1" "SELECT * FROM marks ORDER BY run_id, rowid"
}

# run FOLDER [ARGUMENTS...]: the sweep goes there.
run() {
    folder=$1
    shift
    # shellcheck disable=SC2086
    timeout 300 "$kith" sim "$digits" $grid --set "stop={epochs: 1}" \
        --set "assert=[]" --set evaluate=50ms --jobs 2 --json \
        --out "$scratch/$folder" "$@" >"$scratch/json" 2>"$scratch/err" ||
        fail "kith sim $*: $(cat "$scratch/err")"
}

run whole
whole=$(json database)
for shard in 1 2 3 4; do
    run shards --shard "$shard/4"
    case $(json database) in
    */digits-sweep-${shard}of4-1.db) ;;
    *) fail "shard $shard is called $(json database)" ;;
    esac
done
cells=$(sql "$scratch/shards/digits-sweep-2of4-1.db" \
    "SELECT group_concat(DISTINCT cell) FROM (SELECT cell FROM runs ORDER BY 1)")
[ "$cells" = 2,6 ] || fail "shard 2/4 ran the cells $cells, not 2 and 6"

expect 0 report --merge "$scratch/merged.db" "$scratch"/shards/*.db
rows "$whole" >"$scratch/whole.txt"
rows "$scratch/merged.db" >"$scratch/merged.txt"
cmp "$scratch/whole.txt" "$scratch/merged.txt" || {
    fail "the merged database has other rows"
    diff "$scratch/whole.txt" "$scratch/merged.txt" | head -5 >&2
}
series "$whole" >"$scratch/whole.txt"
series "$scratch/merged.db" >"$scratch/merged.txt"
cmp "$scratch/whole.txt" "$scratch/merged.txt" || fail "a run's rows are in another order"
echo "expected: the same rows; measured: $(wc -l <"$scratch/whole.txt") rows"
# It is a sweep like another: a table of both is one table twice.
for base in "$whole" "$scratch/merged.db"; do
    expect 0 report "$base" --csv --out "$scratch/table.csv"
    sed 's/^"[^"]*"//' "$scratch/table.csv" >"$base.csv"
done
cmp "$whole.csv" "$scratch/merged.db.csv" || fail "its table is another one"

# Three of four: said, and run with --resume, to the same rows.
expect 1 report --merge "$scratch/three.db" "$scratch"/shards/*[134]of4-1.db
one_line "three of four" "4 runs are missing.*--resume"
expect 0 sim --resume "$scratch/three.db"
rows "$whole" >"$scratch/whole.txt"
rows "$scratch/three.db" >"$scratch/merged.txt"
cmp "$scratch/whole.txt" "$scratch/merged.txt" || fail "resumed, other rows"

# refused WHAT PATTERN EXIT ARGUMENTS...: one line, and no file.
refused() {
    what=$1 pattern=$2 code=$3
    shift 3
    expect "$code" report --merge "$scratch/none.db" "$@"
    one_line "$what" "$pattern"
    [ -e "$scratch/none.db" ] && fail "$what: a file is left"
}
one=$scratch/shards/digits-sweep-1of4-1.db
two=$scratch/shards/digits-sweep-2of4-1.db
refused "a shard twice" "is in .*give each shard once" 4 "$one" "$one"
expect 0 sim "$digits" --sweep gossip.every=1,2,4 --set "stop={epochs: 1}" \
    --set "assert=[]" --shard 1/2 --out "$scratch/other"
refused "of another sweep" "give the shards of one sweep" 4 "$one" \
    "$scratch/other/digits-sweep-1of2-1.db"
expect 0 sim "$digits" --set "stop={epochs: 1}" --set "assert=[]" \
    --out "$scratch/other"
refused "one run" "no sweep" 4 "$one" "$scratch/other/digits-sim-1.db"
echo hello >"$scratch/junk.db"
refused "junk" "not a database" 4 "$one" "$scratch/junk.db"
cp "$two" "$scratch/kinds.db"
python3 - "$scratch/kinds.db" <<'PY'
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.execute("UPDATE mark_kinds SET name = 'other' WHERE kind = 1")
base.commit()
PY
refused "other events" "trace events are another" 4 "$one" "$scratch/kinds.db"
refused "and a table" "nothing else" 2 "$one" "$two" --csv
expect 5 report --merge "$one" "$one" "$two"
one_line "a file that is there" "File exists.*new file"
for shard in 0/4 5/4 1/0 x/4 2 1/4/2 -1/4; do
    expect 2 sim "$digits" --seeds 2 "--shard=$shard" --out "$scratch/bad"
    one_line "--shard $shard" "allowed: I/N"
done
expect 2 sim "$digits" --shard 1/2
one_line "a shard of one run" "go with"
finish
