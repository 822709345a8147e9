#!/bin/sh
# Goal: liveness, mixing and the guard's price are with every wire what they are
# with float32.
# Method: accept_wires_live.py; RUNS, SEED, SEEDS, WIRES, KITH and OUT.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_wires_live: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_wires_live.py" "$@"
