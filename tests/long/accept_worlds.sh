#!/bin/sh
# Goal: one file takes as long, exchanges as much and ends alike in both worlds.
# Method: accept_worlds.py; SEEDS (5), KITH and OUT as in accept.py.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_worlds: skipped: no python3" >&2
    exit 77
}
export SEEDS="${SEEDS:-5}"
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_worlds.py" "$@"
