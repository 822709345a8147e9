#!/bin/sh
# Goal: every algorithm that has a synchronous form follows its paper's equations
# to 1e-12, from x(0) that are not 0, over irregular graphs.
# Method: tests/oracle, NumPy beside kith sim --dump.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
numpy || skip "no python3 with NumPy"
timeout 500 "$python" -B "$top/tests/oracle/oracle.py" "$kith" ||
    fail "see above"
finish
