#!/bin/bash
# Goal: a sweep's shards run as a Slurm array and are put together, with the rows
# of the sweep in one process; a shard that is preempted goes on.
# Method: munged, slurmctld and slurmd of this machine alone, with folders, ports
# and a key of their own in a scratch folder; deploy/slurm/sweep.sh twice, the
# second time with a shard requeued while it runs; bad arguments are refused.
# SKIP without Slurm or not as root.
set -u
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
kith=$(pwd)/kith
for tool in munged slurmctld slurmd sbatch scontrol squeue; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "check_slurm: SKIP: $tool is not installed: apt-get install" \
            "slurmctld slurmd slurm-client munge"
        exit 77
    }
done
[ "$(id -u)" = 0 ] || {
    echo "check_slurm: SKIP: not root"
    exit 77
}
scratch=$(mktemp -d)
pids=()
leave() {
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null
    done
    wait
    [ -n "${KEEP:-}" ] || rm -rf "$scratch"
}
trap leave EXIT
fail() {
    echo "check_slurm: FAILED: $*"
    tail -n 5 "$scratch"/*.log 2>/dev/null
    exit 1
}

# Ends when the command is true; at most 60 s.
until_true() {
    for _ in $(seq 300); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    return 1
}

start_slurm() {
    local host
    host=$(hostname -s)
    mkdir -p "$scratch/munge" "$scratch/state" "$scratch/spool"
    chmod 755 "$scratch" "$scratch/munge"
    chown -R munge: "$scratch/munge"
    head -c 1024 /dev/urandom >"$scratch/munge/key"
    chown munge: "$scratch/munge/key"
    chmod 400 "$scratch/munge/key"
    setpriv --reuid munge --regid munge --clear-groups \
        munged --foreground --key-file="$scratch/munge/key" \
        --socket="$scratch/munge/socket" --pid-file="$scratch/munge/pid" \
        --log-file="$scratch/munge/log" --seed-file="$scratch/munge/seed" \
        >"$scratch/munged.log" 2>&1 &
    pids+=($!)
    until_true test -S "$scratch/munge/socket" || fail "munged did not begin"
    cat >"$scratch/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2
KillWait=5
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc)
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
CONF
    export SLURM_CONF=$scratch/slurm.conf
    slurmctld -D >"$scratch/slurmctld.log" 2>&1 &
    pids+=($!)
    slurmd -D >"$scratch/slurmd.log" 2>&1 &
    pids+=($!)
    until_true sinfo_is_idle || fail "no node is idle: $(sinfo 2>&1)"
}
sinfo_is_idle() { sinfo -h -o %T | grep -q idle; }
nothing_is_queued() { [ -z "$(squeue -h)" ]; }
settled() {
    for _ in 1 2 3 4; do
        until_true nothing_is_queued && return 0
    done
    squeue
    fail "jobs do not end"
}

# What a sweep found, but for clocks, and for what a process is called by.
rows() {
    python3 - "$1" <<'PY'
import sqlite3
import sys
base = sqlite3.connect(sys.argv[1])
ids = {run: f"{label} seed {seed}" for run, label, seed in base.execute(
    "SELECT run_id, label, r.seed FROM runs r JOIN cells USING(cell)")}
states = sorted((ids[run], state) for run, state in base.execute(
    "SELECT run_id, state FROM runs"))
print(*states, sep="\n")
print(*sorted((ids[run], key, value) for run, key, value in base.execute(
    "SELECT run_id, key, value FROM summary")
    if "wall" not in key and "cpu" not in key), sep="\n")
print(*sorted((ids[run], peer, step, loss) for run, peer, step, loss in
    base.execute("SELECT run_id, coalesce(peer, -1), step, "
                 "coalesce(loss, -1) FROM series")), sep="\n")
PY
}

submit() { KITH=$kith bash "$top/deploy/slurm/sweep.sh" "$@"; }
refused() { # what it says, arguments
    local what=$1
    shift
    submit "$@" >"$scratch/refused.log" 2>&1 && fail "not refused: $*"
    grep -q "$what" "$scratch/refused.log" || fail "of $*: not '$what'"
}

# Runs whose whole takes some seconds, so that one can be cut.
cat >"$scratch/slow.yaml" <<YAML
name: slow
seed: 7
peers: 16
stop: {steps: 3000}
model: {kind: mlp, layers: [64, 32, 10]}
data: {kind: idx, path: $top/examples/data/digits, split: iid}
train: {learning_rate: 0.05, batch: 16}
gossip: {algorithm: adpsgd, topology: random}
compute: {step: 5ms}
evaluate: end
YAML
options=(--sweep "gossip.every=2,4,8" --seeds 2)

port=$((20000 + $$ % 20000))
start_slurm
"$kith" sim "$scratch/slow.yaml" "${options[@]}" --out "$scratch/alone" \
    >"$scratch/alone.log" 2>&1 || fail "the sweep in one process"
rows "$scratch"/alone/*.db >"$scratch/alone.rows"
[ "$(wc -l <"$scratch/alone.rows")" -gt 100 ] || fail "no rows to compare"

refused SHARDS 0 "$scratch/out" "$scratch/slow.yaml" "${options[@]}"
refused SHARDS 2x "$scratch/out" "$scratch/slow.yaml" "${options[@]}"
refused "cannot be read" 2 "$scratch/out" "$scratch/none.yaml" --seeds 2
refused "by this script" 2 "$scratch/out" "$scratch/slow.yaml" --jobs 2

submit 2 "$scratch/out" "$scratch/slow.yaml" "${options[@]}" || fail "submit"
settled
rows "$scratch/out/sweep.db" >"$scratch/shards.rows" || fail "no sweep.db"
cmp "$scratch/alone.rows" "$scratch/shards.rows" || fail "other rows"
echo "check_slurm: 2 shards: the rows of one process"

# Requeued while it runs: asked to end, started again, and it goes on.
submit 3 "$scratch/cut" "$scratch/slow.yaml" "${options[@]}" \
    >"$scratch/submit" || fail "submit"
job=$(sed -n 's/^shards: job \([0-9]*\).*/\1/p' "$scratch/submit")
until_true test -s "$scratch/cut/shard-1.log" || fail "shard 1 did not begin"
sleep 1
scontrol requeue "${job}_1" || fail "requeue"
settled
rows "$scratch/cut/sweep.db" >"$scratch/cut.rows" || fail "no sweep.db"
cmp "$scratch/alone.rows" "$scratch/cut.rows" ||
    fail "other rows after a requeue: $(tail -n 3 "$scratch"/cut/shard-1.log)"
sed "s/^/  shard 1: /" "$scratch/cut/shard-1.log" | tail -n 12
echo "check_slurm: 3 shards, one of them requeued: the same"
echo "check_slurm: passed"
