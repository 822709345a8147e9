#!/bin/sh
# Goal: the page of `kith report` answers first, counts all peers into its means,
# bands, graph and matrix, saves its plots, escapes what it saves, and stays
# small with a thousand peers.
# Method: what C puts into the page is counted again from the database by Python;
# what the script makes of it is read from the document that chromium draws, and
# from pictures and tables that a copy of the page, told to save, leaves there.
# Without chromium that part is left out.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
counts=$top/tests/integration/report_page.py

page() {
    name_=$1
    shift
    timeout 60 "$kith" report "$@" --out "$scratch/$name_.html" \
        >"$scratch/stdout" 2>"$scratch/err" ||
        fail "kith report $*: $(cat "$scratch/err")"
}

experiment 4 80 "compute: {step: 1ms}" "evaluate: 10ms" \
    "faults: [{at: 30ms, crash: \"peer(1)\", restart: 10ms}]" \
    'assert: ["always finite(model)", "finally accuracy >= 0.99"]' \
    >"$scratch/tiny.yaml"
timeout 60 "$kith" sim "$scratch/tiny.yaml" --json --out "$scratch" \
    >"$scratch/json" 2>"$scratch/err"
# 0.99 after 80 steps is out of reach: the broken assertion is in the answer.
[ $? -eq 1 ] || fail "kith sim: $(cat "$scratch/err")"
timeout 60 "$kith" sim "$scratch/tiny.yaml" --sweep gossip.every=1,4 --seeds 2 \
    --out "$scratch/sweep" >"$scratch/json" 2>"$scratch/err"
run=$(find "$scratch" -maxdepth 1 -name '*.db')
sweep=$(find "$scratch/sweep" -name '*.db')
if [ -z "$run" ] || [ -z "$sweep" ]; then
    fail "kith sim wrote no database"
    finish
fi

page run "$run"
python3 "$counts" counted "$scratch/run.html" "$run" || fail "not counted right"

# A thousand peers, 20 evaluations: at most 5 MB.
python3 "$counts" thousand "$run" "$scratch/many.db"
page many "$scratch/many.db"
python3 "$counts" counted "$scratch/many.html" "$scratch/many.db" ||
    fail "a thousand peers are not counted right"
size=$(wc -c <"$scratch/many.html")
echo "$name: page of 1000 peers, 20 evaluations: $size bytes, at most 5000000"
[ "$size" -le 5000000 ] || fail "the page has $size bytes"

# Peers that come and go: more faults than a lane has room for, and than the
# page has.
python3 "$counts" churned "$run" "$scratch/churn.db"
page churn "$scratch/churn.db"
python3 "$counts" churned "$run" "$scratch/most.db"
page most "$scratch/most.db"

# Names that a table program, or an SVG, would carry out.
python3 "$counts" hostile "$sweep" "$scratch/evil.db"
page evil "$scratch/evil.db"
page sweep "$sweep"
page same "$run" "$run"
page paired "$sweep" --baseline gossip.every=1

chromium=$(command -v chromium || command -v chromium-browser || true)
[ -n "$chromium" ] || {
    [ "$failures" -eq 0 ] && skip "no chromium: all but the drawing passed"
    finish
}

# draws PAGE [HASH]: the drawn document is in $scratch/dom.
draws() {
    timeout 100 "$chromium" --headless --no-sandbox --disable-gpu \
        --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
        --enable-logging=stderr --virtual-time-budget=4000 --dump-dom \
        "file://$scratch/$1.html${2:+#$2}" >"$scratch/dom" 2>"$scratch/console"
    grep -q 'data-ready="yes"' "$scratch/dom" || fail "$1: not drawn"
    grep 'CONSOLE' "$scratch/console" >"$scratch/hits" &&
        fail "$1: the console says $(cat "$scratch/hits")"
}

