"""What members that lie cost, with a guard and without one.

Two tables of Fashion-MNIST: what a guard costs where nobody lies, paired by
seed, and what honest peers learn beside hostile ones, held against the same
peers being silent (killed: their data is gone whatever a guard does). Each run
is a line of RESULTS, and a run whose line is there is not run again: what is
interrupted goes on.

    python3 byzantine.py [harm] [attacks] [--tables]

Every parameter of the honest must be a number in all of them.

By default little of it is run; EVERYTHING=1 has all: attacks by three seeds
and three epochs, guards to compare with by one seed, the largest share and
four kinds. --tables runs nothing and prints what RESULTS holds, as
docs/byzantine.md has it, and what was asked of it. Settings beside KITH, OUT,
DATASET and SEEDS of accept.py:
  RESULTS   lines of JSON ($OUT/byzantine.jsonl)
  MINUTES   begin no run after so many (60)
  EPOCHS    of a run (1; EVERYTHING: 5, of attacks 3)
  ALGORITHMS, SPLITS, KINDS, SHARES, PEERS, GUARDS, OTHERS   comma-separated,
            in place of the defaults; empty: none
"""
import json
import math
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
# Fails for steps that were taken back, and for the liars' own, which may be
# asked for (ascent): then the marks of the honest ones and their models count.
FINITE = "always finite(model)"
# What is told, and what the table calls it.
LIES = {"silent": "crash: {who}", "huge": "huge: {who}, by: 3e38"}


def chosen(name, little, everything):
    given = os.environ.get(name)
    if given == "":
        return []
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
PEERS = [int(p) for p in chosen("PEERS", ["10"], ["10", "20"])]
GUARDS = chosen("GUARDS", ["none", "clip"], ["none", "clip"])
OTHERS = chosen("OTHERS", [], ["balance", "nnm", "trimmed-mean", "cs+"])


