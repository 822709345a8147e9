"""A peer of accept_program.py: demo.yaml's MLP in PyTorch, with the engine's first
weights, rows, batches and rates; its optimiser begins anew after a crash.

    program_mlp.py SEED FIRST.npy STEPS"""
import os
import sys

import numpy as np
import torch
from torch import nn

from accept import DATASET, TOP
from engine_twin import batches, fill, own_rows
import kith

sys.path.insert(0, os.path.join(TOP, "examples", "python"))
import idx  # noqa: E402

SEED, STEPS, BATCH = int(sys.argv[1]), int(sys.argv[3]), 16
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128),
                      nn.ReLU(), nn.Linear(128, 10))
fill(model[::2], np.load(sys.argv[2]))
optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_of = nn.CrossEntropyLoss()


def read(part, place=lambda count: slice(None)):
    images, labels = idx.read(DATASET, part)
    rows = place(len(images))
    return torch.from_numpy(images[rows]), torch.from_numpy(labels[rows])


def report():
    images, labels = read("t10k")
    with torch.no_grad():
        scores = model(images)
    peer.report(loss_of(scores, labels).item(),
                (scores.argmax(1) == labels).float().mean().item())


peer = kith.Peer(model)
if not peer.over:
    stats = peer.stats
    images, labels = read("train", lambda count: own_rows(
        SEED, stats["rank"], stats["peers"], count))
    chosen = batches(SEED, stats["rank"], range(len(images)), BATCH)
    for _ in range(stats["step"]):  # of a peer that goes on
        next(chosen)
while not peer.over:
    optimiser.param_groups[0]["lr"] = 0.05 * (1 - peer.stats["step"] / STEPS)
    rows = next(chosen)
    loss = loss_of(model(images[rows]), labels[rows])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    peer.step(loss.item())
report()
peer.close()
