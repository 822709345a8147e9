#!/bin/sh
# Goal: thirty minutes of a hostile member leave no report, and memory flat.
# Method: hostile.py --minutes; MINUTES (30), KITH, OUT and PYTHON.
top=${srcdir:-$(dirname "$0")/../..}
python=${PYTHON:-python3}
"$python" -c 'import cryptography' 2>/dev/null || {
    echo "hostile: skipped: no python3-cryptography" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top/tests/hostile/hostile.py" \
    --minutes "${MINUTES:-30}"
