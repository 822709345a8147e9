#!/bin/sh
# One call on a machine with a GPU: builds the CUDA module and what checks and
# times it, holds every kernel against float64 on the CPU, times kernels, steps
# and an exchange, times PyTorch beside them, and prints one table.
#
#   usage: run.sh [--emulate] [--parts LIST] [--seed N] FOLDER
#          run.sh [--emulate] --pack BUNDLE
#
#   --emulate     the module's sources on the host at tiny sizes, for a rehearsal
#                 without a GPU; every row says EMULATED
#   --parts LIST  of checks,ceilings,kernels,steps,torch,parity,exchange (all of
#                 these) and sanitize (compute-sanitizer, only where named)
#   --seed N      the inputs of the checks; without it drawn anew, and printed
#   --pack BUNDLE builds only, into a folder that GPU_BUNDLE takes elsewhere
#
# Into FOLDER come 7 files at most: summary.txt (the table, printed last) and
# rows.tsv, written after each part, machine.txt, build.log, checks.log,
# bench.log, torch.log.
#
# Each part has a time limit, and all of them together 540 s (--emulate: twelve
# times as long); a part that hangs is a row. A part's program prints ROW, part,
# name, value, unit, limit, verdict (ok, MISSED, FAILED, info) with tabs between,
# and other lines for the log.
# Status: 0 nothing FAILED, a MISSED speed included; 1 something did; 2 nothing
# was run: usage, or no GPU here.
#
#   GPU_BUNDLE=FOLDER   what --pack made, and nothing is built
#   GPU_MODULE=FILE     this module instead of one built here
#   GPU_BUILD=FOLDER    builds stay there (default: a temporary folder, removed)
#   GPU_LIMITS='kernels=90 total=900'   other time limits, in seconds
#   NVCC, CC, CXX, PYTHON, CUDA_TARGETS
set -u
LC_ALL=C
export LC_ALL
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
all_parts='checks ceilings kernels steps torch parity exchange'
grace=3 # seconds between a part's TERM and its KILL
python=${PYTHON:-python3}
running='' took='' part=build
PATH=$PATH:/usr/local/nvidia/bin # where some containers have nvidia-smi

# shellcheck source=bench/gpu/libraries.sh
. "$here/libraries.sh"
# shellcheck source=bench/gpu/rows.sh
. "$here/rows.sh"

stop() {
    echo "run.sh: $*" >&2
    exit 2
}

usage() {
    stop 'usage: run.sh [--emulate] [--parts LIST] [--seed N] FOLDER, or run.sh [--emulate] --pack BUNDLE'
}

# ---- what was asked

read_options() {
    emulate=0 pack='' parts='' seed='' out=''
    while [ $# -gt 0 ]; do
        case $1 in
        --emulate) emulate=1 ;;
        --pack | --parts | --seed)
            [ $# -ge 2 ] || usage
            case $1 in
            --pack) pack=$2 ;;
            --parts) parts=$(printf '%s' "$2" | tr , ' ') ;;
            *) seed=$2 ;;
            esac
            shift
            ;;
        -*) usage ;;
        *)
            [ -z "$out" ] || usage
            out=$1
            ;;
        esac
        shift
    done
    [ -n "$out$pack" ] || usage
    [ -z "$out" ] || [ -z "$pack" ] || usage
    for part in $parts; do
        case " $all_parts sanitize " in
        *" $part "*) ;;
        *) stop "no part $part: there are $all_parts sanitize" ;;
        esac
    done
    parts=${parts:-$all_parts}
    case $seed in
    *[!0-9]*) stop "--seed $seed: a number is needed" ;;
    esac
    seed=${seed:-$(date +%s)}
    [ -z "${GPU_MODULE:-}" ] || GPU_MODULE=$(readlink -f "$GPU_MODULE")
}

