#!/bin/sh
# Goal: makes the tables of docs/choosing.md; fails only where a run does (what
# churn may cost is held by unit/test_taxonomy_churn).
# Method: accept_choosing.py; KITH, OUT and WRITE as there.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_choosing: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_choosing.py" "$@"
