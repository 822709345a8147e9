#!/bin/sh
# Goal: thirty minutes of a hostile member leave no report, and memory flat; and
# honest peers with a guard learn what they do without it, to 1.0 point.
# Method: hostile.py --minutes --accuracy; MINUTES (30), KITH, OUT and PYTHON;
# ACCURACY=no leaves the trainings out, DEADLINE=300ms bounds their rounds.
top=${srcdir:-$(dirname "$0")/../..}
python=${PYTHON:-python3}
"$python" -c 'import cryptography' 2>/dev/null || {
    echo "hostile: skipped: no python3-cryptography" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top/tests/hostile/hostile.py" \
    --minutes "${MINUTES:-30}" \
    ${DEADLINE:+--deadline "$DEADLINE"} \
    $([ "${ACCURACY:-yes}" = no ] || echo --accuracy)
