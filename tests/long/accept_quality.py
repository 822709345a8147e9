"""What is trained here is as good as elsewhere.

cnn      Fashion-MNIST, at most 20 epochs; shapes and settings are compared on
         10,000 of the training examples that are kept apart, and only the best
         is trained on all of them and tested
gpt      tinyshakespeare, loss over the whole last tenth, beside
         bench/quality_torch.py where PyTorch is installed
gossip   8 peers of batch 2 beside one of batch 16, the same text and steps

    python3 accept_quality.py [cnn] [gpt] [gossip]

Settings beside those of accept.py:
  TEXT      tinyshakespeare (examples/data/tinyshakespeare.txt)
  TORCH     a Python that has PyTorch (python3)
"""
import gzip
import os
import struct
import subprocess
import sys

from accept import (DATASET, OUT, SEEDS, TOP, Table, kith, mean,
                    need_dataset, skip)

TEXT = os.path.abspath(os.environ.get(
    "TEXT", os.path.join(TOP, "examples", "data", "tinyshakespeare.txt")))
TORCH = os.environ.get("TORCH", "python3")
CNN = os.path.join(TOP, "examples", "cnn.yaml")
GPT = os.path.join(TOP, "examples", "shakespeare.yaml")
KEPT = 10000
# Compared on what is kept apart.
# Without a warm-up some starts lose filters in the first steps and never get
# them back: the training loss shows it.
STEADY = ("train.learning_rate=0.02", "train.warmup=500",
          "train.augment={flip: true}")
TRIED = [
    ("model.channels=[16, 32, 64]", "stop.epochs=20", "model.dropout=0.2",
     *STEADY),
    ("model.channels=[32, 64]", "stop.epochs=15", "model.dropout=0.3",
     *STEADY),
]
table = Table("What training arrives at")


def keep_apart(folder):
    """The training set less its last examples, and these as the test."""
    os.makedirs(folder, exist_ok=True)
    for name, magic, head, size in (("images-idx3", 2051, 16, 784),
                                    ("labels-idx1", 2049, 8, 1)):
        with gzip.open(f"{DATASET}/train-{name}-ubyte.gz") as file:
            data = file.read()
        cut = head + (len(data) - head) // size * size - KEPT * size
        for part, values in (("train", data[head:cut]), ("t10k", data[cut:])):
            header = struct.pack(">II", magic, len(values) // size)
            header += struct.pack(">II", 28, 28) if size > 1 else b""
            with open(f"{folder}/{part}-{name}-ubyte", "wb") as file:
                file.write(header + values)
    return folder


def check_cnn():
    need_dataset()
    kept = keep_apart(os.path.join(OUT, "kept"))
    scores = {}
    for settings in TRIED:
        run = kith("train", CNN, f"data.path={kept}", "assert=[]", *settings)
        scores[settings] = run["accuracy"]["averaged"]
        table.note("kept apart: " + ", ".join(settings),
                   f"{scores[settings]:.4f}")
    best = max(scores, key=scores.get)
    run = kith("train", CNN, f"data.path={DATASET}", "assert=[]", *best)
    table.at_least("Fashion-MNIST, test, " + ", ".join(best), 0.915,
                   run["accuracy"]["averaged"], "{:.4f}")


def need_text():
    if not os.path.isfile(TEXT):
        skip(f"{TEXT} is not there: say TEXT=FILE")


def in_torch():
    """Its losses by seed, or none."""
    done = subprocess.run(
        [TORCH, os.path.join(TOP, "bench", "quality_torch.py"), TEXT,
         *map(str, SEEDS)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        return []
    return [float(line.split()[-1]) for line in done.stdout.splitlines()
            if line.startswith("seed")]


def check_gpt():
    need_text()
    ours = [kith("train", GPT, f"data.path={TEXT}", f"seed={seed}",
                 "assert=[]")["loss"]["averaged"] for seed in SEEDS]
    table.note("gpt, each seed", " ".join(f"{x:.4f}" for x in ours))
    table.at_most("gpt, loss over the last tenth, worst seed", 1.93, max(ours),
                  "{:.4f}")
    theirs = in_torch()
    if theirs:
        table.note("PyTorch, each seed", " ".join(f"{x:.4f}" for x in theirs))
        table.at_most("gpt, |mean - PyTorch's|", 0.02,
                      abs(mean(ours) - mean(theirs)), "{:.4f}")


def check_gossip():
    need_text()
    settings = (f"data.path={TEXT}", "assert=[]", f"seed={SEEDS[0]}",
                "stop.steps=2000")
    one = kith("train", GPT, *settings, "peers=1", "train.batch=16")
    # Adam divides by the size of a gradient, most of which is noise in a batch
    # of 2: its steps are too short by the root of 16 / 2 at most.
    many = kith("sim", GPT, *settings, "peers=8", "train.batch=2",
                "train.learning_rate=0.0025", "gossip.every=1",
                "compute={step: 20ms}")
    alone, loss = one["loss"]["averaged"], many["loss"]
    table.note("1 x batch 16, loss", f"{alone:.4f}")
    table.at_most("8 x batch 2, averaged model, of that", 1.05,
                  loss["averaged"] / alone, "{:.4f}")
    table.note("8 x batch 2: averaged, mean and worst peer",
               f"{loss['averaged']:.4f} {loss['mean']:.4f} "
               f"{loss['worst']:.4f}")


CHECKS = {"cnn": check_cnn, "gpt": check_gpt, "gossip": check_gossip}
for check in sys.argv[1:] or CHECKS:
    CHECKS[check]()
table.end()
