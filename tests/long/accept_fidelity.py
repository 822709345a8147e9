"""What kith sim predicts of labs here: 22 configurations, three seeds or five.

    accept_fidelity.py [run NAME...] [report FILE]

Without words all of it. `run` writes this machine's file by kith plan --measure,
predicts a configuration (all) with one seed and runs it, then anew, file and
all, with the next seed, and keeps what came of them in OUT; `report` prints the
table and writes it into FILE, docs/fidelity.md. Machines drift: each run has a
file of its own, made just before it. A run takes 6 s, one over lossy lines 60,
so that which packets happen to be lost, and how it begins, weigh little; with
three peers 260, for 40 seeds of 60 s differ by 1.9 % in bytes, those of the
other rows by 0.7 at most (standard deviations of the simulation).
Rows without a pause are run five times: a file and a lab of theirs each differ
by some 5 % from the next ones, so that by arithmetic medians of three would be
10 % apart in one of thirty rows of a true model, of five in one of a hundred.
No figure of a lab goes into a prediction. KITH, OUT, SEEDS are those of
accept.py; PYTHON has NumPy, for the program (else its rows are left out)."""
import datetime
import json
import os
import statistics
import subprocess
import sys

from accept import KITH, OUT, SEEDS, TOP, Table, kith, write

PYTHON = os.environ.get("PYTHON", sys.executable)
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "fidelity_program.py")
DIGITS = os.path.join(TOP, "examples", "data", "digits")
MACHINE = os.path.join(OUT, "machine.yaml")
KEPT = os.path.join(OUT, "fidelity.json")
SHAPED = "network={latency: 20ms, rate: 100Mbit, loss: 0.01}"
MONIQUA = "gossip.wire=moniqua4"
WITHIN = {"time": 0.10, "bytes": 0.02, "accuracy": 0.005}

BUILT_IN = f"""name: fidelity
peers: 4
stop: {{steps: 4500}}
model: {{kind: mlp, layers: [64, 1024, 10]}}
data: {{kind: idx, path: {DIGITS}, split: iid}}
train: {{learning_rate: 0.05, batch: 64}}
gossip: {{algorithm: adpsgd, every: 4, topology: random}}
evaluate: end
"""
PROGRAM_FILE = f"""name: fidelity-program
peers: 4
stop: {{steps: 1200}}
model: {{kind: program, run: "{PYTHON} {PROGRAM}"}}
gossip: {{algorithm: adpsgd, every: 4, topology: random}}
compute: {{step: 8ms}}
"""

