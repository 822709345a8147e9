#!/bin/sh
# Goal: what docs/choosing.md says of links and churn is what a run says.
# Method: accept_choosing.py; KITH, OUT and WRITE as there.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_choosing: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_choosing.py" "$@"
