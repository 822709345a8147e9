#!/bin/sh
# Goal: 10^6 executions of every fuzz target, no finding; the canary is found.
set -u
command -v clang >/dev/null 2>&1 || {
    echo "fuzz: skipped: clang is not installed" >&2
    exit 77
}
exec make fuzz