# name: settings. Looked at while the model was made:
FROZEN = {
    "2 peers, unpaced, float32": ["peers=2", "stop.steps=7500"],
    "4 peers, unpaced, float32": ["peers=4"],
    "8 peers, unpaced, every 8": ["peers=8", "gossip.every=8",
                                  "stop.steps=2400"],
    "8 peers, unpaced, moniqua4": ["peers=8", MONIQUA, "stop.steps=2400"],
    "2 peers, 5 ms, float32": ["peers=2", "compute.step=5ms",
                               "stop.steps=1500"],
    "4 peers, 10 ms, shaped, every 16": [
        "peers=4", "compute.step=10ms", "gossip.every=16", "stop.steps=6000",
        SHAPED],
    "8 peers, 10 ms, shaped, moniqua4": [
        "peers=8", "compute.step=10ms", "gossip.every=8", "stop.steps=6000",
        MONIQUA, SHAPED],
    "4 peers, program, 8 ms": ["peers=4", "compute.step=8ms"],
    "3 peers, 5 ms, shaped, moniqua4": [
        "peers=3", "compute.step=5ms", "gossip.every=8", "stop.steps=50000",
        MONIQUA, SHAPED],
    "6 peers, unpaced, batch 128": ["peers=6", "train.batch=128",
                                    "gossip.every=8", "stop.steps=1800"],
    "4 peers, unpaced, moniqua4, every 8": [
        "peers=4", MONIQUA, "gossip.every=8", "train.batch=32",
        "stop.steps=7200"],
    "5 peers, 10 ms, shaped, every 32": [
        "peers=5", "compute.step=10ms", "gossip.every=32", "stop.steps=6000",
        SHAPED],
    "8 peers, unpaced, batch 32, every 16": [
        "peers=8", "train.batch=32", "gossip.every=16", "stop.steps=4800"],
    "6 peers, unpaced, batch 32, moniqua4, every 8": [
        "peers=6", "train.batch=32", "gossip.every=8", "stop.steps=4800",
        MONIQUA],
    "6 peers, 8 ms, shaped, moniqua4, every 16": [
        "peers=6", "compute.step=8ms", "gossip.every=16", "stop.steps=7500",
        MONIQUA, SHAPED],
    "7 peers, unpaced, every 12": ["peers=7", "gossip.every=12",
                                   "stop.steps=3000"],
    "4 peers, 6 ms, shaped, batch 128, every 8": [
        "peers=4", "compute.step=6ms", "train.batch=128", "gossip.every=8",
        "stop.steps=10000", SHAPED],
    "5 peers, unpaced, batch 32, every 6": [
        "peers=5", "train.batch=32", "gossip.every=6", "stop.steps=6000"],
    "6 peers, 12 ms, moniqua4": ["peers=6", "compute.step=12ms",
                                 "stop.steps=1200", MONIQUA],
    "4 peers, unpaced, batch 128, every 10": [
        "peers=4", "train.batch=128", "gossip.every=10", "stop.steps=2800"],
}
# Run for the first time after its last change:
LATER = {
    "3 peers, unpaced, moniqua4, every 10": [
        "peers=3", MONIQUA, "gossip.every=10", "stop.steps=8000"],
    "7 peers, 15 ms, shaped, every 12": [
        "peers=7", "compute.step=15ms", "gossip.every=12", "stop.steps=4000",
        SHAPED],
}
ALL = {**FROZEN, **LATER}
MORE_SEEDS = [12, 13]


