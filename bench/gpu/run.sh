#!/bin/sh
# One call on a machine with a GPU: builds the CUDA module and what checks and
# times it, holds every operation against float64 on the CPU, then times.
#
#   usage: bench/gpu/run.sh [FOLDER]     everything built and written goes there
#                                        (default: gpu-run)
#
# Needs nvcc and a C compiler, nothing else of what kith needs: the maths floor,
# models, networks and optimisers are compiled alone, with plain loops in the
# place of OpenBLAS, and cmocka's calls by a header where it is not installed.
# PyTorch is timed beside it where it is there. Environment:
#   GPU_CHECKS_ONLY=1   no timing          GPU_SANITIZE=1  compute-sanitizer, too
#   GPU_MODULE=FILE     check this module instead of the one built here
#   CC, NVCC, CUDA_TARGETS
# shellcheck disable=SC2089,SC2090 # the quotes are meant for the compiler
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-gpu-run}
mkdir -p "$out/cuda" "$out/floor" "$out/bench" "$out/test" "$out/include"
out=$(cd "$out" && pwd)
cc=${CC:-cc}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
targets=${CUDA_TARGETS:--gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80}
jobs=$(nproc)
version=$(sed -n 's/^AC_INIT(\[kith\], \[\(.*\)\])/\1/p' "$top/configure.ac")
defines="-DPACKAGE_VERSION=\"$version\" -I$top/include -I$top"

echo '#include <cmocka.h>' | $cc -E - >/dev/null 2>&1 ||
    cp "$top/bench/gpu/cmocka.h" "$out/include/cmocka.h"

# compile OBJECT COMMAND...: in the background, a few at a time.
running=0
pids=
compile() {
    "$@" &
    pids="$pids $!"
    running=$((running + 1))
    [ "$running" -lt "$jobs" ] || settle
}
settle() {
    for pid in $pids; do
        wait "$pid" || { echo "run.sh: a compilation failed" >&2; exit 1; }
    done
    pids=
    running=0
}

echo "== building with $nvcc in $out"
if [ -z "${GPU_MODULE:-}" ]; then
    for source in "$top"/src/training/cuda/*.cu; do
        # shellcheck disable=SC2086 # targets and defines are lists
        compile "$nvcc" -std=c++17 -O3 $targets $defines -I"$top/src/training/cuda" \
            -Xcompiler -fPIC,-fvisibility=hidden -Xptxas -v -lineinfo \
            -c -o "$out/cuda/$(basename "$source" .cu).o" "$source" \
            2>"$out/cuda/$(basename "$source" .cu).ptxas"
    done
fi
floors="base/err base/hash base/rng base/text base/units
    training/backend/naive32 training/backend/naive64 training/backend/registry training/backend/memory
    training/backend/cuda training/backend/cuda_module"
for source in "$top"/src/training/model/*.c "$top"/src/training/graph/*.c \
    "$top"/src/training/optimiser/*.c "$top"/src/training/backend/cuda_bf16.c; do
    [ -f "$source" ] || continue
    floors="$floors ${source#"$top/src/"}"
done
for unit in $floors; do
    unit=${unit%.c}
    # shellcheck disable=SC2086
    compile $cc -std=gnu11 -O2 -g $defines -c "$top/src/$unit.c" \
        -o "$out/floor/$(echo "$unit" | tr / _).o"
done
# shellcheck disable=SC2086
for unit in gpu/host gpu/bench_gpu gpu/kernels gpu/models; do
    compile $cc -std=gnu11 -O2 -g -D_GNU_SOURCE $defines -I"$top/bench/gpu" \
        -c "$top/bench/$unit.c" -o "$out/bench/$(basename "$unit").o"
done
settle
# shellcheck disable=SC2086
for unit in cuda_cases ops_cases test_cuda_ops test_cuda_vectors \
    test_cuda_models; do
    compile $cc -std=gnu11 -O2 -g -D_GNU_SOURCE $defines -I"$out/include" \
        -I"$top/tests/unit" -c "$top/tests/unit/$unit.c" -o "$out/test/$unit.o"
done
settle

library=
[ -f "$out/include/cmocka.h" ] || library=-lcmocka
for test in ops vectors models; do
    # shellcheck disable=SC2086
    $cc -o "$out/test_cuda_$test" "$out/test/test_cuda_$test.o" \
        "$out/test/cuda_cases.o" "$out/test/ops_cases.o" \
        "$out/bench/host.o" "$out"/floor/*.o $library -ldl -lpthread -lm
done
"$nvcc" -O2 -c -o "$out/bench/ceiling.o" "$top/bench/gpu/ceiling.cu"
"$nvcc" -cudart static -o "$out/bench_gpu" "$out"/bench/*.o "$out"/floor/*.o \
    -ldl -lpthread -lm
if [ -z "${GPU_MODULE:-}" ]; then
    "$nvcc" -shared -cudart static -o "$out/kith-cuda.so" "$out"/cuda/*.o \
        -ldl -lpthread
    GPU_MODULE=$out/kith-cuda.so
    echo "== kernels that spill registers:" \
        "$(cat "$out"/cuda/*.ptxas | grep 'spill stores' |
            grep -vc ' 0 bytes spill stores' || true)"
fi
KITH_CUDA_MODULE=$GPU_MODULE
export KITH_CUDA_MODULE

status=0
# check NAME SETTING...: the tests under this environment.
check() {
    name=$1
    shift
    for test in ops vectors models; do
        code=0
        env "$@" "$out/test_cuda_$test" >"$out/check-$name-$test.log" 2>&1 ||
            code=$?
        case $code in
        0) echo "ok       $name, $test" ;;
        77) echo "skipped  $name, $test: $(tail -1 "$out/check-$name-$test.log")" ;;
        *)
            echo "FAILED   $name, $test ($code)"
            grep -v ' OK \| RUN ' "$out/check-$name-$test.log" | tail -15
            status=1
            ;;
        esac
    done
}
echo "== every operation beside float64"
check libraries KITH_CUDA_GRAPH=0
check own KITH_CUDA_PRODUCTS=own KITH_CUDA_CONV=own
check graphs KITH_CUDA_GRAPH=1
if [ "${GPU_SANITIZE:-0}" = 1 ] && command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck initcheck; do
        for test in ops vectors; do
            if compute-sanitizer --tool $tool --error-exitcode 9 \
                "$out/test_cuda_$test" >"$out/$tool-$test.log" 2>&1; then
                echo "ok       $tool, $test"
            else
                echo "FAILED   $tool, $test: $out/$tool-$test.log"
                status=1
            fi
        done
    done
fi
[ "${GPU_CHECKS_ONLY:-0}" = 0 ] || exit $status

echo "== timing"
code=0
"$out/bench_gpu" 2>&1 | tee "$out/bench.log" || code=$?
tail -1 "$out/bench.log" | grep -q '^0 target' || status=1
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    python3 "$top/bench/gpu/reference.py" "$out/bench.log" || status=1
else
    echo "# PyTorch with a GPU is not here: nothing to compare with"
fi
exit $status
