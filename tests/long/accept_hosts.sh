#!/bin/sh
# Goal: kith sim says within 10 % what unpaced peers on the cores of this machine
# take.
# Method: accept_hosts.py; STEPS, WITHIN, KITH, OUT.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_hosts: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_hosts.py" "$@"
