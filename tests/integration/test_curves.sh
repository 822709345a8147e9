#!/bin/sh
# Goal: every world is evaluated 20 times by default, on its way on a fixed part
# of the test set, at its end on all of it; fewer times are said; `full`, `end`
# and a time do what they say; a simulation's trace, time and models know
# nothing of evaluations, its rows nothing of threads.
# Method: the bundled digits, of which 357 are the test set: an accuracy is a
# whole number of 357ths, or of as many as the summary says.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
TEST_ROWS=357

file=$scratch/digits.yaml
experiment 4 100 "compute: {step: 2ms}" |
    sed 's/^model:.*/model: {kind: mlp, layers: [64, 128, 10]}/' >"$file"
# A wider one, of whose points the budget pays not all rows either.
wide="model.layers=[64, 2048, 10]"

run() {
    expect 0 "$@" --json --out "$scratch/out"
    database=$(json database)
}

# is WHAT EXPECTED MEASURED
is() {
    echo "$1: expected $2, measured $3"
    [ "$2" = "$3" ] || fail "$1: expected $2, measured $3"
}

# points PEER: how many rows of that peer (or NULL) have an accuracy.
points() {
    sql "$database" "SELECT count(*) FROM series
        WHERE peer IS $1 AND accuracy IS NOT NULL"
}

