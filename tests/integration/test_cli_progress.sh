#!/bin/sh
# Goal and method: test_cli_progress.py.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
experiment 3 1000 "compute: {step: 3ms}" >"$scratch/run.yaml"
timeout 100 python3 "$top/tests/integration/test_cli_progress.py" "$kith" \
    "$scratch/run.yaml" "$scratch" || fail "see above"
finish
