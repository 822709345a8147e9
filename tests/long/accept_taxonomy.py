"""Papers.md 2.6 and 8: T1.1, T1.5 and T8.5 on workload W1.

T1.1  every preset of examples/taxonomy runs, 8 nodes, <= 300 s on two cores,
      every column filled.
T1.5  after 1500 steps, over 5 seeds: dpsgd, adpsgd, gosgd p = 0.1, sgp and
      allreduce within 5 % of the loss of synchronous SGD and 1 point of its
      accuracy; every other preset is reported.
T8.5  choco with the largest 1 %: gamma = 0.2 diverges or is stopped, 0.02 and
      0.05 beat 0.01, means of 5 seeds.
"""
import glob
import os
import sqlite3
import subprocess
import time

from accept import KITH, OUT, TOP, Table, mean

PRESETS = os.path.join(TOP, "examples", "taxonomy")
SEEDS = "5"
DENSE = "pytorch"  # synchronous, the mean of all gradients
HELD = {"d-psgd": "dpsgd", "ad-psgd": "adpsgd", "gosgd": "gosgd p = 0.1",
        "sgp": "sgp", "allreduce-ring": "allreduce"}
# Columns of the comparison that every preset fills; who sends nothing has no
# staleness.
COLUMNS = ["steps", "bytes_mean", "bytes_max", "staleness_mean",
           "staleness_max", "consensus_distance", "utilisation", "loss",
           "accuracy"]


def sweep(folder, *arguments):
    """Runs a sweep into a folder of its own; returns {cell: runs}, seconds."""
    out = os.path.join(OUT, folder)
    os.makedirs(out, exist_ok=True)
    began = time.monotonic()
    subprocess.run([KITH, "sim", *arguments, "--seeds", SEEDS, "--out", out],
                   check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    took = time.monotonic() - began
    files = glob.glob(os.path.join(out, "*.db"))
    assert len(files) == 1, files
    database = sqlite3.connect(f"file:{files[0]}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    cells = {}
    for row in database.execute(
            "SELECT label, refused, runs.* FROM cells LEFT JOIN runs "
            "USING (cell) ORDER BY label, runs.seed"):
        assert row["refused"] is None, f"{row['label']}: {row['refused']}"
        cells.setdefault(row["label"], []).append(row)
    database.close()
    return cells, took


def all_cells(table):
    began = time.monotonic()
    out = os.path.join(OUT, "once")
    os.makedirs(out, exist_ok=True)
    subprocess.run([KITH, "sim", "--all-cells", "--cells", PRESETS, "--out",
                    out], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    table.at_most("T1.1 seconds of kith sim --all-cells", 300,
                  time.monotonic() - began, "{:.1f}")


def quality(table):
    cells, _ = sweep("cells", "--all-cells", "--cells", PRESETS)
    presets = len(glob.glob(os.path.join(PRESETS, "*.yaml")))
    table.add("T1.1 presets", f"{presets}", f"{len(cells)}",
              len(cells) == presets)
    empty = [f"{label}.{column}" for label, runs in cells.items()
             for run in runs for column in COLUMNS
             if run[column] is None and label != "local"]
    table.add("T1.1 columns that are empty", "0", f"{len(empty)}", not empty)
    loss = {label: mean(run["loss"] for run in runs)
            for label, runs in cells.items()}
    accuracy = {label: mean(run["accuracy"] for run in runs)
                for label, runs in cells.items()}
    sent = {label: mean(run["bytes_mean"] for run in runs)
            for label, runs in cells.items()}
    for label, name in HELD.items():
        table.at_most(f"T1.5 {name}: loss / dense", 1.05,
                      loss[label] / loss[DENSE])
        table.at_least(f"T1.5 {name}: accuracy - dense, points", -1.0,
                       100 * (accuracy[label] - accuracy[DENSE]), "{:+.2f}")
    print(f"\n{'preset':<22}{'loss':>9}{'/ dense':>9}{'accuracy':>10}"
          f"{'points':>8}{'MB sent':>9}   within 5 % and 1 point")
    for label in sorted(loss, key=loss.get):
        points = 100 * (accuracy[label] - accuracy[DENSE])
        ratio = loss[label] / loss[DENSE]
        print(f"{label:<22}{loss[label]:9.4f}{ratio:9.3f}"
              f"{100 * accuracy[label]:10.2f}{points:+8.2f}"
              f"{sent[label] / 1e6:9.2f}   "
              f"{'yes' if ratio <= 1.05 and points >= -1 else 'no'}")


def choco(table):
    cells, _ = sweep("choco", os.path.join(PRESETS, "choco-sgd.yaml"),
                     "--sweep", "gossip.consensus=0.01,0.02,0.05,0.1,0.2")
    loss = {}
    for label, runs in cells.items():
        gamma = label.split("=")[1]
        values = [run["loss"] for run in runs]
        diverged = any(value is None or not value < 10 for value in values)
        loss[gamma] = float("inf") if None in values else mean(values)
        table.note(f"T8.5 gamma {gamma}: loss", f"{loss[gamma]:.4f}")
        if gamma == "0.2":
            table.add("T8.5 gamma 0.2 diverges or is stopped", "yes",
                      "yes" if diverged else "no", diverged)
    for gamma in "0.02", "0.05":
        table.add(f"T8.5 gamma {gamma} beats 0.01", f"< {loss['0.01']:.4f}",
                  f"{loss[gamma]:.4f}", loss[gamma] < loss["0.01"])


def main():
    table = Table("T1.1, T1.5, T8.5: means of 5 seeds")
    all_cells(table)
    quality(table)
    choco(table)
    table.end()


if __name__ == "__main__":
    main()
