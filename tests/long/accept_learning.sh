#!/bin/sh
# Goal: T16 of the taxonomy: what methods promise about learning, over 5 paired
# seeds, and the default for language models over slow links.
# Method: accept_learning.py; TEXT, ROWS, WRITE, KITH, OUT and DATASET as there.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_learning: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_learning.py" "$@"
