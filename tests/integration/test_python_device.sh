#!/bin/sh
# Goal: a loop whose tensors lie on a CUDA device is a peer of one on the host:
# both are moved, save() and load= give the device's bytes back, read_from()
# takes device memory, the thread's current device stays; a lab runs it, and says
# that it does not evaluate the average; steps alone tell the device nothing; what
# is misplaced, and a module that is not there, is said by name; it is found
# beside libkith.so.0.
# Method: the module's emulation, as late as it may be, and emulated.py in
# torch's place. SKIP without numpy. No GPU.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
numpy || skip "numpy is not here"
[ -e libkith.so.0 ] || skip "this build has no shared library"
[ -e tests/cuda/kith-cuda-host.so ] || skip "the emulation is not built"
mkdir "$scratch/lib"
cp libkith.so.0 "$scratch/lib/"
cp tests/cuda/kith-cuda-host.so "$scratch/lib/kith-cuda.so"
export KITH_LIBRARY="$scratch/lib/libkith.so.0" PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$top/python:$top/tests/integration"
export EMULATION="$scratch/lib/kith-cuda.so"
unset KITH_CUDA_MODULE

make_cluster 2 "experiment: ../pair.yaml" "wait: {members: 2, for: 60s}"
printf '%s\n' "name: pair" "peers: 2" "stop: {steps: 200}" \
    "model: {kind: program}" "gossip: {algorithm: adpsgd, every: 2}" \
    >"$scratch/pair.yaml"
sed '$a train: {backend: cuda}' "$scratch/pair.yaml" >"$scratch/device.yaml"
sed 's/pair.yaml/device.yaml/' "$scratch/0/peer.yaml" >"$scratch/0/device.yaml"

cat >"$scratch/device.py" <<'PYTHON'
import sys, numpy, kith, emulated
from kith._library import lib
from ctypes import c_void_p
x = [emulated.Tensor(numpy.zeros(n)) for n in (1000, 77)]
emulated.choose(3)  # the loop's own device is another one
with kith.Peer(x, sys.argv[1]) as peer:
    moved = 0
    for step in range(200):
        for one in x:
            one.set(one.get() * 0.9)  # to rank 0's, 0
        before = [one.get() for one in x]
        peer.step()
        assert emulated.chosen() == 3
        after = [one.get() for one in x]
        moved = max(moved, *[float(abs(a - b).max())
                             for a, b in zip(after, before)])
    last = [emulated.Tensor(numpy.full(len(one), 0.5)) for one in after]
    data = (c_void_p * 2)(*[one.data_ptr() for one in last])
    assert lib().kith_read_from(peer._peer, data, 2) == 0
    peer.save(sys.argv[2])
    there = [one.get() for one in x]
saved = [numpy.full(len(one), 0.5, "f") for one in after]
for one in x:
    one.set(numpy.full(one.numel(), numpy.nan))
again = kith.Peer(x, sys.argv[1], load=sys.argv[2], timeout=0.1)
found = [one.get() for one in x]
data = (c_void_p * 2)(*[one.ctypes.data for one in saved])
assert lib().kith_read_from(again._peer, data, 2) == -1
try:
    again.close()
except kith.Error as error:
    assert "kith_read_from(): data[0]: " in str(error), error
else:
    raise AssertionError("memory of the host was taken for the device's")
print("expected: moved, and saved is what was read; measured:", moved,
      [float(one.mean()) for one in found])
assert moved > 0.01
assert all((a == b).all() for a, b in zip(found, saved))
PYTHON
cat >"$scratch/host.py" <<'PYTHON'
import sys, numpy, kith
x = [numpy.zeros(n, "f") for n in (1000, 77)]
with kith.Peer(x, sys.argv[1]) as peer:
    for step in range(200):
        for one in x:
            one += 0.1 * (1 - one)
        peer.step()
    peer.serve(1)
PYTHON
timeout 200 "$python" "$scratch/host.py" "$scratch/1/peer.yaml" \
    >"$scratch/1/out" 2>"$scratch/1/err" &
