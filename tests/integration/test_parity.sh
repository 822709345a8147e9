#!/bin/sh
# Goal: training agrees with PyTorch's: losses, gradients, logits.
# Method: parity.py over a few steps; tests/long/accept_parity.sh goes the whole
# way. PYTHON names an interpreter that has PyTorch.
top=${srcdir:-$(dirname "$0")/../..}
python=${PYTHON:-python3}
command -v "$python" >/dev/null || {
    echo "test_parity: skipped: no $python" >&2
    exit 77
}
[ "${KITH_INSTRUMENTED:-no}" = no ] || {
    echo "test_parity: skipped: too slow in an instrumented build" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=PASSIVE exec "$python" \
    "$top/tests/parity/parity.py" --short "$PWD/tests/parity/dump"
