#!/bin/sh
# Goal: after a partition, a restart with an old save, and beside a peer that is
# ten times slower, peers with guard clip learn what they do without it, to 1.0
# point, and come as near to each other as before; the time is told.
# Method: accept_heal.py; SEEDS, KITH, OUT and SPLITS.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_heal: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_heal.py" "$@"
