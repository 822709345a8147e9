"""A loop over a tree of arrays down |x - rank|^2 / 2, of which step() makes a
new one: tree.py PEER.yaml RANK STEPS LIBRARY (numpy, dlpack or jax)."""
import sys
import time

import numpy as np

import kith

file, rank, steps, which = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), \
    sys.argv[4]


class Lent:
    """An array that speaks DLPack and nothing else, and cannot be changed."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **_):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __array_namespace__(self):
        return Lent

    @staticmethod
    def from_dlpack(given):
        return Lent(np.from_dlpack(given).copy())

    def __array__(self, *_, **__):
        return self._array


if which == "jax":
    import jax.numpy
    asarray = jax.numpy.asarray
else:
    asarray = Lent if which == "dlpack" else np.asarray


def down(tree):
    if isinstance(tree, (list, tuple)):
        return type(tree)(down(one) for one in tree)
    if isinstance(tree, dict):
        return {key: down(one) for key, one in tree.items()}
    if which == "jax":  # its own arithmetic: arrays that nobody waits for
        return None if tree is None else tree - 0.1 * (tree - rank)
    x = None if tree is None else np.asarray(tree)
    return None if x is None else asarray(x - np.float32(0.1) * (x - rank))


def mean(tree):
    return float(np.mean(np.asarray(tree["b"][0])))


# The keys' order is not the peers' business.
params = {"b": (asarray(np.zeros((20, 30), np.float32)), None),
          "a": [asarray(np.zeros(1000, np.float32))]}
if rank == 1:
    params = dict(sorted(params.items()))
down(params)  # JAX compiles it before the other's steps run away
moved, same = 0.0, 0  # what step() changed the mean by at most; gave back
peer = kith.Peer(params, file, log=lambda line: print(line, file=sys.stderr))
params = peer.params
for step in range(steps):
    params = down(params)
    time.sleep(0.001)
    given, params = params, peer.step(params, loss=0.5)
    moved = max(moved, abs(mean(params) - mean(given)))
    same += params is given
    assert type(params["a"][0]) is type(given["a"][0]) and params["b"][1] is None
    assert list(params) == list(given) and not peer.late
    assert np.asarray(params["b"][0]).shape == (20, 30)
    if peer.over:
        break
stats = peer.stats
peer.serve(1)
peer.close()
print(rank, mean(peer.params), moved, stats["steps"], same, flush=True)
