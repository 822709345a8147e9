#!/bin/sh
# Goal: acceptance 6: crashes and a slow peer cost the others next to nothing.
# Method: accept_6.py; SEEDS, KITH, OUT and DATASET as in accept.py.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_6: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_6.py" "$@"
