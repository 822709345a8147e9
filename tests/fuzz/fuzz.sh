#!/bin/sh
# Runs fuzz targets: fuzz.sh RUNS TARGET..., from the folder that holds them.
# Seeds come from corpus/NAME beside this script; what is found lies in
# findings/NAME-*, and the command that repeats it is printed.
set -u
runs=$1
shift
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kith-fuzz.XXXXXX") || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
export ASAN_OPTIONS
status=0

# The canary first: a harness that finds nothing there finds nothing anywhere.
if tests/fuzz/fuzz_canary -runs=1000000 -seed=1 -artifact_prefix="$scratch/" \
    >"$scratch/canary.log" 2>&1; then
    echo "fuzz: the canary lives: the harness finds nothing" >&2
    exit 1
fi
grep -q "Assertion.*'h'" "$scratch/canary.log" || {
    echo "fuzz: the canary died of something else:" >&2
    tail -n 20 "$scratch/canary.log" >&2
    exit 1
}

for target in "$@"; do
    name=$(basename "$target")
    name=${name#fuzz_}
    mkdir -p "$scratch/$name" findings
    seeds=
    [ -d "$corpus/$name" ] && seeds=$corpus/$name
    # shellcheck disable=SC2086 # No seeds, no argument.
    if "$target" -runs="$runs" -seed=1 -timeout=10 -rss_limit_mb=2048 \
        -max_len=65536 -len_control=10 -print_final_stats=1 \
        -artifact_prefix="findings/$name-" "$scratch/$name" $seeds \
        >"$scratch/$name.log" 2>&1; then
        done_runs=$(sed -n 's/^stat::number_of_executed_units: *//p' \
            "$scratch/$name.log")
        echo "fuzz: $name: $done_runs executions, no finding"
    else
        tail -n 40 "$scratch/$name.log" >&2
        echo "fuzz: $name: a finding; repeat with: $(pwd)/$target" \
            "$(find findings -name "$name-*" | head -n 1)" >&2
        status=1
    fi
done
exit $status
