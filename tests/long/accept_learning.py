"""T16 of the taxonomy: what the methods promise about learning, measured.

Each method has a grid of three learning rates; the best one on seed 101 is run
with seeds 1 to 5, the same for all: differences are paired, intervals are of
95 % (Student's t, 4 degrees of freedom).

  a  epidemic learning beside a static graph, 32 peers, Fashion-MNIST
  b  quasi-global momentum beside local momentum, ring of 16, Fashion-MNIST
  d  NoLoCo beside DiLoCo, 4 peers x 1,000 steps, H = 50, characters
  e  SGD without clipping on the transformer
  f  SPARTA's replicas, and SPARTA with DiLoCo
  g  a lab run and its replay in the recorded order (all algorithms:
     accept_replay.sh)
  l  noloco, gasloc, diloco, sparta and adpsgd over a slow link

TEXT names the text (tiny Shakespeare, see examples/shakespeare.yaml), DATASET,
KITH and OUT are as in accept.py. ROWS=abdefgl takes some of them. A run that was
interrupted goes on where it was if OUT is kept. WRITE=1 puts the table into
docs/validation.md.
"""
import glob
import json
import os
import sqlite3
import subprocess
import sys
import zlib

from accept import DATASET, KITH, OUT, TOP, mean, need_dataset, skip

SEEDS, TUNING = 5, 101
BUDGET_S = 20  # of row l, in virtual time
STUDENT = 2.776  # 97.5 %, 4 degrees of freedom
ROWS = os.environ.get("ROWS", "abdefgl")
TEXT = os.environ.get("TEXT", os.path.join(TOP, "examples", "data",
                                           "tinyshakespeare.txt"))

CLOTHES = """name: clothes
seed: 1
peers: {peers}
stop: {{steps: {steps}}}
model: {{kind: mlp, layers: [784, 64, 10]}}
data: {{kind: idx, path: "{path}", split: dirichlet({alpha})}}
train: {{learning_rate: 0.1, {train}}}
gossip: {{{gossip}}}
compute: {{step: 10ms}}
evaluate: end
"""
# A step takes 10 ms and a model crosses the link in 43 of them, as 500 MB
# cross 100 Mbit/s in 43 steps of a second.
LETTERS = """name: letters
seed: 1
peers: 4
stop: {{steps: {steps}}}
model: {{kind: gpt, depth: 2, heads: 4, width: 64, context: 64, vocabulary: 65}}
data: {{kind: text, path: "{path}"}}
train: {{{train}}}
gossip: {{{gossip}}}
network: {{{network}}}
compute: {{step: 10ms}}
evaluate: {evaluate}
"""
COSINE = "batch: 4, schedule: cosine, warmup: 100, floor: 0.1"
ADAM = "optimiser: adamw, clip: 1, " + COSINE
ADAM_RATES = [0.004, 0.008, 0.016]


METHODS = {}  # by name: rows share them


def is_done(folder, runs):
    """Whether the sweep in this folder has been run to its end."""
    files = glob.glob(os.path.join(folder, "*.db"))
    if len(files) != 1:
        return False
    database = sqlite3.connect(f"file:{files[0]}?mode=ro", uri=True)
    done = database.execute("SELECT count(*) FROM runs WHERE state = 'done'")
    return done.fetchone()[0] == runs


