#!/bin/sh
# Goal: bench/gpu/run.sh, the one call on a machine with a GPU, tells everything
# or says why not: what is missing, hangs, skips, breaks or merges nothing is a
# FAILED row and a status, and costs no other part.
# Method: planted faults. Compilers, a device, a toolkit and the programs are
# stand-ins of a few lines, so that the path of a real device is walked; then
# the real programs, with the emulation behind them.
set -u
LC_ALL=C
export LC_ALL
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
name=$(basename "$0" .sh)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kith-$name.XXXXXX") || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
failures=0
emulation=$PWD/tests/cuda/kith-cuda-host.so
run=$top/bench/gpu/run.sh
out=$scratch/out

cxx=${CXX:-c++}
command -v "${cxx%% *}" >/dev/null || {
    echo "$name: skipped: no C++ compiler" >&2
    exit 77
}

fail() {
    echo "$name: $*" >&2
    failures=$((failures + 1))
}

# script FILE: an executable of what is on standard input.
script() {
    mkdir -p "$(dirname "$1")"
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}

# gpu STATUS ARGUMENTS...: run.sh with the stand-ins of $scratch/bin.
gpu() {
    expected=$1
    shift
    rm -rf "$out"
    PATH=$scratch/bin:$PATH PYTHON=$scratch/python TMPDIR=$scratch \
        "$run" "$@" >"$scratch/said" 2>&1
    status=$?
    [ "$status" -eq "$expected" ] ||
        fail "run.sh $*: status $status, not $expected: $(cat "$scratch/said")"
    [ ! -d "$out" ] || [ "$(find "$out" -type f | wc -l)" -le 8 ] ||
        fail "more than 8 files: $(ls "$out")"
}

# row PATTERN: a row of the last run, its fields joined by "|".
row() {
    tr '\t' '|' <"$out/rows.tsv" | grep -q -- "$1" ||
        fail "no row $1: $(cat "$out/rows.tsv")"
}

says() {
    grep -q -- "$1" "$scratch/said" ||
        fail "not a word of $1: $(cat "$scratch/said")"
}

# ---- stand-ins

# A machine with a device that nothing is installed on.
script "$scratch/bin/nvidia-smi" <<'S'
case $1 in
-L) echo 'GPU 0: stand-in' ;;
--query-gpu=name*) echo 'stand-in, 1.0' ;;
esac
S
script "$scratch/bin/ldconfig" <<'S'
echo '	libcuda.so.1 (libc6,x86-64) => /planted/libcuda.so.1'
S
# PyTorch with a row, and the interpreter's other uses.
script "$scratch/python" <<'S'
case "$1 $2" in
*/reference.py*) printf 'ROW\t%s\trate\t1\ttokens/s\t\tok\n' "$2" ;;
*find_spec*) [ -z "${PLANT_NO_TORCH:-}" ] ;;
*) exec python3 "$@" ;;
esac
S
# A toolkit whose compiler refuses the unit that PLANT_BROKEN names.
toolkit=$scratch/cuda
NVCC=$toolkit/bin/nvcc
export NVCC
mkdir -p "$toolkit/lib64" "$toolkit/include"
touch "$toolkit/include/cublasLt.h" "$toolkit/include/cublas_api.h" \
    "$toolkit/lib64/libcublasLt.so.13"
script "$toolkit/bin/nvcc" <<'S'
echo "$*" >>"${0%/*}/calls"
case "$* " in
*"${PLANT_BROKEN:-nothing} "*)
    echo 'norm.cu(7): error: identifier "planted" is undefined'
    exit 2
    ;;
esac
while [ $# -gt 1 ]; do
    [ "$1" != -o ] || : >"$2"
    shift
done
S

# A bundle whose programs do as they should but for what PLANT says.
bundle=$scratch/bundle
for test in ops scores vectors steps models; do
    script "$bundle/test_cuda_$test" <<'S'
echo '[ OK ] a'
echo "seed $KITH_TEST_SEED, libraries $LD_LIBRARY_PATH"
case ${PLANT:-} in
skips) echo 'skipped: no GPU' && exit 77 ;;
skips-one) echo '[ SKIPPED ] half' ;;
excused) printf 'needs the emulation\n[ SKIPPED ] late\n' ;;
crashes) kill -ABRT $$ ;;
esac
S
done
script "$bundle/bench_gpu" <<'S'
while [ $# -gt 1 ]; do shift; done
say() { printf "ROW\t$1\t%s\t%s\t\t\t%s\n" "$2" "$3" "$4"; }
case ${PLANT:-}-$1 in
hangs-kernels) say "$1" before 1 ok && trap '' TERM && while :; do sleep 1; done ;;
waits-kernels) say "$1" before 1 ok && sleep 30 ;;
breaks-kernels) say "$1" before 1 ok && echo 'out of memory' && exit 9 ;;
silent-kernels) exit 0 ;;
garbles-kernels) printf 'ROW\tone\n' ;;
slow-kernels) say "$1" rate 1 MISSED ;;
alone-exchange) say "$1" merges 0 FAILED && exit 1 ;;
liar-exchange) say "$1" cost 0 ok ;;
*-exchange) say "$1" merges 3 ok ;;
*) say "$1" rate 1 ok ;;
esac
S
touch "$bundle/kith-cuda.so"
echo 'device planted' >"$bundle/bundle.txt"

