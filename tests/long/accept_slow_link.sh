#!/bin/sh
# Goal: a language model's shape over 100 Mbit/s and 40 ms: nobody waits, most
# triggers exchange, in a hundredth of the bytes, and as much is learnt.
# Method: accept_slow_link.py; its settings are PARTS, MINUTES and others.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_slow_link: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_slow_link.py" "$@"
