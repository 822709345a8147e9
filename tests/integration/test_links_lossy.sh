#!/bin/sh
# Goal: kith doctor --links finds the loss of a line that loses packets, and none
# on one that does not; the rate of a slow one is neither too high nor too low.
# Method: two network namespaces and between them a line of this script's own,
# which has every packet from a TUN device, loses each 50th long one to the peer
# or none, and hands the others on after a delay, at a rate. So a share is
# exact, however busy the machine is; of rates the best of three counts.
# SKIP where namespaces or TUN devices are refused.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
left=kith-$$-a right=kith-$$-b
peer='' line=''

# shellcheck disable=SC2317 # The trap calls it.
cleanup() {
    for one in $peer $line; do kill -9 "$one" 2>/dev/null; done
    ip netns del "$left" 2>/dev/null
    ip netns del "$right" 2>/dev/null
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 99' PIPE # nobody reads any more: namespaces go all the same

command -v ip >/dev/null || skip "no ip (iproute2)"
for at in "$left" "$right"; do
    ip netns add "$at" 2>"$scratch/err" ||
        skip "namespaces are refused: $(cat "$scratch/err")"
done
ip netns exec "$left" true 2>"$scratch/err" ||
    skip "a program cannot be run in a namespace: $(cat "$scratch/err")"

cat >"$scratch/line.py" <<'PY'
"""line.py LEFT RIGHT: long and slow, and loses nothing; after SIGUSR1 shorter
and faster, and loses each 50th long packet from left to right."""
import collections, ctypes, fcntl, os, select, signal, struct, sys, time
delay, rate, each = 0.02, 20e6 / 8, 0
IFF_TUN, IFF_NO_PI, TUNSETIFF, CLONE_NEWNET = 1, 0x1000, 0x400454CA, 0x40000000

def lose(*_):
    global delay, rate, each
    delay, rate, each = 0.002, 100e6 / 8, 50

def device(namespace):
    where = os.open("/var/run/netns/" + namespace, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(where, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"line",
                                           IFF_TUN | IFF_NO_PI))
    return fd

ends = [device(sys.argv[1]), device(sys.argv[2])]
signal.signal(signal.SIGUSR1, lose)
print("there", flush=True)
queues, free, long = [collections.deque(), collections.deque()], [0.0, 0.0], 0
while True:
    now = time.monotonic()
    for side in (0, 1):
        while queues[side] and queues[side][0][0] <= now:
            try:
                os.write(ends[1 - side], queues[side].popleft()[1])
            except OSError:  # not up yet
                pass
    nexts = [queue[0][0] - now for queue in queues if queue]
    for fd in select.select(ends, [], [], min(nexts, default=1))[0]:
        side = ends.index(fd)
        for _ in range(64):
            try:
                packet = os.read(fd, 65536)
            except BlockingIOError:
                break
            now = time.monotonic()
            free[side] = max(free[side], now) + len(packet) / rate
            long += side == 0 and len(packet) > 1000
            if side == 0 and len(packet) > 1000 and each and long % each == 0:
                continue
            queues[side].append((free[side] + delay, packet))
PY

python3 "$scratch/line.py" "$left" "$right" >"$scratch/line" \
    2>"$scratch/line.err" &
line=$!
tries=0
until grep -q there "$scratch/line" 2>/dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 300 ] || ! kill -0 "$line" 2>/dev/null; then
        skip "no TUN devices: $(tail -n 1 "$scratch/line.err")"
    fi
    sleep 0.1
done
for end in "$left 1 2" "$right 2 1"; do
    # shellcheck disable=SC2086
    set -- $end
    # What waits is never lost: the line alone loses.
    ip -n "$1" link set line txqueuelen 20000 up
    ip -n "$1" addr add "10.78.0.$2" peer "10.78.0.$3" dev line
done

experiment 2 10000000 "compute: {step: 5ms}" >"$scratch/links.yaml"
make_cluster 2 "experiment: ../links.yaml"
# Each member has its own address there; ports stay.
for rank in 0 1; do
    awk '/127.0.0.1/ && /^ *- / { sub("127.0.0.1", "10.78.0." (2 - seen++)) }
        { print }' "$scratch/$rank/peer.yaml" |
        sed "s/^listen: \"127.0.0.1/listen: \"10.78.0.$((2 - rank))/" \
            >"$scratch/new" && mv "$scratch/new" "$scratch/$rank/peer.yaml"
done
ip netns exec "$right" "$kith" peer "$scratch/0/peer.yaml" >"$scratch/0/out" \
    2>"$scratch/0/err" &
peer=$!

# measured NAME: what doctor says of the way to the peer, in $scratch/NAME.
measured() {
    timeout 60 ip netns exec "$left" "$kith" doctor "$scratch/1/peer.yaml" \
        --links --json >"$scratch/json" 2>"$scratch/err" || {
        fail "$1: $(cat "$scratch/json" "$scratch/err" "$scratch/0/err")"
        finish
    }
    cat "$scratch/json" >>"$scratch/$1"
}
tries=0
until ip netns exec "$left" timeout 20 "$kith" doctor "$scratch/1/peer.yaml" \
    >"$scratch/json" 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 30 ] || {
        fail "no peer: $(cat "$scratch/json" "$scratch/0/err")"
        finish
    }
    sleep 1
done
for _ in 1 2 3; do measured whole; done
kill -USR1 "$line"
measured lossy
python3 - "$scratch/whole" "$scratch/lossy" <<'PY' ||
import re, sys

def figures(path, key):
    with open(path, encoding="utf-8") as file:
        return [float(found) for found in
                re.findall(f'"{key}": ?([0-9.e+-]+)', file.read())]
rates, losses = (figures(sys.argv[1], key) for key in ("bits_per_s", "loss"))
lossy = figures(sys.argv[2], "loss")
print(rates, losses, lossy, figures(sys.argv[2], "bits_per_s"),
      figures(sys.argv[1], "latency_s"))
assert len(rates) == 3 and 10e6 <= max(rates) <= 22e6
assert min(figures(sys.argv[1], "latency_s")) >= 0.02
assert min(losses) < 0.005
# Each 50th is 0.02; what is sent again may be lost again, too.
assert len(lossy) == 1 and 0.01 <= lossy[0] <= 0.04
PY
    fail "$(cat "$scratch/whole" "$scratch/lossy")"
finish
