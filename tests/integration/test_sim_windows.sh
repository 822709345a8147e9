#!/bin/sh
# Goal: a run whose events are shared by threads is one thread's: trace hash,
# summary, every row and mark, whichever pattern, lines, regions and end it has.
# What cannot be shared runs on one thread, and says why.
# Method: random experiments without vectors, on one thread and on several, with
# both queues; then one of each reason. WINDOWS_SEEDS="FIRST LAST" tries others.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/threads.sh
. "$top/tests/integration/threads.sh"

file=$scratch/windows.yaml
shared=0
set -- ${WINDOWS_SEEDS:-1 10}
for seed in $(seq "$1" "$2"); do
    python3 "$top/tests/integration/windows.py" "$seed" "$file" || exit 99
    outcome one "$file" || continue
    [ "$(wc -l <"$scratch/one.txt")" -gt 40 ] || fail "seed $seed: no rows"
    same "$file" --threads 2
    grep -q '^events: .*([1-9][0-9]* windows)' "$scratch/several.err" &&
        shared=$((shared + 1))
    same "$file" --threads $((3 + seed % 3)) --queue heap
done
[ "$shared" -gt $((($2 - $1) / 2)) ] ||
    fail "$shared of the runs were shared: $(cat "$scratch/several.err")"

# refused WORDS NETWORK [LINE...]: with $options, too.
refused() {
    words=$1 network=$2
    shift 2
    printf '%s\n' 'name: refused' 'peers: 40' 'stop: {steps: 20}' \
        'model: {kind: none}' 'gossip: {algorithm: adpsgd, every: 1}' \
        'compute: {step: 5ms}' "network: {$network}" "$@" >"$file"
    outcome one "$file" || return
    # shellcheck disable=SC2086
    same "$file" --threads 2 ${options:-}
    grep -q "^events: one thread .*$words" "$scratch/several.err" ||
        fail "not said: $words: $(cat "$scratch/several.err")"
}

refused 'network.latency: 0' 'latency: 0s'
refused 'faults:' 'latency: 5ms' 'faults: [{at: 10ms, crash: "n(1)"}]'
refused 'sharing: fair' 'latency: 5ms, rate: 1Gbit, sharing: fair'
refused 'wire: full' 'latency: 5ms, wire: full'
refused 'evaluate: ' 'latency: 5ms' 'evaluate: 10ms'
refused 'fewer than' 'latency: 50us'
python3 -c 'import json, sys
json.dump({"data": {a: {b: 0 for b in "xy"} for a in "xy"}}, sys.stdout)' \
    >"$scratch/near.json"
refused 'no latency between' "matrix: $scratch/near.json"

# A run that is saved is gone on with at one event, which no window ends with.
options="--save $scratch/saves --save-every 1ms"
refused '--save' 'latency: 5ms'
options="--save $scratch/saves --resume"
refused '--save' 'latency: 5ms'
options=

# Of more regions than peers some have none, and no thread has those alone.
python3 -c 'import json, sys
names = [f"r{i}" for i in range(100)]
json.dump({"data": {a: {b: 1 if a == b else 40 for b in names} for a in names}},
          sys.stdout)' >"$scratch/many.json"
printf '%s\n' 'name: regions' 'peers: 60' 'stop: {time: 1s}' \
    'model: {kind: none}' 'gossip: {algorithm: adpsgd, every: 1}' \
    "network: {matrix: $scratch/many.json}" 'compute: {step: 1ms}' >"$file"
if outcome one "$file" && same "$file" --threads 4; then
    grep -q '^events: 4 threads.*([1-9][0-9]* windows)' \
        "$scratch/several.err" ||
        fail "not shared: $(cat "$scratch/several.err")"
fi

# A window as long as 10,000 steps has all that its events say to each other.
printf '%s\n' 'name: far' 'peers: 100' 'stop: {time: 30s}' \
    'model: {kind: none}' 'gossip: {algorithm: adpsgd, every: 1}' \
    'network: {latency: 10s}' 'compute: {step: 1ms}' >"$file"
if outcome one "$file" && same "$file" --threads 2; then
    grep -q '^events: 2 threads.*([1-9][0-9][0-9]* windows)' \
        "$scratch/several.err" ||
        fail "too long: $(cat "$scratch/several.err")"
fi

# often TOPOLOGY WORDS: evaluated every few windows, and what is said then.
often() {
    printf '%s\n' 'name: often' 'peers: 400' 'stop: {time: 2s}' \
        'model: {kind: none}' \
        "gossip: {algorithm: adpsgd, topology: $1, every: 1}" \
        'network: {latency: 5ms}' 'compute: {step: 20ms}' 'evaluate: 55ms' \
        >"$file"
    if outcome one "$file" && same "$file" --threads 2; then
        grep -q "^events: $2" "$scratch/several.err" ||
            fail "$1, not said: $2: $(cat "$scratch/several.err")"
    fi
}
# They are fewer than are looked at together, and are counted all the same; but
# links that all go to and fro each time take longer than threads save.
often ring '2 threads'
often random 'one thread .* from .* links between two evaluations'

finish
