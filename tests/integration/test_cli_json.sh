#!/bin/sh
# Goal and method: test_cli_json.py.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
timeout 200 python3 "$top/tests/integration/test_cli_json.py" "$kith" \
    "$scratch" || fail "see above"
finish
