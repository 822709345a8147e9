"""What methods cost in accuracy that share an outer point and send the largest
values in 2 bits: Fashion-MNIST, eight peers, 15 own steps between exchanges, in
pairs of seeds with what sends whole models as often.

Each run is a line of RESULTS, and a run whose line is there is not run again:
what is interrupted goes on.

    python3 accept_sparse.py [--tables]

--tables runs nothing and prints what RESULTS holds. Settings beside KITH, OUT,
DATASET and SEEDS of accept.py:
  RESULTS   lines of JSON ($OUT/sparse.jsonl)
  MINUTES   begin no run after so many (60)
  METHODS, SPLITS   comma-separated, in place of the defaults
"""
import json
import os
import statistics
import sys
import time

from accept import DATASET, OUT, SEEDS, kith, need_dataset, rows

RESULTS = os.environ.get("RESULTS", os.path.join(OUT, "sparse.jsonl"))
DEADLINE = time.monotonic() + 60 * float(os.environ.get("MINUTES", "60"))
EXPERIMENT = f"""name: sparse
seed: 1
peers: 8
stop: {{epochs: 5}}
model: {{kind: mlp, layers: [784, 256, 128, 10]}}
data: {{kind: idx, path: {DATASET}}}
train: {{learning_rate: 0.05, momentum: 0.9, batch: 16, schedule: linear}}
gossip: {{algorithm: local-sgd, every: 15}}
network: {{latency: 200us, rate: 10Gbit}}
compute: {{step: 5ms}}
"""
TOP = ("gossip.compressor=top-k-2bit",)
ALL, PAIRS = "gossip.topology=complete", "gossip.topology=random-matching"
# What is set, beside what it is held, the largest loss of points on iid and
# dirichlet(0.1); None: nothing was asked.
METHODS = {
    "local-sgd of all": (("gossip.algorithm=local-sgd", ALL), None, None),
    "diloco of all": (("gossip.algorithm=diloco", ALL), "local-sgd of all",
                      None),
    "sparse-loco of all, 3 %":
        (("gossip.algorithm=sparse-loco", "gossip.density=0.03", *TOP),
         "local-sgd of all", None),
    "sparse-loco of all, 64 of 4096":
        (("gossip.algorithm=sparse-loco", "gossip.density=0.015625", *TOP),
         "local-sgd of all", None),
    "local-sgd of pairs": (("gossip.algorithm=local-sgd", PAIRS), None, None),
    "update-sets of pairs, 3 %":
        (("gossip.algorithm=update-sets", "gossip.density=0.03", *TOP),
         "local-sgd of pairs", (0.3, 0.5)),
}


def chosen(name, default):
    given = os.environ.get(name)
    return given.split(",") if given else default


class Runs:
    def __init__(self):
        os.makedirs(OUT, exist_ok=True)
        self.path = os.path.join(OUT, "sparse.yaml")
        with open(self.path, "w") as file:
            file.write(EXPERIMENT)
        self.found, self.missing = {}, 0
        if os.path.exists(RESULTS):
            with open(RESULTS) as file:
                for line in map(json.loads, file):
                    self.found[json.dumps(line["cell"])] = line

    def one(self, method, split, seed):
        """Accuracy of the peers in points, and bytes; None: not yet."""
        cell = [*METHODS[method][0], split, seed]
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
        *settings, split, seed = cell
        result = kith("sim", self.path, f"seed={seed}", f"data.split={split}",
                      *settings)
        last = rows(result, "SELECT accuracy, max(time_s) FROM series WHERE "
                    "accuracy IS NOT NULL GROUP BY peer")
        os.unlink(result["database"])
        points = [100 * accuracy for accuracy, _ in last]
        return {"cell": cell, "mean": round(statistics.fmean(points), 3),
                "worst": round(min(points), 3),
                "distance": result["consensus_distance"],
                "bytes": result["bytes"]["sent"]}


def mean(pairs, which, key):
    return statistics.fmean(pair[which][key] for pair in pairs)


def line(runs, method, split):
    _, beside, most = METHODS[method]
    pairs = []
    for seed in SEEDS:
        found = runs.one(method, split, seed)
        base = runs.one(beside or method, split, seed)
        if found and base:
            pairs.append((found, base))
    if not pairs:
        return None
    loss = mean(pairs, 1, "mean") - mean(pairs, 0, "mean")
    allowed = most[split != "iid"] if most else None
    held = allowed is None or loss <= allowed
    share = mean(pairs, 0, "bytes") / mean(pairs, 1, "bytes")
    return (f"| {method} | {split} | {len(pairs)} | "
            f"{mean(pairs, 0, 'mean'):.2f} | {mean(pairs, 0, 'worst'):.2f} | "
            + (f"{loss:+.2f} | {'-' if allowed is None else allowed} | "
               f"1/{1 / share:.1f}" if beside else "- | - | 1") +
            f" | {mean(pairs, 0, 'bytes') / 1e6:.1f} |"
            f"{'' if held else ' **missed**'}"), held


def main():
    need_dataset()
    runs = Runs()
    lines = [line(runs, method, split)
             for method in chosen("METHODS", list(METHODS))
             for split in chosen("SPLITS", ["iid", "dirichlet(0.1)"])]
    lines = [one for one in lines if one]
    print("\n| method | data | seeds | mean of the peers | worst peer | loss "
          "| allowed | bytes | MB sent |\n|---|---|---|---|---|---|---|---|---|")
    for text, _ in lines:
        print(text)
    missed = sum(not held for _, held in lines)
    print(f"\n{len(runs.found)} runs in {RESULTS}, {runs.missing} to come; "
          f"{len(lines) - missed} of {len(lines)} lines held")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
