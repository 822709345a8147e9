#!/bin/sh
# Goal: docs/papers.md says what the named tests of the four papers measure.
# Method: papers.py runs them and prints the tables; WRITE=1 writes them there.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "papers: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/papers.py" "$@"
