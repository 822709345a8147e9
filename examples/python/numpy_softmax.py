"""Softmax regression on the digits in NumPy: a peer by the three lines that say
`peer`. Alone: numpy_softmax.py PEER.yaml; eight at once: kith lab
numpy_softmax.yaml."""
import pathlib
import sys

import numpy as np

import idx
import kith

DATA = pathlib.Path(__file__).parent.parent / "data" / "digits"


def scores(weights, images):
    """log p(class | image), (n, 10)."""
    z = images @ weights[:-1] + weights[-1]
    z -= z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


images, labels = idx.read(DATA, "train")
weights = np.zeros((images.shape[1] + 1, 10), np.float32)  # the last row: bias
peer = kith.Peer(weights, *sys.argv[1:2])
random = np.random.default_rng(peer.stats["rank"])
while not peer.over:
    rows = random.integers(len(images), size=16)
    x, y = images[rows], labels[rows]
    log_p = scores(weights, x)
    loss = -log_p[np.arange(16), y].mean()
    gradient = (np.exp(log_p) - np.eye(10, dtype=np.float32)[y]) / 16
    weights[:-1] -= 0.5 * x.T @ gradient
    weights[-1] -= 0.5 * gradient.sum(axis=0)
    peer.step(loss)

images, labels = idx.read(DATA, "t10k")
log_p = scores(weights, images)
peer.report(loss=-log_p[np.arange(len(labels)), labels].mean(),
            accuracy=(log_p.argmax(axis=1) == labels).mean())
peer.close()
