#!/bin/sh
# Goal: our AEGIS-256X2 is what others make of the draft. Method:
# accept_aegis.py: CASES (1000000) random texts of SEED (1), sealed by every
# implementation of unit/test_aegis and by PyPI's pyaegis (another author's C),
# in a virtual environment of its own.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_aegis: skipped: no python3" >&2
    exit 77
}
python=${PYTHON:-python3}
"$python" -c "import pyaegis" 2>/dev/null || {
    python=$PWD/aegis-venv/bin/python
    [ -x "$python" ] || python3 -m venv aegis-venv >/dev/null 2>&1
    "$python" -c "import pyaegis" 2>/dev/null ||
        "$python" -m pip install -q pyaegis==0.3.1 >&2 || {
        echo "accept_aegis: skipped: pip install pyaegis" >&2
        exit 77
    }
}
exec "$python" -B "$top/tests/long/accept_aegis.py" tests/unit/test_aegis
