"""What test_simulate.sh asks of kith.simulate(), with NumPy: softmax regression
on the bundled digits, 12 peers, a crash and a partition.

    simulate.py DIGITS EXPERIMENT FOLDER"""
import gzip
import os
import sqlite3
import sys

import numpy as np

import kith

DIGITS, EXPERIMENT, FOLDER = sys.argv[1:]


def read(name, skipped):
    with gzip.open(os.path.join(DIGITS, name)) as file:
        return np.frombuffer(file.read()[skipped:], np.uint8)


IMAGES = (read("train-images-idx3-ubyte.gz", 16).reshape(-1, 64) /
          255).astype("f")
LABELS = read("train-labels-idx1-ubyte.gz", 8)


def loss_of(weights, bias, x, y):
    scores = x @ weights + bias
    scores -= scores.max(1, keepdims=True)
    shares = np.exp(scores)
    shares /= shares.sum(1, keepdims=True)
    return -np.log(shares[np.arange(len(y)), y]).mean(), shares


class Softmax:
    def __init__(self, rank):
        self.params = [np.zeros((64, 10), "f"), np.zeros(10, "f")]
        self.rng = np.random.default_rng(rank)
        self.rank = rank

    def step(self):
        weights, bias = self.params
        rows = self.rng.integers(0, len(IMAGES), 32)
        x, y = IMAGES[rows], LABELS[rows]
        loss, shares = loss_of(weights, bias, x, y)
        shares[np.arange(len(y)), y] -= 1
        weights -= 0.5 * x.T @ shares / len(y)
        bias -= 0.5 * shares.mean(0)
        return loss


def evaluate(values):
    weights, bias = values[:640].reshape(64, 10), values[640:]
    loss, shares = loss_of(weights, bias, IMAGES, LABELS)
    return loss, float((shares.argmax(1) == LABELS).mean())


def run(make, **options):
    kept = {}

    def keep(rank):
        kept[rank] = make(rank)
        return kept[rank]
    result = kith.simulate(keep, EXPERIMENT, **options)
    return result, b"".join(kept[rank].params[i].tobytes()
                            for rank in sorted(kept) for i in (0, 1))


def raises(kind, what, make=Softmax, **options):
    try:
        kith.simulate(make, options.pop("experiment", EXPERIMENT),
                      **{"folder": None, **options})
    except kind as error:
        print(f"expected: {kind.__name__} {what}; measured: {error}")
        assert what in str(error)
        return
    raise AssertionError(f"no {kind.__name__} of {what}")


class Fails(Softmax):
    calls = 0

    def step(self):
        Fails.calls += 1
        if Fails.calls == 50:
            raise KeyError("the 50th")
        return super().step()


class Elsewhere(Softmax):
    def step(self):
        self.params = [one - 1 for one in self.params]


class Doubles(Softmax):
    def __init__(self, rank):
        super().__init__(rank)
        self.params[0] = np.zeros((64, 10))


class Grows(Softmax):
    def __init__(self, rank):
        super().__init__(rank)
        self.params[1] = np.zeros(10 + rank, "f")


def interrupts(*_):
    raise KeyboardInterrupt("as Ctrl-C")


seen = []
one, bits = run(Softmax, folder=FOLDER, evaluate=evaluate,
                progress=lambda *told: seen.append(told))
two, again = run(Softmax, folder=None)
print("expected: one hash, one model; measured:", one["trace_hash"],
      two["trace_hash"], bits == again)
assert one["trace_hash"] == two["trace_hash"] and bits == again
assert two["database"] is None and two["accuracy"]["averaged"] is None
# A crash, a restart, 72 links cut and mended.
assert one["accuracy"]["averaged"] > 0.9 and one["faults"] == 146
assert one["violations"] == 0 and one["exchanges"]["done"] > 100
rows = sqlite3.connect(one["database"]).execute(
    "SELECT count(*), count(DISTINCT peer), count(accuracy), count(loss) "
    "FROM series").fetchone()
print("expected: rows of 12 peers, some with losses; measured:", rows)
assert rows[1] == 12 and rows[2] >= 20 and rows[3] > 100
assert seen and 0 <= seen[0][0] <= 1

other, _ = run(Softmax, folder=None, settings=["gossip.every=3"])
assert other["trace_hash"] != one["trace_hash"]
raises(KeyError, "the 50th", Fails)
assert Fails.calls == 50
raises(ZeroDivisionError, "division", evaluate=lambda _: 1 / 0)
raises(KeyboardInterrupt, "Ctrl-C", evaluate=interrupts)
raises(kith.Error, "in place", Elsewhere)
raises(TypeError, "a parameter of float64", Doubles)
raises(kith.Error, "peer 1: found 651 values", Grows)
raises(kith.Error, "gossip.algorithm: gt does not work",
       settings=["gossip={algorithm: gt, topology: ring}"])
raises(kith.Error, "compute.step: not given", settings=["compute={}"])
before = os.listdir(FOLDER)
raises(kith.Error, "calibrate=True", folder=FOLDER,
       settings=["compute={}", "faults=[]", "assert=[]"])
assert os.listdir(FOLDER) == before  # no database of a run that never was
raises(ValueError, "embedded null byte", settings=["seed=1\0, 2"])
measured, _ = run(Softmax, folder=FOLDER, calibrate=True,
                  settings=["compute={}", "faults=[]", "assert=[]"])
text = sqlite3.connect(measured["database"]).execute(
    "SELECT value FROM run WHERE key = 'experiment'").fetchone()[0]
print("expected: a step that was measured; measured:",
      text[text.index("compute"):].split("\n")[:2])
assert "step" in text[text.index("compute"):] and measured["virtual_s"] > 0
raises(kith.Error, "/nowhere.yaml", experiment="/nowhere.yaml")
print("simulate.py: ok")
