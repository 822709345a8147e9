# shellcheck shell=sh disable=SC2034
# What the fences share. Sourced, never run: sets top (source tree), scratch (a
# folder that goes when the script ends) and the two endings.
#
# A fence first shows on a planted breach that it can fail: a check that never
# says no guards nothing.
set -u
LC_ALL=C
export LC_ALL
top=${srcdir:-$(dirname "$0")/../..}
name=$(basename "$0" .sh)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kith-$name.XXXXXX") || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
failures=0

# fail MESSAGE...: one breach; the script goes on and fails at the end.
fail() {
    echo "$name: $*" >&2
    failures=$((failures + 1))
}

skip() {
    echo "$name: skipped: $*" >&2
    exit 77
}

# canary COMMAND...: the command, a check run on a planted breach, must fail.
canary() {
    if ("$@") >"$scratch/canary.out" 2>&1; then
        fail "the canary lives: $* found nothing wrong"
    fi
}

finish() {
    [ "$failures" -eq 0 ] || exit 1
    echo "$name: ok"
    exit 0
}
