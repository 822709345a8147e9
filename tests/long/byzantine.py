"""What members that lie cost, with a guard and without one: docs/byzantine.md.

    python3 byzantine.py [harm] [digits] [attacks]      all three: default

  harm     what `clip` costs where nobody lies, paired by seed
  digits   every guard beside every lie, on the bundled digits, and `clip` with
           other methods
  attacks  Fashion-MNIST, 10 and 20 peers, beside the same peers being silent
           (killed: their data is gone whatever a guard does)

Each run is a line of RESULTS, and a run whose line is there is not run again:
what is interrupted goes on, and tables have what is there. `clip` and none are run
first, by seed. Fails where a parameter of an honest peer was no number. Settings beside
KITH, OUT and DATASET of accept.py:
  RESULTS   files of CSV, RESULTS_fashion.csv and _digits.csv
            (tests/long/byzantine)
  MINUTES   begin no run after so many (60; 0: only tables)
  JOBS      runs at a time (one a core)
  WRITE=1   put the tables into docs/byzantine.md
"""
import collections
import concurrent.futures
import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from accept import DATASET, KITH, OUT, TOP, need_dataset, rows

RESULTS = os.environ.get("RESULTS",
                         os.path.join(TOP, "tests", "long", "byzantine"))
MINUTES = float(os.environ.get("MINUTES", "60"))
JOBS = int(os.environ.get("JOBS", os.cpu_count() or 1))
PAGE = os.path.join(TOP, "docs", "byzantine.md")
# Two-sided 95 % of Student's t, by seeds less one.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36,
           8: 2.31, 9: 2.26}
EXPERIMENT = """name: byzantine
seed: 1
peers: 10
stop: {epochs: 1}
train: {learning_rate: 0.05, momentum: 0.9, batch: 16, schedule: linear}
gossip: {algorithm: adpsgd, every: 2}
network: {latency: 200us, rate: 10Gbit}
compute: {step: 5ms}
"""
DATA = {"fashion": ("[784, 32, 10]", DATASET),
        "digits": ("[64, 32, 10]",
                   os.path.join(TOP, "examples", "data", "digits"))}
# Algorithm, graph of ten or fewer, own steps between exchanges.
METHODS = {"adpsgd": ("adpsgd", "random", 2),
           "adpsgd, every step": ("adpsgd", "random", 1),
           "dpsgd": ("dpsgd", "complete", 1),
           "dpsgd-atc": ("dpsgd-atc", "complete", 1),
           "gosgd": ("gosgd", "random", 1),
           "sgp": ("sgp", "random", 1),
           "local-sgd": ("local-sgd", "complete", 20),
           "diloco": ("diloco", "complete", 20),
           "noloco": ("noloco", "random-matching", 20)}
PAIRS = ("adpsgd",)
SPLITS = ("iid", "dirichlet(0.1)")
KINDS = ("silent", "huge", "nan", "flip", "scale", "gauss", "alie", "ipm",
         "dissensus", "stale", "free-ride", "label-flip", "ride", "ascent")
# What is told, and what the table calls it.
LIES = {"silent": "crash: {who}", "huge": "huge: {who}, by: 3e38"}
# Of those that take one model at a time, and of the others; rounds of digits
# have all, and the three that are best there go on to Fashion-MNIST.
GUARDS = {True: ("none", "clip", "balance", "ubar"),
          False: ("none", "clip", "balance", "cs+", "trimmed-mean", "median",
                  "geometric-median", "krum", "nnm", "ubar")}
BEST = {True: ("balance",), False: ("nnm", "trimmed-mean", "geometric-median")}
# Those that are told how many of a round lie: the share that does; where
# nobody does, as if a fifth did.
TOLD = ("cs+", "trimmed-mean", "krum", "nnm", "ubar")
# Fails for steps that were taken back, and for the liars' own, which may be
# asked for (ascent): then the marks of the honest ones and their models count.
FINITE = "always finite(model)"
# Attacks, share and data: points below silent ones, of the mean and of the
# worst honest peer (0: not asked). What is not here is reported.
STRONG = ("huge", "scale", "gauss", "alie", "dissensus")
TARGETS = {(STRONG, 0.2, "iid"): (1, 5),
           (STRONG, 0.2, "dirichlet(0.1)"): (3, 5),
           (("label-flip", "dissensus"), 0.1, "iid"): (1, 0),
           (("label-flip", "dissensus"), 0.1, "dirichlet(0.1)"): (2, 0),
           (("label-flip", "stale", "ride"), 0.2, "iid"): (1, 0),
           (("ride", "ascent"), 0.1, "iid"): (2, 0)}

