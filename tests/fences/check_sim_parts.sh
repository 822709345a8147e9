#!/bin/sh
# Goal: a part of the simulator's world has one owner (sim/world.h), and virtual
# time one writer.
# Method: grep. `world->PART.` or `world->PART->` stands in the part's own files
# alone, and in world.h; `now_ns =` of the clock in engine.h alone.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# part, its owner
parts='ranks sim_ranks
saves sim_saves
log rank_log
models rank_models
engine engine
windows windows
nodes nodes
packets packets
network delivery
hosts hosts
sharing fair_sharing
links links
directions directions
outbox outbox
copies model_copies
faults sim_faults
trace trace
channels full_channel
workers workers
work jobs
ledger ledger
dump dump
timeline timeline
watch watch
totals peer_totals
zone_traffic zone_traffic
points points
scores scores
results sim_result'

# check TREE
check() {
    found=0
    cd "$1" || return 99
    for part in $parts; do
        [ -n "$part" ] || continue
        case $owner in
        '') owner=$part ;; # The pair's first word: the part.
        *)
            if grep -nE "world->$owner(\.|->)" sim/*.[ch] sim/central/*.[ch] |
                grep -vE "^sim/($part|world)\.[ch]:"; then
                echo "only sim/$part.c may touch world->$owner"
                found=1
            fi
            owner=
            ;;
        esac
    done
    if grep -nE 'clock(\.|->)now_ns = ' sim/*.[ch] sim/central/*.[ch] |
        grep -v '^sim/engine\.h:'; then
        echo "only sim_clock_advance() writes virtual time"
        found=1
    fi
    return $found
}

owner=
check "$top" >"$scratch/found" || fail "$(cat "$scratch/found")"

for sin in 'world->links.resets++;' 'world->work->count = 2;' \
    'world->engine.clock.now_ns = 5;' 'clock->now_ns = 0;'; do
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/sim/central"
    echo 'x' >"$scratch/tree/sim/central/planted.c"
    echo "$sin" >"$scratch/tree/sim/planted.c"
    canary check "$scratch/tree"
done
echo 'world->links.resets++;' >"$scratch/tree/sim/links.c"
echo 'sim_time(world);' >"$scratch/tree/sim/planted.c"
(check "$scratch/tree") || fail "innocent lines were accused"
finish