has_device() {
    [ -e /dev/nvidia0 ] || [ -e /dev/dxg ] ||
        nvidia-smi -L 2>/dev/null | grep -q '^GPU '
}

# limit_of PART: seconds. With the grace of each they make 540 at most. The
# emulation has twelve times as long: it is as slow as the host is busy.
limit_of() {
    told=$(printf '%s\n' "${GPU_LIMITS:-}" | tr ' ' '\n' | sed -n "s/^$1=//p")
    [ -z "$told" ] || {
        echo "$told"
        return
    }
    case $1 in
    total) limit=540 ;;
    build | torch) limit=110 ;;
    steps) limit=70 ;;
    checks) limit=60 ;;
    kernels) limit=45 ;;
    exchange) limit=35 ;;
    parity) limit=30 ;;
    torch-parity) limit=25 ;;
    ceilings) limit=20 ;;
    *) limit=300 ;; # sanitize
    esac
    echo $((limit * (emulate ? 12 : 1)))
}

# ---- the parts

# skipped_tests: those of now.log that gave no reason that holds here.
skipped_tests() {
    awk '/^needs the emulation/ { excused = 1; next }
         /SKIPPED/ && !excused { print $NF }
         { excused = 0 }' "$work/now.log"
}

# check NAME TEST SETTING...: one test program under this environment. One that
# skips has shown nothing, and fails.
check() {
    name="$1, $2" program=$programs/test_cuda_$2
    shift 2
    : >"$work/now.log"
    printf '== %s\n' "$name" >>"$out/checks.log"
    timed $(($(limit_of checks) / 4)) "$out/checks.log" \
        env "$@" KITH_TEST_SEED="$seed" "$program"
    code=$?
    if [ "$code" -eq 0 ] && [ -n "$(skipped_tests)" ]; then
        verdict="FAILED (skipped: $(skipped_tests | paste -sd ' '))"
    elif [ "$code" -eq 0 ]; then
        verdict=ok
    else
        grep -v ' OK \| RUN ' "$work/now.log" | tail -n 15
        verdict=$(verdict_of "$code")
    fi
    passed=$(grep -c '^\[ *OK \]' "$work/now.log")
    row checks "$name" "$passed" tests "seed $seed" "$verdict"
}

part_checks() {
    checks_end=$(($(date +%s) + $(limit_of checks)))
    whole=$deadline
    [ "$checks_end" -ge "$deadline" ] || deadline=$checks_end
    for test in ops scores vectors steps models; do
        # The emulation has no libraries.
        [ "$emulate" = 1 ] || check libraries "$test" KITH_CUDA_GRAPH=0
        check 'own kernels' "$test" KITH_CUDA_PRODUCTS=own KITH_CUDA_CONV=own
        check graphs "$test" KITH_CUDA_GRAPH=1
    done
    deadline=$whole
}

part_sanitize() {
    for tool in memcheck racecheck initcheck; do
        for test in ops scores vectors steps; do
            : >"$work/now.log"
            timed $(($(limit_of sanitize) / 12)) "$out/checks.log" \
                compute-sanitizer --tool "$tool" --error-exitcode 9 \
                "$programs/test_cuda_$test"
            code=$?
            verdict=ok
            [ "$code" -eq 0 ] || verdict=$(verdict_of "$code")
            row sanitize "$tool, $test" '' '' '' "$verdict"
        done
    done
}

# native PART: by bench_gpu.
native() {
    bench "$1" bench.log "$programs/bench_gpu" $tiny --out "$work/out" "$1"
}

# An exchange that merges nothing costs nothing: whatever the program says, one
# merge must be counted.
part_exchange() {
    native exchange || return
    awk -F '\t' '$2 == "exchange" && $3 ~ /merges/ && $4 > 0 { n++ }
        END { exit n == 0 }' "$out/rows.tsv" ||
        row exchange merges 0 '' '' 'FAILED (no merge was counted)'
}

