#!/bin/sh
# Goal: a certified member that does everything wrong harms no peer: all stay
# alive and at work, in bounded memory, and end in order; an independent
# implementation of docs/protocol.md that does it right is a member as others.
# Method: tests/hostile/hostile.py, each attack for two seconds.
top=${srcdir:-$(dirname "$0")/../..}
python=${PYTHON:-python3}
"$python" -c 'import cryptography' 2>/dev/null || {
    echo "test_hostile: skipped: no python3-cryptography" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top/tests/hostile/hostile.py"
