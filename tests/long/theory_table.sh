#!/bin/sh
# Goal: the table of theory in docs/validation.md, from what the tests print.
# Method: theory_table.py, run in the build folder after `make check`.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "theory_table: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/theory_table.py" .
