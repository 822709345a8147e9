#!/bin/sh
# Goal: acceptance 2: the simulator predicts the lab's accuracy, exchanges and bytes.
# Method: accept_2.py; SEEDS, KITH, OUT and DATASET as in accept.py.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_2: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_2.py" "$@"
