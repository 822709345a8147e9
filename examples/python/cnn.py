"""A small convolutional network on Fashion-MNIST, a peer by two lines: Peer() and
attach(), which steps it behind the optimiser's own step.

    cnn.py PEER.yaml                   four at once: kith lab cnn.yaml
"""
import os
import sys

import numpy as np
import torch
from torch import nn

import idx
import kith

DATA = os.environ.get("DATASET", "/usr/share/datasets/fashion-mnist")
torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Sequential(
    nn.Unflatten(1, (1, 28, 28)),
    nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 7 * 7, 10))
optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_of = nn.CrossEntropyLoss()
images, labels = map(torch.from_numpy, idx.read(DATA, "train"))

peer = kith.Peer(model, *sys.argv[1:2])
peer.attach(optimiser)
random = np.random.default_rng(1 + peer.stats["rank"])
while not peer.over:
    rows = random.integers(len(images), size=32)
    loss = loss_of(model(images[rows]), labels[rows])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

images, labels = map(torch.from_numpy, idx.read(DATA, "t10k"))
model.eval()  # running statistics are averaged with the model
with torch.no_grad():
    scores = torch.cat([model(part) for part in images.split(1000)])
peer.report(loss=loss_of(scores, labels).item(),
            accuracy=(scores.argmax(1) == labels).float().mean().item())
peer.close()
