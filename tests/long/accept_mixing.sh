#!/bin/sh
# Goal: eight real peers on busy cores mix as the simulator says, within a tenth.
# Method: accept_mixing.py; SEEDS (12), STEP, ONLY, KITH and OUT as told there.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_mixing: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_mixing.py" "$@"
