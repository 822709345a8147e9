"""The engine's batches in Python, for a twin of it: the loader's documented
streams, of Philox (include/kith/rng.h), and a model's first weights."""
import os

import numpy as np

from accept import OUT, kith

BATCHES, SPLIT = 1, 3  # streams of include/kith/rng.h


def words(seed, stream, entity):
    """include/kith/rng.h: Philox4x32-10, counter {block, entity, stream}."""
    for block in range(1 << 32):
        c, k = [block, entity & 0xffffffff, entity >> 32, stream], [seed, 0]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [q >> 32 ^ c[1] ^ k[0], q & 0xffffffff,
                 p >> 32 ^ c[3] ^ k[1], p & 0xffffffff]
            k = [(k[0] + 0x9E3779B9) & 0xffffffff,
                 (k[1] + 0xBB67AE85) & 0xffffffff]
        yield from c


def shuffle(values, seed, stream, entity):
    """Fisher-Yates, each place by Lemire's draw without bias."""
    draws, values = words(seed, stream, entity), list(values)
    for i in range(len(values), 1, -1):
        product = next(draws) * i
        while (product & 0xffffffff) < (1 << 32) % i:
            product = next(draws) * i
        j = product >> 32
        values[i - 1], values[j] = values[j], values[i - 1]
    return values


def own_rows(seed, rank, peers, count):
    """Rank's rows of `count`, split iid."""
    shares = shuffle(range(count), seed, SPLIT, 0)
    return sorted(shares[count * rank // peers:count * (rank + 1) // peers])


def batches(seed, rank, own, size):
    """Lists of `size` of the own rows, epoch by epoch, without end."""
    left, epoch = [], 0
    while True:
        while len(left) < size:
            left += shuffle(own, seed, BATCHES, epoch << 32 | rank)
            epoch += 1
        yield left[:size]
        left = left[size:]


def first_weights(path, *settings):
    """x before the first step, of a method that has steps in common."""
    dump = os.path.join(OUT, "first.npz")
    kith("sim", path, "gossip={algorithm: dpsgd, topology: ring}",
         "stop={steps: 1}", "faults=[]", "assert=[]", "evaluate=end", *settings,
         options=("--dump", dump))
    return np.load(dump)["x"][0, 0]


def fill(modules, first):
    """The engine's order: weights, then biases, of linear layers."""
    import torch
    at = 0
    with torch.no_grad():
        for one in ([m.weight for m in modules] + [m.bias for m in modules]):
            one.copy_(torch.from_numpy(first[at:at + one.numel()]).view(one.shape))
            at += one.numel()