# saves PAGE: a copy without the page's policy that leaves what its first plot
# and its peers save as text in the document.
saves() {
    python3 "$counts" saving "$scratch/$1.html" "$scratch/$1-saved.html"
    draws "$1-saved"
    python3 "$counts" saved "$scratch/dom" || fail "$1: not saved right"
}

# says PATTERN WHAT: of the document's text.
says() {
    python3 "$counts" text "$scratch/dom" >"$scratch/text"
    grep -q "$1" "$scratch/text" || {
        fail "$2: no '$1'"
        head -c 600 "$scratch/text" >&2
    }
}

draws run
says 'The averaged model ended at [0-9.]* % accuracy after [0-9.]* m\{0,1\}s; a peer sent [0-9.]* [kM]B on average ([0-9.]* [kM]B in all, by 4)' "the answer"
says '1 of 2 assertions broken' "the answer's verdict"
says 'To an accuracy of' "the target"
grep -q 'accuracy</abbr> · peers</span></dt><dd>4</dd>' "$scratch/dom" ||
    fail "so many peers were scored: $(grep -o 'accuracy</abbr> · peers.\{40\}' \
        "$scratch/dom")"
grep -q 'id="graph"' "$scratch/dom" || fail "no graph of peers"
grep -q 'id="matrix"' "$scratch/dom" || fail "no matrix of traffic"
grep -q '<abbr title="How far a peer' "$scratch/dom" || fail "no term explained"
for word in busy skipped failed torn; do
    grep -q "<th[^>]*><abbr title=\"[^>]*>$word</abbr>" "$scratch/dom" ||
        fail "$word of exchanges is not explained"
done
says 'training went on through all of them' "exchanges that were put off"
charts=$(grep -o 'class="chart" id=' "$scratch/dom" | wc -l)
for kind in SVG PNG CSV; do
    found=$(grep -o "data-kind=\"$kind\"" "$scratch/dom" | wc -l)
    echo "$name: $found buttons save $kind, of $charts plots and the peers"
    [ "$found" -eq $((charts + 1)) ] || fail "not all save as $kind"
done
# Each axis, linear and logarithmic, has its points.
for axis in time steps samples epochs bytes; do
    draws run "$axis&log&smooth=2"
    grep -o 'id="chart-accuracy"[^>]*' "$scratch/dom" |
        grep -q 'data-lines="[1-9]' || fail "no line against $axis"
    grep -q "value=\"$axis\"" "$scratch/dom" || fail "$axis is not offered"
done
draws run 'slot=10&failures'
says 'crash of peer 1 from 30 ms to 40 ms' "the crash at its moment"

draws churn
says '1,500 faults struck' "how many crashes"
says 'crash, 1,500 times, of 4 at once at most' "crashes that overlap"
draws most
says 'At least 5,00[0-9] faults struck' "the crashes that the page has"
says 'the first 10,000 of 12,000 begins and ends, up to 80' "what is left out"

draws sweep
says 'Of 2, gossip.every=[14] ended at' "the answer of a sweep"
says 'with the fewest bytes gossip.every=4' "who needs the fewest bytes"
says 'kith report --baseline SETTING adds paired differences' "how to compare"
draws paired
says 'Differences from gossip.every=1' "the baseline"
grep -q '<div id="differences"><svg' "$scratch/dom" || fail "no intervals"
# The same numbers as the document's, as people read them.
python3 "$counts" paired "$scratch/paired.html" "$scratch/text" ||
    fail "other differences than the document has"
draws sweep 'goal=99.9'
says 'None came to it' "a target that is out of reach"
draws same
grep -q 'B · averaged model' "$scratch/dom" || fail "no second run"
says 'with the [0-9]* columns in which all are equal' "columns of equal runs"
says 'with the [0-9]* rows in which all are equal' "rows of equal runs"
draws evil
grep -q '<title>OWNED</title>' "$scratch/dom" && fail "a label ran"
for one in run evil many; do
    saves "$one"
done
finish
