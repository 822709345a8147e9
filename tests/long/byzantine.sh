#!/bin/sh
# Goal: what members that lie cost with a guard and without one, and what the
# guard costs where nobody lies: the tables of docs/byzantine.md.
# Method: byzantine.py; its settings are EVERYTHING, MINUTES, RESULTS and others.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "byzantine: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/byzantine.py" "$@"
