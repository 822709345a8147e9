#!/bin/sh
# Goal: real peers learn with numbers that travel in fewer bytes, through a crash
# and lost packets; what they did is carried out again to the same floats; and a
# wire that a method cannot have is refused by name.
# Method: four peers of the digits, in pairs and in rounds, recorded and
# replayed; bytes are held against those of float32.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written GOSSIP: an experiment with a crash.
written() {
    experiment 4 400 "compute: {step: 5ms}" "save: 200ms" \
        "network: {latency: 1ms, loss: 0.01}" \
        "faults: [{at: 600ms, crash: \"peer(1)\", restart: 200ms}]" |
        sed "s/^gossip:.*/gossip: {$1}/" >"$scratch/wires.yaml"
}

for method in "adpsgd, every: 2" "dpsgd, every: 2, topology: ring"; do
    for wire in float32 bfloat16 int8 moniqua4 "moniqua4, wire_share: 0.5"; do
        written "algorithm: $method, wire: $wire"
        lab 0 --record "$scratch/wires.yaml"
        database=$(json database)
        done=$(sql "$database" "SELECT value FROM summary WHERE key = 'exchanges.done'")
        sent=$(sql "$database" "SELECT value FROM summary WHERE key = 'bytes.sent'")
        each=$((${sent%.*} / ${done%.*}))
        accuracy=$(sql "$database" "SELECT min(accuracy) FROM (SELECT accuracy,
            max(time_s) FROM series WHERE accuracy IS NOT NULL GROUP BY peer)")
        holds "$accuracy >= 0.85" || fail "$method, $wire: learnt $accuracy"
        case $wire in
        float32) whole=$each ;;
        bfloat16) holds "$each < 0.6 * $whole" ||
            fail "$method, $wire: $each bytes an exchange of $whole" ;;
        int8) holds "$each < 0.4 * $whole" ||
            fail "$method, $wire: $each bytes an exchange of $whole" ;;
        *share*) holds "$each < 0.2 * $whole" ||
            fail "$method, $wire: $each bytes an exchange of $whole" ;;
        moniqua4) holds "$each < 0.3 * $whole" ||
            fail "$method, $wire: $each bytes an exchange of $whole" ;;
        esac
        expect 0 sim --json --replay "$database"
    done
done

# refused PATTERN GOSSIP
refused() {
    written "$2"
    expect 3 lab "$scratch/wires.yaml"
    one_line "$2" "$1"
}
refused 'found "bf16"; allowed: float32, bfloat16, int8, moniqua8, moniqua4' \
    "algorithm: adpsgd, wire: bf16"
refused "algorithm choco needs float32" \
    "algorithm: choco, topology: ring, wire: int8"
refused "algorithm allreduce-ring needs float32" \
    "algorithm: allreduce-ring, wire: bfloat16"
refused "algorithm sgp needs a wire of whole values" \
    "algorithm: sgp, wire: moniqua4"
refused "found 0.5, but gossip.wire is int8" \
    "algorithm: adpsgd, wire: int8, wire_share: 0.5"
refused "algorithm diloco needs a wire of whole values" \
    "algorithm: diloco, every: 20, topology: complete, wire: moniqua4"
refused "needs an undirected graph" \
    "algorithm: dpsgd, topology: exponential, wire: moniqua4"
finish
