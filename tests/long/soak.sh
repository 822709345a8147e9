#!/bin/sh
# Goal: eight real peers under random faults need no more memory, descriptors or queue as time goes by.
# Method: soak.py; MINUTES (30), SEED (1), KITH and OUT as in accept.py.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "soak: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/soak.py" "$@"