# planted FAULT STATUS ARGUMENTS...: a run of the bundle.
planted() {
    PLANT=$1
    shift
    export PLANT
    GPU_BUNDLE=$bundle gpu "$@" "$out"
}

# ---- no device: one line, at once, and nothing is made

if [ ! -e /dev/nvidia0 ] && [ ! -e /dev/dxg ]; then
    PATH=/usr/bin:/bin "$run" "$out" >"$scratch/said" 2>&1
    [ $? -eq 2 ] || fail "without a device: status $?"
    [ "$(wc -l <"$scratch/said")" -eq 1 ] || fail "more than a line without a device"
    says 'no GPU here'
    [ ! -e "$out" ] || fail 'a folder was made for nothing'
fi
gpu 2 --parts checks,planted "$out"
says 'no part planted'

# ---- all is well: every part has rows, the table is printed last

planted '' 0 --seed 7
for part in checks ceilings kernels steps torch-steps torch-parity exchange; do
    grep -q "^device${1:-	}.*$part\|^device	$part" "$out/rows.tsv" ||
        fail "no row of $part: $(cat "$out/rows.tsv")"
done
row '^device|checks|own kernels, ops|1|tests|seed 7|ok$'
row '^device|parity|rate|'
grep -q 'seed 7, libraries' "$out/checks.log" || fail 'the seed went nowhere'
tail -n "$(wc -l <"$out/summary.txt")" "$scratch/said" |
    cmp -s - "$out/summary.txt" || fail 'the table is not what is printed last'
planted slow 0 --parts kernels
row '|kernels|rate|1|||MISSED$'
planted excused 0 --parts checks

# ---- a fault each

planted skips 1 --parts checks
row '|checks|graphs, models|1|tests|.*|FAILED (skipped: no GPU)$'
planted skips-one 1 --parts checks
row '|FAILED (skipped: half)$'
planted crashes 1 --parts checks
row '|checks|libraries, ops|.*|FAILED (exit status 134'
planted breaks 1 --parts kernels,steps
row '|kernels|before|1|'
row '|kernels|kernels||||FAILED (exit status 9: out of memory)$'
row '|steps|rate|1|||ok$'
planted silent 1 --parts kernels
row '|kernels|kernels||||FAILED (it printed no row)$'
planted garbles 1 --parts kernels
row '|kernels|not understood|.*FAILED$'
planted alone 1 --parts exchange
row '|exchange|merges|0|||FAILED$'
planted liar 1 --parts exchange
row '|exchange|merges|0|||FAILED (no merge was counted)$'
PLANT_NO_TORCH=1 && export PLANT_NO_TORCH
planted '' 0 --parts torch
row '|torch|torch-steps|||PyTorch is not installed|info$'
unset PLANT_NO_TORCH

# One that hangs, and heeds no TERM, costs its own time and no more.
GPU_LIMITS='kernels=1' && export GPU_LIMITS
planted hangs 1 --parts kernels,steps
row '|kernels|before|1|'
row '|kernels|kernels||||FAILED (timed out after 1 s)$'
row '|steps|rate|1|||ok$'
GPU_LIMITS='total=1'
planted '' 1 --parts steps
row '|steps|steps||||FAILED (no time was left of 1 s)$'
unset GPU_LIMITS

# Interrupted: what there is stays, with a table.
rm -rf "$out"
PLANT=waits GPU_BUNDLE=$bundle PATH=$scratch/bin:$PATH PYTHON=$scratch/python \
    TMPDIR=$scratch "$run" --parts ceilings,kernels "$out" >"$scratch/said" 2>&1 &
pid=$!
waited=0 # a busy machine takes its time until the second part has a row
while [ "$waited" -lt 120 ] &&
    ! grep -qs 'kernels.*before' "$scratch"/kith-gpu.*/now.log; do
    sleep 0.5
    waited=$((waited + 1))
done
kill "$pid"
wait "$pid"
[ $? -eq 130 ] || fail "an interrupted run: status $?"
row '|ceilings|rate|1|'
row '|kernels|before|1|'
row '|FAILED (interrupted)$'
grep -q ', 1 FAILED' "$out/summary.txt" || fail "no table of what there was"
PLANT=
export PLANT

# ---- building: a unit that does not compile, by its compiler's own text

