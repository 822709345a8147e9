#!/bin/sh
# Goal: a guard protects training loops of a program's own as it does built-in
# models: a member that lies is rejected and named, and the others learn.
# Method: six processes of examples/python/numpy_softmax.py in pairs with guard
# clip; one sends its model with the sign turned from the first second on. Who
# would have to be asked for a loss or for labels is refused by name. SKIP without
# numpy.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
kith_in_python

cat >"$scratch/guard.yaml" <<YAML
name: guard
seed: 7
peers: 6
stop: {steps: 250}
model: {kind: program, run: "$python $top/examples/python/numpy_softmax.py"}
gossip: {algorithm: adpsgd, every: 2, guard: clip}
compute: {step: 30ms}
evaluate: end
faults: [{at: 1s, hostile: "peer(4)", kind: flip}]
YAML
lab 0 --log "$scratch/guard.yaml"
database=$(json database)
grep -q 'rejected rank=4 name=peer-4 distance=' "$scratch/err" ||
    fail "the log does not name peer-4"
rejected() {
    sql "$database" "SELECT count(*) FROM marks JOIN mark_kinds USING (kind)
        WHERE mark_kinds.name = 'rejected' AND peer != 4 AND other $1 4"
}
theirs=$(rejected =)
honest=$(rejected '!=')
echo "rejected: $theirs models of peer 4, $honest of others; accuracy" \
    "$(json accuracy averaged)"
[ "$theirs" -gt 100 ] || fail "$theirs models of peer 4 were rejected"
[ "$honest" -lt "$((theirs / 10))" ] || fail "$honest honest ones were rejected"
# .71 without a guard
holds "$(json accuracy averaged) >= 0.9" || fail "$(json accuracy averaged)"
none_left "processes"

# refused WORDS SETTING...
refused() {
    words=$1
    shift
    expect 3 lab "$scratch/guard.yaml" "$@"
    grep -q "$words" "$scratch/err" || fail "$*: $(cat "$scratch/err")"
}
refused "tries what it receives on a batch" --set gossip.algorithm=dpsgd \
    --set gossip.topology=complete --set gossip.guard=ubar
refused "labels are those of a training loop" \
    --set 'faults=[{at: 1s, hostile: peer(4), kind: label-flip}]'
finish
