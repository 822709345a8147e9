#!/usr/bin/env python3
"""An oracle of its own: every algorithm that has a synchronous form, in NumPy
from its paper's equations, beside what kith does.

    usage: oracle.py KITH [NAME...]

n quadratics f_i(x) = |x - b_i|^2 / 2 of dimension d in float64 over irregular
graphs, from x_i(0) that are not 0. kith's side is what `kith sim --dump` wrote;
the oracle takes x(0), the targets, the learning rates and the graph from it,
and nothing else. Equations stand in averaging.py, tracking.py, push_sum.py and
outer.py; x, y are (n, d), W is (n, n), `@` sums over neighbours.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

import averaging
import outer
import push_sum
import tracking

N, DIM, STEPS, SEED, ETA = 9, 5, 60, 5, 0.1
BOUND = 1e-12
FAMILIES = [averaging, tracking, push_sum, outer]
# Without a synchronous form: pairs meet, or a push leaves, at any time.
AT_ANY_TIME = ["acid", "adpsgd", "elastic", "gosgd", "gossip-push", "sgp",
               "sparta", "swarm"]
# In rounds, and compared by hand in unit tests alone.
BY_HAND = {"gs-sgd": "sketches of hashes that no paper fixes",
           "update-sets": "no paper has it"}

# Strongly connected, degrees in and out from 1 to 4.
DIRECTED = """0 1
0 2
0 4
1 2
2 3
3 0
3 4
4 5
5 1
5 6
6 7
7 0
7 8
8 0
8 3
8 5
"""

FILE = """name: oracle
seed: {seed}
peers: {peers}
stop: {{steps: {steps}}}
evaluate: end
model: {{kind: quadratic, dim: {dim}, start: 1, apart: {apart}}}
train: {{backend: naive64, learning_rate: {eta}}}
gossip: {{{gossip}}}
network: {{latency: 1us}}
compute: {{step: 1ms}}
"""


class Run:
    """What kith dumped of a case, and what the case asked for."""

    def __init__(self, dump, keys):
        self.x0, self.b, self.rate = dump["x"][0], dump["targets"], dump["rate"]
        self.steps, self.n = len(self.rate), len(self.b)
        self.W, self.C = dump.get("W"), dump.get("C")
        self.every = keys.get("every", 1)
        self.keys = keys

    def g(self, x):
        """Gradients of all peers, (n, d)."""
        return x - self.b

    def round_after(self, t):
        """The round that follows step t, or None."""
        return (t + 1) // self.every - 1 if (t + 1) % self.every == 0 else None


def metropolis(graph, lazy):
    """W_ij = 1 / (1 + max(deg_i, deg_j)); lazy: (W + I) / 2."""
    degree = graph.sum(axis=1)
    W = graph / (1 + np.maximum.outer(degree, degree))
    W += np.diag(1 - W.sum(axis=1))
    return (W + np.eye(len(W))) / 2 if lazy else W


def check_matrices(dump, keys, lazy):
    """The graph's weights are what the topology promises."""
    W, C, graph = dump.get("W"), dump.get("C"), dump.get("graph")
    found = 0.0
    if keys["algorithm"] == "swift":
        W = W[1:]  # nothing has come in the first round
    if C is not None:
        found = abs(C.sum(axis=1) - 1).max()  # columns
    elif W is not None:
        found = abs(W.sum(axis=2) - 1).max()  # rows
    if keys.get("topology") == "erdos-renyi":
        assert np.ptp(graph.sum(axis=1)) > 0, "a regular graph"
        assert (graph == graph.T).all()
        found = max(found, abs(W - metropolis(graph, lazy)).max())
    elif keys.get("topology") == "file-directed":
        out, into = graph.sum(axis=0), graph.sum(axis=1)
        eye = np.eye(len(graph))
        assert np.ptp(out) > 0 and np.ptp(into) > 0, "a regular graph"
        found = max(found, abs(C - (graph + eye) / (1 + out)).max())
        if keys["algorithm"] == "push-pull":
            R = (graph + eye) / (1 + into)[:, None]
            found = max(found, abs(W - R).max())
    return found


def simulate(kith, folder, case):
    keys = dict(case["keys"], algorithm=case["name"])
    if keys.get("topology") == "file-directed":
        keys["path"] = os.path.join(folder, "edges")
        with open(keys["path"], "w") as edges:
            edges.write(DIRECTED)
    file, dump = (os.path.join(folder, name) for name in ("e.yaml", "e.npz"))
    with open(file, "w") as out:
        out.write(FILE.format(
            seed=SEED, peers=case.get("peers", N), steps=STEPS, dim=DIM,
            eta=ETA, apart=case.get("apart", 1),
            gossip=", ".join(f"{key}: {value}" for key, value in keys.items())))
    subprocess.run([kith, "sim", file, "--dump", dump, "--out", folder],
                   check=True, stdout=subprocess.DEVNULL)
    with np.load(dump) as arrays:
        return {key: arrays[key] for key in arrays}, keys


def deviation(x, expected):
    """The largest, relative to the largest value there is."""
    return abs(x - expected).max() / abs(expected).max()


def compare(kith, case):
    with tempfile.TemporaryDirectory() as folder:
        dump, keys = simulate(kith, folder, case)
    run = Run(dump, keys)
    worst = check_matrices(dump, keys, case["name"] == "d2")
    count = 0
    for t, expected in enumerate(case["rule"](run)):
        x, weight = expected if isinstance(expected, tuple) else (expected, None)
        worst = max(worst, deviation(dump["x"][t + 1], x))
        if weight is not None:
            worst = max(worst, deviation(dump["weight"][t + 1], weight))
        count += 1
    assert count == run.steps, f"{count} steps of {run.steps}"
    assert abs(dump["x"][0]).min() > 0, "x(0) is 0"
    return worst


def all_algorithms(kith):
    lines = subprocess.run([kith, "list", "algorithms"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return [line.split()[0] for line in lines[1:]]


def main():
    kith, wanted = sys.argv[1], sys.argv[2:]
    cases = [case for family in FAMILIES for case in family.CASES]
    known = {case["name"] for case in cases} | set(AT_ANY_TIME) | set(BY_HAND)
    missing = sorted(set(all_algorithms(kith)) ^ known)
    failed = [f"{name} is in no list" for name in missing]
    compared = []
    for case in cases:
        if wanted and case["name"] not in wanted:
            continue
        worst = compare(kith, case)
        what = ", ".join(f"{k} {v}" for k, v in case["keys"].items())
        print(f"{case['name']:20} {worst:8.1e}  {what}", flush=True)
        if not worst <= BOUND:
            failed.append(f"{case['name']}: {worst:.1e} > {BOUND:.0e}")
        compared.append((case["name"], worst))
    names = {name for name, _ in compared}
    print(f"{len(names)} algorithms compared in {len(compared)} cases, largest "
          f"deviation {max(worst for _, worst in compared):.1e}")
    print(f"no synchronous form: {', '.join(AT_ANY_TIME)}")
    for name, why in BY_HAND.items():
        print(f"not compared: {name}, {why}")
    for line in failed:
        print(f"FAILED {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