COMPARED = ("silent", "alie", "dissensus", "stale", "ride")
# Attacks, share and data: points below silent ones, of the mean and of the
# worst honest peer (0: not asked). What is not here is reported.
STRONG = ("huge", "scale", "gauss", "alie", "dissensus")
TARGETS = {(STRONG, 0.2, "iid"): (1, 5),
           (STRONG, 0.2, "dirichlet(0.1)"): (3, 5),
           (("label-flip", "dissensus"), 0.1, "iid"): (1, 0),
           (("label-flip", "dissensus"), 0.1, "dirichlet(0.1)"): (2, 0),
           (("label-flip", "stale", "ride"), 0.2, "iid"): (1, 0),
           (("ride", "ascent"), 0.1, "iid"): (2, 0)}


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

    def are_finite(self):
        """Was every parameter of the honest a number, where it was asked? A
        step that was not is taken back; with clip there must be none."""
        asked = [line for line in self.found.values() if "finite" in line]
        broken = [line for line in asked if not line["finite"] or
                  line["cell"]["guard"] == "clip" and line["nonfinite"]]
        without = sum(line["nonfinite"] > 0 for line in asked
                      if line["cell"]["guard"] != "clip")
        print(f"\nFinite parameters of the honest to the end: "
              f"{len(asked) - len(broken)} of {len(asked)} runs; steps that "
              f"were not, and were taken back, in {without} of other guards")
        for line in broken:
            print(f"  broken: {self.key(line['cell'])}")
        return not broken

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
                    f"stop.epochs={cell['epochs']}",
                    f"data.split={cell['split']}",
                    f"gossip.algorithm={algorithm}",
                    f"gossip.every={EVERY.get(algorithm, 1)}",
                    f"gossip.topology={topology(algorithm, peers)}",
                    f"gossip.guard={cell['guard']}",
                    f"assert=[{FINITE}]"]
        if topology(algorithm, peers) == "random-regular":
            settings.append("gossip.degree=8")
        if liars > 0:
            who = f"peer({peers - liars}..{peers - 1})"
            lie = LIES.get(cell["kind"], "hostile: {who}, kind: {kind}")
            settings.append("faults=[{at: 20ms, " +
                            lie.format(who=who, kind=cell["kind"]) + "}]")
        result = kith("sim", self.path, *settings, expect=(0, 1))
        held = rows(result, "SELECT held FROM verdicts WHERE assertion = ?",
                    FINITE)[0][0]
        # Without a guard models may grow until the gate refuses the honest ones:
        # of those nothing is merged, which is a violation, too.
        if cell["guard"] != "none" and result["violations"] > 1 - held:
            sys.exit(f"{result['command']}: {result['violations']} violations")
        last = rows(result, "SELECT accuracy, consensus_distance, max(time_s) "
                    "FROM series WHERE peer < ? AND accuracy IS NOT NULL "
                    "GROUP BY peer", peers - liars)
        nonfinite = rows(result, "SELECT count(*) FROM marks JOIN mark_kinds "
                         "USING (kind) WHERE name = 'nonfinite' AND peer < ?",
                         peers - liars)[0][0]
        marks = dict(rows(result, "SELECT name, count(*) FROM marks JOIN "
                          "mark_kinds USING (kind) WHERE name IN ('clipped', "
                          "'rejected', 'gated', 'recovered') GROUP BY name"))
        os.unlink(result["database"])
        points = [100 * row[0] for row in last]
        # The distance to the mean is a number where every parameter is.
        finite = held == 1 or len(last) == peers - liars and all(
            row[1] is not None and math.isfinite(row[1]) for row in last)
        return {"cell": cell, "mean": round(statistics.fmean(points), 3),
                "worst": round(min(points), 3), "finite": finite,
                "nonfinite": nonfinite, "marks": marks,
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


def seeds_of(guard):
    return SEEDS[:1 if guard in OTHERS else 3]


def cells(algorithm, peers):
    """Columns of a table: those with a guard that this algorithm takes."""
    for split in SPLITS:
        for share in SHARES:
            for guard in GUARDS + (OTHERS if share == max(SHARES) else []):
                if takes(algorithm, guard):
                    yield {"algorithm": algorithm, "split": split,
                           "peers": peers, "share": share, "guard": guard}


def all_of(runs, cell, kind):
    """Mean and worst of each seed that is there."""
    if cell["guard"] in OTHERS and kind not in COMPARED:
        return {}
    found = {seed: runs.one(**cell, kind=kind, seed=seed)
             for seed in seeds_of(cell["guard"])}
    return {seed: pair for seed, pair in found.items() if pair}


def in_words(found):
    if not found:
        return "-"
    return (f"{statistics.fmean(m for m, _ in found.values()):.1f}/"
            f"{min(w for _, w in found.values()):.1f}")


def table(runs, algorithm, peers):
    """A line an attack: mean of the honest, worst of them in any seed."""
    results = {kind: [all_of(runs, cell, kind)
                      for cell in cells(algorithm, peers)]
               for kind in ["silent"] + KINDS}
    columns = [(cell, number) for number, cell in
               enumerate(cells(algorithm, peers))
               if any(row[number] for row in results.values())]
    if not columns:
        return
    print(f"\n{algorithm}, {topology(algorithm, peers)}, {peers} peers: mean "
          "and worst honest peer")
    print("\n| attack | " + " | ".join(
        f"{cell['split']}, {100 * cell['share']:.0f} %: {cell['guard']}"
        for cell, _ in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for kind, row in results.items():
        print(f"| `{kind}` | " + " | ".join(in_words(row[number])
                                           for _, number in columns) + " |")
    print("| seeds | " + " | ".join(
        " to ".join(str(n) for n in sorted({len(row[number])
                                           for row in results.values()} - {0}))
        for _, number in columns) + " |")


def targets(runs):
    """What clip may lose to silent ones, and what it does, seeds in pairs."""
    print("\n| attack | share | data | asked at most | worst at most |"
          " algorithm, peers: lost by mean, by the worst; seeds |\n"
          "|---|---|---|---|---|---|")
    missed = 0
    for (kinds, share, split), (most, worst) in TARGETS.items():
        for kind in kinds:
            texts = []
            for algorithm in ATTACKED:
                for peers in PEERS:
                    cell = {"algorithm": algorithm, "split": split,
                            "peers": peers, "share": share, "guard": "clip"}
                    lies, none = (all_of(runs, cell, k)
                                  for k in (kind, "silent"))
                    both = sorted(lies.keys() & none.keys())
                    if not both:
                        continue
                    lost = statistics.fmean(none[s][0] - lies[s][0]
                                            for s in both)
                    below = max(none[s][1] - lies[s][1] for s in both)
                    held = lost <= most and (not worst or below <= worst)
                    missed += not held
                    texts.append(f"{algorithm}, {peers}: "
                                 f"{round(lost, 1) + 0:.1f}, "
                                 f"{round(below, 1) + 0:.1f}; {len(both)}"
                                 f"{'' if held else ' **missed**'}")
            if texts:
                print(f"| `{kind}` | {100 * share:.0f} % | {split} | {most} | "
                      f"{worst or '-'} | {' · '.join(texts)} |")
    print(f"\n{missed} targets missed")


def attacks(runs):
    for algorithm in ATTACKED:
        for peers in PEERS:
            table(runs, algorithm, peers)
    targets(runs)


def main():
    need_dataset()
    runs = Runs()
    asked = [a for a in sys.argv[1:] if not a.startswith("-")]
    for name, table in (("harm", harm), ("attacks", attacks)):
        if not asked or name in asked:
            table(runs)
    print(f"\n{len(runs.found)} runs in {RESULTS}, {runs.missing} to come")
    sys.exit(1 if not runs.are_finite() else 0)


if __name__ == "__main__":
    main()
