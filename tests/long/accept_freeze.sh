#!/bin/sh
# Goal: an insider that sends 1, 11 or 100 models of 1e19 or 3e38 freezes nobody:
# seven honest peers do all their steps, within ten seconds of the time that
# they take without it, and are as good as then within a point.
# Method: the digits, eight peers, four methods; the same files in the simulator,
# the mean of three seeds, and with real processes, one seed.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

cd "$scratch" || exit 99
# one WORLD NAME METHOD FAULTS: all seeds of the world
one() {
    experiment 8 1200 "compute: {step: 4ms}" "evaluate: 1s" "$4" |
        sed "s/^gossip:.*/gossip: {algorithm: $3}/" >freeze.yaml
    seeds=7
    [ "$1" = lab ] || seeds="7 8 9"
    momentum=0.9 # diloco has its own outside
    [ "${2%%-*}" != diloco ] || momentum=0
    for seed in $seeds; do
        expect 0 "$1" freeze.yaml --json --set "seed=$seed" \
            --set "train.momentum=$momentum"
        cp json "$1-$2-$seed.json"
    done
}
for world in sim lab; do
    for method in "adpsgd, every: 2, topology: random" \
        "dpsgd, every: 2, topology: ring" "sgp, every: 2, topology: random" \
        "diloco, every: 5, topology: complete"; do
        one "$world" "${method%%,*}-0-0" "$method" ""
        for burst in 1 11 100; do
            for by in 1e19 3e38; do
                one "$world" "${method%%,*}-$burst-$by" "$method" \
                    "faults: [{at: 500ms, models: $burst, \
huge: \"peer(7)\", by: $by}]"
            done
        done
    done
done
python3 - <<'PYTHON' || fail "a burst froze somebody or cost accuracy"
import glob, json
CLOCK = {"sim": "virtual_s", "lab": "wall_s"}
bad = False

def mean(world, method, burst, by):
    runs = [json.load(open(path))
            for path in glob.glob(f"{world}-{method}-{burst}-{by}-*.json")]
    return (sum(run["accuracy"]["mean"] for run in runs) / len(runs),
            sum(run[CLOCK[world]] for run in runs) / len(runs),
            all(run["steps"] == 8 * 1200 for run in runs))

for world in CLOCK:
    for method in ("adpsgd", "dpsgd", "sgp", "diloco"):
        calm, clock, _ = mean(world, method, 0, 0)
        print(f"{world} {method}: {100 * calm:.2f} %, {clock:.1f} s")
        for burst in (1, 11, 100):
            for by in ("1e19", "3e38"):
                found, took, whole = mean(world, method, burst, by)
                fine = found >= calm - 0.01 and took <= clock + 10 and whole
                bad |= not fine
                print(f"  {burst:3} of {by}: {100 * (found - calm):+.2f} points,",
                      f"{took - clock:+.2f} s{'' if fine else '   <-'}")
raise SystemExit(bad)
PYTHON
finish