host=$!
timeout 200 "$python" "$scratch/device.py" "$scratch/0/device.yaml" \
    "$scratch/own.save" >"$scratch/0/out" 2>&1 ||
    fail "the device's: $(tail -n 3 "$scratch/0/out")"
wait "$host" || fail "the host's: $(tail -n 3 "$scratch/1/err")"
cat "$scratch/0/out"

# In a lab, but for the average.
cat >"$scratch/lab.py" <<'PYTHON'
import numpy, kith, emulated
x = emulated.Tensor(numpy.zeros(1000))
with kith.Peer(x) as peer:
    while not peer.over:
        x.set(x.get() * 0.9 + 0.1)
        peer.step(0.5)
    peer.report(accuracy=0.25)
PYTHON
sed "s|program}|program, run: \"$python $scratch/lab.py\"}|" \
    "$scratch/device.yaml" >"$scratch/lab.yaml"
export KITH_CUDA_MODULE="$EMULATION"
expect 0 lab "$scratch/lab.yaml" --out "$scratch/lab.db" --json
unset KITH_CUDA_MODULE
[ "$(json exchanges done)" -gt 0 ] || fail "a lab: no exchange"
grep -q "not evaluated: .* cannot evaluate the average" "$scratch/err" ||
    fail "a lab's average: $(cat "$scratch/err")"

# refused MODEL FILE WHAT [VARIABLE=VALUE...]
refused() {
    model=$1 file=$2 what=$3
    shift 3
    timeout 60 env "$@" "$python" - "$scratch/0/$file.yaml" \
        >"$scratch/said" 2>&1 <<EOT
import sys, numpy, kith
import emulated
zeros = numpy.zeros(4, "f")
with kith.Peer($model, sys.argv[1], start="own", timeout=0.1) as peer:
    peer.step()
EOT
    grep -q -- "$what" "$scratch/said" ||
        fail "$model, $file: expected: $what; found: $(cat "$scratch/said")"
}
sed -i '/^wait/d' "$scratch/0/peer.yaml" "$scratch/0/device.yaml"
tensor='emulated.Tensor(zeros)'
there='emulated.Tensor(zeros, address=emulated.Tensor(numpy.zeros(5)).data_ptr()'
refused "$tensor" peer "train.backend: found cpu; allowed: cuda"
refused zeros device "train.backend: found cuda; allowed: cpu"
refused "[$tensor, zeros]" device "allowed: all on cpu, or all on one cuda"
refused 'emulated.Tensor(zeros, "xpu:0")' device "on xpu:0; allowed: all on"
refused 'emulated.Tensor(zeros, address=zeros.ctypes.data)' device \
    "vectors.0.: .* does not lie in a device's memory"
refused "$there + 1)" device "its address is no multiple of a value's size"
refused "$tensor" device "KITH_CUDA_MODULE names /nowhere, which is not there" \
    KITH_CUDA_MODULE=/nowhere
refused "$tensor" device "no GPU" KITH_EMULATE_NONE=1

# Where no exchange is due the device is told nothing.
sed -i 's/every: 2/every: 100000/; s/steps: 200/steps: 100/' "$scratch/device.yaml"
timeout 60 "$python" - "$scratch/0/device.yaml" >"$scratch/said" 2>&1 <<'EOT' ||
import sys, numpy, kith, emulated
x = emulated.Tensor(numpy.zeros(4))
with kith.Peer(x, sys.argv[1], start="own") as peer:
    before = emulated.commands()
    for _ in range(50):
        peer.step()
    print("expected: 0 commands of 50 steps; measured:",
          emulated.commands() - before)
    assert emulated.commands() == before and peer.stats["steps"] == 50
EOT
    fail "steps alone: $(cat "$scratch/said")"
cat "$scratch/said"

mv "$scratch/lib/kith-cuda.so" "$scratch/elsewhere.so"
refused "$tensor" device \
    "no kith-cuda.so: build it .* looked in .*$scratch/lib, $scratch/lib/kith" \
    EMULATION="$scratch/elsewhere.so"
none_left "loops"
finish
