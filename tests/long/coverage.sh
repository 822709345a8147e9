#!/bin/sh
# Goal: make check runs at least 90 % of the lines of wire, session and core.
# Method: a build of its own with gcov's counters, in coverage-build/; line
# counts by gcov -n. Assertions are lines like others; their failing branch is
# not counted.
set -u
top=${srcdir:-$(dirname "$0")/../..}
top=$(cd "$top" && pwd)
command -v gcov >/dev/null 2>&1 || {
    echo "coverage: skipped: gcov is not installed" >&2
    exit 77
}
mkdir -p coverage-build && cd coverage-build || exit 99
[ -f Makefile ] || "$top/configure" -q CC=gcc --enable-coverage || exit 99
find . -name '*.gcda' -exec rm -f '{}' +
status=0
make -s -j "$(nproc)" check >check.log 2>&1 || {
    tail -n 30 check.log >&2
    echo "coverage: make check failed" >&2
    status=1
}

for floor in wire session core; do
    find "src/$floor" -name '*.gcda' -exec gcov -n '{}' + 2>/dev/null |
        awk -v floor="src/$floor/" '
        /^File/ { ours = index($0, floor) > 0 }
        /^Lines executed/ && ours {
            split($0, part, /[:% ]+/)
            total += $NF
            hit += part[3] * $NF / 100
            ours = 0
        }
        END {
            share = total ? 100 * hit / total : 0
            printf "coverage: %s %.1f %% of %d lines\n", floor, share, total
            exit share < 90
        }' || status=1
done
exit $status
