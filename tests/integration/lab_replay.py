"""A lab's run and its replay, side by side.

    usage: lab_replay.py KITH DIGITS SCRATCH [--algorithms A,B...]
               [--experiment FILE] [--set KEY=VALUE]... SEED...

Asked (reference/algorithms.md, T16 g): with equal seeds and event order, the
accuracy of every final model within 0.3 points, and the same floats to 1e-5.
Every run is one of four real peers, dirichlet(0.1), recorded; what the replay
says is printed, and kept in SCRATCH/replays.json.

Without --algorithms all of them. A+crash is A with a peer that is killed and
comes back, A+hostile has two members
that lie; A+loss is A over links that lose packets, so that exchanges fail and
what was prepared for them is sent never or later. Without --experiment the experiments are lab_taxonomy.py's.
"""
import argparse
import json
import os
import re
import subprocess
import sys

from lab_taxonomy import Runs, split

RELATIVE, POINTS = 1e-5, 0.3
EXTRA = {"crash": """save: 100ms
faults:
  - {at: 300ms, crash: "peer(1)", restart: 200ms}
  - {at: 500ms, for: 300ms, partition: "peer(0) <-> peer(2..3)"}
""", "hostile": """faults:
  - {at: 0s, hostile: "peer(0)", kind: gauss}
  - {at: 300ms, for: 1s, hostile: "peer(1)", kind: alie}
""", "loss": "network: {latency: 1ms, loss: 0.05}\n"}


def run(arguments):
    """What it printed as JSON, or None after telling why."""
    done = subprocess.run(arguments, text=True, timeout=600, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:  # exit 1: an assertion was broken, or the models do not agree
        return json.loads(done.stdout)
    except ValueError:
        print(f"{' '.join(arguments)}: exit {done.returncode}\n"
              f"{done.stderr[-1000:]}", flush=True)
        return None


class Replays:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.runs, self.table = None, {}
        if options.experiment is None:
            data = f"{scratch}/digits-600"
            split(options.digits, data)
            listed = subprocess.run(
                [options.kith, "list", "algorithms", "--json"], text=True,
                stdout=subprocess.PIPE, check=True).stdout
            self.table = {a["name"]: a
                          for a in json.loads(listed)["algorithms"]}
            self.runs = Runs(options.kith, data, scratch)

    def names(self):
        if self.options.algorithms:
            return self.options.algorithms.split(",")
        return list(self.table) or [None]

    def arguments(self, name, seed):
        """What kith lab is told, beside --record."""
        algorithm, _, extra = (name or "").partition("+")
        if self.runs is None:
            return ([self.options.experiment, "--seed", str(seed)] +
                    (["--set", f"gossip.algorithm={algorithm}"]
                     if algorithm else []))
        path = self.runs.write(self.table[algorithm], seed)
        if extra:
            with open(path) as file:
                text = file.read()
            path = path.replace(".yaml", f"-{extra}.yaml")
            with open(path, "w") as file:
                # Long enough for the faults to come.
                file.write(re.sub("step: .*ms", "step: 5ms", text) +
                           EXTRA[extra])
        return [path]

    def one(self, name, seed):
        sets = [x for value in self.options.set for x in ("--set", value)]
        kith = self.options.kith
        lab = run([kith, "lab", "--record", "--json", "--out", self.scratch] +
                  self.arguments(name, seed) + sets)
        if lab is None:
            return None
        found = run([kith, "sim", "--json", "--replay", lab["database"]])
        if found is None:
            return None
        found["wall_s"] = lab["wall_s"]
        found["asked"] = {"name": name, "seed": seed}
        found["size_bytes"] = os.path.getsize(lab["database"])
        return found


def tell(found):
    models = found["models"]
    differ = sum(model["differ"] for model in models)
    values = sum(model["compared"] for model in models)
    gap = 100 * found["accuracy_gap"]
    held = (found["agrees"] and values > 0 and gap <= POINTS and
            found["relative_max"] <= RELATIVE)
    print(f"{found['asked']['name'] or found['algorithm']:<20} "
          f"{found['asked']['seed']:>4} {len(models):>6} "
          f"{found['restarts']:>8} {found['messages']:>8} {values:>8} "
          f"{differ:>6} {found['relative_max']:>9.2g} "
          f"{found['losses']['differ']:>6} {gap:>8.3f}  "
          f"{'same bytes' if all(m['same_bytes'] for m in models) else ''}"
          f"{'' if held else '  MISSED'}", flush=True)
    return held


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kith")
    parser.add_argument("digits")
    parser.add_argument("scratch")
    parser.add_argument("--algorithms")
    parser.add_argument("--experiment")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("seeds", nargs="+", type=int)
    options = parser.parse_args()
    options.digits = os.path.abspath(options.digits)
    replays = Replays(options, os.path.abspath(options.scratch))
    print(f"expected: values that differ 0, relative <= {RELATIVE:g}, "
          f"accuracy within {POINTS:g} points\n"
          f"{'algorithm':<20} {'seed':>4} {'models':>6} {'restarts':>8} "
          f"{'messages':>8} {'values':>8} {'differ':>6} {'relative':>9} "
          f"{'losses':>6} {'points':>8}")
    found, missed = [], 0
    for name in replays.names():
        for seed in options.seeds:
            one = replays.one(name, seed)
            if one is None or not tell(one):
                missed += 1
            if one is not None:
                found.append(one)
    with open(f"{options.scratch}/replays.json", "w") as file:
        json.dump(found, file)
    print(f"{len(found)} runs replayed, {missed} missed")
    sys.exit(1 if missed or not found else 0)


if __name__ == "__main__":
    main()
