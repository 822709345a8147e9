#!/bin/sh
# Goal: who gets a loop of Python's wrong is told what was found and what to do,
# and nothing else ends. Method: mistakes.py, of a module, too, where torch is.
# SKIP without numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
kith_in_python

make_cluster 2 "experiment: ../pair.yaml" "wait: {members: 2, for: 3s}"
printf '%s\n' "name: pair" "peers: 2" "stop: {steps: 1000}" \
    "model: {kind: program}" "gossip: {algorithm: adpsgd, every: 2}" \
    >"$scratch/pair.yaml"
sed '/^wait/d' "$scratch/0/peer.yaml" >"$scratch/0/at-once.yaml"
sed 's/pair.yaml/short.yaml/; s/^save: .*/save: short/' \
    "$scratch/0/at-once.yaml" >"$scratch/0/short.yaml"
sed 's/: 1000}/: 40}/' "$scratch/pair.yaml" >"$scratch/short.yaml"
sed 's/pair.yaml/often.yaml/; s/^save: .*/save: often/' \
    "$scratch/0/at-once.yaml" >"$scratch/0/often.yaml"
printf '%s\n' "save: 100ms" | cat "$scratch/pair.yaml" - \
    >"$scratch/often.yaml"
printf '%s\n' "name: four" "peers: 4" "stop: {steps: 20}" \
    "model: {kind: program}" "compute: {step: 80ms}" \
    "gossip: {algorithm: adpsgd, every: 2}" >"$scratch/four.yaml"
cd "$scratch" || fail "no $scratch"
timeout 200 "$python" "$top/tests/integration/mistakes.py" \
    "$scratch/0/at-once.yaml" "$scratch/0/peer.yaml" "$scratch/four.yaml" \
    >"$scratch/out" 2>&1 || fail "mistakes.py: $(tail -n 12 "$scratch/out")"
cat "$scratch/out"

# A loop that tells no loss has none in the lab's progress, every five seconds.
cat >"$scratch/quiet.py" <<'PYTHON'
import kith, numpy
x = numpy.zeros(9, "f")
with kith.Peer(x) as peer:
    while not peer.over:
        x += 1
        peer.step()
PYTHON
sed "s|: 80ms|: 65ms|; s|program}|program, run: \"$python quiet.py\"}|
    s|peers: 4|peers: 2|; s|steps: 20|steps: 100|" "$scratch/four.yaml" \
    >"$scratch/quiet.yaml"
expect 0 lab "$scratch/quiet.yaml" --out "$scratch/quiet.db"
grep -q " s  steps .* exchanges" "$scratch/err" &&
    ! grep -q " s  steps .* loss" "$scratch/err" ||
    fail "a loss that nobody told: $(cat "$scratch/err")"

# The program, of a save of a loop's own, and of a peer without keys.
for command in eval sample "export --out x.safetensors"; do
    # shellcheck disable=SC2086
    expect 3 $command "$scratch/before.save"
    grep -q "before.save is of a program's own model" "$scratch/json" \
        "$scratch/err" || fail "$command: $(cat "$scratch/json" "$scratch/err")"
done
rm "$scratch/0/identity/node.key"
expect 7 doctor "$scratch/0/peer.yaml"
grep -q "node.key is missing: kith keys new .*/identity makes one" \
    "$scratch/json" "$scratch/err" ||
    fail "no key: $(cat "$scratch/json" "$scratch/err")"
finish
