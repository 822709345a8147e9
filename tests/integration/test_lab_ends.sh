#!/bin/sh
# Goal: whatever ends a run, the database is readable and no process is left.
# Method: Ctrl-C and SIGTERM to the launcher, SIGINT to its whole group as a
# terminal sends it, kill -9 of the launcher, kill -9 of one peer by hand.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# A run of half a minute, if nothing ends it.
experiment 4 30000 "compute: {step: 1ms}" >"$scratch/long.yaml"

# launch ARGUMENT...: kith lab in the background, in a session of its own. Sets
# launcher.
launch() {
    rm -rf "$scratch"/*.db "$scratch"/*.saves "$scratch/json" "$scratch/err"
    python3 - "$kith" "$scratch" "$@" <<'PY' &
import os, signal, sys
# A background child of a shell ignores SIGINT; a run from a terminal does not.
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.setsid()
scratch = sys.argv[2]
os.dup2(os.open(scratch + "/json", os.O_WRONLY | os.O_CREAT), 1)
os.dup2(os.open(scratch + "/err", os.O_WRONLY | os.O_CREAT), 2)
os.execv(sys.argv[1], ["kith", "lab", "--json", "--out", scratch,
                       *sys.argv[3:]])
PY
    launcher=$!
}

# start: returns when its peers train.
start() {
    launch "$scratch/long.yaml"
    for _ in $(seq 100); do
        sleep 0.2
        database=$(find "$scratch" -name '*.db' | head -1)
        [ -n "$database" ] || continue
        rows=$(sql "$database" "SELECT count(*) FROM series" 2>/dev/null)
        [ "${rows:-0}" -gt 8 ] && return 0
    done
    fail "no rows after 20 s"
    cat "$scratch/err" >&2
    return 1
}

# ended EXPECTED WHAT: the launcher ends with this status, soon.
ended() {
    began=$(date +%s)
    wait "$launcher"
    status=$?
    took=$(($(date +%s) - began))
    [ "$status" -eq "$1" ] || fail "$2: exit $status, not $1"
    [ "$took" -le 20 ] || fail "$2: took $took s to end"
    none_left "$2"
    check=$(sql "$database" "PRAGMA integrity_check")
    [ "$check" = ok ] || fail "$2: database: $check"
    rows=$(sql "$database" "SELECT count(*) FROM series WHERE peer IS NOT NULL")
    [ "$rows" -gt 0 ] || fail "$2: no rows"
}

start && {
    kill -INT "$launcher"
    ended 130 "Ctrl-C"
    completed=$(sql "$database" "SELECT value FROM summary WHERE key='completed'")
    [ "$completed" = 0 ] || fail "Ctrl-C: completed is $completed"
}
start && {
    kill -TERM -"$launcher"
    ended 130 "SIGTERM to the group"
    grep -q "go on with: kith lab --resume $database" "$scratch/err" ||
        fail "SIGTERM: no word of how to go on"
    [ -s "${database%.db}.saves/peer-3.save" ] || fail "SIGTERM: no saves"
}
start && {
    # The launcher is the oldest; the shell's job has its number.
    peer=$(processes | tr ' ' '\n' | grep -vx "$launcher" | head -1)
    kill -9 "$peer"
    sleep 1
    grep -q "died: killed by signal 9" "$scratch/err" ||
        fail "a peer's death is not told"
    alive=$(processes | wc -w)
    [ "$alive" -eq 4 ] || fail "$alive processes after one of 5 was killed"
    kill -9 "$launcher"
    ended 137 "kill -9"
    rm -rf "$scratch"/*.saves
    lab 0 --set "stop={steps: 20}" "$scratch/long.yaml"
    no_saves "the run after kill -9"
}
# Peers have left, and their models are scored, some tenths of a second each: a
# signal is heard between two of them.
experiment 8 2 "evaluate: end" >"$scratch/score.yaml"
launch --set "model.layers=[64, 4096, 10]" \
    --set "data={kind: gaussian, rows: 100000}" \
    --set "compute={step: 400ms}" "$scratch/score.yaml" # peers to be seen
began=0
for _ in $(seq 200); do
    sleep 0.1
    alive=$(processes | wc -w)
    [ "$alive" -gt 1 ] && began=1
    [ "$alive" -eq 1 ] && [ $began = 1 ] && break
done
[ $began = 1 ] || fail "no peers of the run whose models are scored"
kill -INT "$launcher"
database=$(find "$scratch" -name '*.db' | head -1)
ended 130 "Ctrl-C while models are scored"
scored=$(sql "$database" \
    "SELECT value FROM summary WHERE key='accuracy.peers'")
[ "${scored:-8}" -lt 8 ] || fail "all 8 models were scored after Ctrl-C"
# Models that are under way at the last step arrive: four seconds of a line.
experiment 2 4 "compute: {step: 50ms}" >"$scratch/slow.yaml"
lab 0 --json --set gossip.every=4 --set "model.layers=[64, 256, 10]" \
    --set "network={latency: 5ms, rate: 300kbit}" "$scratch/slow.yaml"
# Each peer begins one; on a busy machine one of them may be given up.
[ "$(json exchanges 'done')" -ge 1 ] ||
    fail "exchanges under way at the end: none was done"
# A lab that measures this machine has lost a peer: its figures would be of less.
experiment 4 300 >"$scratch/measured.yaml"
"$kith" plan "$scratch/measured.yaml" --measure \
    --machine "$scratch/machine.yaml" >/dev/null 2>"$scratch/err" &
launcher=$!
spared=0
every='every peer died; .*: peer . died: killed by signal 9 (Killed)'
while kill -0 "$launcher" 2>/dev/null; do # a lab may be faster than this
    peer=$(processes | tr ' ' '\n' | grep -vx "$launcher" | head -1)
    ignored=$(sed -n 's/^SigIgn:[[:space:]]*//p' "/proc/$launcher/status" \
        2>/dev/null)
    [ $((0x${ignored:-0} & 0x1000)) -eq 0 ] || spared=1 # bit 12: SIGPIPE
    [ -z "$peer" ] || kill -9 "$peer" 2>/dev/null
    sleep 0.02
done
wait "$launcher"
measured=$?
[ $spared -eq 1 ] ||
    fail "--measure: a peer that dies as it is written to ends it by SIGPIPE"
[ "$measured" -eq 8 ] || fail "--measure with a dead peer: exit $measured"
grep -q "a lab of .* peers has done .*: \(one has died\|$every\);" \
    "$scratch/err" ||
    fail "--measure with a dead peer: $(cat "$scratch/err")"
[ ! -e "$scratch/machine.yaml" ] || fail "--measure with a dead peer: a file"
none_left "--measure with a dead peer"
# With stop.time peers end by themselves, as they are told to.
experiment 12 1 "compute: {step: 5ms}" |
    sed 's/^stop:.*/stop: {time: 300ms}/' >"$scratch/time.yaml"
for _ in 1 2 3 4 5 6 7 8; do
    lab 0 "$scratch/time.yaml"
    if grep "died\|in the average" "$scratch/err" >&2; then
        fail "a peer that ended by itself"
    fi
done
finish
