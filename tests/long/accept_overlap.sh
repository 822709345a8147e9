#!/bin/sh
# Goal: two processes on a link of 50 Mbit/s gain at least 0.7 of what the
# simulator says that they gain where their gradients travel while they are
# computed (T5.4), and learn the same.
# Method: accept_overlap.py; its settings are STEPS and BUCKETS.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_overlap: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_overlap.py" "$@"