script "$scratch/cc" <<'S'
exec "${0%/*}/cuda/bin/nvcc" "$@"
S
real_cc=${CC:-cc}
CC=$scratch/cc PLANT_BROKEN=src/training/cuda/norm.cu
export CC PLANT_BROKEN
gpu 1 --parts checks,ceilings "$out"
says 'norm.cu(7): error: identifier "planted" is undefined'
says 'no kith-cuda.so: src/training/cuda/norm.cu did not compile'
row '|build|module and programs|||see build.log|FAILED'
row '|checks|.*|FAILED (no such program'
grep -q planted "$out/build.log" || fail "build.log leaves out the compiler's text"
unset PLANT_BROKEN

# ---- cuDNN: nowhere, in PyTorch's wheels, in the toolkit

cudnn_of_system=$(find /usr/include -maxdepth 2 -name cudnn.h 2>/dev/null)
rm -f "$toolkit/bin/calls"
gpu 1 --parts ceilings "$out" # its programs are empty
row '|libraries|cuDNN|missing||libcudnn.so.9 is nowhere.*|info$'
row "|libraries|cuBLASLt|CUDA's folder.*|ok$"
row '|build|module and programs|.*|ok$'
says 'without cuDNN: libcudnn.so.9 is nowhere'
if [ -z "$cudnn_of_system" ]; then
    row '|libraries|cuDNN headers|missing||cudnn.h is nowhere: built without'
    grep cudnn.cu "$toolkit/bin/calls" | grep -q KITH_WITHOUT_CUDNN ||
        fail 'cudnn.cu was not told that its headers are missing'
fi
wheels=$scratch/site/nvidia/cudnn
mkdir -p "$wheels/lib" "$wheels/include"
touch "$wheels/lib/libcudnn.so.9" "$wheels/include/cudnn.h" \
    "$wheels/include/cudnn_ops.h"
PYTHONPATH=$scratch/site && export PYTHONPATH
rm -f "$toolkit/bin/calls"
gpu 1 --parts ceilings "$out"
row "|libraries|cuDNN|PyTorch's wheels||$wheels/lib/libcudnn.so.9|ok$"
[ -n "$cudnn_of_system" ] ||
    row "|libraries|cuDNN headers|PyTorch's wheels||$wheels/include/cudnn.h|ok$"
! grep -q KITH_WITHOUT_CUDNN "$toolkit/bin/calls" ||
    fail 'the headers of the wheels were not taken'
planted '' 0 --parts checks
grep -q "libraries .*$wheels/lib" "$out/checks.log" ||
    fail "the loader was not told of the wheels: $(cat "$out/checks.log")"
unset PYTHONPATH
CC=$real_cc
rm "$toolkit/lib64/libcublasLt.so.13"
planted '' 1 --parts ceilings
row '|libraries|cuBLASLt|missing||libcublasLt.so.13 is nowhere.*|FAILED$'
row '|ceilings|rate|1|'
unset NVCC

# ---- the real programs, with the emulation behind them

# emulated STATUS ARGUMENTS...
emulated() {
    expected=$1
    shift
    rm -rf "$out"
    GPU_BUNDLE=$scratch/emulated TMPDIR=$scratch \
        "$run" --emulate "$@" "$out" >"$scratch/said" 2>&1
    status=$?
    [ "$status" -eq "$expected" ] ||
        fail "--emulate $*: status $status: $(cat "$scratch/said")"
}

if [ -r "$emulation" ]; then
    GPU_MODULE=$emulation TMPDIR=$scratch \
        "$run" --emulate --pack "$scratch/emulated" >"$scratch/said" 2>&1 ||
        fail "--pack failed: $(cat "$scratch/said")"
    says "$scratch/emulated holds [0-9]* KiB"
    # The others take a minute, and are tests of this suite themselves.
    for test in ops vectors steps models; do
        [ -x "$scratch/emulated/test_cuda_$test" ] || fail "no $test was packed"
        cp "$scratch/emulated/test_cuda_scores" "$scratch/emulated/test_cuda_$test"
    done
    emulated 0
    for part in libraries build checks ceilings kernels steps torch parity \
        exchange; do
        row "^EMULATED|$part|"
    done
    sed 1d "$out/rows.tsv" | grep -v '^EMULATED	' &&
        fail 'a row of the emulation does not say so'
    [ "$(find "$out" -type f | wc -l)" -le 8 ] || fail "$(ls "$out")"
    GPU_MUTE=1 emulated 1 --parts exchange # a neighbour that never answers
    row '^EMULATED|exchange|.*|FAILED'
    cp "$bundle/bundle.txt" "$scratch/emulated/"
    emulated 2
    says 'was packed for device'
else
    echo "$name: no emulation was built: its part is left out" >&2
fi

[ -z "$(find "$scratch" -maxdepth 1 -name 'kith-gpu.*')" ] ||
    fail "builds were left behind: $(ls "$scratch")"
[ "$failures" -eq 0 ] || exit 1
echo "$name: ok"
