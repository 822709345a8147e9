#!/bin/sh
# Goal: the floors base to sim, every object of them, link and load without
# libuv.
# Method: what tests/link/sim_only needs, by readelf. The canary is a program
# that calls libuv.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# check PROGRAM
check() {
    readelf -d "$1" >"$scratch/dynamic" || return 1
    if grep 'NEEDED.*libuv' "$scratch/dynamic"; then
        return 1
    fi
}

check tests/link/sim_only || fail "the simulator needs libuv"
tests/link/sim_only >"$scratch/out" || fail "sim_only does not run"
nm tests/link/sim_only | grep -q ' T sim_\| T kith_sim_' ||
    fail "sim_only holds no simulator"

echo 'int uv_version(void); int main(void) { return uv_version() == 0; }' \
    >"$scratch/planted.c"
# shellcheck disable=SC2086 # CC may carry flags.
if ${CC:-cc} "$scratch/planted.c" -luv -o "$scratch/planted"; then
    canary check "$scratch/planted"
else
    fail "cannot build the canary"
fi
finish
