#!/bin/sh
# Goal: one file with loss takes as long in the lab as in the simulator.
# Method: rounds that wait for their neighbours, steps paced so that cores are
# mostly idle; four seeds, because a probe more or less shifts what is lost.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

cat >"$scratch/loss.yaml" <<YAML
name: loss
peers: 4
stop: {steps: 200}
model: {kind: quadratic, dim: 25000}
gossip: {algorithm: dpsgd, topology: ring}
network: {latency: 5ms, loss: 0.01}
compute: {step: 20ms}
YAML
cd "$scratch" || exit 99
for seed in 1 2 3 4; do
    for world in sim lab; do
        expect 0 "$world" loss.yaml --set "seed=$seed" --json
        cp json "$world-$seed.json"
    done
done
python3 - <<'PYTHON' || fail "the worlds differ by more than 5 %"
import json
total = {}
for world, key in (("sim", "virtual_s"), ("lab", "wall_s")):
    runs = [json.load(open(f"{world}-{seed}.json")) for seed in range(1, 5)]
    total[world] = sum(run[key] for run in runs)
    print(world, *(f"{run[key]:.2f}" for run in runs))
raise SystemExit(abs(total["lab"] / total["sim"] - 1) > 0.05)
PYTHON
finish
