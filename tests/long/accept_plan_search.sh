#!/bin/sh
# Goal: what kith plan --search recommends is within 15 % of the best of a grid
# of 24 settings in time to target, in the simulator; with LAB=1 also of four
# settings in the lab, medians of LABS seeds (7), all times SLOWER-fold (10).
# Method: accept_plan_search.py: digits, Fashion-MNIST and a text, each with a
# grid by kith sim --sweep that is not the search's own; KITH, OUT, DATASET (of
# Fashion-MNIST), TEXT; what is missing is skipped and said.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_plan_search: skipped: no python3" >&2
    exit 77
}
TOP=$top PYTHONDONTWRITEBYTECODE=1 exec python3 \
    "$top/tests/long/accept_plan_search.py" "$@"
