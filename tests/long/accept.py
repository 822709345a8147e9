"""What the acceptance scripts share: running kith, reading run databases, and a
table of what was asked and what was measured.

Settings come from the environment:
  KITH      the program (./kith)
  OUT       folder for run databases (./acceptance)
  SEEDS     how many seeds (3)
  DATASET   folder of Fashion-MNIST (/usr/share/datasets/fashion-mnist)
"""
import json
import os
import sqlite3
import subprocess
import sys
import time

KITH = os.path.abspath(os.environ.get("KITH", "./kith"))
OUT = os.path.abspath(os.environ.get("OUT", "acceptance"))
TOP = os.path.abspath(os.environ.get("srcdir",
                                     os.path.join(os.path.dirname(__file__),
                                                  "..", "..")))
DATASET = os.environ.get("DATASET", "/usr/share/datasets/fashion-mnist")
SEEDS = [7, 8, 9, 10, 11][:int(os.environ.get("SEEDS", "3"))]
DEMO = os.path.join(TOP, "examples", "demo.yaml")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need_dataset():
    if not os.path.isdir(DATASET):
        skip(f"{DATASET} is not there: apt-get install dataset-fashion-mnist")


def write(name, text):
    """A file of OUT; its path."""
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def kith(command, experiment, *settings, options=(), expect=(0,)):
    """Runs kith COMMAND EXPERIMENT --json; returns what it printed."""
    os.makedirs(OUT, exist_ok=True)
    line = [KITH, command, "--json", "--out", OUT, experiment]
    for setting in settings:
        line += ["--set", setting]
    line += list(options)
    began = time.monotonic()
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode not in expect:
        print(" ".join(line))
        print(done.stderr[-2000:])
        sys.exit(f"kith {command}: exit {done.returncode}, not in {expect}")
    result = json.loads(done.stdout)
    result["command_s"] = time.monotonic() - began
    text = " ".join(["kith", command, os.path.basename(experiment)] +
                    [f"--set {s}" for s in settings])
    result["command"] = text
    print(f"  {text}: {result['wall_s']:.1f} s", flush=True)
    return result


def rows(result, query, *arguments):
    """All rows of a query on a run's database."""
    database = sqlite3.connect(f"file:{result['database']}?mode=ro", uri=True)
    try:
        return database.execute(query, arguments).fetchall()
    finally:
        database.close()


def summary(result, key):
    value = rows(result, "SELECT value FROM summary WHERE key = ?", key)
    return float(value[0][0])


def mean(values):
    values = list(values)
    return sum(values) / len(values)


class Table:
    """Lines of: what, asked, measured, held."""

    def __init__(self, title):
        self.title = title
        self.lines = []

    def add(self, what, asked, measured, held):
        self.lines.append((what, asked, measured, held))

    def at_least(self, what, bound, value, text="{:.4f}"):
        self.add(what, ">= " + text.format(bound), text.format(value),
                 value >= bound)

    def at_most(self, what, bound, value, text="{:.4f}"):
        self.add(what, "<= " + text.format(bound), text.format(value),
                 value <= bound)

    def note(self, what, measured):
        self.add(what, "", measured, None)

    def end(self):
        print(f"\n{self.title}")
        width = max(len(line[0]) for line in self.lines)
        for what, asked, measured, held in self.lines:
            mark = {True: "ok", False: "MISSED", None: ""}[held]
            print(f"  {what:<{width}}  {asked:>14}  {measured:>14}  {mark}")
        missed = sum(line[3] is False for line in self.lines)
        sys.exit(1 if missed else 0)
