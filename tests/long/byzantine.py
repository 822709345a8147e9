"""What members that lie cost, with a guard and without one.

Two tables of Fashion-MNIST: what a guard costs where nobody lies, paired by
seed, and what honest peers learn beside hostile ones, held against the same
peers being silent (killed: their data is gone whatever a guard does). Each run
is a line of RESULTS, and a run whose line is there is not run again: what is
interrupted goes on.

    python3 byzantine.py [harm] [attacks] [--tables]

By default little of it is run; EVERYTHING=1 has all, within four CPU-hours:
attacks by three seeds and three epochs, guards to compare with by one seed, the
largest share and four kinds.
--tables runs nothing and prints what RESULTS holds, as docs/byzantine.md has
it. Settings beside KITH, OUT, DATASET and SEEDS of accept.py:
  RESULTS   lines of JSON ($OUT/byzantine.jsonl)
  MINUTES   begin no run after so many (60)
  EPOCHS    of a run (1; EVERYTHING: 5, of attacks 3)
  ALGORITHMS, SPLITS, KINDS, SHARES, PEERS, GUARDS, OTHERS   comma-separated, in
            place of the defaults
"""
import json
import os
import statistics
import sys
import time

from accept import DATASET, OUT, SEEDS, kith, need_dataset, rows

EVERYTHING = os.environ.get("EVERYTHING") == "1"
RESULTS = os.environ.get("RESULTS", os.path.join(OUT, "byzantine.jsonl"))
DEADLINE = time.monotonic() + 60 * float(os.environ.get("MINUTES", "60"))
EPOCHS = [float(os.environ.get("EPOCHS", many if EVERYTHING else "1"))
          for many in ("5", "3")]  # of a run without attack, with one
# Two-sided 95 % of Student's t, by seeds less one.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78}
EXPERIMENT = f"""name: byzantine
seed: 1
peers: 10
stop: {{epochs: 1}}
model: {{kind: mlp, layers: [784, 256, 128, 10]}}
data: {{kind: idx, path: {DATASET}}}
train: {{learning_rate: 0.05, momentum: 0.9, batch: 16, schedule: linear}}
gossip: {{algorithm: adpsgd, every: 2}}
network: {{latency: 200us, rate: 10Gbit}}
compute: {{step: 5ms}}
"""
# Own steps between exchanges, and a graph of degree 8 or more for rounds.
EVERY = {"adpsgd": 2, "local-sgd": 20, "diloco": 20, "noloco": 20}
PAIRS = ("adpsgd", "gosgd", "sgp")
TOPOLOGY = {"noloco": "random-matching"}
# What is told, and what the table calls it.
LIES = {"silent": "crash: {who}", "huge": "huge: {who}, by: 3e38"}


def chosen(name, little, everything):
    given = os.environ.get(name)
    if given:
        depth, parts, part = 0, [], ""
        for letter in given + ",":
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                parts.append(part)
                part = ""
            else:
                part += letter
        return parts
    return everything if EVERYTHING else little


SPLITS = chosen("SPLITS", ["dirichlet(0.1)"], ["iid", "dirichlet(0.1)"])
HARMED = chosen("ALGORITHMS", ["adpsgd", "local-sgd"],
                ["adpsgd", "dpsgd", "dpsgd-atc", "gosgd", "sgp", "local-sgd",
                 "diloco", "noloco"])
ATTACKED = chosen("ALGORITHMS", ["adpsgd"], ["adpsgd", "dpsgd", "local-sgd"])
KINDS = chosen("KINDS", ["flip", "alie", "stale"],
               ["huge", "nan", "flip", "scale", "gauss", "alie", "ipm",
                "dissensus", "stale", "free-ride", "label-flip", "ride",
                "ascent"])
SHARES = [float(s) for s in chosen("SHARES", ["0.2"], ["0.1", "0.2"])]
PEERS = [int(p) for p in chosen("PEERS", ["10"], ["10"])]
GUARDS = chosen("GUARDS", ["none", "clip"], ["none", "clip"])
OTHERS = chosen("OTHERS", [], ["balance", "nnm", "trimmed-mean", "cs+"])


COMPARED = ("silent", "alie", "dissensus", "stale", "ride")


def topology(algorithm, peers):
    if algorithm in PAIRS:
        return "random"
    if algorithm in TOPOLOGY:
        return TOPOLOGY[algorithm]
    return "complete" if peers <= 10 else "random-regular"


def takes(algorithm, guard):
    """Pairs are seen one model at a time."""
    return algorithm not in PAIRS or guard in ("none", "clip", "balance")


