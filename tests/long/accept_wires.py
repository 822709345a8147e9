"""What a wire costs in accuracy: Fashion-MNIST, eight peers, in pairs of seeds
with float32 at the same interval.

Each run is a line of RESULTS, and a run whose line is there is not run again:
what is interrupted goes on. Targets are those of reference/compressed.md.

    python3 accept_wires.py [--tables]

--tables runs nothing and prints what RESULTS holds. Settings beside KITH, OUT,
DATASET and SEEDS of accept.py:
  RESULTS   lines of JSON ($OUT/wires.jsonl)
  MINUTES   begin no run after so many (60)
  EPOCHS    of a run (5)
  WORLD     sim, or lab: adpsgd alone, real processes
  ALGORITHMS, SPLITS, WIRES   comma-separated, in place of the defaults
"""
import json
import os
import statistics
import sys
import time

from accept import DATASET, OUT, SEEDS, kith, need_dataset, rows

RESULTS = os.environ.get("RESULTS", os.path.join(OUT, "wires.jsonl"))
DEADLINE = time.monotonic() + 60 * float(os.environ.get("MINUTES", "60"))
EPOCHS = float(os.environ.get("EPOCHS", "5"))
WORLD = os.environ.get("WORLD", "sim")
PEERS = 8
EXPERIMENT = f"""name: wires
seed: 1
peers: {PEERS}
stop: {{epochs: 5}}
model: {{kind: mlp, layers: [784, 256, 128, 10]}}
data: {{kind: idx, path: {DATASET}}}
train: {{learning_rate: 0.05, momentum: 0.9, batch: 16, schedule: linear}}
gossip: {{algorithm: adpsgd, every: 2}}
network: {{latency: 200us, rate: 10Gbit}}
compute: {{step: 5ms}}
"""
# Own steps between exchanges, and a graph.
SETTING = {"adpsgd": (2, "random"), "dpsgd": (1, "torus"),
           "gosgd": (2, "random"), "sgp": (2, "random"),
           "local-sgd": (20, "complete"),
           "diloco": (20, "complete"), "noloco": (20, "random-matching")}
# The largest loss of points, iid and dirichlet(0.1).
MOST = {"bfloat16": (0.3, 0.4), "int8": (0.3, 0.5), "moniqua8": (0.3, 0.5),
        "moniqua4": (0.3, 0.5),
        # and a share of its blocks
        "moniqua4 x 0.5": (0.5, 0.8), "moniqua4 x 0.25": (1.0, 2.0)}
# Refused: a share that is given away is not read beside a model, and an outer
# step multiplies what was left out.
NOT_MODULAR = ("gosgd", "sgp", "diloco", "noloco")
WORST_OFF = 2.0  # the worst peer below the mean


def chosen(name, default):
    given = os.environ.get(name)
    return given.split(",") if given else default


ALGORITHMS = chosen("ALGORITHMS",
                    list(SETTING) if WORLD == "sim" else ["adpsgd"])
SPLITS = chosen("SPLITS", ["iid", "dirichlet(0.1)"])
WIRES = chosen("WIRES", list(MOST))


class Runs:
    def __init__(self):
        os.makedirs(OUT, exist_ok=True)
        self.path = os.path.join(OUT, "wires.yaml")
        with open(self.path, "w") as file:
            file.write(EXPERIMENT)
        self.found, self.missing = {}, 0
        if os.path.exists(RESULTS):
            with open(RESULTS) as file:
                for line in map(json.loads, file):
                    self.found[json.dumps(line["cell"])] = line

    def one(self, algorithm, split, wire, seed):
        """Accuracy of the peers, mean and worst, in points; None: not yet."""
        cell = [WORLD, algorithm, split, wire, seed, EPOCHS]
        key = json.dumps(cell)
        if key not in self.found:
            if "--tables" in sys.argv or time.monotonic() > DEADLINE:
                self.missing += 1
                return None
            self.found[key] = self.run(cell)
            with open(RESULTS, "a") as file:
                file.write(json.dumps(self.found[key]) + "\n")
        return self.found[key]

    def run(self, cell):
        _, algorithm, split, wire, seed, epochs = cell
        every, topology = SETTING[algorithm]
        wire, _, share = wire.partition(" x ")
        result = kith(WORLD, self.path, f"seed={seed}", f"stop.epochs={epochs}",
                      f"data.split={split}", f"gossip.algorithm={algorithm}",
                      f"gossip.every={every}", f"gossip.topology={topology}",
                      f"gossip.wire={wire}", f"gossip.wire_share={share or 1}")
        last = rows(result, "SELECT accuracy, max(time_s) FROM series WHERE "
                    "accuracy IS NOT NULL GROUP BY peer")
        os.unlink(result["database"])
        points = [100 * accuracy for accuracy, _ in last]
        return {"cell": cell, "mean": round(statistics.fmean(points), 3),
                "worst": round(min(points), 3),
                "averaged": round(100 * result["accuracy"]["averaged"], 3),
                "distance": result["consensus_distance"],
                "bytes": result["bytes"]["sent"]}


def line(runs, algorithm, split, wire):
    pairs = []
    for seed in SEEDS:
        plain = runs.one(algorithm, split, "float32", seed)
        packed = runs.one(algorithm, split, wire, seed)
        if plain and packed:
            pairs.append((plain, packed))
    if not pairs:
        return None
    loss = statistics.fmean(a["mean"] - b["mean"] for a, b in pairs)
    off, plain_off = (max(pair[i]["mean"] - pair[i]["worst"] for pair in pairs)
                      for i in (1, 0))
    most = MOST[wire][split != "iid"]
    held = loss <= most and off <= WORST_OFF
    return (f"| {algorithm} | {split} | {wire} | {len(pairs)} | "
            f"{statistics.fmean(a['mean'] for a, _ in pairs):.2f} | "
            f"{loss:+.2f} | {most} | {off:.2f} ({plain_off:.2f}) | "
            f"{statistics.fmean(b['distance'] for _, b in pairs):.2g} "
            f"({statistics.fmean(a['distance'] for a, _ in pairs):.2g}) | "
            f"{sum(b['bytes'] for _, b in pairs) / sum(a['bytes'] for a, _ in pairs):.3f}"
            f" |{'' if held else ' **missed**'}"), held


def main():
    need_dataset()
    runs = Runs()
    lines = [line(runs, algorithm, split, wire) for algorithm in ALGORITHMS
             for split in SPLITS for wire in WIRES
             if not (wire.startswith("moniqua") and algorithm in NOT_MODULAR)]
    lines = [one for one in lines if one]
    print(f"\n{WORLD}, {EPOCHS:g} epochs of {PEERS} peers\n\n| algorithm | data "
          "| wire | seeds | float32 | loss | allowed | worst peer below the "
          "mean (float32) | consensus distance (float32) | bytes |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    for text, _ in lines:
        print(text)
    missed = sum(not held for _, held in lines)
    print(f"\n{len(runs.found)} runs in {RESULTS}, {runs.missing} to come; "
          f"{len(lines) - missed} of {len(lines)} lines held")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