# torch LIMIT PART: the same by PyTorch.
torch() {
    if "$python" -c 'import importlib.util as u
raise SystemExit(u.find_spec("torch") is None)' 2>/dev/null; then
        bench "$1" torch.log "$python" "$here/reference.py" $tiny \
            "$2" "$work/out"
    else
        row "$part" "$2" '' '' 'PyTorch is not installed' info
    fi
}

part_torch() {
    torch torch torch-steps
}

part_parity() {
    native parity && torch torch-parity torch-parity
}

# run_part PART: the part, its time, and the table so far.
run_part() {
    part=$1
    begin=$(date +%s)
    failed_before=$(failures)
    case $part in
    checks | torch | parity | exchange | sanitize) "part_$part" ;;
    *) native "$part" ;;
    esac
    seconds=$(($(date +%s) - begin))
    took="$took $part $seconds s,"
    write_summary
    echo "== $part: $seconds s, $(($(failures) - failed_before)) failed"
}

# ---- building

# compute capability of the device, as 90; nothing where it is not known.
capability() {
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
        sed -n '1s/^\([0-9]*\)\.\([0-9]*\)$/\1\2/p'
}

# For the device that is here; a bundle also for newer ones.
targets() {
    has=$(capability)
    if [ -n "$pack" ] || [ -z "$has" ]; then
        echo '-gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80'
    else
        echo "-gencode arch=compute_$has,code=sm_$has"
    fi
}

