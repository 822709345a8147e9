#!/bin/sh
# Goal: train, lab and sim say how fast they were under the documented keys,
# with values that can be; --calibrate measures once and writes what the next
# run, and one that goes on, uses without measuring; the report draws it, and
# reads a database of the version before.
# Method: the bundled digits; values are held against each other within a run,
# never against a clock.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

file=$scratch/speed.yaml
experiment 2 60 "compute: {step: 1ms}" >"$file"

run() {
    expect "$@" --out "$scratch/out"
}

# Threads of the arithmetic, by their short name.
for threads in 1 2; do
    run 0 train "$file" --threads $threads --json
    [ "$(json compute threads)" = $threads ] ||
        fail "train --threads $threads: $(json compute threads)"
done
run 2 train "$file" --threads 0

# plausible WORLD: the object `speed`, and the rows of the database.
plausible() {
    python3 - "$scratch/json" "$1" <<'PY' || fail "$1: implausible"
import json, sqlite3, sys
run = json.load(open(sys.argv[1]))
world = sys.argv[2]
speed, compute = run["speed"], run["compute"]
assert list(speed) == [
    "samples_per_s", "tokens_per_s", "flop_per_s", "mfu", "peak_flop_per_s",
    "data_wait_s", "exchange_overlap", "memory_bytes"], list(speed)
assert list(compute) == ["products", "threads"], compute
rows = sqlite3.connect(run["database"]).execute(
    "SELECT samples_per_s, flop_per_s, mfu, data_wait_s, exchange_overlap, "
    "memory_bytes FROM series WHERE peer IS NOT NULL").fetchall()
if world == "sim":
    assert all(value is None for value in speed.values()), speed
    assert all(value is None for row in rows for value in row), rows
    sys.exit()
assert run["samples"] / run["wall_s"] <= 1.5 * speed["samples_per_s"], speed
# The digits' mlp: 64 x 32 + 32 x 10 weights, two FLOP each, three passes.
flop = speed["flop_per_s"] / speed["samples_per_s"]
assert 0.999 <= flop / (6 * 2368) <= 1.2, flop
assert speed["tokens_per_s"] is None
assert speed["data_wait_s"] >= 0
assert 1e6 < speed["memory_bytes"] < 1e11, speed
assert compute["products"] in ("own", "openblas", "onednn"), compute
assert compute["threads"] >= 1
if speed["peak_flop_per_s"] is not None:
    assert speed["peak_flop_per_s"] > 1e8
    assert 0 < speed["mfu"] < 1.5, speed
if world == "train":
    assert speed["peak_flop_per_s"] is not None
    assert speed["exchange_overlap"] is None
else:
    assert compute["threads"] == 1
    assert 0 <= speed["exchange_overlap"] <= 1, speed
measured = [row for row in rows if row[5] is not None]
assert measured, rows
assert any(row[0] is not None and row[0] > 0 for row in measured), measured
PY
}

run 0 train "$file" --json
plausible train
first=$(json database)
# However long the rows took, the page's rate is the summary's.
"$kith" report "$first" --out "$scratch/page.html" >"$scratch/stdout" \
    2>"$scratch/err" || fail "report: $(cat "$scratch/err")"
python3 - "$scratch/page.html" "$(json speed samples_per_s)" <<'PY' ||
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
shown = float(re.search(r'"speed":\{"columns":[^]]*\],"rows":\[\s*\[0,([^,]*)',
                        page).group(1))
assert abs(shown / float(sys.argv[2]) - 1) < 1e-3, (shown, sys.argv[2])
PY
    fail "the page shows another rate than the summary"
run 0 sim "$file" --json
plausible sim
run 0 lab "$file" --json
plausible lab
lab=$(json database)
run 0 train "$file"
grep -q "speed .*samples/s.*of peak" "$scratch/json" ||
    fail "no speed in the table"