Cell = collections.namedtuple(
    "Cell", "data method peers split share guard kind epochs seed")
Found = collections.namedtuple(
    "Found", "mean worst finite nonfinite clipped rejected")


def seeds(count):
    return range(7, 7 + count)


def harm_cells():
    for method in METHODS:
        peers, count = (8, 10) if method.endswith("every step") else (
            10, 10 if method == "noloco" else 5)
        for split in SPLITS:
            for guard in ("none", "clip"):
                for seed in seeds(count):
                    yield Cell("fashion", method, peers, split, 0.0, guard, "",
                               5.0, seed)


def digits_cells():
    for method in METHODS:
        if method.endswith("every step"):
            continue
        for split in SPLITS:
            for guard in (GUARDS[method in PAIRS]
                          if method in ("adpsgd", "dpsgd")
                          else ("none", "clip")):
                for kind in ("",) + KINDS:
                    for seed in seeds(3):
                        yield Cell("digits", method, 10, split,
                                   0.2 if kind else 0.0, guard, kind, 60.0,
                                   seed)


def attack_cells():
    for peers in (10, 20):
        for method in ("adpsgd", "dpsgd"):
            for share in (0.1, 0.2):
                for split in SPLITS:
                    for guard in ("none", "clip") + BEST[method in PAIRS]:
                        for kind in KINDS:
                            for seed in seeds(3):
                                yield Cell("fashion", method, peers, split,
                                           share, guard, kind, 3.0, seed)


def settings(cell):
    algorithm, topology, every = METHODS[cell.method]
    layers, path = DATA[cell.data]
    liars = round(cell.share * cell.peers)
    given = [f"seed={cell.seed}", f"peers={cell.peers}",
             f"stop.epochs={cell.epochs}", f"gossip.algorithm={algorithm}",
             f"gossip.every={every}", f"gossip.guard={cell.guard}",
             f"model={{kind: mlp, layers: {layers}}}",
             f"data={{kind: idx, path: {path}, split: '{cell.split}'}}",
             f"assert=[{FINITE}]"]
    neighbours = cell.peers - 1
    if topology == "complete" and cell.peers > 10:
        neighbours = 8
        given += ["gossip.topology=random-regular", "gossip.degree=8"]
    else:
        given.append(f"gossip.topology={topology}")
    if cell.guard in TOLD:
        liars_of_round = math.ceil((cell.share or 0.2) * neighbours)
        given.append(f"gossip.liars={liars_of_round}")
    if liars > 0:
        who = f"peer({cell.peers - liars}..{cell.peers - 1})"
        lie = LIES.get(cell.kind, "hostile: {who}, kind: {kind}")
        given.append("faults=[{at: 20ms, " +
                     lie.format(who=who, kind=cell.kind) + "}]")
    return given


