#!/bin/sh
# Goal: T1.1, T1.5 and T8.5 of the taxonomy: every preset runs in time, the
# named ones learn as well as synchronous SGD, gamma of choco orders as published.
# Method: accept_taxonomy.py; KITH and OUT as in accept.py, OUT must be empty.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_taxonomy: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_taxonomy.py" "$@"
