#!/bin/sh
# Goal: a simulated run is a function of (experiment file, seed, source): one
# trace hash, one summary, the same rows with 1, 2 and 4 threads, 1, 2 and 3
# ranks, both queues, gcc and clang, -O1 and as configured (-O3), and one trace
# with sealed bytes in place of sizes; and a bug of that kind does not pass.
# Method: KITH_RUNS (300) random experiments of KITH_SEED (2026), small, of all
# methods, faults and networks (accept_same_draw.py), each in the first way and
# three of eight others (accept_same.py). Builds of other compilers stand in
# same-builds/; experiments that differ are kept in same/, with the command that
# repeats them. With numbers those experiments alone; with --planted each of the
# bugs of accept_same_planted.py in a copy of HEAD in planted/, until one
# experiment shows it.
set -u
top=${srcdir:-$(dirname "$0")/../..}
top=$(cd "$top" && pwd)
command -v python3 >/dev/null || exit 77
[ -x kith ] || {
    echo "accept_same: no ./kith: run it in a build folder, after make" >&2
    exit 99
}
command -v mpirun >/dev/null && [ -r kith-mpi.so ] ||
    echo "accept_same: no mpirun, or no kith-mpi.so: one rank alone" >&2

# built NAME CC LEVEL: another build, with this one's options.
built() {
    command -v "$2" >/dev/null || {
        echo "accept_same: $2 is not installed: left out" >&2
        return
    }
    mkdir -p "same-builds/$1"
    options=$(./config.status --config)
    (cd "same-builds/$1" &&
        { [ -f Makefile ] || eval "'$top/configure' -q $options CC=$2" \
            "CFLAGS=-$3"; } &&
        make -s -j "$(nproc)" kith &&
        if [ -r ../../kith-mpi.so ]; then make -s kith-mpi.so; fi) \
        >"same-builds/$1.log" 2>&1 || {
        tail -n 20 "same-builds/$1.log" >&2
        echo "accept_same: $1 does not build" >&2
        exit 99
    }
    KITH_BUILDS=${KITH_BUILDS:+$KITH_BUILDS,}$PWD/same-builds/$1/kith
}
KITH_BUILDS=
out=same
if [ "${1:-}" = --planted ]; then
    out=same-planted
else
    built clang-O1 clang O1
    built gcc-O1 gcc O1
fi
export KITH_BUILDS
exec nice -n 10 python3 -B "$top/tests/long/accept_same.py" "$top" "$out" "$@"
