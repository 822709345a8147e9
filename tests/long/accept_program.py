"""What PyTorch's loops are as peers, by `kith lab` with `model: {kind: program}`.

learn: demo.yaml's MLP in PyTorch (program_mlp.py: the engine's first weights,
rows, batches and rates) beside the built-in one, both in the lab, seeds in pairs:
averaged accuracy within 0.3 points by the mean of SEEDS (3).

killed: the same, and with kill -9 of two of the eight, one of which comes back:
survivors take at least 99 % of the steps per second that they take in a run
without faults, and averaged accuracy is within 1.0 point of it. A step lasts
STEP_MS (45), so that all processes and the lab have at most 60 % of the CPUs.

cost: training with `every: 10` of 25 million parameters (program_cost.py), two
peers that compute all the time, PAIRS (40) spans of SPAN (6) seconds with
step() and as many without: at most 3 % more of a step's wall and CPU time than
what kith's own threads and step() itself have of the CPU. A span with step() is
compared with the mean of those before and after it, so that what drifts slower
than a span cancels; printed are the median and an interval that holds it with
95 %. The CPU time of training alone, by the median of a span's steps, is the
steadiest of the three.

    accept_program.py [learn] [killed] [cost]

KITH, OUT, SEEDS, DATASET are those of accept.py; PYTHON's loops are this one's."""
import glob
import os
import resource
import statistics
import sys
import time

import numpy as np

from accept import (DATASET, DEMO, OUT, SEEDS, Table, kith, mean,
                    need_dataset, rows, write)
from engine_twin import first_weights

HERE = os.path.dirname(os.path.abspath(__file__))
STEP_MS = float(os.environ.get("STEP_MS", "45"))
SPAN = float(os.environ.get("SPAN", "6"))
PAIRS = int(os.environ.get("PAIRS", "40"))
PEERS, STEPS = 8, 5 * 60000 // (8 * 16)
CRASHED, KILLED = 2, 5  # the first comes back

MLP = """name: program-mlp
seed: {seed}
peers: {peers}
stop: {{steps: {steps}}}
model: {{kind: program, run: "{run}"}}
gossip: {{algorithm: adpsgd, every: 2, topology: random}}
compute: {{step: {step_ms}ms}}
faults: {faults}
"""
FAULTS = (f'[{{at: 10s, crash: "peer({CRASHED})", restart: 10s}}, '
          f'{{at: 12s, crash: "peer({KILLED})"}}]')


def program(name, *arguments):
    return " ".join([sys.executable, os.path.join(HERE, name),
                     *map(str, arguments)])