def run(cell):
    honest = cell.peers - round(cell.share * cell.peers)
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        path = os.path.join(folder, "byzantine.yaml")
        with open(path, "w") as file:
            file.write(EXPERIMENT)
        line = [KITH, "sim", path, "--json", "--out", folder]
        for setting in settings(cell):
            line += ["--set", setting]
        done = subprocess.run(line, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(" ".join(line) + "\n" + done.stderr[-2000:])
        result = json.loads(done.stdout)
        held = rows(result, "SELECT held FROM verdicts WHERE assertion = ?",
                    FINITE)[0][0]
        # Without a guard models may grow until the gate refuses the honest
        # ones: of those nothing is merged, which is a violation, too.
        if cell.guard != "none" and result["violations"] > 1 - held:
            raise RuntimeError(" ".join(line) + ": violations")
        last = rows(result, "SELECT accuracy, consensus_distance, max(time_s) "
                    "FROM series WHERE peer < ? AND accuracy IS NOT NULL "
                    "GROUP BY peer", honest)
        marks = dict(rows(result, "SELECT name, count(*) FROM marks JOIN "
                          "mark_kinds USING (kind) WHERE peer < ? AND name IN "
                          "('nonfinite', 'clipped', 'rejected') GROUP BY name",
                          honest))
    points = [100 * row[0] for row in last]
    # The distance to the mean is a number where every parameter is.
    finite = held == 1 or len(last) == honest and all(
        row[1] is not None and math.isfinite(row[1]) for row in last)
    return Found(round(statistics.fmean(points), 2), round(min(points), 2),
                 int(finite), marks.get("nonfinite", 0),
                 marks.get("clipped", 0), marks.get("rejected", 0))


def file_of(data):
    return f"{RESULTS}_{data}.csv"


def read_file(path, found):
    if not os.path.exists(path):
        return
    with open(path, newline="") as file:
        for line in csv.reader(file):
            cell = Cell(*line[:len(Cell._fields)])
            cell = cell._replace(peers=int(cell.peers), seed=int(cell.seed),
                                 share=float(cell.share),
                                 epochs=float(cell.epochs))
            found[cell] = Found(*map(float, line[len(Cell._fields):]))


def read():
    found = {}
    for data in DATA:
        read_file(file_of(data), found)
    return found


def run_missing(found, cells):
    """Adds to found, until there are no more or the time is over."""
    deadline = time.monotonic() + 60 * MINUTES
    missing = sorted((c for c in cells if c not in found),
                     key=lambda c: (c.guard not in ("none", "clip"), c.seed))
    lock = threading.Lock()
    os.makedirs(OUT, exist_ok=True)

    def one(cell):
        if time.monotonic() >= deadline:
            return
        result = run(cell)
        with lock, open(file_of(cell.data), "a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(cell + result)
            found[cell] = result

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for future in [pool.submit(one, cell) for cell in missing]:
            future.result()


def points(found, cell):
    """{seed: Found} of a cell, whatever its own seed."""
    of_seeds = {seed: found.get(cell._replace(seed=seed))
                for seed in seeds(10)}
    return {seed: result for seed, result in of_seeds.items() if result}


def mean(results):
    return statistics.fmean(result.mean for result in results.values())


def in_words(results):
    if not results:
        return "-"
    return (f"{mean(results):.1f}/"
            f"{min(result.worst for result in results.values()):.1f}")


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
                     + ["| " + " | ".join(line) + " |" for line in lines])


def harm(found):
    lines = []
    for cell in dict.fromkeys(c._replace(guard="none", seed=0)
                              for c in harm_cells()):
        none = points(found, cell)
        clip = points(found, cell._replace(guard="clip"))
        both = sorted(none.keys() & clip.keys())
        if len(both) < 2:
            continue
        lost = [none[seed].mean - clip[seed].mean for seed in both]
        error = statistics.stdev(lost) / len(lost) ** 0.5
        upper = statistics.fmean(lost) + STUDENT[len(lost) - 1] * error
        algorithm, topology, every = METHODS[cell.method]
        lines.append([f"{algorithm}, {topology} of {cell.peers}, every {every}",
                      cell.split, str(len(both)), f"{mean(none):.2f}",
                      f"{statistics.fmean(lost):.2f}",
                      f"{upper:.2f}{'' if upper <= 0.5 else ' **missed**'}"])
    return {"harm": table(["algorithm", "data", "seeds", "without a guard",
                           "loss with `clip`", "upper 95 %"], lines)}


def columns(found, cells, name=lambda cell: cell.guard):
    """A line an attack: mean of the honest, worst of them in any seed."""
    cells = [c for c in dict.fromkeys(c._replace(kind="", seed=0)
                                      for c in cells)
             if any(points(found, c._replace(kind=kind)) for kind in KINDS)]
    if not cells:
        return "Not run yet."
    lines = [[f"`{kind}`" if kind else "no liar"] +
             [in_words(points(found, c._replace(
                 kind=kind, share=c.share if kind else 0.0))) for c in cells]
             for kind in ("",) + KINDS]
    lines = [line for line in lines if set(line[1:]) != {"-"}]
    lines.append(["seeds"] + [" to ".join(sorted({str(len(points(
        found, c._replace(kind=kind)))) for kind in KINDS})) for c in cells])
    return table(["attack"] + [name(c) for c in cells], lines)


def digits(found):
    parts = {}
    for method in ("adpsgd", "dpsgd"):
        for split in SPLITS:
            parts[f"digits {method} {split}"] = columns(
                found, [c for c in digits_cells() if c.method == method and
                        c.split == split and c.kind])
    for split in SPLITS:
        parts[f"digits others {split}"] = columns(
            found, [c for c in digits_cells() if c.split == split and c.kind
                    and c.method not in ("adpsgd", "dpsgd")],
            lambda cell: f"{cell.method}, {cell.guard}")
    return parts


def targets(found):
    """What clip may lose to silent ones, and what it does, seeds in pairs; and
    the best other guard where it is missed."""
    lines = []
    for (kinds, share, split), (most, worst) in TARGETS.items():
        for kind in kinds:
            for cell in dict.fromkeys(
                    c._replace(guard="clip", kind=kind, seed=0)
                    for c in attack_cells()
                    if c.share == share and c.split == split):
                none = points(found, cell._replace(kind="silent"))
                lies = points(found, cell)
                both = sorted(none.keys() & lies.keys())
                if not both:
                    continue
                lost = statistics.fmean(none[s].mean - lies[s].mean
                                        for s in both)
                below = max(none[s].worst - lies[s].worst for s in both)
                held = lost <= most and (not worst or below <= worst)
                others = {guard: points(found, cell._replace(guard=guard))
                          for guard in BEST[cell.method in PAIRS]}
                least = min(((statistics.fmean(
                    none[s].mean - of[s].mean for s in none.keys() & of.keys()),
                              guard) for guard, of in others.items()
                             if none.keys() & of.keys()), default=None)
                lines.append([
                    f"`{kind}`", f"{100 * share:.0f} %", split,
                    f"{cell.method}, {cell.peers}", str(most),
                    f"{lost:.1f}{'' if held else ' **missed**'}",
                    str(worst or "-"), f"{below:.1f}", str(len(both)),
                    f"{least[1]} {least[0]:.1f}" if least else "-"])
    return {"targets": table(
        ["attack", "share", "data", "method, peers", "asked at most", "lost",
         "worst at most", "lost by the worst", "seeds", "best other"], lines)}


def attacks(found):
    parts = {}
    for method in ("adpsgd", "dpsgd"):
        for peers in (10, 20):
            for split in SPLITS:
                for share in (0.1, 0.2):
                    name = f"{method} {peers} {split} {100 * share:.0f} %"
                    parts[name] = columns(
                        found, [c for c in attack_cells()
                                if (c.method, c.peers, c.split, c.share) ==
                                (method, peers, split, share)])
    parts.update(targets(found))
    return parts


def write(parts):
    with open(PAGE) as file:
        text = file.read()
    for name, part in parts.items():
        pattern = (rf"(<!-- {re.escape(name)} begins -->\n).*?"
                   rf"(<!-- {re.escape(name)} ends -->)")
        text, count = re.subn(
            pattern, lambda m, part=part: f"{m[1]}\n{part}\n\n{m[2]}", text,
            flags=re.DOTALL)
        if count != 1:
            sys.exit(f"{PAGE}: no place for {name}")
    with open(PAGE, "w") as file:
        file.write(text)


def main():
    need_dataset()
    kinds = {"harm": (harm_cells, harm), "digits": (digits_cells, digits),
             "attacks": (attack_cells, attacks)}
    asked = sys.argv[1:] or list(kinds)
    if set(asked) - kinds.keys():
        sys.exit(f"byzantine.py: {asked}: not among {', '.join(kinds)}")
    cells = list(dict.fromkeys(c for name in asked for c in kinds[name][0]()))
    found = read()
    run_missing(found, cells)
    for name in asked:
        parts = kinds[name][1](found)
        for title, part in parts.items():
            print(f"\n{title}\n\n{part}")
        if os.environ.get("WRITE") == "1":
            write(parts)
    broken = [cell for cell in cells if cell in found and
              (not found[cell].finite or
               cell.guard == "clip" and found[cell].nonfinite)]
    for cell in broken:
        print(f"not finite: {cell}: {found[cell]}")
    print(f"\n{sum(c in found for c in cells)} of {len(cells)} runs are in "
          f"{RESULTS}_*.csv")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