# build FOLDER: what it prints goes to build.log and, where it fails, here.
build() {
    part=build
    find_headers
    : >"$out/build.log"
    timed "$(limit_of build)" "$out/build.log" env GPU_EMULATE="$emulate" \
        GPU_MODULE="${GPU_MODULE:-}" NVCC="$nvcc" GPU_INCLUDE="$include" \
        GPU_WITHOUT_CUDNN="$without_cudnn" \
        GPU_TARGETS="${CUDA_TARGETS:-$(targets)}" "$here/build.sh" "$1"
    code=$?
    for log in "$1"/obj/*.cu.o.log; do
        [ ! -f "$log" ] || { echo "== $(basename "$log")" && cat "$log"; }
    done >>"$out/build.log"
    took="$took build $spent s,"
    if [ "$code" -eq 0 ]; then
        row build 'module and programs' "$spent" s "$(limit_of build)" ok
        return
    fi
    cat "$work/now.log"
    row build 'module and programs' '' '' 'see build.log' "$(verdict_of "$code")"
}

find_toolkit() {
    nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
    cuda=/usr/local/cuda
    [ ! -x "${nvcc%% *}" ] ||
        cuda=$(dirname "$(dirname "$(readlink -f "${nvcc%% *}")")")
}

describe_machine() {
    if [ "$emulate" = 1 ]; then
        where=EMULATED machine='the emulation of tests/cuda, not a GPU'
    else
        where=device
        machine=$(nvidia-smi --query-gpu=name,driver_version \
            --format=csv,noheader 2>/dev/null | head -n 1)
        machine=${machine:-a GPU that nvidia-smi does not name}
    fi
    source=$(git -C "$top" describe --always --dirty 2>/dev/null) ||
        source=$(sed -n 's/^AC_INIT(\[kith\], \[\(.*\)\])/\1/p' \
            "$top/configure.ac")
    tiny=
    [ "$emulate" = 0 ] || tiny=--tiny
}

# ---- the three ways through

open_folders() {
    mkdir -p "$out" || stop "$out cannot be made"
    out=$(cd "$out" && pwd)
    kept=${GPU_BUILD:-}
    work=${kept:-$(mktemp -d "${TMPDIR:-/tmp}/kith-gpu.XXXXXX")}
    mkdir -p "$work/out" || stop "$work cannot be made"
    work=$(cd "$work" && pwd)
    trap 'leave' EXIT
    trap 'interrupted' HUP INT TERM
    rm -f "$out/summary.txt" "$out/machine.txt" "$out"/build.log \
        "$out/checks.log" "$out/bench.log" "$out/torch.log"
    printf 'on\tpart\tname\tvalue\tunit\tlimit\tverdict\n' >"$out/rows.tsv"
}

leave() {
    [ -z "$running" ] || kill "$running" 2>/dev/null
    [ -n "$kept" ] || rm -rf "$work"
}

interrupted() {
    [ -z "$running" ] || take_rows "$work/now.log"
    row "$part" "$part" '' '' '' 'FAILED (interrupted)'
    write_summary
    exit 130
}

# pack BUNDLE: the module and its programs, for a machine that has no time to
# build. 64 MiB is what such a machine may be sent.
pack() {
    out=$(mktemp -d "${TMPDIR:-/tmp}/kith-pack.XXXXXX")
    bundle=$pack
    open_folders
    trap 'leave; rm -rf "$out"' EXIT
    mkdir -p "$bundle" || stop "$bundle cannot be made"
    deadline=$(($(date +%s) + 3600))
    GPU_LIMITS="${GPU_LIMITS:-} build=3600"
    build "$work"
    grep -w 'missing\|FAILED' "$out/rows.tsv"
    [ "$(failures)" -eq 0 ] || exit 1
    [ -z "${GPU_MODULE:-}" ] || cp "$GPU_MODULE" "$work/kith-cuda.so"
    for file in kith-cuda.so bench_gpu test_cuda_ops test_cuda_scores \
        test_cuda_vectors test_cuda_steps test_cuda_models; do
        cp "$work/$file" "$bundle/"
    done
    echo "$where $source" >"$bundle/bundle.txt"
    size=$(du -sk "$bundle" | cut -f 1)
    echo "run.sh: $bundle holds $size KiB of $source; GPU_BUNDLE=$bundle takes it"
    [ "$size" -le 65536 ] || stop "$bundle is larger than 64 MiB"
}

# take_programs: built here, or those of a bundle of the same kind.
take_programs() {
    programs=$work
    [ -n "${GPU_BUNDLE:-}" ] || {
        build "$work"
        KITH_CUDA_MODULE=${GPU_MODULE:-$work/kith-cuda.so}
        return
    }
    programs=$(cd "$GPU_BUNDLE" && pwd) || stop "no bundle $GPU_BUNDLE"
    read -r kind packed <"$programs/bundle.txt" ||
        stop "$GPU_BUNDLE is no bundle: run.sh --pack makes one"
    [ "$kind" = "$where" ] ||
        stop "$GPU_BUNDLE was packed for $kind, and this is $where"
    row build 'bundle' "$packed" '' "source $source" info
    KITH_CUDA_MODULE=${GPU_MODULE:-$programs/kith-cuda.so}
}

read_machine() {
    {
        date -u
        uname -a
        nvidia-smi
        "${nvcc%% *}" --version
        "$python" --version
    } >"$out/machine.txt" 2>&1
}

run() {
    open_folders
    deadline=$(($(date +%s) + $(limit_of total)))
    part=libraries
    : >"$work/now.log"
    [ "$emulate" = 1 ] || read_machine
    find_libraries
    take_programs
    [ -z "$library_path" ] ||
        LD_LIBRARY_PATH=$library_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH KITH_CUDA_MODULE
    # What PyTorch compiles is a build, too.
    TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
    export TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR
    write_summary
    cd "$top" || exit 2
    for part in $parts; do
        run_part "$part"
    done
    cat "$out/summary.txt"
    [ "$(failures)" -eq 0 ]
}

read_options "$@"
[ "$emulate" = 1 ] || [ -n "$pack" ] || has_device ||
    stop 'no GPU here (no /dev/nvidia0, and nvidia-smi -L lists none); --emulate rehearses without one'
find_toolkit
describe_machine
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
if [ -n "$pack" ]; then
    pack
else
    run
fi
