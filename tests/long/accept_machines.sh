#!/bin/sh
# Goal: a run whose ranks are on several machines is one process's; each machine
# keeps its part of a save on a disk of its own, and when a rank dies all go on
# from there; what one machine alone lacks is said with its name.
# Method: two machines of namespaces: each has a network, a host name, /tmp and
# /dev/shm of its own, so that Open MPI speaks TCP between them, and starts its
# daemon by a script in the place of ssh. Root alone may make them.
set -u
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/ranks.sh
. "$top/tests/integration/ranks.sh"
for tool in ip nsenter unshare; do
    command -v $tool >/dev/null || skip "no $tool"
done
[ "$(id -u)" -eq 0 ] || skip "not root"
near=kith-$$-0 far=kith-$$-1
ip netns add $near 2>/dev/null || skip "no namespaces here"
stands=
trap 'kill $stands 2>/dev/null; ip netns del $near; ip netns del $far
    rm -rf "$scratch"' EXIT
ip netns add $far
ip link add kith0 netns $near type veth peer name kith1 netns $far || exit 99
for i in 0 1; do
    netns=kith-$$-$i
    ip -n $netns link set lo up
    ip -n $netns addr add 10.99.7.$((i + 1))/24 dev kith$i
    ip -n $netns link set kith$i up
    # What is under /tmp of this machine is not there: the test's own is.
    mkdir -p "$scratch/own-$i"
    ip netns exec $netns unshare --uts --ipc --mount sh -c "
        hostname machine-$i
        mount -t tmpfs none /dev/shm
        mount --bind '$scratch/own-$i' '$scratch/own'
        echo ready >'$scratch/own/ready'
        exec sleep 3000" &
    stands="$stands $!"
    mkdir -p "$scratch/own"
done
for i in 0 1; do
    tries=0
    until [ -s "$scratch/own-$i/ready" ] || [ $tries -gt 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
done
# shellcheck disable=SC2086
set -- $stands
first=$1 second=$2

# enter PID COMMAND...: on that machine.
enter() {
    pid_=$1
    shift
    nsenter -t "$pid_" --net --uts --ipc --mount "$@"
}
cat >"$scratch/agent" <<SH
#!/bin/sh
# HOST COMMAND...: as ssh, with the words joined.
shift
exec nsenter -t $second --net --uts --ipc --mount sh -c "cd '$scratch'; \$*"
SH
chmod +x "$scratch/agent"
OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=10.99.7.0/24
OMPI_MCA_oob_tcp_if_include=10.99.7.0/24
OMPI_MCA_plm_rsh_agent=$scratch/agent OMPI_MCA_orte_tmpdir_base=$scratch/own
export OMPI_MCA_btl OMPI_MCA_btl_tcp_if_include OMPI_MCA_oob_tcp_if_include \
    OMPI_MCA_plm_rsh_agent OMPI_MCA_orte_tmpdir_base

# two ARGUMENTS...: the status; as ranks() of ranks.sh.
two() {
    timeout 200 nsenter -t "$first" --net --uts --ipc --mount mpirun -n 2 \
        --host 10.99.7.1:1,10.99.7.2:1 "$kith" sim "$@" \
        >"$scratch/json" 2>"$scratch/err" </dev/null
}

cat >"$scratch/two.yaml" <<YAML
name: two
seed: 3
peers: 40
stop: {steps: 2500}
model: {kind: mlp, layers: [64, 64, 10]}
data: {kind: idx, path: $data, split: dirichlet(0.3)}
train: {batch: 16}
gossip: {algorithm: adpsgd}
compute: {step: 10ms, spread: exponential}
network: {latency: 1ms}
evaluate: 5s
YAML
timeout 200 "$kith" sim "$scratch/two.yaml" --json --out "$scratch/one" \
    >"$scratch/json" 2>"$scratch/err" || fail "one process: $(cat "$scratch/err")"
outcome "$scratch/expected"
one=$(json trace_hash)
two "$scratch/two.yaml" --json --out "$scratch/runs" ||
    fail "two machines: $(cat "$scratch/err")"
outcome "$scratch/found"
cmp -s "$scratch/expected" "$scratch/found" || fail "two machines: another run"
echo "accept_machines: one process $one, two machines $(json trace_hash)"

# The second machine's rank dies once both have saved.
save=$scratch/own/save
two "$scratch/two.yaml" --json --out "$scratch/killed" --save "$save" \
    --save-every 1s &
run=$!
tries=0
until [ -s "$scratch/own-0/save/rank-0.state" ] &&
    [ -s "$scratch/own-1/save/rank-1.state" ] || [ $tries -gt 600 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
for pid in $(pgrep -x kith); do
    if [ "$(readlink "/proc/$pid/ns/uts")" = \
        "$(readlink "/proc/$second/ns/uts")" ]; then
        kill -9 "$pid"
    fi
done
wait $run && fail "a rank was killed, and the run went on"
grep -q 'rank 1 .*signal 9' "$scratch/err" || fail "killed: $(cat "$scratch/err")"
[ -e "$scratch/own-0/save/rank-1.state" ] && fail "one disk has both saves"
two "$scratch/two.yaml" --json --out "$scratch/killed" --save "$save" --resume ||
    fail "resumed: $(cat "$scratch/err")"
grep -q 'there is no save' "$scratch/err" && fail "nothing was gone on from"
[ "$(json trace_hash)" = "$one" ] || fail "resumed: another run"
echo "accept_machines: killed and resumed $(json trace_hash)"

# Data that the second machine lacks.
mkdir -p "$scratch/data" && cp "$data"/* "$scratch/data"
enter "$second" mount -t tmpfs none "$scratch/data"
sed "s,path: $data,path: $scratch/data," "$scratch/two.yaml" \
    >"$scratch/lacks.yaml"
two "$scratch/lacks.yaml" --json --out "$scratch/lacks" && fail "without data"
grep -q '^rank 1, on machine-1, ends the run:' "$scratch/err" &&
    grep -q '^kith sim: reading .*no such file' "$scratch/err" ||
    fail "lacks data: $(cat "$scratch/err")"
finish
