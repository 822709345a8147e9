#!/bin/sh
# Goal: what a run cannot hold or read is known by name: an evaluation that does
# not fit before the first step, a data file that shrinks in its course.
# Method: an address space of 1.5 GB, a text that is cut short under train, sim
# and lab.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

case $("$kith" --version) in
*"address sanitizer"*)
    echo "$name: skipped: a sanitizer's shadow has no room in 1.5 GB" >&2
    exit 77
    ;;
esac

# 8: 256 images of 4 MB each are no memory that this process has.
cat >"$scratch/large.yaml" <<YAML
name: large
seed: 1
peers: 1
stop: {steps: 1000000}
model: {kind: cnn, image: [512, 512, 1], channels: [8, 8], classes: 2}
data: {kind: synthetic, rows: 20}
train: {learning_rate: 0.01, batch: 1}
gossip: {algorithm: local}
compute: {threads: 1, peak: 10}
YAML
(
    # shellcheck disable=SC3045 # Every shell at hand has it.
    ulimit -v 1500000 || exit 77
    OPENBLAS_NUM_THREADS=1 timeout 60 "$kith" train "$scratch/large.yaml" \
        --out "$scratch" --save "$scratch/large.save"
) >"$scratch/json" 2>"$scratch/err"
status=$?
[ "$status" -eq 8 ] || fail "a large evaluation: exit $status, not 8"
one_line "a large evaluation" "evaluating the model.*256 rows"
[ -e "$scratch/large.save" ] && fail "a large evaluation: found out too late"

# 4: the text shrinks. What it was can be gone on with.
python3 -c 'print("to be or not to be\n" * 40000)' >"$scratch/text.txt"
cp "$scratch/text.txt" "$scratch/whole.txt"
cat >"$scratch/text.yaml" <<YAML
name: text
seed: 1
peers: 2
stop: {steps: 100000000}
model: {kind: gpt, depth: 1, heads: 1, width: 8, context: 16, vocabulary: 256}
data: {kind: bytes, path: $scratch/text.txt}
train: {learning_rate: 0.01, batch: 8}
gossip: {algorithm: adpsgd, every: 2, topology: complete}
compute: {threads: 1, peak: 10, step: 1ms}
save: 200ms
YAML
for world in train sim; do
    cp "$scratch/whole.txt" "$scratch/text.txt"
    timeout 60 "$kith" "$world" "$scratch/text.yaml" --out "$scratch" \
        >"$scratch/json" 2>"$scratch/err" &
    child=$!
    for _ in $(seq 300); do # the data set is open then
        [ -e "$scratch/text-$world-1.db" ] && break
        sleep 0.1
    done
    sleep 0.5
    : >"$scratch/text.txt"
    wait "$child"
    status=$?
    [ "$status" -eq 4 ] || fail "$world, a short text: exit $status, not 4"
    one_line "$world, a short text" \
        "text.txt: it had 760001 bytes when it was opened and has 0 now"
done
cp "$scratch/whole.txt" "$scratch/text.txt"
timeout 60 "$kith" eval "$scratch/text-train-1.save" >"$scratch/json" \
    2>"$scratch/err" || fail "no whole checkpoint: $(cat "$scratch/err")"
none_left "runs without data"
finish
