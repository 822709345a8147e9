#!/bin/sh
# Builds what run.sh runs: the CUDA module, the programs that check it and the
# one that times it. A unit that does not compile costs only what is linked
# from it, and its compiler's own text is printed.
#
#   usage: build.sh FOLDER          everything into FOLDER; status 1: some of it
#                                   is missing
#          build.sh FOLDER UNIT     one unit, for the call above
#
# Of kith only the maths floor, models, networks and optimisers are compiled,
# with plain loops in the place of OpenBLAS (host.c), and cmocka's calls are a
# header's, so that nvcc and a C compiler are enough. Environment, by run.sh:
# GPU_EMULATE=1 (the module for the host, no nvcc), GPU_MODULE (a module that is
# there already), NVCC, GPU_TARGETS, GPU_INCLUDE, GPU_WITHOUT_CUDNN, CC, CXX.
set -u
LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1
emulate=${GPU_EMULATE:-0}
cc=${CC:-cc}
cxx=${CXX:-c++}
version=$(sed -n 's/^AC_INIT(\[kith\], \[\(.*\)\])/\1/p' "$top/configure.ac")
floor='base/err base/hash base/rng base/text base/units
    training/backend/naive32 training/backend/naive64 training/backend/choose
    training/backend/memory experiment/registry
    training/backend/cuda training/backend/cuda_module training/backend/cuda_bf16
    training/backend/module'
failures=0

# object UNIT: where it is compiled to.
object() {
    printf '%s/obj/%s.o\n' "$folder" "$(printf '%s' "$1" | tr / _)"
}

# units GROUP: its sources, from the top of the tree; the longest first.
units() {
    (
        cd "$top" || exit 1
        case $1 in
        module)
            ls -S src/training/cuda/*.cu
            [ "$emulate" = 0 ] || echo tests/cuda/emulate.cc
            ;;
        floor)
            for unit in $floor; do
                echo "src/$unit.c"
            done
            ls src/training/model/*.c src/training/model/operations/*.c src/training/graph/*.c src/training/optimiser/*.c
            ;;
        host) echo bench/gpu/host.c ;;
        bench)
            for unit in bench/gpu/*.c; do
                [ "$unit" = bench/gpu/host.c ] || echo "$unit"
            done
            [ "$emulate" = 1 ] || echo bench/gpu/ceiling.cu
            ;;
        cases) printf 'tests/unit/%s.c\n' cuda_cases ops_cases ;;
        *) echo "tests/unit/$1.c" ;;
        esac
    )
}

# compile_unit UNIT: into its object.
compile_unit() {
    source=$top/$1
    into=$(object "$1")
    set -- "-DPACKAGE_VERSION=\"$version\"" -I"$top/include" -I"$top"
    [ -z "${GPU_WITHOUT_CUDNN:-}" ] || set -- "$@" -DKITH_WITHOUT_CUDNN
    [ -z "${GPU_INCLUDE:-}" ] || set -- "$@" -I"$GPU_INCLUDE"
    # shellcheck disable=SC2086 # Compilers and targets carry flags.
    case $source:$emulate in
    *.cu:0)
        $NVCC -std=c++17 -O3 --extended-lambda $GPU_TARGETS "$@" -I"$top/src/training/cuda" -lineinfo \
            -Xcompiler -fPIC,-fvisibility=hidden -Xptxas -v \
            -c -o "$into" "$source"
        ;;
    *.cu:1 | *.cc:1)
        $cxx -std=c++17 -O2 -fPIC -ffp-contract=off -fvisibility=hidden "$@" \
            -I"$top/src/training/cuda" -I"$top/tests/cuda" -x c++ -c -o "$into" "$source"
        ;;
    *)
        $cc -std=gnu11 -O2 -g -D_GNU_SOURCE -ffunction-sections -fdata-sections "$@" -I"$top/bench/gpu" \
            -I"$top/tests/unit" -c -o "$into" "$source"
        ;;
    esac
}

# link_as NAME GROUP...: by the compiler of the module where one of the groups
# holds CUDA. Not linked where an object is missing.
link_as() {
    name=$1 missing='' unused=-Wl,--gc-sections
    shift
    linker=$cc
    # shellcheck disable=SC2046 # Paths without blanks.
    set -- $(for group; do units "$group"; done)
    objects=
    for unit; do
        case $unit:$emulate in
        *.cu:0) linker="$NVCC -cudart static -Xcompiler -static-libstdc++,-static-libgcc" unused='-Xlinker --gc-sections' ;;
        *.cu:1) linker=$cxx ;;
        esac
        [ -f "$(object "$unit")" ] || missing="$missing $unit"
        objects="$objects $(basename "$(object "$unit")")"
    done
    [ -z "$missing" ] || {
        echo "build.sh: no $name:$missing did not compile"
        failures=1
        return
    }
    case $name in
    *.so) linker="$linker -shared" ;;
    # The registry names plug-ins that are not here; nobody here asks for them.
    *) linker="$linker $unused" ;;
    esac
    # shellcheck disable=SC2086 # Lists of words without blanks.
    (cd "$folder/obj" && $linker -o "../$name" $objects -ldl -lpthread -lm) || {
        echo "build.sh: no $name: it did not link"
        failures=1
    }
}

[ $# -lt 2 ] || {
    log=$(object "$2").log
    compile_unit "$2" >"$log" 2>&1 && exit 0
    rm -f "$(object "$2")"
    printf '== %s\n%s\n' "$2" "$(cat "$log")" >"$log.failed"
    exit 1
}

rm -rf "$folder/obj"
mkdir -p "$folder/obj"
tests='test_cuda_ops test_cuda_scores test_cuda_vectors test_cuda_steps
    test_cuda_models'
{
    [ -n "${GPU_MODULE:-}" ] || units module
    units bench
    units floor
    units host
    units cases
    for test in $tests; do
        units "$test"
    done
} | xargs -P "$(nproc)" -n 1 "$0" "$folder"
for log in "$folder"/obj/*.failed; do
    [ ! -f "$log" ] || cat "$log"
done

[ -n "${GPU_MODULE:-}" ] || link_as kith-cuda.so module
for test in $tests; do
    link_as "$test" "$test" cases host floor
done
link_as bench_gpu bench host floor
exit $failures