class Runs:
    def __init__(self):
        os.makedirs(OUT, exist_ok=True)
        self.path = os.path.join(OUT, "byzantine.yaml")
        with open(self.path, "w") as file:
            file.write(EXPERIMENT)
        self.found, self.missing = {}, 0
        self.may_run = "--tables" not in sys.argv
        if os.path.exists(RESULTS):
            with open(RESULTS) as file:
                for line in map(json.loads, file):
                    self.found[self.key(line["cell"])] = line

    @staticmethod
    def key(cell):
        return json.dumps(cell, sort_keys=True)

    def one(self, **cell):
        """Accuracy of the honest, mean and worst, in points; None: not yet."""
        cell["epochs"] = EPOCHS[cell["share"] > 0]
        key = self.key(cell)
        if key not in self.found:
            if not self.may_run or time.monotonic() > DEADLINE:
                self.missing += 1
                return None
            self.found[key] = self.run(cell)
            with open(RESULTS, "a") as file:
                file.write(json.dumps(self.found[key]) + "\n")
        return self.found[key]["mean"], self.found[key]["worst"]

    def run(self, cell):
        peers, algorithm = cell["peers"], cell["algorithm"]
        liars = round(cell["share"] * peers)
        settings = [f"seed={cell['seed']}", f"peers={peers}",
                    f"stop.epochs={cell['epochs']}", f"data.split={cell['split']}",
                    f"gossip.algorithm={algorithm}",
                    f"gossip.every={EVERY.get(algorithm, 1)}",
                    f"gossip.topology={topology(algorithm, peers)}",
                    f"gossip.guard={cell['guard']}"]
        if topology(algorithm, peers) == "random-regular":
            settings.append("gossip.degree=8")
        if liars > 0:
            who = f"peer({peers - liars}..{peers - 1})"
            lie = LIES.get(cell["kind"], "hostile: {who}, kind: {kind}")
            settings.append("faults=[{at: 20ms, " +
                            lie.format(who=who, kind=cell["kind"]) + "}]")
        result = kith("sim", self.path, *settings)
        last = rows(result, "SELECT accuracy, max(time_s) FROM series WHERE "
                    "peer < ? AND accuracy IS NOT NULL GROUP BY peer",
                    peers - liars)
        marks = dict(rows(result, "SELECT name, count(*) FROM marks JOIN "
                          "mark_kinds USING (kind) WHERE name IN ('clipped', "
                          "'rejected', 'gated', 'recovered') GROUP BY name"))
        os.unlink(result["database"])
        points = [100 * accuracy for accuracy, _ in last]
        return {"cell": cell, "mean": round(statistics.fmean(points), 3),
                "worst": round(min(points), 3), "marks": marks,
                "wall_s": result["wall_s"]}


def interval(losses):
    """Mean, and the upper end of its 95 % interval."""
    middle = statistics.fmean(losses)
    if len(losses) < 2:
        return f"{middle:.2f} | -"
    error = statistics.stdev(losses) / len(losses) ** 0.5
    return f"{middle:.2f} | {middle + STUDENT[len(losses) - 1] * error:.2f}"


def harm(runs):
    lines = []
    for algorithm in HARMED:
        for split in SPLITS:
            both = [[runs.one(algorithm=algorithm, split=split, guard=guard,
                              peers=10, share=0, kind="", seed=seed)
                     for seed in SEEDS] for guard in ("none", "clip")]
            pairs = [(a[0], b[0]) for a, b in zip(*both) if a and b]
            if pairs:
                lines.append(f"| {algorithm} | {split} | {len(pairs)} | "
                             f"{statistics.fmean(a for a, _ in pairs):.2f} | "
                             f"{interval([a - b for a, b in pairs])} |")
    print("\n| algorithm | data | seeds | without a guard | loss with `clip` |"
          " upper 95 % |\n|---|---|---|---|---|---|")
    print("\n".join(lines))


def attacked(runs, cell, guards, kind):
    """A line of the table: of each guard mean and worst peer."""
    texts = []
    for guard in guards:
        if guard in OTHERS and kind not in COMPARED:
            texts.append("-")
            continue
        found = [runs.one(**cell, guard=guard, kind=kind, seed=seed)
                 for seed in SEEDS[:1 if guard in OTHERS else 3]]
        found = [pair for pair in found if pair]
        texts.append("-" if not found else
                     f"{statistics.fmean(m for m, _ in found):.1f}/"
                     f"{min(w for _, w in found):.1f}")
    return f"| {kind} | {' | '.join(texts)} |"


def attacks(runs):
    for algorithm in ATTACKED:
        for split in SPLITS:
            for peers in PEERS:
                for share in SHARES:
                    guards = GUARDS + (OTHERS if share == max(SHARES) else [])
                    guards = [g for g in guards if takes(algorithm, g)]
                    cell = {"algorithm": algorithm, "split": split,
                            "peers": peers, "share": share}
                    lines = [attacked(runs, cell, guards, kind)
                             for kind in ["silent"] + KINDS]
                    print(f"\n{algorithm}, {split}, {100 * share:.0f} % of "
                          f"{peers}: mean and worst honest peer\n\n"
                          f"| attack | {' | '.join(guards)} |\n"
                          f"|---|{'---|' * len(guards)}")
                    print("\n".join(lines), flush=True)


def main():
    need_dataset()
    runs = Runs()
    asked = [a for a in sys.argv[1:] if not a.startswith("-")]
    for name, table in (("harm", harm), ("attacks", attacks)):
        if not asked or name in asked:
            table(runs)
    print(f"\n{len(runs.found)} runs in {RESULTS}, {runs.missing} to come")


if __name__ == "__main__":
    main()
