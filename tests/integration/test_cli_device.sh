#!/bin/sh
# Goal: kith train on a device that fails in the middle of a step says what
# failed and what to do, ends with the documented status, leaves its checkpoint
# as it was, and goes on from it to the very bits of a run that met no failure.
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
    grep -q "$1" "$scratch/err" || fail "no word of $1: $(cat "$scratch/err")"
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
finish
