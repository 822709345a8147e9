# Sourced by acceptance scripts whose Python has PyTorch: $python, $top, and kith of
# this build for both. shellcheck shell=sh
name=$(basename "$0" .sh)
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
python=${PYTHON:-python3}
"$python" -c 'import numpy, torch' 2>/dev/null || {
    echo "$name: skipped: $python has no torch; set PYTHON" >&2
    exit 77
}
KITH_LIBRARY=${KITH_LIBRARY:-$PWD/libkith.so.0} PYTHONPATH=$top/python
PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
export KITH_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS
