#!/bin/sh
# Goal: a second Ctrl-C or SIGTERM ends a command at once, even in a step that
# takes minutes, with the documented status, and the last checkpoint is whole.
# Method: a step of 2^16 examples, signalled twice; had it ended, there would be
# another checkpoint and a summary. The one that is there is exported.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

cat >"$scratch/long.yaml" <<YAML
name: long
seed: 1
peers: 1
stop: {steps: 10}
model: {kind: mlp, layers: [784, 4096, 4096, 10]}
data: {kind: synthetic, rows: 2000}
train: {learning_rate: 0.01, batch: 65536, accumulate: 1024}
gossip: {algorithm: local}
compute: {threads: 1, peak: 10}
YAML

for signal in INT TERM; do
    save=$scratch/$signal.save
    (
        trap - INT
        exec timeout --foreground 600 "$kith" train "$scratch/long.yaml" \
            --out "$scratch" --save "$save"
    ) >"$scratch/json" 2>"$scratch/err" &
    child=$!
    until [ -s "$save" ] || ! kill -0 "$child" 2>/dev/null; do
        sleep 0.1
    done
    sleep 0.5
    kill -"$signal" "$child"
    sleep 0.5
    kill -0 "$child" 2>/dev/null || fail "SIG$signal: once was enough"
    cp "$save" "$scratch/before.save"
    kill -"$signal" "$child"
    wait "$child"
    status=$?
    echo "SIG$signal twice: expected 130, the same checkpoint and no summary;" \
        "measured $status, $(wc -c <"$scratch/json") bytes of summary"
    [ "$status" -eq 130 ] || fail "SIG$signal twice: exit $status, not 130"
    cmp "$save" "$scratch/before.save" || fail "SIG$signal twice: it waited"
    [ -s "$scratch/json" ] && fail "SIG$signal twice: it ended in order"
    timeout 60 "$kith" export "$save" --out "$scratch/$signal.safetensors" \
        >"$scratch/json" 2>"$scratch/err" ||
        fail "SIG$signal: no whole checkpoint: $(cat "$scratch/err")"
done
none_left "interrupted runs"
finish
