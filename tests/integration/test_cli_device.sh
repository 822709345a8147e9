#!/bin/sh
# Goal: kith train on a device that fails in the middle of a step says what
# failed and what to do, ends with the documented status, leaves its checkpoint
# as it was, and goes on from it to the very bits of a run that met no failure;
# kith lab likewise, but for the bits. kith sim refuses a device.
# Method: the CUDA module's emulation, which KITH_EMULATE_FAIL tells to break.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

KITH_CUDA_MODULE=$PWD/tests/cuda/kith-cuda-host.so
[ -r "$KITH_CUDA_MODULE" ] || skip "no emulation: it needs a C++ compiler"
export KITH_CUDA_MODULE
experiment 1 24 'save: 1ms' 'evaluate: end' 'compute: {threads: 1, peak: 10}' |
    sed 's/layers: .*/layers: [64, 8, 10]}/; s/batch: 16/batch: 8, backend: cuda/' \
        >"$scratch/run.yaml"

# train EXPECTED ARGUMENTS...: kith train, checked for its exit status.
train() {
    expected=$1
    shift
    timeout 100 "$kith" train "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] ||
        fail "kith train $*: exit $status, not $expected: $(cat "$scratch/err")"
}

says() {
    grep -q -- "$1" "$scratch/err" || fail "no word of $1: $(cat "$scratch/err")"
}

# tensors FILE: what a checkpoint holds beside its header, as a hash.
tensors() {
    python3 - "$1" <<'PY'
import hashlib, sys
data = open(sys.argv[1], "rb").read()
print(hashlib.sha256(data[8 + int.from_bytes(data[:8], "little"):]).hexdigest())
PY
}

train 0 "$scratch/run.yaml" --out "$scratch" --save "$scratch/whole.save"
[ "$(grep -c 'a slow way on cuda: a product .* by the kernel of our own' \
    "$scratch/err")" -eq 1 ] ||
    fail "the slow product is not told once: $(cat "$scratch/err")"

for failure in 150:214 250:700; do
    save=$scratch/broken.save
    rm -f "$save"*
    KITH_EMULATE_FAIL=$failure train 8 "$scratch/run.yaml" --out "$scratch" \
        --save "$save"
    says 'training on cuda, step [0-9]*: .* on GPU 0 (emulated)'
    says 'CUDA error '"${failure#*:}"
    says 'the last checkpoint, of step [0-9]*, is untouched'
    says "$save"
    [ "$failure" = 250:700 ] || says 'nvidia-smi'
    before=$(tensors "$save")
    [ "$before" != "$(tensors "$scratch/whole.save")" ] ||
        fail "$failure: it failed too late to show anything"
    train 0 --resume "$save" --out "$scratch"
    [ "$(tensors "$save")" = "$(tensors "$scratch/whole.save")" ] ||
        fail "$failure: it went on to another model"
done

# Two peers whose devices fail, then one lab that goes on from their saves.
sed 's/^peers: 1/peers: 2/' "$scratch/run.yaml" >"$scratch/two.yaml"
KITH_EMULATE_FAIL=150:214 lab 8 "$scratch/two.yaml"
for peer in 0 1; do
    says "peer $peer died: .* on GPU 0 (emulated): .*its save of step [0-9]* is"
done
lab 0 --resume "$scratch"/digits-lab-1.db
[ "$(json exchanges done)" -gt 0 ] || fail "the lab that goes on exchanged nothing"
none_left "labs on a device"

timeout 100 "$kith" sim "$scratch/run.yaml" --out "$scratch" \
    --set compute.step=1ms >"$scratch/out" 2>"$scratch/err"
[ $? -eq 3 ] || fail "kith sim on a device: not refused"
says '--set train.backend=cpu'
KITH_CUDA_MODULE=/nowhere.so train 8 "$scratch/run.yaml" --out "$scratch"
says '/nowhere.so, which is not there'
finish
