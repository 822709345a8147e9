"""A random experiment without vectors, for several threads to share its events:
written to OUT. The same seed, the same file.

    windows.py SEED OUT.yaml
"""

import json
import os
import random
import sys


def matrix(draw, path):
    """Regions that are near themselves, and 10 to 22 ms from each other."""
    names = [f"r{i}" for i in range(draw.choice((2, 3, 4, 8)))]
    trips = {a: {b: draw.choice((0.5, 1)) if a == b
                 else 20 + (7 * i + 3 * j) % 5 * 6
                 for j, b in enumerate(names)} for i, a in enumerate(names)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"data": trips}, file)
    return f"matrix: {path}"


def main():
    seed, out = int(sys.argv[1]), sys.argv[2]
    draw = random.Random(seed)
    near = draw.choice(("1ms", "5ms", "20ms"))
    place = (matrix(draw, os.path.abspath(out) + ".json")
             if draw.random() < 0.4 else
             f"latency: {near}" + draw.choice(("", ", jitter: 2ms")))
    lines = draw.choice(("", ", rate: 100Mbit", ", rate: 20Mbit, loss: 0.01",
                         ", loss: 0.02", ", rate: 50Mbit, up: 10Mbit"))
    method = draw.choice((
        "adpsgd, topology: random", "adpsgd, topology: ring",
        "adpsgd, topology: circulant", "dpsgd, topology: ring",
        "dpsgd, topology: circulant", "sgp, topology: exponential",
        "choco, topology: ring", "diloco, topology: ring",
        "dpsgd, topology: one-peer-exponential"))
    stop = draw.choice(("steps: 30", "steps: 60", "time: 500ms",
                        "time: 733ms"))
    step = draw.choice((
        "step: 5ms", "step: 5ms, spread: exponential",
        "step: 10ms, merge: 200us, spread: exponential",
        "step: 20ms, merge: 50us", "step: 5ms, speeds: lognormal(0.5)"))
    with open(out, "w", encoding="utf-8") as file:
        print(f"name: w{seed}", f"seed: {seed}",
              f"peers: {draw.choice((16, 100, 300, 1000))}",
              f"stop: {{{stop}}}", "model: {kind: none}",
              f"gossip: {{algorithm: {method}, every: "
              f"{draw.choice((1, 1, 2, 4))}}}",
              f"network: {{{place}{lines}}}", f"compute: {{{step}}}",
              draw.choice(("", "", "evaluate: 200ms")), sep="\n", file=file)


main()
