#!/bin/sh
# Goal: peers of one host read models from each other's memory: real processes,
# every pattern, a packed wire, one that is killed and comes back, one that is
# stopped beyond all time-outs; what they learn is what they learn over TCP, with hardly a byte on the sockets.
# Method: kith lab on the digits with network.same_host, and without.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# written GOSSIP [YAML...]: with a crash and a restart.
written() {
    gossip=$1
    shift
    experiment 4 400 "compute: {step: 5ms}" "save: 200ms" \
        "faults: [{at: 600ms, crash: \"peer(1)\", restart: 200ms}]" "$@" |
        sed "s/^gossip:.*/gossip: {$gossip}/" >"$scratch/shared.yaml"
}

# value KEY: of the last run's summary.
value() {
    sql "$(json database)" "SELECT value FROM summary WHERE key = '$1'"
}

for method in "adpsgd, every: 2" "dpsgd, every: 2, topology: ring" \
    "gosgd, every: 2" "adpsgd, every: 2, wire: int8"; do
    for host in tcp shared-memory; do
        written "algorithm: $method" "network: {same_host: $host}"
        lab 0 --record "$scratch/shared.yaml"
        accuracy=$(sql "$(json database)" "SELECT min(accuracy) FROM (SELECT
            accuracy, max(time_s) FROM series WHERE accuracy IS NOT NULL
            GROUP BY peer)")
        holds "$accuracy >= 0.85" || fail "$method, $host: learnt $accuracy"
        done=$(value exchanges.done)
        holds "$done >= 200" || fail "$method, $host: $done exchanges"
        sent=$(value bytes.sent)
        case $host in
        tcp) whole=$sent ;;
        *) holds "$sent < 0.25 * $whole" ||
            fail "$method: $sent bytes on the sockets, $whole by tcp" ;;
        esac
        expect 0 sim --json --replay "$(json database)"
    done
done

# A peer that is stopped for longer than a handshake or an exchange may take: its
# memory stays readable, nobody waits for it, and it does its share later.
experiment 4 400 "compute: {step: 5ms}" \
    "network: {same_host: shared-memory}" \
    "faults: [{at: 600ms, for: 6s, pause: \"peer(2)\"}]" >"$scratch/shared.yaml"
lab 0 --record "$scratch/shared.yaml"
echo "$name: one stopped for 6 s: expected 1600 steps, measured $(json steps)," \
    "exchanges torn by it $(value exchanges.torn)"
[ "$(json steps)" -eq 1600 ] || fail "stopped: $(json steps) steps"
expect 0 sim --json --replay "$(json database)"

expect 3 lab "$scratch/shared.yaml" --set network.same_host=shm
one_line "an unknown way" 'found "shm"; allowed: tcp, shared-memory'
finish
