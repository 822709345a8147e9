#!/bin/sh
# Goal: kith sim predicts labs on this machine: wall time within 10 %, bytes within
# 2 %, averaged accuracy within 0.5 points, 22 configurations, three seeds or five.
# Method: accept_fidelity.py, which writes docs/fidelity.md; PYTHON has NumPy.
# KITH, OUT, SEEDS as in accept.py. Nothing else should run.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_fidelity: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_fidelity.py" "$@"
