#!/bin/sh
# Goal: issue 4, point 3: every algorithm in the lab within 2 points of the
# simulator and 5 above `local`, the mean of five seeds.
# Method: lab_taxonomy.py with five seeds.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

PYTHONDONTWRITEBYTECODE=1 python3 "$top/tests/integration/lab_taxonomy.py" \
    "$kith" "$data" "$scratch" 1 2 3 4 5 || fail "algorithms are missing or off"
none_left "the labs"
finish
