"""Mixing of eight real peers beside that of as many simulated ones.

At a constant learning rate models stay as far apart as exchanges let them:
where a trigger takes a share m of the squared distance and a step adds q, it
is q / m in the mean. What it is at the end, the mean of SEEDS runs, is measured
in both worlds: its ratio is that of their mixing. All stop at one time, for
who goes on alone moves alone. No step waits: as many are done as without
exchanges.

    python3 accept_mixing.py

KITH and OUT are those of accept.py; SEEDS (12); STEP (30): milliseconds of a
step, which keep two cores some 60 % busy; ONLY=NAME,... runs some methods.
"""
import math
import os
import resource
import statistics

from accept import OUT, TOP, Table, kith, mean

SEEDS = range(1, 1 + int(os.environ.get("SEEDS", "12")))
STEP_MS = float(os.environ.get("STEP", "30"))
TOPOLOGY = {"adpsgd": "random", "elastic": "random", "swarm": "random",
            "acid": "ring"}
ONLY = os.environ.get("ONLY", ",".join(TOPOLOGY)).split(",")
# Eight machines are never in step, as simulated peers of one speed would be.
SLOW = ", ".join(f"{{peers: peer({i}), by: {1 + 0.001 * i:.3f}}}"
                 for i in range(1, 8))


def write(name):
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, f"mixing-{name}.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"""name: mixing-{name}
peers: 8
stop: {{time: 5s}}
model: {{kind: mlp, layers: [64, 1024, 256, 10]}}
data: {{kind: idx, path: {TOP}/examples/data/digits}}
train: {{learning_rate: 0.02, batch: 32}}
gossip: {{algorithm: {name}, topology: {TOPOLOGY[name]}, every: 1}}
network: {{latency: 10ms}}
compute: {{step: {STEP_MS:g}ms, slow: [{SLOW}]}}
evaluate: end
save: never
""")
    return path


def run(path, world, seed, *settings):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = kith(world, path, f"seed={seed}", *settings)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.unlink(result["database"])
    result["busy"] = (after.ru_utime + after.ru_stime - before.ru_utime -
                      before.ru_stime) / result["wall_s"] / os.cpu_count()
    return result


def squared(runs):
    """Mean of the squared distances, and its standard error."""
    found = [run["consensus_distance"] ** 2 for run in runs]
    return mean(found), statistics.stdev(found) / math.sqrt(len(found))


def rate(run):
    return run["exchanges"]["done"] / run["steps"]


def main():
    table = Table(f"Mixing in both worlds, {len(SEEDS)} runs, steps of "
                  f"{STEP_MS:g} ms")
    for name in ONLY:
        path = write(name)
        both = [[run(path, world, seed) for seed in SEEDS]
                for world in ("sim", "lab")]
        alone = [run(path, "lab", seed, "gossip.algorithm=local")["steps"]
                 for seed in SEEDS[:3]]
        (sim, sim_error), (lab, lab_error) = map(squared, both)
        error = math.hypot(sim_error / sim, lab_error / lab)
        table.note(f"{name}: of the cores",
                   f"{100 * mean(r['busy'] for r in both[1]):.0f} %")
        table.note(f"{name}: exchanges of triggers, simulated, in the lab",
                   " ".join(f"{mean(map(rate, runs)):.3f}" for runs in both))
        table.note(f"{name}: steps, of those without exchanges",
                   f"{mean(r['steps'] for r in both[1]) / mean(alone):.3f}")
        table.add(f"{name}: mixing, of that in the simulator",
                  "0.9 to 1.1", f"{sim / lab:.3f} +- {sim / lab * error:.3f}",
                  abs(sim / lab - 1) <= 0.1)
    table.end()


if __name__ == "__main__":
    main()
