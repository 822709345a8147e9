"""Softmax regression on the digits in NumPy, for accept_fidelity.py: as a peer of
a lab; in virtual time (simulate FILE FOLDER SETTING...: prints the summary); or
alone (step: prints the processor time of a step in seconds)."""
import gzip
import json
import os
import sys
import time

import numpy as np

DIGITS = os.environ["DIGITS"]
BATCH = 256


def read(name, skipped):
    with gzip.open(os.path.join(DIGITS, name)) as file:
        return np.frombuffer(file.read()[skipped:], np.uint8)


def digits(part):
    images = read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 64)
    return ((images / 255).astype(np.float32),
            read(f"{part}-labels-idx1-ubyte.gz", 8))


def log_p(weights, images):
    z = images @ weights[:-1] + weights[-1]
    z -= z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def score(weights):
    images, labels = digits("t10k")
    found = log_p(weights.reshape(65, 10), images)
    return (float(-found[np.arange(len(labels)), labels].mean()),
            float((found.argmax(axis=1) == labels).mean()))


class Trainer:
    def __init__(self, rank):
        self.images, self.labels = digits("train")
        self.params = np.zeros((65, 10), np.float32)
        self.random = np.random.default_rng(rank)

    def step(self):
        rows = self.random.integers(len(self.images), size=BATCH)
        x, y = self.images[rows], self.labels[rows]
        found = log_p(self.params, x)
        gradient = (np.exp(found) - np.eye(10, dtype=np.float32)[y]) / BATCH
        self.params[:-1] -= 0.5 * x.T @ gradient
        self.params[-1] -= 0.5 * gradient.sum(axis=0)
        return float(-found[np.arange(BATCH), y].mean())


def run_peer(*member):
    import kith
    trainer = Trainer(0)
    peer = kith.Peer(trainer.params, *member)
    trainer.random = np.random.default_rng(peer.stats["rank"])
    while not peer.over:
        peer.step(trainer.step())
    loss, accuracy = score(trainer.params)
    peer.report(loss=loss, accuracy=accuracy)
    peer.close()


if sys.argv[1:2] == ["step"]:
    alone = Trainer(0)
    spans = []
    for _ in range(300):
        began = time.process_time()
        alone.step()
        spans.append(time.process_time() - began)
    print(sorted(spans)[150])
elif sys.argv[1:2] == ["simulate"]:
    import kith
    print(json.dumps(kith.simulate(Trainer, sys.argv[2], folder=sys.argv[3],
                                   settings=sys.argv[4:], evaluate=score)))
else:
    run_peer(*sys.argv[1:2])
