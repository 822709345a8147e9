#!/bin/sh
# Goal: a lab's peers keep to their share of the cores where one number divides
# the other, and share all of them elsewhere and with compute.affinity: none.
# Method: /proc/PID/status of running peers, on two cores of this machine.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

two=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep=",")')
case $two in
*,*) command -v taskset >/dev/null || skip "no taskset" ;;
*) skip "one core" ;;
esac
low=${two%,*} high=${two#*,}
experiment 2 1000000 "compute: {step: 10ms}" >"$scratch/long.yaml"

# cores SET...: where the peers of a lab with these settings may run, by rank.
cores() {
    taskset -c "$two" timeout 60 "$kith" lab "$scratch/long.yaml" --json \
        --out "$scratch" "$@" >"$scratch/json" 2>"$scratch/err" &
    launcher=$!
    python3 - "$KITH_TEST_MARK" <<'PY'
import os, sys, time
mark = ("KITH_TEST_MARK=" + sys.argv[1]).encode()
def allowed():
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = open(f"/proc/{pid}/comm").read().strip()
            if not name.startswith("kith peer ") or mark not in open(
                    f"/proc/{pid}/environ", "rb").read().split(b"\0"):
                continue
            threads = os.listdir(f"/proc/{pid}/task")
            sets = {tuple(sorted(os.sched_getaffinity(int(t))))
                    for t in threads}
            if len(threads) > 1:
                found[int(name.split()[-1])] = sets
        except OSError:
            continue
    return found
before = None
for _ in range(100):  # until two looks agree on peers that train
    time.sleep(0.2)
    now = allowed()
    if now and now == before:
        break
    before = now
print(*("+".join(str(c) for c in sorted(set().union(*now[r]))) for r in
        sorted(now)))
PY
    kill -INT "$launcher"
    wait "$launcher"
}

told() {
    expected=$1
    shift
    got=$(cores "$@")
    [ "$got" = "$expected" ] || {
        fail "$*: peers on $got, not on $expected"
        cat "$scratch/err" >&2
    }
}

told "$low $high" --set peers=2
told "$low $low $high $high" --set peers=4
told "$low+$high $low+$high $low+$high" --set peers=3
told "$low+$high" --set peers=1
told "$low+$high $low+$high" --set peers=2 --set compute.affinity=none
finish
