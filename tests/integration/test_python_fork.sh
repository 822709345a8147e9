#!/bin/sh
# Goal: children of a fork, as the workers of a DataLoader, have no socket and no
# key of the peer in their parent, and their handle is dead by name; the parent
# goes on. Killed, with four of them alive, it is gone for its neighbour within
# the deadline, and its port can be bound again.
# Method: fork.py beside loop.py. SKIP without numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
numpy || skip "numpy is not here"
[ "$KITH_INSTRUMENTED" = no ] || skip "python3 is not instrumented"
make_cluster 2 "experiment: ../pair.yaml" "wait: {members: 2, for: 60s}"
printf '%s\n' "name: pair" "peers: 2" "stop: {time: 120s}" \
    "model: {kind: program, dim: 100000}" \
    "gossip: {algorithm: adpsgd, every: 2}" >"$scratch/pair.yaml"
export KITH_LIBRARY="$PWD/libkith.so.0" PYTHONPATH="$top/python"
export PYTHONDONTWRITEBYTECODE=1

# forks RANK: that peer is fork.py, its process $pid.
forks() {
    hidden=$(sed -n 's/^secret: //p' "$scratch/$1/identity/node.key" |
        "$python" -c 'import base64, sys
print(bytes(b ^ 0x5a for b in base64.b64decode(sys.stdin.read())).hex())')
    "$python" "$top/tests/integration/fork.py" "$scratch/$1/peer.yaml" \
        "$hidden" >"$scratch/$1/out" 2>"$scratch/$1/err" &
    pid=$!
}
# until_said RANK PID LINES PATTERN: so many lines of its output.
until_said() {
    tries=0
    until [ "$(grep -c "$4" "$scratch/$1/out")" -ge "$3" ]; do
        tries=$((tries + 1))
        kill -0 "$2" 2>/dev/null && [ $tries -lt 600 ] || {
            fail "peer $1: no $3 lines like $4: $(cat "$scratch/$1/err")"
            return
        }
        sleep 0.1
    done
}
forks 0 && parent=$pid
forks 1 && other=$pid
for rank in 0 1; do
    until_said $rank $other 4 '^worker'
    until_said $rank $other 1 '^goes on'
done
cat "$scratch/0/out"
grep -Eq '^parent [0-9]+ sockets [3-9] secrets [1-9]' "$scratch/0/out" ||
    fail "the parent has nothing to hide: the test is blind"
[ "$(grep -Ec '^worker [0-9]+ sockets 0 secrets 0 step -1 close -1 .*not open.* \| .*parent process' \
    "$scratch/0/out")" -eq 4 ] || fail "a worker has what it must not have"

# The parent dies, its workers live.
kill -KILL $parent
until_line 1 $other "closed rank=0"
workers=$(sed -n 's/^worker \([0-9]*\) .*/\1/p' "$scratch/0/out")
# shellcheck disable=SC2086 # A list of processes.
kill -0 $workers || fail "the workers are not there: the test is blind"
forks 0 && parent=$pid
until_line 0 $parent "connected rank=1"
until_said 0 $parent 1 '^goes on'
# shellcheck disable=SC2046,SC2086
kill -KILL $parent $other $workers \
    $(sed -n 's/^worker \([0-9]*\) .*/\1/p' "$scratch"/?/out) 2>/dev/null
finish