def shared_cpu():
    """CPU seconds of all that this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def twin(seed, faults="[]"):
    """The averaged run of program_mlp.py; .cpu_share: of all CPUs."""
    first = os.path.join(OUT, f"first-{seed}.npy")
    if not os.path.exists(first):
        np.save(first, first_weights(DEMO, f"seed={seed}",
                                     f"data.path={DATASET}"))
    path = write("program-mlp.yaml", MLP.format(
        seed=seed, peers=PEERS, steps=STEPS, step_ms=STEP_MS, faults=faults,
        run=program("program_mlp.py", seed, first, STEPS)))
    before = shared_cpu()
    result = kith("lab", path)
    result["cpu_share"] = (shared_cpu() - before) / (
        result["command_s"] * os.cpu_count())
    print(f"    averaged {100 * result['accuracy']['averaged']:.2f} %, "
          f"{100 * result['cpu_share']:.0f} % of {os.cpu_count()} CPUs, load "
          f"{os.getloadavg()[0]:.1f}", flush=True)
    return result


def points(result):
    return 100 * result["accuracy"]["averaged"]


def learn(table):
    need_dataset()
    apart = []
    for seed in SEEDS:
        built = kith("lab", DEMO, f"seed={seed}", f"data.path={DATASET}",
                     f"compute.step={STEP_MS}ms")
        own = twin(seed)
        apart.append(points(own) - points(built))
        table.note(f"seed {seed}: engine, PyTorch",
                   f"{points(built):.2f}, {points(own):.2f}")
    table.add("mean difference in points", "<= 0.3",
              f"{statistics.fmean(apart):+.2f}",
              abs(statistics.fmean(apart)) <= 0.3)


def steps_a_second(result, after_s):
    """Mean of those that no fault meets, from then to the end of their share."""
    rates = []
    for rank in set(range(PEERS)) - {CRASHED, KILLED}:
        told = rows(result, "SELECT time_s, step FROM series WHERE peer = ? "
                    "AND time_s >= ? AND step < ? ORDER BY time_s", rank,
                    after_s, STEPS)
        rates.append((told[-1][1] - told[0][1]) / (told[-1][0] - told[0][0]))
    return mean(rates)


def killed(table):
    need_dataset()
    rates, apart, shares = [], [], []
    for seed in SEEDS:
        whole, torn = twin(seed), twin(seed, FAULTS)
        happened = [fault for fault, in rows(
            torn, "SELECT fault FROM faults ORDER BY fault")]
        assert happened == ["crash", "crash", "restart"], happened
        assert rows(torn, "SELECT count(*) FROM marks JOIN mark_kinds USING "
                    "(kind) WHERE name = 'adopted' AND peer = ?",
                    CRASHED) == [(1,)]
        rates.append(steps_a_second(torn, 12) / steps_a_second(whole, 12))
        apart.append(points(torn) - points(whole))
        shares += [whole["cpu_share"], torn["cpu_share"]]
        table.note(f"seed {seed}: whole, two killed",
                   f"{points(whole):.2f}, {points(torn):.2f}; "
                   f"rate {rates[-1]:.4f}")
    table.at_least("survivors' step rate", 0.99, mean(rates))
    table.at_least("accuracy, mean difference in points", -1.0, mean(apart),
                   "{:+.2f}")
    table.at_most("share of the CPUs, at most", 0.6, max(shares), "{:.2f}")


def spans(table):
    """Of each span of rank 0 in turn: [with, wall, CPU, own, training] of a
    step."""
    path = write("program-cost.yaml",
                 f'name: program-cost\npeers: 2\nstop: {{time: '
                 f'{2 * PAIRS * SPAN:.0f}s}}\nmodel: {{kind: program, run: "'
                 f'{program("program_cost.py", SPAN)}"}}\n'
                 "gossip: {algorithm: adpsgd, every: 10}\n"
                 "compute: {step: 1ms}\n")
    result = kith("lab", path)
    print(f"  load {os.getloadavg()[0]:.1f}", flush=True)
    table.note("exchanges done", result["exchanges"]["done"])
    said = glob.glob(result["database"][:-len(".db")] + ".peer-0.out")
    with open(said[0], encoding="utf-8") as file:
        for line in file:
            called, steps, *seconds, training = map(float, line.split())
            yield [called, *(value / steps for value in seconds), training]


def median_within(shares):
    """Median, and the order statistics that hold that of all with 95 %."""
    ordered, count = sorted(shares), len(shares)
    edge = max(0, int(count / 2 - 0.98 * count ** 0.5))
    return (statistics.median(shares), ordered[edge],
            ordered[count - 1 - edge])


def cost(table):
    told = list(spans(table))
    extra = {"wall": [], "CPU": [], "training's CPU": []}
    for before, ours, after in zip(told, told[1:], told[2:]):
        if (before[0], ours[0], after[0]) != (0, 1, 0):
            continue
        bare = [(a + b) / 2 for a, b in zip(before, after)]
        extra["wall"].append((ours[1] - bare[1] - ours[3]) / bare[1])
        extra["CPU"].append((ours[2] - bare[2] - ours[3]) / bare[2])
        extra["training's CPU"].append(ours[4] / bare[4] - 1)
    assert len(extra["wall"]) >= PAIRS / 2, told
    for what, column in (("wall", 1), ("CPU", 2), ("training's CPU", 4)):
        table.note(f"a step, {what}, ms: without, with", ", ".join(
            "{:.1f}".format(1e3 * statistics.median(
                span[column] for span in told if span[0] == called))
            for called in (0, 1)))
    table.note("kith's own CPU of a step, ms", "{:.1f}".format(
        1e3 * statistics.median(span[3] for span in told if span[0] == 1)))
    for what, shares in extra.items():
        middle, least, most = median_within(shares)
        table.add(f"{what} time beyond it, of a step", "<= 3 %",
                  f"{100 * middle:+.1f} % [{100 * least:+.1f}.."
                  f"{100 * most:+.1f}] of {len(shares)}", middle <= 0.03)


def main():
    began = time.monotonic()
    table = Table("PyTorch's loops as peers")
    for part in sys.argv[1:] or ("learn", "killed", "cost"):
        {"learn": learn, "killed": killed, "cost": cost}[part](table)
    print(f"{time.monotonic() - began:.0f} s")
    table.end()


if __name__ == "__main__":
    main()
