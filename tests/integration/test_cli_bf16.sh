#!/bin/sh
# Goal: backend cpu-bf16 is named by kith list, refused by name with its reason
# where it cannot run, learns as cpu does, stands in the run and its checkpoint,
# gives the same bits twice and on any number of threads, and its checkpoints
# are of use where it is not.
# Method: the bundled digits; a CPU without bfloat16 is one on which oneDNN is
# told to use less (ONEDNN_MAX_CPU_ISA).
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

file=$scratch/bf16.yaml
experiment 1 200 "compute: {peak: 1, core_peak: 1}" >"$file"
set_bf16="--set train.backend=cpu-bf16"

# without COMMAND...: on a CPU without bfloat16.
without() {
    (
        ONEDNN_MAX_CPU_ISA=AVX512_CORE DNNL_MAX_CPU_ISA=AVX512_CORE
        export ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA
        "$@"
    )
}

missing() {
    "$kith" list --json >"$scratch/json"
    python3 - "$scratch/json" <<'PY'
import json, sys
for backend in json.load(open(sys.argv[1]))["backends"]:
    if backend["name"] == "cpu-bf16":
        assert backend["here"] == (backend["missing"] is None)
        print(backend["missing"] or "")
PY
}

# Where it cannot run.
why=$(without missing)
case $why in
*avx512_bf16* | *oneDNN*) ;;
*) fail "kith list does not say what is missing: \"$why\"" ;;
esac
# shellcheck disable=SC2086
without "$kith" train "$file" $set_bf16 --out "$scratch/none" \
    >"$scratch/json" 2>"$scratch/err" && fail "it ran where it cannot"
grep -qF "backend cpu-bf16 is not here: $why" "$scratch/err" ||
    fail "refused without the reason: $(cat "$scratch/err")"

[ -z "$(missing)" ] || {
    [ "$failures" -eq 0 ] || exit 1
    skip "what follows: $(missing)"
}

# good ARGUMENTS...
good() {
    timeout 60 "$kith" "$@" >"$scratch/json" 2>"$scratch/err" ||
        fail "kith $*: exit $?: $(cat "$scratch/err")"
}

# train FOLDER THREADS ARGUMENTS...
train() {
    folder=$scratch/$1 threads=$2
    shift 2
    good train "$file" --out "$folder" --save "$folder.save" --json \
        --set "compute.threads=$threads" "$@"
}

train single 1
single=$(json loss mean)
# shellcheck disable=SC2086
train half 1 $set_bf16
half=$(json loss mean)
python3 -c "
import sys
single, half = map(float, sys.argv[1:])
assert single != half and abs(half / single - 1) < 0.05, (single, half)" \
    "$single" "$half" || fail "loss $half, in float32 $single"
# shellcheck disable=SC2086
train again 2 $set_bf16
[ "$half" = "$(json loss mean)" ] || fail "two threads changed the loss"
model=$scratch/half.save
grep -aq "on backend cpu-bf16 (" "$model" ||
    fail "the checkpoint does not name its backend"

# Its checkpoint, here and where it cannot run.
good eval "$model" --json
with=$(json loss)
without "$kith" eval "$model" --json >"$scratch/json" 2>"$scratch/err" ||
    fail "no eval without it: $(cat "$scratch/err")"
grep -q "using cpu" "$scratch/err" || fail "eval does not say what it used"
python3 -c "
import sys
a, b = map(float, sys.argv[1:])
assert abs(a / b - 1) < 0.05, (a, b)" "$with" "$(json loss)" ||
    fail "eval in float32 is far off"
finish
