"""Acceptance 6: faults cost the others next to nothing.

All runs are the demo with its steps padded to a period that leaves the machine
at most 60 % busy (PERIOD, measured below and printed), for a fixed number of
steps, with the same seeds.

  calm    undisturbed
  killed  kill -9 of two of eight; one comes back
  slow    one peer ten times slower for the whole run
"""
import os
import resource
import tempfile

from accept import DATASET, DEMO, SEEDS, Table, kith, mean, need_dataset, rows

need_dataset()
PERIOD_MS = float(os.environ.get("PERIOD_MS", "25"))
STEPS = int(os.environ.get("STEPS", "1200"))
SECONDS = STEPS * PERIOD_MS / 1000
BASE = (f"data.path={DATASET}", "stop={steps: %d}" % STEPS,
        f"compute.step={PERIOD_MS:g}ms", "save=2s", "assert=[]")
table = Table(f"Acceptance 6, {len(SEEDS)} seeds, {STEPS} steps of "
              f"{PERIOD_MS:g} ms")


def experiment(name, *lines):
    """The demo with these lines added at its end."""
    text = open(DEMO, encoding="utf8").read()
    if any(line.startswith("compute:") for line in lines):
        text = "\n".join(l for l in text.split("\n")
                         if not l.startswith("compute:"))
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="utf8") as file:
        file.write(text + "\n" + "\n".join(lines) + "\n")
    return path


def rate(result, peer):
    """Own steps per second, from the first row after 10 % of the run to the
    last one with steps left to do."""
    series = rows(result, "SELECT time_s, step FROM series WHERE peer = ? AND "
                  "accuracy IS NULL AND time_s > ? AND step < ? "
                  "ORDER BY time_s", peer, 0.1 * SECONDS, STEPS)
    (t0, s0), (t1, s1) = series[0], series[-1]
    return (s1 - s0) / (t1 - t0)


def waited(result, peers):
    shares = []
    for peer in peers:
        (value, span), = rows(result, "SELECT max(waiting_s), max(time_s) FROM "
                              "series WHERE peer = ?", peer)
        shares.append(value / span)
    return max(shares)


def averaged(results):
    return mean(r["accuracy"]["averaged"] for r in results)


with tempfile.TemporaryDirectory() as folder:
    kill_at, back_s = 0.3 * SECONDS, 0.2 * SECONDS
    killed_file = experiment(
        "killed", "faults:",
        "  - {at: %dms, crash: \"peer(2)\", restart: %dms}" %
        (1000 * kill_at, 1000 * back_s),
        "  - {at: %dms, crash: \"peer(5)\"}" % (1000 * kill_at))
    slow_file = experiment(
        "slow", "compute: {slow: [{peers: \"peer(3)\", by: 10}]}")
    calm, killed = [], []
    cores = len(os.sched_getaffinity(0))
    for seed in SEEDS:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        calm.append(kith("lab", DEMO, f"seed={seed}", *BASE))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = (after.ru_utime + after.ru_stime - before.ru_utime -
                 before.ru_stime)
        if seed == SEEDS[0]:
            table.at_most("CPU busy, undisturbed run", 0.60,
                          spent / cores / calm[0]["command_s"], "{:.3f}")
        killed.append(kith("lab", killed_file, f"seed={seed}", *BASE))
    # A fixed time: the slow peer's own share would take ten times as long.
    slow = kith("lab", slow_file, f"seed={SEEDS[0]}", *BASE,
                "stop={steps: %d, time: %ds}" % (STEPS, SECONDS * 1.3))

survivors = [0, 1, 3, 4, 6, 7]
share = min(mean(rate(k, p) for p in survivors) /
            mean(rate(c, p) for p in survivors) for k, c in zip(killed, calm))
table.at_least("survivors' step rate / undisturbed, worst seed", 0.95, share)
worst = min(rate(k, p) / rate(c, p) for k, c in zip(killed, calm)
            for p in survivors)
table.note("worst single survivor", f"{worst:.4f}")
table.at_most("waiting share of wall time, worst survivor", 0.01,
              max(waited(k, survivors) for k in killed), "{:.5f}")
table.at_most("|killed - undisturbed| accuracy, points", 1.0,
              100 * abs(averaged(killed) - averaged(calm)), "{:.2f}")
table.note("accuracy, undisturbed", f"{averaged(calm):.4f}")
table.note("accuracy, two killed", f"{averaged(killed):.4f}")
back = [rows(k, "SELECT max(step) FROM series WHERE peer = 2 AND time_s > ?",
             kill_at + back_s)[0][0] or 0 for k in killed]
table.add("the one that came back trained on", "steps > 0",
          " ".join(str(b) for b in back), all(b > 0 for b in back))
others = [p for p in range(8) if p != 3]
cost = 1 - (mean(rate(slow, p) for p in others) /
            mean(rate(calm[0], p) for p in others))
table.at_most("one peer 10x slower: cost to the others", 0.02, cost, "{:.4f}")
ratio = rate(calm[0], 3) / rate(slow, 3)
table.note("the slow peer is slower by", f"{ratio:.2f}")
table.end()
