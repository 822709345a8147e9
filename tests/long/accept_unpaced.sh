#!/bin/sh
# Goal: unpaced peers train at 0.42 of the rate that they have alone, at least,
# while 80 % of their triggers become exchanges.
# Method: accept_unpaced.py; ROUNDS, STEPS, WIRE, KITH, OUT and DATASET.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_unpaced: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_unpaced.py" "$@"
