#!/bin/sh
# Goal: a run of kith train that was killed, stopped, or whose disk was full
# goes on to the very same model, and a damaged or foreign checkpoint is refused
# by name, the one before it used.
# Method: resume.py with 12 kills; tests/long/accept_resume.sh has 200.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

PYTHONDONTWRITEBYTECODE=1 python3 "$top/tests/integration/resume.py" \
    "$kith" "$data" "$scratch" "${KILLS:-12}" ${SEED:+"$SEED"} ||
    fail "see above"
none_left "killed runs"
finish