# Tokens: another rate beside the samples.
printf '%s' "name: words
seed: 1
peers: 1
stop: {steps: 30}
model: {kind: gpt, depth: 1, heads: 2, width: 16, context: 16, vocabulary: 256}
data: {kind: bytes, path: $file}
train: {batch: 4}
" >"$scratch/words.yaml"
seq 5000 >"$scratch/text"
run 0 train "$scratch/words.yaml" --json --set "data.path=$scratch/text"
holds "abs($(json speed tokens_per_s) - 16 * $(json speed samples_per_s)) <= \
1e-6 * $(json speed tokens_per_s)" || fail "tokens are not 16 a sample"

# --calibrate: into the file once, and then it stays.
for world in train lab; do
    for compute in "" "compute:
  step: 1ms" "compute: {products: openblas, step: 1ms}"; do
        experiment 2 20 "$compute" >"$scratch/calibrate.yaml"
        run 0 "$world" "$scratch/calibrate.yaml" --calibrate --json
        grep -q " peak: [0-9.e+]*\|{peak: \|, peak: " \
            "$scratch/calibrate.yaml" || fail "$world: no peak into $compute"
        products=$(json compute products)
        grep -q "products: $products" "$scratch/calibrate.yaml" ||
            fail "$world: not the products in the file: $products"
        case $compute in
        *openblas*)
            [ "$products" = openblas ] || fail "$world: a given choice lost"
            ;;
        esac
        holds "$(json speed peak_flop_per_s) > 1e8" || fail "$world: no peak"
        cp "$scratch/calibrate.yaml" "$scratch/before.yaml"
        run 0 "$world" "$scratch/calibrate.yaml" --calibrate --json
        grep -q "nothing to measure" "$scratch/err" ||
            fail "$world: measured again"
        cmp -s "$scratch/calibrate.yaml" "$scratch/before.yaml" ||
            fail "$world: --calibrate changed a given peak"
    done
done
[ "$(sql "$(json database)" "SELECT value FROM run WHERE key='products'")" = \
    openblas ] || fail "the database does not say who multiplied"

# A run that goes on has products and peak from its checkpoint.
experiment 2 60 "" >"$file"
run 0 train "$file" --json --save "$scratch/on.save" \
    --set compute.products=openblas --set compute.peak=123456789000
grep -aq '"products":"openblas"' "$scratch/on.save" ||
    fail "the checkpoint does not say who multiplied"
run 0 train "$file" --json --save "$scratch/on.save" --resume
[ "$(json speed peak_flop_per_s)" = "123456789000.0" ] ||
    [ "$(json speed peak_flop_per_s)" = 123456789000 ] ||
    fail "the peak was measured anew: $(json speed peak_flop_per_s)"
run 2 train "$file" --save "$scratch/on.save" --resume --calibrate
run 3 train "$file" --set compute.products=magic
run 3 train "$file" --set compute.threads=65

# The database of the version before: without the columns.
cp "$lab" "$scratch/old.db"
python3 - "$scratch/old.db" <<'PY'
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.execute("DROP VIEW peers")
for column in ("samples_per_s", "tokens_per_s", "flop_per_s", "mfu",
               "data_wait_s", "exchange_overlap", "memory_bytes"):
    base.execute("ALTER TABLE series DROP COLUMN " + column)
base.execute("PRAGMA user_version=1")
base.commit()
PY
"$kith" report "$scratch/old.db" "$lab" --out "$scratch/both.html" \
    >"$scratch/stdout" 2>"$scratch/err" || fail "old and new: $(cat "$scratch/err")"
"$kith" report "$scratch/old.db" "$first" --points --out "$scratch/both.csv" \
    >"$scratch/stdout" 2>"$scratch/err" || fail "a table of old and new: $(cat "$scratch/err")"
[ "$(awk -F, '{print NF}' "$scratch/both.csv" | sort -u | wc -l)" -eq 1 ] ||
    fail "old and new rows differ in columns"
head -1 "$scratch/both.csv" | grep -q '"exchange_overlap","memory_bytes"' ||
    fail "the table lacks the speed"
finish
