#!/bin/sh
# Goal: a run that mpirun divides among ranks is one process's: trace hash,
# summary, every row. What cannot be divided is refused before anything is
# written, what fails is said once and ends all, and a rank that is killed is
# named while the rows before it stay readable.
# Method: small experiments of all patterns, with faults, lies, packed formats,
# guards and checks, with 1, 2 and 3 ranks of 1 and 2 threads; then mistakes,
# a rank without memory, signals.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/ranks.sh
. "$top/tests/integration/ranks.sh"

# written NAME PEERS STEPS GOSSIP [LINE...]
written() {
    file=$scratch/$1.yaml
    {
        printf '%s\n' "name: $1" "peers: $2" "stop: {steps: $3}" "gossip: {$4}"
        shift 4
        printf '%s\n' "$@"
    } >"$file"
}
quadratic='model: {kind: quadratic, dim: 40}'
network='network: {latency: 1ms, jitter: 2ms}'
compute='compute: {step: 5ms, merge: 200us, spread: exponential}'
digits="model: {kind: mlp, layers: [64, 16, 10]}
data: {kind: idx, path: $data, split: iid}
train: {learning_rate: 0.05, momentum: 0.9, batch: 8}"

written pairs 9 12 'algorithm: adpsgd, every: 1' "$digits" \
    'compute: {step: 5ms}' 'assert: ["finally accuracy >= 0.1"]' \
    'evaluate: 20ms'
same_run "$file" 1,1 2,1 3,1 2,2
written faults 10 30 'algorithm: adpsgd, every: 1, topology: ring' \
    "$quadratic" "$network" "$compute" 'save: 20ms' \
    'faults: [{at: 40ms, crash: "peer(1..2)", restart: 30ms},
  {at: 60ms, crash: "peer(7..7)"},
  {at: 30ms, for: 40ms, pause: "peer(4..4)"},
  {at: 50ms, for: 30ms, partition: "peer(0..4) <-> peer(5..9)"},
  {at: 20ms, for: 50ms, slow: "n(2)", by: 5}]' \
    'assert: ["always finite(model)", "finally live"]'
same_run "$file" 2,1 3,2
written rounds 8 20 'algorithm: dpsgd, topology: circulant, every: 1' \
    "$digits" "$network" 'compute: {step: 5ms}'
same_run "$file" 2,2 3,1
written pushes 8 20 'algorithm: sgp, topology: exponential, every: 1' \
    "$quadratic" 'network: {latency: 1ms, loss: 0.05}' "$compute"
same_run "$file" 3,1
written packed 7 15 'algorithm: adpsgd, every: 1, wire: moniqua8' "$quadratic" \
    "$network" "$compute"
same_run "$file" 2,1
written compressed 8 15 'algorithm: choco, topology: ring, every: 1' \
    "$quadratic" "$network" "$compute"
same_run "$file" 2,1
written reduced 8 12 'algorithm: allreduce-ring, every: 1' "$digits" \
    "$network" 'compute: {step: 5ms}'
same_run "$file" 3,1
written outer 6 20 'algorithm: diloco, topology: ring, every: 3' "$digits" "$network" \
    'compute: {step: 5ms}'
same_run "$file" 2,1
written liars 9 25 'algorithm: adpsgd, every: 1, guard: clip' "$digits" \
    'compute: {step: 5ms}' \
    'faults: [{at: 10ms, for: 60ms, hostile: "peer(3..3)", kind: gauss}]'
same_run "$file" 2,1
written hosts 8 15 'algorithm: adpsgd, every: 2' "$quadratic" \
    'network: {latency: 1ms, rate: 10Mbit, sharing: fair}' "$compute" \
    'hosts: {cores: 2, peers: 3}'
same_run "$file" 2,1

# refused PATTERN ARGUMENTS...
refused() {
    pattern=$1
    shift
    rm -rf "$scratch/refused"
    if ranks 2 "$@" --out "$scratch/refused"; then
        fail "kith sim $*: nothing was refused"
    fi
    [ "$(grep -c '^kith sim: ' "$scratch/err")" -eq 1 ] ||
        fail "kith sim $*: not said once: $(cat "$scratch/err")"
    grep -q "^kith sim: .*$pattern" "$scratch/err" ||
        fail "kith sim $*: $(cat "$scratch/err")"
    [ ! -e "$scratch/refused" ] || fail "kith sim $*: something was written"
}
refused 'wire: full' "$file" --wire full
refused 'dump is not divided' "$file" --dump "$scratch/refused"
refused 'what is conserved' "$file" --set 'assert=["always conserved"]'
sed '/^hosts:/d; s/^gossip:.*/central: {method: gradient}/' "$file" \
    >"$scratch/central.yaml"
