#!/bin/sh
# Goal: what two ranks on two cores save is known. That a run of several ranks is
# one process's, whatever is simulated, is accept_same.sh's.
# Method: KITH_PEERS (10,000) of adpsgd over 784-32-10: hash and time of one
# process, of 2 threads and of 2 ranks. The times are printed, and held against
# nothing: they are this machine's, and so is its load.
set -u
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/ranks.sh
. "$top/tests/integration/ranks.sh"
folder=/usr/share/datasets/fashion-mnist
[ -d $folder ] || {
    echo "accept_ranks: no Fashion-MNIST here: no times" >&2
    finish
}
cat >"$scratch/large.yaml" <<YAML
name: large
peers: ${KITH_PEERS:-10000}
stop: {steps: 4}
model: {kind: mlp, layers: [784, 32, 10]}
data: {kind: idx, path: $folder, split: iid}
train: {learning_rate: 0.05, batch: 16}
gossip: {algorithm: adpsgd, every: 1}
network: {latency: 1ms}
compute: {step: 5ms}
YAML
# timed NAME COMMAND...
timed() {
    what=$1
    shift
    python3 - "$scratch/json" "$@" <<'PY' >"$scratch/time" || fail "$what failed"
import resource, subprocess, sys, time
began = time.monotonic()
with open(sys.argv[1], "w", encoding="utf-8") as out:
    subprocess.run(sys.argv[2:], stdout=out, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.monotonic() - began:.1f} s, {used.ru_utime + used.ru_stime:.1f} s"
      " of processors")
PY
    hash=$(json trace_hash)
    : "${first:=$hash}"
    [ "$hash" = "$first" ] || fail "$what: another run"
    echo "accept_ranks: $what: $(cat "$scratch/time"), of it" \
        "$(json wall_s) s simulating"
}
set -- "$scratch/large.yaml" --json --out "$scratch/large"
timed "one process" "$kith" sim "$@"
timed "two threads" "$kith" sim "$@" --threads 2
timed "two ranks" mpirun -n 2 "$kith" sim "$@"
finish