def run(line):
    done = subprocess.run(line, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(" ".join(line) + "\n" + done.stderr[-2000:])


class Runs:
    """One method at one rate: what its runs came to, in the order of seeds."""

    def __init__(self, folder, seeds):
        files = glob.glob(os.path.join(folder, "*.db"))
        assert len(files) == 1, (folder, files)
        self.database = sqlite3.connect(f"file:{files[0]}?mode=ro", uri=True)
        self.seeds = seeds

    def values(self, key):
        """{label: [value by seed]}; a run that diverged is infinitely bad."""
        found = {}
        for label, value in self.database.execute(
                "SELECT label, value FROM cells JOIN runs USING (cell) "
                "LEFT JOIN summary ON summary.run_id = runs.run_id AND key = ? "
                "WHERE refused IS NULL ORDER BY label, runs.seed", (key,)):
            found.setdefault(label, []).append(
                float("nan") if value is None else float(value))
        return found

    def apart(self):
        """Consensus distance half-way and at the end: two lists by seed."""
        found = {}
        for seed, step, distance in self.database.execute(
                "SELECT runs.seed, step, series.consensus_distance FROM series "
                "JOIN runs USING (run_id) WHERE peer IS NULL ORDER BY 1, 2"):
            found.setdefault(seed, []).append((step, distance))
        half = [min(rows, key=lambda row: abs(row[0] - rows[-1][0] / 2))[1]
                for rows in found.values()]
        return half, [rows[-1][1] for rows in found.values()]


class Method:
    """A method: its file, its grid of rates, the runs at the best of them."""

    def __init__(self, name, text, rates, key, lower=True, **fields):
        self.name = name
        self.file = os.path.join(OUT, name + ".yaml")
        self.rates = rates
        os.makedirs(OUT, exist_ok=True)
        self.text = text.format(**fields)
        with open(self.file, "w", encoding="utf-8") as out:
            out.write(self.text)
        tuned = self.sweep("tune", TUNING, 1, rates).values(key)
        scores = {float(label.split("=")[1]): values[0]
                  for label, values in tuned.items()}
        for rate, score in scores.items():
            if score != score:  # NaN: it diverged
                scores[rate] = float("inf") if lower else 0.0
        self.rate = (min if lower else max)(scores, key=scores.get)
        self.tuned = scores
        self.runs = self.sweep("best", 1, SEEDS, [self.rate])
        shown = ", ".join(f"{rate:g}: {score:.4f}"
                          for rate, score in sorted(scores.items()))
        edge = " (at the edge of the grid)" if self.rate in (
            min(rates), max(rates)) else ""
        print(f"  {name}: seed {TUNING} {shown}; rate {self.rate:g}{edge}",
              flush=True)

    def sweep(self, folder, seed, seeds, rates, *settings):
        # What was run with another text, rate or setting is not this.
        key = repr((self.text, seed, seeds, rates, settings)).encode()
        out = os.path.join(OUT, self.name, f"{folder}-{zlib.crc32(key):08x}")
        os.makedirs(out, exist_ok=True)
        line = [KITH, "sim", self.file, "--set", f"seed={seed}", "--seeds",
                str(seeds), "--sweep", "train.learning_rate=" +
                ",".join(f"{rate:g}" for rate in rates), "--out", out]
        for setting in settings:
            line += ["--set", setting]
        if not is_done(out, seeds * len(rates)):
            run(line)
        return Runs(out, seeds)

    def __getitem__(self, key):
        values = list(self.runs.values(key).values())[0]
        assert len(values) == SEEDS, (self.name, key, values)
        return values


def interval(values):
    middle = mean(values)
    spread = (sum((value - middle) ** 2 for value in values) /
              (len(values) - 1)) ** 0.5
    return middle, STUDENT * spread / len(values) ** 0.5


def difference(a, b):
    return interval([x - y for x, y in zip(a, b)])


class Outcomes:
    def __init__(self):
        self.lines = []

    def add(self, row, what, expected, measured, text, held):
        value, half = measured
        shown = text.format(value) + " ± " + text.format(half).lstrip("+")
        self.lines.append((row, what, expected, shown,
                           {True: "met", False: "**not met**",
                            None: "reported"}[held]))
        print(f"{row} {what}: expected {expected}, measured {shown}: "
              f"{self.lines[-1][-1]}", flush=True)

    def table(self):
        head = ["row", "what", "expected", "measured, 5 seeds", "verdict"]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        return "\n".join(lines + ["| " + " | ".join(line) + " |"
                                  for line in self.lines])

    def write(self):
        path = os.path.join(TOP, "docs", "validation.md")
        with open(path, encoding="utf-8") as page:
            text = page.read()
        begin, end = "<!-- T16 begins -->\n", "<!-- T16 ends -->"
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        with open(path, "w", encoding="utf-8") as page:
            page.write(before + begin + "\n" + self.table() + "\n\n" + end +
                       after)


def clothes(name, rates, key="accuracy.mean", **fields):
    return Method(name, CLOTHES, rates, key, lower=False, path=DATASET,
                  **fields)


def letters(name, gossip, rates=None, train=ADAM, key="loss.averaged",
            evaluate="end", network="latency: 50ms, rate: 8Mbit"):
    if name not in METHODS:
        METHODS[name] = Method(name, LETTERS, rates or ADAM_RATES, key,
                               path=TEXT, gossip=gossip, train=train,
                               steps=1000, evaluate=evaluate, network=network)
    return METHODS[name]


def points(pair):
    return 100 * pair[0], 100 * pair[1]


def row_a(outcomes):
    fields = {"peers": 32, "steps": 2000, "alpha": 0.1, "train": "batch: 8"}
    rates = [0.1, 0.2, 0.4]
    epidemic = clothes("epidemic", rates, **fields,
                       gossip="algorithm: epidemic, degree: 4")
    static = clothes("static", rates, **fields,
                     gossip="algorithm: dpsgd-atc, topology: random-regular, "
                            "degree: 4")
    gain = points(difference(epidemic["accuracy.mean"],
                             static["accuracy.mean"]))
    outcomes.add("a", "EL-Local less static 4-regular, mean peer, points, "
                 "2,000 rounds", ">= +1", gain, "{:+.2f}", gain[0] >= 1)
    sent = difference(epidemic["bytes.sent"], static["bytes.sent"])
    outcomes.add("a", "bytes, EL-Local / static", "1",
                 (1 + sent[0] / mean(static["bytes.sent"]),
                  sent[1] / mean(static["bytes.sent"])), "{:.4f}",
                 abs(sent[0]) / mean(static["bytes.sent"]) < 0.01)
    fewer = None
    for steps in 1200, 1500, 1800:
        early = list(epidemic.sweep(
            f"early-{steps}", 1, SEEDS, [epidemic.rate],
            f"stop.steps={steps}").values("accuracy.mean").values())[0]
        gain = points(difference(early, static["accuracy.mean"]))
        outcomes.add("a", f"EL-Local after {steps} rounds less static after "
                     "2,000, points", ">= 0 at one of them", gain, "{:+.2f}",
                     None)
        if gain[0] >= 0:
            fewer = steps
            break
    outcomes.add("a", "rounds of static / rounds of EL-Local for its accuracy",
                 "> 1 (published: up to 1.7)",
                 (2000 / fewer if fewer else 0, 0), "{:.2f}",
                 fewer is not None)


def row_b(outcomes):
    rates = [0.03, 0.1, 0.3]
    for alpha, asked in ((0.1, True), (10, False)):
        fields = {"peers": 16, "steps": 1000, "alpha": alpha}
        qg = clothes(f"qg-{alpha}", rates, **fields,
                     train="batch: 16, schedule: cosine",
                     gossip="algorithm: qg-dsgdm-n, topology: ring")
        local = clothes(f"dsgdm-{alpha}", rates, **fields,
                        train="batch: 16, schedule: cosine, momentum: 0.9, "
                              "nesterov: true",
                        gossip="algorithm: dpsgd-atc, topology: ring")
        gain = points(difference(qg["accuracy.mean"], local["accuracy.mean"]))
        outcomes.add("b", "QG-DSGDm-N less DSGDm-N, ring of 16, Dirichlet "
                     f"{alpha}, mean peer, points",
                     ">= +1" if asked else "below 0.5 either way", gain,
                     "{:+.2f}", gain[0] >= 1 if asked else abs(gain[0]) < 0.5)


def noloco():
    return letters("noloco", "algorithm: noloco, every: 50, topology: "
                   "random-matching", evaluate="7s")


def row_d(outcomes):
    pairs = noloco()
    diloco = letters("diloco-heavy-ball", "algorithm: slowmo, momentum: 0.3, "
                     "rate: 0.7, every: 50, topology: complete")
    loss = mean(diloco["loss.averaged"])
    apart = difference(pairs["loss.averaged"], diloco["loss.averaged"])
    outcomes.add("d", "loss of NoLoCo less DiLoCo (heavy ball), of it, %",
                 "within 2", (100 * apart[0] / loss, 100 * apart[1] / loss),
                 "{:+.2f}", abs(apart[0]) / loss <= 0.02)
    outcomes.add("d", "sent by a peer, NoLoCo / DiLoCo all to all", "2 / 3",
                 interval([a / b for a, b in zip(pairs["bytes.sent"],
                                                 diloco["bytes.sent"])]),
                 "{:.3f}", None)
    early, late = pairs.runs.apart()
    outcomes.add("d", "NoLoCo's replicas apart, end / half-way (the rate "
                 "decays)", "< 1", interval([b / a for a, b in
                                             zip(early, late)]), "{:.3f}",
                 mean(late) < mean(early))
    merge = difference(pairs["loss.worst"], pairs["loss.averaged"])
    outcomes.add("d", "worst replica's loss less that of the merge of all",
                 "> 0", merge, "{:+.4f}", merge[0] - merge[1] > 0)


def row_e(outcomes):
    sgd = "optimiser: sgd, " + COSINE
    ring = "algorithm: dpsgd, topology: ring"
    plain = letters("dsgd", ring, [0.1, 0.3, 1], sgd)
    clipped = letters("dsgd-clipped", ring, [0.3, 1, 3], sgd + ", clip: 1")
    adam = letters("adam", ring, [0.008, 0.016, 0.032])
    for name, other in (("Adam inside, clipped", adam),
                        ("SGD clipped", clipped)):
        worse = difference(plain["loss.averaged"], other["loss.averaged"])
        outcomes.add("e", f"DSGD without clipping less {name}, nats",
                     ">= 0.2", worse, "{:+.3f}", worse[0] >= 0.2)


def row_f(outcomes):
    fast = {"evaluate": "2s", "network": "latency: 200us",
            "rates": [0.002, 0.004, 0.008]}
    pairs = letters("sparta-pairs", "algorithm: sparta, topology: random",
                    **fast)
    everybody = letters("sparta-all", "algorithm: sparta-diloco, outer_every: "
                        "1000000, topology: complete", **fast)
    for name, method in (("pairs", pairs), ("all", everybody)):
        for rate in 0.001, 0.002, 0.004, 0.008:
            lowest = list(method.sweep(f"rate-{rate:g}", 1, SEEDS, [rate])
                          .values("correlation.lowest").values())[0]
            best = " (the best for its loss)" if rate == method.rate else ""
            outcomes.add("f", f"SPARTA p = 0.5 % among {name}, rate {rate:g}"
                         f"{best}: lowest correlation of replicas", "> 0.9",
                         interval(lowest), "{:.4f}", min(lowest) > 0.9)
    outer = "momentum: 0.3, rate: 0.7, topology: complete"
    diloco = letters("diloco-100", f"algorithm: diloco, every: 100, {outer}")
    both = letters("sparta-diloco", "algorithm: sparta-diloco, outer_every: "
                   f"1000, {outer}")
    apart = difference(both["loss.averaged"], diloco["loss.averaged"])
    outcomes.add("f", "SPARTA + DiLoCo, H = 1,000, less DiLoCo, H = 100, nats",
                 "<= 0", apart, "{:+.4f}", apart[0] <= 0)


def row_g(outcomes):
    """Real peers and their replay, on the demo's experiment."""
    scratch = os.path.join(OUT, "replay")
    os.makedirs(scratch, exist_ok=True)
    if not os.path.exists(os.path.join(scratch, "replays.json")):
        run([sys.executable, os.path.join(TOP, "tests", "integration",
                                          "lab_replay.py"),
             KITH, os.path.join(TOP, "examples", "data", "digits"), scratch,
             "--experiment", os.path.join(TOP, "examples", "demo.yaml"),
             "--algorithms", "adpsgd,dpsgd,gosgd", "--set", "peers=4", "--set",
             "gossip.topology=ring", "--set",
             "stop.epochs=1"] + [str(1 + i) for i in range(SEEDS)])
    with open(os.path.join(scratch, "replays.json"), encoding="utf-8") as file:
        found = json.load(file)
    for name in "adpsgd", "dpsgd", "gosgd":
        runs = [one for one in found if one["asked"]["name"] == name]
        gap = interval([100 * one["accuracy_gap"] for one in runs])
        outcomes.add("g", f"{name}, 4 real peers against their replay: "
                     "accuracy, points", "<= 0.3", gap, "{:.3f}",
                     max(one["accuracy_gap"] for one in runs) <= 0.003)
        apart = interval([one["relative_max"] for one in runs])
        outcomes.add("g", f"{name}: largest relative difference of a float",
                     "<= 1e-5", apart, "{:.1e}",
                     len(runs) == SEEDS and
                     max(one["relative_max"] for one in runs) <= 1e-5)


def row_l(outcomes):
    """The default for language models over slow links: who is furthest after
    the same time, beside peers that are alone."""
    methods = {
        "adpsgd": letters("adpsgd", "algorithm: adpsgd, every: 1, topology: "
                          "random"),
        "noloco": noloco(),
        "gasloc": letters("gasloc", "algorithm: gasloc, every: 50, topology: "
                          "random-matching"),
        "diloco": letters("diloco", "algorithm: diloco, every: 50, topology: "
                          "complete"),
        "sparta": letters("sparta", "algorithm: sparta, topology: random",
                          [0.002, 0.004, 0.008]),
        "local": letters("local", "algorithm: local", key="loss.mean"),
    }
    best = None
    for name, method in methods.items():
        steps = int(1000 * BUDGET_S / mean(method["virtual_s"]))
        late = method.sweep("budget", 1, SEEDS, [method.rate],
                            f"stop.steps={steps}")
        found = {key: list(late.values(key).values())[0] for key in
                 ("loss.mean", "loss.averaged", "bytes.sent", "virtual_s")}
        megabytes = mean(found["bytes.sent"]) / 4e6
        outcomes.add("l", f"{name}: loss of the mean peer after "
                     f"{mean(found['virtual_s']):.1f} s of a slow link, "
                     f"{steps} steps, {megabytes:.1f} MB sent by a peer", "",
                     interval(found["loss.mean"]), "{:.4f}", None)
        outcomes.add("l", f"{name}: loss of the merge of all then", "",
                     interval(found["loss.averaged"]), "{:.4f}", None)
        if name != "local" and (best is None or
                                mean(found["loss.mean"]) < best[0]):
            best = mean(found["loss.mean"]), name, found["loss.mean"]
        methods[name] = found["loss.mean"]
    for name, losses in methods.items():
        if name != best[1]:
            outcomes.add("l", f"{name} less {best[1]}, mean peer, nats", "> 0",
                         difference(losses, best[2]), "{:+.4f}", None)


def main():
    if set(ROWS) & set("abg"):
        need_dataset()
    if set(ROWS) & set("defl") and not os.path.exists(TEXT):
        skip(f"{TEXT} is not there: TEXT=FILE names it")
    outcomes = Outcomes()
    for row, measure in (("a", row_a), ("b", row_b), ("d", row_d),
                         ("e", row_e), ("f", row_f), ("g", row_g),
                         ("l", row_l)):
        if row in ROWS:
            measure(outcomes)
    print("\n" + outcomes.table())
    if os.environ.get("WRITE"):
        outcomes.write()
    sys.exit(1 if any("not" in line[-1] for line in outcomes.lines) else 0)


if __name__ == "__main__":
    main()
