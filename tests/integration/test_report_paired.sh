#!/bin/sh
# Goal: kith report says of each setting mean, deviation, the difference from a
# baseline paired over seeds with its confidence interval, and time, steps and
# bytes to a target, the same numbers as text, CSV, JSON and LaTeX, which
# hostile names cannot break.
# Method: 2 x 2 cells and 5 seeds; all computed again from the database with
# python's statistics and t(4) = 2.776445 of a printed table.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

expect 0 sim "$top/examples/digits.yaml" --sweep gossip.algorithm=adpsgd,sgp \
    --sweep gossip.every=1,4 --seeds 5 --set "stop={epochs: 3}" \
    --set "assert=[]" --set evaluate=20ms --out "$scratch"
base=$(find "$scratch" -name '*.db' | head -n 1)

expect 0 report "$base" --baseline gossip.algorithm=adpsgd \
    --target accuracy=0.6 --table all --out "$scratch/table.csv"
expect 0 report "$base" --baseline gossip.algorithm=adpsgd \
    --target accuracy=0.6 --json
python3 - "$base" "$scratch/json" "$scratch/table.csv" <<'PY' || fail "other numbers"
import csv, json, math, sqlite3, statistics, sys
base = sqlite3.connect(sys.argv[1])
found = json.load(open(sys.argv[2]))
table = {row["cell"]: row for row in csv.DictReader(open(sys.argv[3]))}
near = lambda a, b: math.isclose(float(a), b, rel_tol=1e-6, abs_tol=1e-9)
values, checked = {}, 0
for run, cell, seed, accuracy in base.execute(
        "SELECT run_id, cell, seed, accuracy FROM runs"):
    hit = base.execute("SELECT time_s, step, bytes_sent FROM series WHERE run_id"
        " = ? AND peer IS NULL AND accuracy >= 0.6 ORDER BY time_s LIMIT 1",
        (run,)).fetchone() or (None, None, None)
    values[cell, seed] = dict(zip(
        ("accuracy", "time_to_target_s", "steps_to_target", "bytes_to_target"),
        (accuracy, *hit)))
seeds = sorted({seed for _, seed in values})
assert len(seeds) == 5 and len(found["cells"]) == 4
for cell in found["cells"]:
    other = found["cells"][cell["baseline"]]
    assert other["settings"] == {**cell["settings"], "gossip.algorithm": "adpsgd"}
    row = table[cell["label"]]
    for name in ("accuracy", "time_to_target_s", "steps_to_target",
                 "bytes_to_target"):
        own = [values[cell["cell"], seed][name] for seed in seeds]
        reached = [value for value in own if value is not None]
        assert cell[name]["count"] == len(reached) == int(row[name + "_count"])
        if len(reached) > 1:
            assert near(cell[name]["mean"], statistics.mean(reached))
            assert near(cell[name]["deviation"], statistics.stdev(reached))
            assert near(row[name], statistics.mean(reached))
        apart = [value - values[other["cell"], seed][name]
                 for value, seed in zip(own, seeds)
                 if None not in (value, values[other["cell"], seed][name])]
        if cell is other or len(apart) != 5:
            continue
        difference = cell["differences"][name]
        half = 2.7764451052 * statistics.stdev(apart) / math.sqrt(5)
        print(cell["label"], name, "expected:", statistics.mean(apart), half,
              "measured:", difference)
        assert difference["pairs"] == 5
        assert near(difference["mean"], statistics.mean(apart))
        assert near(difference["half_width"], half)
        assert near(row[name + "_half_width"], half)
        checked += 1
assert checked >= 4, checked
PY
expect 0 report "$base" --baseline adpsgd --target accuracy=0.6
grep -q "gossip.algorithm=sgp, gossip.every=4 against gossip.algorithm=adpsgd, gossip.every=4" \
    "$scratch/json" || fail "the differences are not printed"
grep -q "(5 pairs)" "$scratch/json" || fail "pairs are not printed"

# LaTeX: as many columns in each row, hostile names as text.
cp "$base" "$scratch/evil.db"
python3 - "$scratch/evil.db" <<'PY'
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.execute(r"UPDATE cells SET label = '\input{/etc/passwd} $x$ 50% a_b & #~^' || char(10) || cell")
base.commit()
PY
for file in base evil; do
    [ "$file" = base ] && from=$base || from=$scratch/evil.db
    expect 0 report "$from" --baseline gossip.algorithm=adpsgd \
        --table accuracy,bytes_mean --out "$scratch/$file.tex"
    python3 - "$scratch/$file.tex" <<'PY' || fail "$file.tex is no table"
import re, sys
text = open(sys.argv[1]).read()
assert text.count("\\begin{tabular}{lrrrr}") == 1 and "\\bottomrule" in text
rows = [line for line in text.splitlines() if line.endswith(r"\\")]
assert len(rows) == 5 and all(
    len(re.findall(r"(?<!\\)&", row)) == 4 for row in rows), rows
assert "\\input" not in text and r"\pm" in text, text
PY
done
# A table is compiled where LaTeX is installed.
if command -v pdflatex >/dev/null && kpsewhich booktabs.sty >/dev/null; then
    printf '%s\n' '\documentclass{article}\usepackage{booktabs}' \
        '\begin{document}\input{evil}\end{document}' >"$scratch/paper.tex"
    (cd "$scratch" && pdflatex -interaction=batchmode paper.tex >/dev/null) ||
        fail "LaTeX refuses the table"
fi

# refused WHAT PATTERN ARGUMENTS...: one line, no file.
refused() {
    what=$1 pattern=$2
    shift 2
    expect 2 report "$base" --out "$scratch/none.tex" "$@"
    one_line "$what" "$pattern"
    [ -e "$scratch/none.tex" ] && fail "$what: a file is left"
}
refused "no such baseline" "allowed: a cell's name or a setting" \
    --baseline gossip.algorithm=nobody --table all
refused "no such column" 'found "speed"' --table accuracy,speed
refused "no such target" "allowed: accuracy=X" --target acc=0.5 --table all
refused "a target beyond 1" "allowed: accuracy=X" --target accuracy=85 --table all
refused "two targets" "give one" --target loss=1 --target-loss 1 --table all
refused "two files" "two files" --table all --csv
expect 2 report "$base" --table all --out "$scratch/none.txt"
one_line "a .txt" "is a .tex or .csv"
finish
