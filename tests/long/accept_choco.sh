#!/bin/sh
# Goal: T9's last line: CHOCO-SGD with the largest 1 % learns Fashion-MNIST as
# well as D-PSGD, for a fortieth of its bytes.
# Method: accept_choco.py; SEEDS, KITH, OUT and DATASET as in accept.py.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_choco: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_choco.py" "$@"
