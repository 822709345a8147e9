#!/bin/sh
# Goal: the page of 1,000 peers with 20 evaluations has at most 5 MB, opens in 2 s
# and follows the hand with 20 frames a second.
# Method: a run's database with the rows of a thousand peers, drawn by a headless
# Chromium that is moved by its DevTools protocol and counts its own frames.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    skip "no chromium"
experiment 4 80 "compute: {step: 1ms}" "evaluate: 10ms" >"$scratch/tiny.yaml"
expect 0 sim "$scratch/tiny.yaml" --json --out "$scratch"
python3 "$top/tests/integration/report_page.py" thousand "$(json database)" \
    "$scratch/many.db"
expect 0 report "$scratch/many.db" --out "$scratch/many.html"
python3 "$top/tests/long/accept_page.py" "$scratch/many.html" ||
    fail "the page is too large or too slow"
finish
