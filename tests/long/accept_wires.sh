#!/bin/sh
# Goal: what `gossip.wire` costs in accuracy: the table of docs/wires.md.
# Method: accept_wires.py; its settings are RESULTS, MINUTES and others.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_wires: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_wires.py" "$@"