# wholes WHERE ROWS: are the accuracies there whole numbers of ROWS?
wholes() {
    bad=$(sql "$database" "SELECT count(*) FROM series WHERE $1 AND
        abs(accuracy * $2 - round(accuracy * $2)) > 1e-6")
    is "$1: accuracies that are no ${2}ths" 0 "$bad"
}

# ---- sim
run sim "$file"
hash=$(json trace_hash) virtual=$(json virtual_s) loss=$(json loss averaged)
rows=$(json curve rows)
is "sim: points of the average" 20 "$(points NULL)"
is "sim: points of peer 3" 20 "$(points 3)"
is "sim: points in the summary" 20 "$(json curve points)"
is "sim: points of other times, steps, samples, bytes" "20 20 20 20" "$(sql \
    "$database" "SELECT count(DISTINCT time_s), count(DISTINCT step),
    count(DISTINCT samples), count(DISTINCT bytes_sent) FROM series
    WHERE peer IS NULL")"
holds "50 <= $rows < $TEST_ROWS" || fail "sim: a part of $rows rows"
last="time_s = (SELECT max(time_s) FROM series)"
wholes "peer IS NULL AND $last" $TEST_ROWS
wholes "peer IS NULL AND NOT $last" "$rows"
all=$(sql "$database" "SELECT * FROM series")
for how in "--threads 2" "--queue heap"; do
    # shellcheck disable=SC2086 # Two words.
    run sim "$file" $how
    [ "$(sql "$database" "SELECT * FROM series")" = "$all" ] ||
        fail "sim $how: other rows"
done
for case in "1 end" "20 full" "100 2ms"; do
    run sim "$file" --set "evaluate=${case#* }"
    is "sim, evaluate ${case#* }: trace" "$hash" "$(json trace_hash)"
    is "sim, evaluate ${case#* }: virtual time" "$virtual" "$(json virtual_s)"
    is "sim, evaluate ${case#* }: loss" "$loss" "$(json loss averaged)"
    [ "${case#* }" = 2ms ] && continue # as many as there is time
    is "sim, evaluate ${case#* }: points" "${case% *}" "$(points NULL)"
    wholes "peer IS NULL" $TEST_ROWS
done

# By time alone; a check looks at what is of all of the test set.
run sim "$file" --set 'stop={time: 200ms}' --set 'assert=["always loss < 2"]'
is "sim, stop.time: points" 20 "$(points NULL)"
is "sim: violations of a check at the end" 0 "$(json violations)"
expect 1 sim "$file" --json --out "$scratch/out" --set evaluate=full \
    --set 'assert=["always loss < 2"]'

# Too many peers for their steps: fewer points, a line that says so, rows of
# steps and bytes all the same; the same at every repeat.
expect 0 sim "$file" --out "$scratch/out" --set peers=700 --set stop.steps=30 \
    --set train.batch=1
grep -q "evaluations  *[0-9]*, [0-9]* fewer than usual" "$scratch/json" ||
    fail "fewer evaluations are not said"
run sim "$file" --set peers=700 --set stop.steps=30 --set train.batch=1
echo "700 peers: $(json curve points) points, $(json curve left_out) left out"
is "700 peers: points and those left out" 20 \
    $(($(json curve points) + $(json curve left_out)))
is "700 peers: points in the rows" "$(json curve points)" "$(points NULL)"
holds "$(json curve left_out) > 0" || fail "700 peers: none is left out"
holds "$(sql "$database" "SELECT count(*) FROM series WHERE peer IS NULL AND
    bytes_sent > 0") >= 20" || fail "700 peers: not 20 rows of bytes"

# Of so many peers a sample is scored at the end, spread over the ranks; all
# where that is asked for.
is "700 peers: own models scored" 64 "$(json accuracy peers)"
is "700 peers: rows of a peer's own accuracy at the end" 64 \
    "$(sql "$database" "SELECT count(*) FROM series WHERE accuracy IS NOT NULL
        AND peer IS NOT NULL AND time_s = (SELECT max(time_s) FROM series)")"
sampled=$(json accuracy mean) error=$(json accuracy mean_error)
consensus=$(json consensus_distance)
for asked in evaluate=full 'assert=["finally accuracy_worst >= 0"]'; do
    run sim "$file" --set peers=700 --set stop.steps=30 --set train.batch=1 \
        --set "$asked"
    is "700 peers, $asked: own models scored" 700 "$(json accuracy peers)"
    holds "$(json accuracy mean_error) == 0" ||
        fail "700 peers, $asked: the mean of all has an error"
    is "700 peers, $asked: consensus distance" "$consensus" \
        "$(json consensus_distance)"
    echo "mean of all $(json accuracy mean), of 64 $sampled +- $error"
    holds "0 < $error and abs($(json accuracy mean) - $sampled) < 2 * $error" ||
        fail "the sample's mean is off"
done

# Whoever has crashed is in no sample, and few that live are scored all.
crash() { # SELECTOR SCORED
    run sim "$file" --set peers=700 --set stop.steps=30 --set train.batch=1 \
        --set "faults=[{at: 50ms, crash: \"$1\"}]"
    is "700 peers, crash $1: own models scored" "$2" "$(json accuracy peers)"
    holds "0 < $(json accuracy worst) <= $(json accuracy mean)" ||
        fail "crash $1: no accuracy of who is left"
}
crash "peer(1..698)" 2
crash "peer(0..698)" 1
crash "peer(0..399)" 64

# Runs of a sweep.
expect 0 sim "$file" --sweep gossip.every=1,2 --out "$scratch/sweep" --json
for id in 1 2; do
    is "run $id of a sweep: points" 20 "$(sql "$scratch"/sweep/*.db "SELECT
        count(*) FROM series WHERE run_id = $id AND peer IS NULL AND
        accuracy IS NOT NULL")"
done

# ---- train: time is measured, so a busy machine may leave points out.
run train "$file" --set "$wide"
is "train: points and those left out" 20 \
    $(($(json curve points) + $(json curve left_out)))
is "train: points in the rows" "$(json curve points)" "$(points 0)"
wholes "$last" $TEST_ROWS
wholes "NOT $last" "$(json curve rows)"
holds "50 <= $(json curve rows) < $TEST_ROWS" || fail "train: not a part"
is "train: rows of a training loss" 20 "$(sql "$database" "SELECT count(*) FROM
    series WHERE peer = 0 AND loss > 0")"
for case in "20 full" "1 end" "4 100 steps"; do
    run train "$file" --set "evaluate=${case#* }"
    is "train, evaluate ${case#* }: points" "${case%% *}" "$(points 0)"
    wholes "peer = 0" $TEST_ROWS
done

# ---- lab: every peer its own model; the average at the end.
run lab "$file" --set "$wide"
least=$(sql "$database" "SELECT min(n) FROM (SELECT count(accuracy) AS n FROM
    series WHERE peer IS NOT NULL GROUP BY peer)")
is "lab: points of the peer with fewest" "$(json curve points)" "$least"
is "lab: its points and those left out" 20 \
    $((least + $(json curve left_out)))
is "lab: points of the average" 1 "$(points NULL)"
wholes "peer IS NULL" $TEST_ROWS
wholes "peer = 2 AND test_loss IS NOT NULL AND step < 100" "$(json curve rows)"
holds "50 <= $(json curve rows) < $TEST_ROWS" || fail "lab: not a part"
is "lab: peers with a last point of all rows" 4 "$(sql "$database" "SELECT
    count(DISTINCT peer) FROM series WHERE step = 100 AND peer IS NOT NULL AND
    accuracy IS NOT NULL AND
    abs(accuracy * $TEST_ROWS - round(accuracy * $TEST_ROWS)) < 1e-6")"
run lab "$file" --set evaluate=full
is "lab, evaluate full: points of peer 1" 20 "$(points 1)"
wholes "peer = 1 AND accuracy IS NOT NULL" $TEST_ROWS
run lab "$file" --set evaluate=end
is "lab, evaluate end: points of peer 1" 1 "$(points 1)"
run lab "$file" --set evaluate=50ms
is "lab, a time: points of peer 1" 1 "$(points 1)"
holds "$(points NULL) > 1" || fail "lab, a time: no points of the average"

# A model without data has losses.
cat >"$scratch/none.yaml" <<'YAML'
name: none
peers: 3
stop: {steps: 60}
model: {kind: quadratic, dim: 40}
gossip: {algorithm: adpsgd, topology: random}
compute: {step: 2ms}
YAML
run lab "$scratch/none.yaml" --set evaluate=full
is "lab, no data: losses of peer 1" 20 "$(sql "$database" "SELECT
    count(test_loss) FROM series WHERE peer = 1")"

# ---- peer
"$kith" keys new "$scratch/authority" --authority >/dev/null &&
    "$kith" keys new "$scratch/identity" --name peer-0 >/dev/null &&
    "$kith" keys certify "$scratch/authority" "$scratch/identity/node.request" \
        --rank 0 >/dev/null || fail "no keys"
cp "$scratch/authority/ca.pub" "$scratch/identity/"
experiment 1 100 "compute: {step: 2ms}" |
    sed 's/^gossip:.*/gossip: {algorithm: local}/' >"$scratch/alone.yaml"
for case in "20 full" "1 end"; do
    port=$(python3 -c "import socket; s = socket.socket(); \
s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
    sed -i '/^evaluate/d' "$scratch/alone.yaml"
    echo "evaluate: ${case#* }" >>"$scratch/alone.yaml"
    cat >"$scratch/peer.yaml" <<YAML
identity: identity
listen: "127.0.0.1:$port"
experiment: alone.yaml
save: model-${case#* }
rank: 0
members: ["127.0.0.1:$port"]
YAML
    : >"$scratch/err" # now: the peer's own process may come to it later
    "$kith" peer "$scratch/peer.yaml" >"$scratch/json" 2>"$scratch/err" &
    peer=$!
    for _ in $(seq 300); do
        grep -q "finished" "$scratch/err" && break
        sleep 0.1
    done
    kill "$peer"
    wait "$peer"
    database=$(find "$scratch/model-${case#* }" -name '*.db')
    is "peer, evaluate ${case#* }: points" "${case% *}" "$(points 0)"
    wholes "accuracy IS NOT NULL" $TEST_ROWS
done
none_left "curves"
finish
