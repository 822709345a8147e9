#!/bin/sh
# Goal: a run that mpirun divides among ranks is one process's, whatever is
# simulated; and what two ranks on two cores save is known.
# Method: KITH_RUNS (100) draws of kith swarm --random, of any method, graph and
# faults, less what ranks refuse (checks of what is conserved, full wires,
# gradients in buckets): trace hash, figures and rows with 2 ranks, or with 3 of
# 2 threads, in turn. Then KITH_PEERS (10,000) of adpsgd over 784-32-10: hash and
# time of one process, of 2 threads and of 2 ranks. The times are printed, and
# held against nothing: they are this machine's, and so is its load.
set -u
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/ranks.sh
. "$top/tests/integration/ranks.sh"
seed=${KITH_SEED:-20}
compared=0
run=0
while [ "$compared" -lt "${KITH_RUNS:-100}" ]; do
    run=$((run + 1))
    file=$scratch/$run.yaml
    timeout 120 "$kith" swarm --random --seed "$seed" --run "$run" \
        --keep "$file" >/dev/null 2>&1
    [ -s "$file" ] || {
        fail "kith swarm --random --seed $seed --run $run: no file"
        break
    }
    python3 - "$file" <<'PY'
import re, sys
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
text = re.sub(r'"(always|finally) conserved[^"]*"(, *)?', "", text)
text = re.sub(r", *wire: full\b|\bwire: full, *", "", text)
text = re.sub(r", *buckets: \d+", "", text)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write(re.sub(r", *\]", "]", text))
PY
    peers=$(sed -n 's/^peers: //p' "$file")
    how=2,1
    [ $((run % 2)) -eq 1 ] || [ "$peers" -lt 3 ] || how=3,2
    [ "$peers" -ge 2 ] || continue
    before=$failures
    same_run "$file" $how
    compared=$((compared + 1))
    [ "$failures" -eq "$before" ] ||
        echo "accept_ranks: repeat with: kith swarm --random --seed $seed" \
            "--run $run --keep FILE" >&2
    rm -f "$file"
done
echo "accept_ranks: $compared experiments compared, $failures differ"

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
