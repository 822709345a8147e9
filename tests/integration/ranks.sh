# shellcheck shell=sh
# What tests of several ranks share. Sourced after lab.sh: `ranks N ...` runs
# kith sim under mpirun, `same_run FILE` says whether what came of it is one
# process's.

command -v mpirun >/dev/null || skip "no mpirun here"
[ -r "$(dirname "$kith")/kith-mpi.so" ] ||
    skip "this build has no kith-mpi.so"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
# On this machine alone, and not by reading each other's memory, which some
# containers forbid.
OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM \
    OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy \
    OMPI_MCA_btl OMPI_MCA_btl_vader_single_copy_mechanism

# ranks COUNT ARGUMENTS...: the status; what is printed stands in $scratch/json
# and $scratch/err.
ranks() {
    count_=$1
    shift
    timeout "${RANKS_LIMIT:-120}" mpirun -n "$count_" "$kith" sim "$@" \
        >"$scratch/json" 2>"$scratch/err" </dev/null
}

# outcome FILE: of the run whose summary is $scratch/json.
outcome() {
    python3 "$top/tests/integration/ranks.py" "$scratch/json" >"$1" ||
        fail "no rows of a run"
}

# same_run EXPERIMENT [COUNT,THREADS]...: fails where they differ from one
# process.
same_run() {
    file_=$1
    shift
    one_=0
    rm -rf "$scratch/one"
    timeout 120 "$kith" sim "$file_" --json --out "$scratch/one" \
        >"$scratch/json" 2>"$scratch/err" || one_=$?
    [ "$one_" -le 1 ] || {
        fail "$file_: exit $one_: $(cat "$scratch/err")"
        return
    }
    outcome "$scratch/expected"
    [ "$(wc -l <"$scratch/expected")" -gt 40 ] ||
        fail "$file_: nothing to compare"
    for how_ in "$@"; do
        rm -rf "$scratch/several"
        several_=0
        ranks "${how_%,*}" "$file_" --json --threads "${how_#*,}" \
            --out "$scratch/several" || several_=$?
        [ "$several_" -eq "$one_" ] || {
            fail "$file_, ranks and threads $how_: exit $several_, not $one_"
            head -n 4 "$scratch/err" >&2
            continue
        }
        outcome "$scratch/found"
        cmp -s "$scratch/expected" "$scratch/found" || {
            fail "$file_, ranks and threads $how_: another run"
            diff "$scratch/expected" "$scratch/found" | head -n 6 >&2
        }
    done
}