def environment():
    paths = [os.path.join(TOP, "python"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "DIGITS": DIGITS, "OPENBLAS_NUM_THREADS": "1",
            "KITH_LIBRARY": os.path.join(os.path.dirname(KITH),
                                         "libkith.so.0"),
            "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def program(*words):
    done = subprocess.run([PYTHON, PROGRAM, *words], env=environment(),
                          stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def has_numpy():
    return subprocess.run([PYTHON, "-c", "import numpy"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def measure(settings):
    """Of the configuration: how many peers share a core is its own."""
    path = write("fidelity.yaml", BUILT_IN)
    words = [word for each in settings for word in ("--set", each)]
    subprocess.run([KITH, "plan", path, *words, "--measure", "--machine",
                    MACHINE], check=True, stdout=subprocess.DEVNULL)


def source():
    """The digest of the sources that KITH was built of."""
    said = subprocess.run([KITH, "--version"], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    return said.split("source ")[1].split()[0]


def told(result):
    return {"time": result["wall_s"] if result["virtual_s"] is None
            else result["virtual_s"], "bytes": result["bytes"]["sent"],
            "accuracy": result["accuracy"]["averaged"]}


def run_one(name, seed):
    """The file, what it predicts, and the lab."""
    settings = [*ALL[name], f"seed={seed}"]
    load = os.getloadavg()[0]
    measure(ALL[name])
    if "program" not in name:
        path = write("fidelity.yaml", BUILT_IN)
        predicted = kith("sim", path, *settings, f"hosts={{file: {MACHINE}}}")
    else:
        path = write("fidelity-program.yaml", PROGRAM_FILE)
        step = int(1e9 * program("step"))
        predicted = program("simulate", path, OUT, *settings,
                            f"hosts={{file: {MACHINE}, step: {step}ns}}")
        os.environ.update(environment())
    return {"load": load, "source": source(), "sim": told(predicted),
            "lab": told(kith("lab", path, *settings))}


def seeds_of(name):
    return SEEDS + (MORE_SEEDS if "unpaced" in name else [])


def run(names):
    kept = {}
    if os.path.exists(KEPT):
        with open(KEPT, encoding="utf-8") as file:
            kept = json.load(file)
    for name in names:
        if "program" in name and not has_numpy():
            print(f"{name}: left out, {PYTHON} has no NumPy")
            continue
        kept[name] = [run_one(name, seed) for seed in seeds_of(name)]
        write("fidelity.json", json.dumps(kept, indent=1))


def of_medians(runs, what):
    sides = [statistics.median(r[w][what] for r in runs)
             for w in ("sim", "lab")]
    return sides[0] / sides[1] - 1


def apart(runs, what):
    """Time: a file says what the machine is in its own minute, so it is held
    to the lab behind it, and the median of the runs' errors counts. Bytes are
    no machine's: of medians over the seeds. Accuracy: of means."""
    if what == "accuracy":
        sides = [statistics.mean(r[w][what] for r in runs)
                 for w in ("sim", "lab")]
        return sides[0] - sides[1]
    if what == "bytes":
        return of_medians(runs, what)
    return statistics.median(r["sim"]["time"] / r["lab"]["time"]
                             for r in runs) - 1


def report(path):
    with open(KEPT, encoding="utf-8") as file:
        kept = json.load(file)
    table = Table("Predicted by kith sim, and what labs took")
    lines = ["| configuration | predicted, s | measured, s: median "
             "(least..most) | time | of medians | bytes | accuracy, points | |",
             "|---|---|---|---|---|---|---|---|"]
    met = 0
    for name in ALL:
        if name not in kept:
            lines.append(f"| {name} | not run | | | | | | |")
            continue
        runs = kept[name]
        labs = [r["lab"]["time"] for r in runs]
        errors = {what: apart(runs, what) for what in WITHIN}
        held = all(abs(errors[what]) <= WITHIN[what] for what in WITHIN)
        met += held
        for what, bound in WITHIN.items():
            table.at_most(f"{name}: {what}", bound, abs(errors[what]))
        later = ", run after the freeze" if name in LATER else ""
        lines.append(
            f"| {name}{later} | "
            f"{statistics.median(r['sim']['time'] for r in runs):.3f} | "
            f"{statistics.median(labs):.3f} "
            f"({min(labs):.3f}..{max(labs):.3f}) | {errors['time']:+.1%} | "
            f"{of_medians(runs, 'time'):+.1%} | "
            f"{errors['bytes']:+.2%} | {100 * errors['accuracy']:+.2f} | "
            f"{'met' if held else '**missed**'} |")
    loads = [r["load"] for runs in kept.values() for r in runs]
    sources = [runs[-1]["source"] for runs in kept.values()]
    with open(MACHINE, encoding="utf-8") as file:
        machine = file.read().rstrip()
    template = os.path.join(HERE, "fidelity.md.in")
    with open(template, encoding="utf-8") as file:
        text = file.read()
    conditions = (f"{os.cpu_count()} cores, Linux {os.uname().release}, load "
                  f"{min(loads):.1f} to {max(loads):.1f} before a run (median "
                  f"{statistics.median(loads):.1f}), "
                  f"{datetime.date.today().isoformat()}; " + " and ".join(
                      f"{sources.count(one)} of sources {one}"
                      for one in sorted(set(sources), key=sources.index)))
    text = text.replace("@TABLE@", "\n".join(lines)).replace(
        "@MET@", f"{met} of {len(ALL)}").replace(
        "@CONDITIONS@", conditions).replace("@MACHINE@", machine)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    table.end()


def main(words):
    if not words or words[0] == "run":
        run(words[1:] or list(ALL))
    if not words or words[0] == "report":
        report(words[1] if len(words) > 1 else
               os.path.join(TOP, "docs", "fidelity.md"))


if __name__ == "__main__":
    main(sys.argv[1:])
