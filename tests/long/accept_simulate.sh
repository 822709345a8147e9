#!/bin/sh
# Goal: PyTorch's steps in the simulator decide and learn as the engine's do, and
# a thousand peers of them cost little more than a loop around them.
# Method: accept_simulate.py; PYTHON is one that has torch (python3), KITH and OUT
# as in accept.py. SKIP without torch.
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
python=${PYTHON:-python3}
"$python" -c 'import numpy, torch' 2>/dev/null || {
    echo "accept_simulate: skipped: $python has no torch; set PYTHON" >&2
    exit 77
}
KITH_LIBRARY=${KITH_LIBRARY:-$PWD/libkith.so.0} PYTHONPATH=$top/python
PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
export KITH_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS
exec "$python" "$top/tests/long/accept_simulate.py" "$@"
