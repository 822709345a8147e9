#!/bin/sh
# Goal: `kith report --figure` draws a sweep: a line a setting, mean and band
# over seeds, in the form that the file's name says, with its fonts inside; what
# cannot be drawn is said in one line and leaves no file.
# Method: a sweep of two settings and three seeds, drawn in three forms; a mean
# computed apart from the points' CSV; refusals. SKIP without cairo.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# figure EXPECTED Y:X FILE [DATABASE]: what it printed is in $scratch/err.
figure() {
    timeout 60 "$kith" report "${4:-$scratch/sweep.db}" --figure "$2" \
        --out "$3" >"$scratch/stdout" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$1" ] || {
        fail "--figure $2 --out $3: exit $status, not $1"
        cat "$scratch/err" >&2
    }
}

# refused Y:X FILE EXPECTED PATTERN
refused() {
    figure "$3" "$1" "$2"
    one_line "$1" "$4"
    [ -e "$2" ] && fail "$1: left $2"
}

timeout 120 "$kith" sim "$srcdir/examples/digits.yaml" --set 'stop={epochs: 4}' \
    --set evaluate=100ms --set assert=[] --sweep gossip.algorithm=adpsgd,sgp \
    --seeds 3 --out "$scratch" >"$scratch/stdout" 2>"$scratch/err" ||
    fail "the sweep: $(cat "$scratch/err")"
mv "$(find "$scratch" -name '*.db' | head -n 1)" "$scratch/sweep.db"

figure 0 accuracy:bytes "$scratch/figure.svg"
grep -q "built without cairo" "$scratch/err" && skip "no cairo"
figure 0 'loss:log(time)' "$scratch/figure.pdf"
figure 0 'log(distance):steps' "$scratch/figure.png"
head -c 5 "$scratch/figure.pdf" | grep -q '%PDF-' || fail "no PDF"
grep -a -q FontFile "$scratch/figure.pdf" || fail "the PDF has no font inside"
head -c 4 "$scratch/figure.png" | grep -a -q PNG || fail "no PNG"
grep -q '<svg' "$scratch/figure.svg" || fail "no SVG"
grep -q 'href="http' "$scratch/figure.svg" && fail "the SVG loads something"
figure 0 accuracy:bytes "$scratch/again.svg"
cmp -s "$scratch/figure.svg" "$scratch/again.svg" || fail "twice, other bytes"
figure 0 'loss:log(time)' "$scratch/again.pdf"
cmp -s "$scratch/figure.pdf" "$scratch/again.pdf" || fail "twice, another PDF"

refused accuracy "$scratch/no.pdf" 2 'found no colon'
refused accuracy:byte "$scratch/no.pdf" 2 'knows no such quantity'
refused loss:loss "$scratch/no.pdf" 2 'one quantity twice'
refused staleness:bytes "$scratch/no.jpg" 2 'a figure is a .pdf, .svg or .png'
timeout 60 "$kith" report "$scratch/sweep.db" --figure loss:time --csv \
    --out "$scratch/no.pdf" 2>"$scratch/err" && fail "--csv beside --figure"
one_line "both" 'give one'

# A name that is no text is refused, and leaves no half of a figure.
cp "$scratch/sweep.db" "$scratch/hostile.db"
python3 - "$scratch/hostile.db" <<'END' || fail "no hostile database"
import sqlite3
import sys
base = sqlite3.connect(sys.argv[1])
base.execute("UPDATE settings SET value = CAST(X'ff41' AS TEXT) WHERE cell = 1")
base.commit()
END
rm -f "$scratch/no.pdf"
figure 5 accuracy:bytes "$scratch/no.pdf" "$scratch/hostile.db"
one_line "hostile" 'no UTF-8'
[ -e "$scratch/no.pdf" ] && fail "left a figure of a name that is no text"

# Where it cannot be written, that is said.
figure 5 accuracy:bytes "$scratch/nowhere/figure.pdf"
finish
