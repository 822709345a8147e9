#!/bin/sh
# Goal: docs/papers_costs.md and its figure say what the cost model and
# docs/papers_costs.csv say.
# Method: make both anew and compare.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

program=$PWD/tests/unit/test_papers_costs
[ -x "$program" ] || skip "$program is not there: make check"
python3 "$top/docs/make_papers_costs.py" "$program" "$scratch" ||
    fail "docs/make_papers_costs.py failed"
for page in papers_costs.md papers_costs.svg; do
    diff -u "$top/docs/$page" "$scratch/$page" >&2 || fail \
        "make it anew: python3 docs/make_papers_costs.py \
tests/unit/test_papers_costs docs"
done
finish
