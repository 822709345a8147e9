#!/bin/sh
# Goal: acceptance 1: eight real peers learn Fashion-MNIST as fast and as well as asked.
# Method: accept_1.py; SEEDS, KITH, OUT and DATASET as in accept.py.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_1: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_1.py" "$@"