refused 'central method' "$scratch/central.yaml"
refused 'a sweep' "$file" --seeds 2
refused 'dishonest: found' "$file" --dishonest 99=ahead
refused 'calibrate' "$file" --calibrate
refused '2 ranks and 1 peers' "$file" --set peers=1
refused 'cannot read' "$scratch/nowhere.yaml"
refused 'unknown option "--thread"' "$file" --thread 2
refused '1 to 64' "$file" --threads 0
refused 'found 2 arguments' "$file" "$file"
if timeout 60 mpirun -n 2 "$kith" swarm --random --runs 2 \
    --out "$scratch/refused" >"$scratch/json" 2>"$scratch/err"; then
    fail "kith swarm: not refused"
fi
[ "$(grep -c '^kith swarm: .*leave mpirun out' "$scratch/err")" -eq 1 ] ||
    fail "kith swarm: not said once: $(cat "$scratch/err")"
[ ! -e "$scratch/refused" ] || fail "kith swarm: something was written"
"$kith" --version | grep -q '^MPI: .*/kith-mpi.so$' ||
    fail "$("$kith" --version)"
timeout 60 mpirun -n 2 "$kith" sim --help >"$scratch/json" 2>"$scratch/err" ||
    fail "--help: $(cat "$scratch/err")"
[ "$(grep -c '^usage: ' "$scratch/json")" -eq 1 ] || fail "help, not once"

# What one rank alone finds is said once, with its number.
alone() {
    printf '%s\n' '#!/bin/sh' \
        "[ \"\$OMPI_COMM_WORLD_RANK\" != 1 ] || $1" \
        "exec '$kith' sim \"\$@\"" >"$scratch/rank"
    chmod +x "$scratch/rank"
    shift
    timeout 120 mpirun -n 3 "$scratch/rank" "$@" --out "$scratch/alone" \
        >"$scratch/json" 2>"$scratch/err" </dev/null &&
        fail "a rank failed, the run did not"
    [ "$(grep -c '^kith' "$scratch/err")" -eq 1 ] ||
        fail "not said once: $(cat "$scratch/err")"
}
alone "set -- '$scratch/nowhere.yaml'" "$file"
grep -q 'cannot read .*nowhere' "$scratch/err" || fail "$(cat "$scratch/err")"
grep -q "^rank 1, on $(uname -n), ends the run:" "$scratch/err" ||
    fail "$(cat "$scratch/err")"
# Of command lines, too.
# shellcheck disable=SC2016 # The rank's own arguments.
alone 'set -- "$@" --sed 5' "$file"
grep -q 'unknown option "--sed"' "$scratch/err" || fail "$(cat "$scratch/err")"
# shellcheck disable=SC2016
alone 'set -- "$@" --threads 0' "$file"
grep -q '1 to 64' "$scratch/err" || fail "$(cat "$scratch/err")"
# shellcheck disable=SC2016
alone 'set -- "$@" --seed 5' "$file"
grep -q 'rank 1 has another experiment' "$scratch/err" ||
    fail "$(cat "$scratch/err")"
# Nor may they differ in what real peers may.
# shellcheck disable=SC2016
alone 'set -- "$@" --set compute.step=6ms' "$file"
grep -q 'rank 1 has another experiment' "$scratch/err" ||
    fail "$(cat "$scratch/err")"
# A data set of the same shape in the same place, with another label: of rank 1,
# which has mounts of its own.
cp -r "$data" "$scratch/digits"
cp -r "$data" "$scratch/others"
labels=train-labels-idx1-ubyte
gzip -dc "$data/$labels.gz" >"$scratch/$labels"
printf '\3' | dd of="$scratch/$labels" bs=1 seek=8 conv=notrunc 2>/dev/null
gzip -c "$scratch/$labels" >"$scratch/others/$labels.gz"
sed "s|path: $data|path: $scratch/digits|" "$scratch/pairs.yaml" \
    >"$scratch/moved.yaml"
