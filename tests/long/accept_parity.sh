#!/bin/sh
# Goal: training agrees with PyTorch's over as many steps as were asked for.
# Method: parity.py, whole; PYTHON names an interpreter that has PyTorch.
top=${srcdir:-$(dirname "$0")/../..}
python=${PYTHON:-python3}
command -v "$python" >/dev/null || {
    echo "accept_parity: skipped: no $python" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=PASSIVE exec "$python" \
    "$top/tests/parity/parity.py" "$PWD/tests/parity/dump" "$@"
