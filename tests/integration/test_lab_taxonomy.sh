#!/bin/sh
# Goal: every algorithm does with four real peers what the simulator says, and
# far better than each peer alone.
# Method: lab_taxonomy.py with one seed; tests/long/accept_lab.sh takes five.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

PYTHONDONTWRITEBYTECODE=1 python3 "$top/tests/integration/lab_taxonomy.py" \
    "$kith" "$data" "$scratch" 2 || fail "algorithms are missing or off"
none_left "the labs"
finish
