# shellcheck shell=sh disable=SC2034
# What the tests of `kith lab` share. Sourced, never run: sets kith (the program
# under test), scratch (a folder that goes when the script ends), data (the
# bundled digits) and mark (in the environment of every process of this test,
# so that those left behind can be found).
set -u
LC_ALL=C
export LC_ALL
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
name=$(basename "$0" .sh)
kith=${KITH:-$PWD/kith}
data=$top/examples/data/digits
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kith-$name.XXXXXX") || exit 99
# Saves of labs that are killed on purpose go with the test.
mkdir "$scratch/tmp" && TMPDIR=$scratch/tmp && export TMPDIR
KITH_TEST_MARK=$name-$$
export KITH_TEST_MARK
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
failures=0

command -v python3 >/dev/null || {
    echo "$name: skipped: no python3" >&2
    exit 77
}
[ -x "$kith" ] || {
    echo "$name: $kith is not there: build it first" >&2
    exit 99
}

fail() {
    echo "$name: $*" >&2
    failures=$((failures + 1))
}

skip() {
    echo "$name: skipped: $*" >&2
    exit 77
}

finish() {
    [ "$failures" -eq 0 ] || exit 1
    echo "$name: ok"
    exit 0
}

# expect STATUS ARGUMENTS...: kith must end so; what it prints stands in
# $scratch/json and $scratch/err.
expect() {
    expected=$1
    shift
    timeout 60 "$kith" "$@" >"$scratch/json" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] && return
    fail "kith $*: exit $status, not $expected"
    cat "$scratch/err" >&2
}

# of_other_sources FILE: the program, as if it were of other sources.
of_other_sources() {
    digest_=$("$kith" --version | sed -n 's/^kith .*, source //p')
    [ -n "$digest_" ] || fail "kith --version names no sources"
    sed "s/$digest_/0123456789abcdef/g" "$kith" >"$1"
    chmod +x "$1"
}

# experiment PEERS STEPS [YAML...]: a digits experiment on standard output.
experiment() {
    cat <<YAML
name: digits
seed: 7
peers: $1
stop: {steps: $2}
model: {kind: mlp, layers: [64, 32, 10]}
data: {kind: idx, path: $data, split: iid}
train: {learning_rate: 0.05, momentum: 0.9, schedule: linear, batch: 16}
YAML
    shift 2
    printf '%s\n' "gossip: {algorithm: adpsgd, every: 2, topology: random}"
    printf '%s\n' "$@"
}

# json KEY...: the value of a nested key in $scratch/json; "None" for null.
json() {
    python3 - "$scratch/json" "$@" <<'PY'
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[key]
print(value)
PY
}

# sql DATABASE QUERY: one line per row, columns separated by spaces.
sql() {
    python3 - "$1" "$2" <<'PY'
import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]):
    print(*row)
PY
}

# steps_below RANK: what peers of lower rank did. The summary counts who was
# killed, too, up to its last row.
steps_below() {
    sql "$(json database)" "SELECT sum(step) FROM (SELECT max(step) AS step \
        FROM series WHERE peer < $1 GROUP BY peer)"
}

# holds EXPRESSION...: python's opinion of it.
holds() {
    python3 -c "import sys; sys.exit(0 if ($*) else 1)"
}

# numpy: sets python to one that has NumPy.
numpy() {
    for python in ${PYTHON:-python3 /usr/bin/python3}; do
        "$python" -c 'import numpy' 2>/dev/null && return
    done
    return 1
}

# kith_in_python: the same, and it imports kith of this build.
kith_in_python() {
    numpy || skip "numpy is not here"
    [ -e libkith.so.0 ] || skip "this build has no shared library"
    KITH_LIBRARY=$PWD/libkith.so.0 PYTHONPATH=$top/python
    PYTHONDONTWRITEBYTECODE=1
    export KITH_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE
}

# processes: ids of all processes of this test but the shells.
processes() {
    python3 - "$KITH_TEST_MARK" <<'PY'
import os, sys
mark = ("KITH_TEST_MARK=" + sys.argv[1]).encode()
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        name = open(f"/proc/{pid}/comm").read().strip()
        state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        marked = mark in open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
    except OSError:
        continue
    if marked and name.startswith("kith") and state != "Z":
        print(pid, end=" ")
PY
}

# none_left WHAT: no process of this test is there, or fails after five seconds.
none_left() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        left=$(processes)
        [ -z "$left" ] && return
        sleep 0.5
    done
    fail "$1: processes left behind: $left"
    # shellcheck disable=SC2086
    kill -9 $left
}

# no_saves WHAT: the folder of the run's saves is gone.
no_saves() {
    left=$(find "$out" "$scratch/tmp" -name 'kith-lab-*' -o -name '*.saves')
    [ -z "$left" ] || fail "$1: $left is left"
}

# lab EXPECTED ARGUMENTS...: runs kith lab, checks its exit status; what it
# printed is in $scratch/json and $scratch/err. Databases go to $out.
out=$scratch
lab() {
    expected=$1
    shift
    timeout 100 "$kith" lab --json --out "$out" "$@" \
        >"$scratch/json" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] && return 0
    fail "kith lab $*: exit $status, not $expected"
    tail -5 "$scratch/err" >&2
    return 1
}

# one_line WHAT PATTERN: the error was exactly one line and says this.
one_line() {
    errors=$(grep -c '^kith' "$scratch/err")
    [ "$errors" -eq 1 ] || fail "$1: $errors error lines, not 1"
    grep -qi "$2" "$scratch/err" || {
        fail "$1: the error does not say $2"
        cat "$scratch/err" >&2
    }
}

# follows WHAT...: kith report --follow; the address is in $address, the process
# in $server, until `unfollows`.
follows() {
    : >"$scratch/served" # nothing of the one before, however late this begins
    "$kith" report --follow "$@" >"$scratch/served" 2>"$scratch/err" &
    server=$!
    for _ in $(seq 300); do
        grep -q "following at" "$scratch/served" && break
        sleep 0.1
    done
    address=$(sed -n 's/^following at \([^ ]*\) .*/\1/p' "$scratch/served")
    [ -n "$address" ] || fail "no address: $(cat "$scratch/err")"
}

unfollows() {
    kill -INT "$server"
    wait "$server"
    status=$?
    [ "$status" -eq 0 ] || fail "Ctrl-C: exit $status"
}
