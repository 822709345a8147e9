#!/bin/sh
# Goal: what sparse outer steps cost in accuracy: a table of docs/wires.md.
# Method: accept_sparse.py; its settings are RESULTS, MINUTES and others.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_sparse: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_sparse.py" "$@"
