#!/bin/sh
# Goal: what is trained here is as good as it is elsewhere.
# Method: accept_quality.py; TEXT, TORCH, SEEDS, KITH, OUT and DATASET as there.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_quality: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_quality.py" "$@"