if unshare -m mount --bind "$scratch/others" "$scratch/digits" 2>/dev/null; then
    alone "exec unshare -m sh -c 'mount --bind $scratch/others $scratch/digits
        exec $kith sim \"\$@\"' sh \"\$@\"" "$scratch/moved.yaml"
    grep -q 'rank 1 has another .*data set' "$scratch/err" ||
        fail "$(cat "$scratch/err")"
else
    echo "test_sim_ranks: no mounts of a process's own: not tried" >&2
fi
ranks 2 "$scratch/moved.yaml" || fail "moved: $(cat "$scratch/err")"
of_other_sources "$scratch/kith"
KITH_MPI_MODULE=$(dirname "$kith")/kith-mpi.so
export KITH_MPI_MODULE
alone "exec '$scratch/kith' sim \"\$@\"" "$file"
grep -q 'rank 1 has another .*build of kith' "$scratch/err" ||
    fail "$(cat "$scratch/err")"
unset KITH_MPI_MODULE
if [ "$KITH_INSTRUMENTED" = no ]; then
    written memory 300 4 'algorithm: adpsgd, every: 1' \
        'model: {kind: consensus, dim: 1000000}' 'compute: {step: 5ms}'
    alone 'ulimit -v 1500000' "$file"
    grep -q 'rank 1: .*no memory' "$scratch/err" ||
        fail "$(cat "$scratch/err")"
fi

# killed SIGNAL: rank 1 of a run that would take hours.
killed() {
    rm -rf "$scratch/killed"
    timeout 120 mpirun -n 2 "$kith" sim "$file" --out "$scratch/killed" \
        >"$scratch/json" 2>"$scratch/err" </dev/null &
    launcher=$!
    python3 - "$1" "$scratch/killed" <<'PY'
import glob, os, signal, sqlite3, sys, time

# Until there are rows: the run goes on.
def rows():
    for path in glob.glob(sys.argv[2] + "/*.db"):
        try:
            database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            return database.execute("SELECT count(*) FROM series").fetchone()[0]
        except sqlite3.Error:
            pass
    return 0

def rank_1():
    mark = f"KITH_TEST_MARK={os.environ['KITH_TEST_MARK']}".encode()
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{process}/comm", encoding="ascii") as file:
                name = file.read().strip()
        except (OSError, UnicodeDecodeError):
            continue
        if mark in words and b"OMPI_COMM_WORLD_RANK=1" in words and name == "kith":
            return int(process)
    return None

deadline = time.monotonic() + 60
while rows() == 0 and time.monotonic() < deadline:
    time.sleep(0.1)
os.kill(rank_1(), getattr(signal, sys.argv[1]))
PY
    wait "$launcher" && fail "$1 of a rank: the run ended well"
    database=$(echo "$scratch"/killed/*.db)
    [ "$(sql "$database" "SELECT count(*) > 0 FROM series")" = 1 ] ||
        fail "$1 of a rank: no row can be read"
}
written long 8 10000000 'algorithm: adpsgd, every: 1' "$quadratic" \
    'compute: {step: 5ms}' 'evaluate: 20ms'
killed SIGKILL
grep -q 'rank 1 .*signal 9' "$scratch/err" || fail "$(cat "$scratch/err")"
killed SIGTERM
grep -q '^kith sim: rank 1: ended by a signal' "$scratch/err" ||
    fail "$(cat "$scratch/err")"
# While sums of models are under way: those that hear of it leave them there.
written sums 6 10000000 'algorithm: adpsgd, every: 1' \
    'model: {kind: consensus, dim: 1000000}' 'compute: {step: 5ms}' \
    'evaluate: 5ms'
killed SIGTERM
grep -q 'received signal' "$scratch/err" &&
    fail "a rank crashed at its end: $(cat "$scratch/err")"

# Without the module nobody goes on alone; without mpirun nobody asks for it.
if KITH_MPI_MODULE=/nowhere/kith-mpi.so ranks 2 "$file"; then
    fail "two processes went on without a module"
fi
grep -q 'KITH_MPI_MODULE names /nowhere' "$scratch/err" ||
    fail "$(cat "$scratch/err")"
written alone 4 5 'algorithm: adpsgd, every: 1' "$quadratic" \
    'compute: {step: 5ms}'
KITH_MPI_MODULE=/nowhere/kith-mpi.so expect 0 sim "$file" --json \
    --out "$scratch"
finish
