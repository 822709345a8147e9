#!/bin/sh
# Goal: of small changes to the protocol's core, sessions and algorithms, at
# least 85 % are noticed by fast tests; who survives is listed.
# Method: tests/long/mutants.py, in a copy of HEAD in ./mutants. Interrupted, it
# goes on.
set -u
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || exit 77
exec nice -n 19 python3 -B "$top/tests/long/mutants.py" "$top" "$@"
