#!/bin/sh
# Goal: `kith report --follow` with a reader costs the run that it follows at most
# 1 %.
# Method: instructions of `kith sim`, counted by valgrind, alone and followed in
# turn, three times: CPU time differs by several percent from run to run on a
# shared machine, a count does not. What the server takes for itself is one part
# in 200 of the time at most (follow_server.c, LOOK_SHARE): its CPU time is
# printed beside. SKIP without valgrind or curl.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
command -v valgrind >/dev/null || skip "no valgrind"
command -v curl >/dev/null || skip "no curl"

cat >"$scratch/followed.yaml" <<YAML
name: followed
seed: 3
peers: 64
stop: {steps: 60}
model: {kind: mlp, layers: [64, 64, 10]}
data: {kind: gaussian, rows: 4000, spread: 0.5, split: iid}
train: {backend: cpu, batch: 16, learning_rate: 0.05}
gossip: {algorithm: adpsgd, every: 4}
network: {latency: 5ms}
compute: {step: 20ms}
YAML

# count FOLDER: instructions of a run whose database lies there.
count() {
    valgrind --tool=cachegrind --cache-sim=no \
        --cachegrind-out-file=/dev/null "$kith" sim "$scratch/followed.yaml" \
        --out "$1" --json 2>"$scratch/counted" >/dev/null ||
        fail "$(tail -n 2 "$scratch/counted")"
    sed -n 's/.*I *refs: *//p' "$scratch/counted" | tr -d ,
}

for turn in 1 2 3; do
    mkdir "$scratch/alone.$turn" "$scratch/runs.$turn"
    alone=$(count "$scratch/alone.$turn")
    follows "$scratch/runs.$turn"
    curl -sN "${address}events" >"$scratch/events" &
    reader=$!
    followed=$(count "$scratch/runs.$turn")
    took=$(awk '{ print ($14 + $15) / 100 }' "/proc/$server/stat")
    kill "$reader"
    unfollows
    [ -s "$scratch/events" ] || fail "nothing was followed"
    echo "alone $alone, followed $followed," \
        "$(awk "BEGIN { printf \"%+.3f\", 100 * ($followed / $alone - 1) }") %;" \
        "$(wc -c <"$scratch/events") bytes were read, the server took $took s"
    echo "$alone $followed" >>"$scratch/pairs"
done
awk '{ alone += $1; followed += $2 }
    END { cost = followed / alone - 1
        printf "expected: at most 1 %%; measured: %+.3f %%\n", 100 * cost
        exit !(cost <= 0.01) }' "$scratch/pairs" || fail "following costs more"
finish
