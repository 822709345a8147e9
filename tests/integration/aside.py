"""A random experiment with vectors and without faults, in which many events are
of one time, so that merges run beside events of other peers: written to OUT. The
same seed, the same file.

    aside.py SEED DIGITS OUT.yaml
"""

import random
import sys

METHODS = (
    "adpsgd", "adpsgd, topology: random", "adpsgd, topology: circulant",
    "acid, topology: ring", "gosgd", "gossip-push", "elastic", "swarm",
    "sparta", "noloco, topology: ring", "running-sums, topology: exponential",
    "dpsgd, topology: ring", "dpsgd-atc, topology: circulant",
    "sgp, topology: exponential", "overlap-sgp, topology: exponential",
    "choco, topology: ring, compressor: top-k, density: 0.2",
    "swift, topology: ring", "epidemic", "d2, topology: ring",
    "gt, topology: ring", "diloco, topology: ring", "moshpit",
    "gossip-pga", "allreduce-ring", "relaysgd, topology: path",
    "qg-dsgdm, topology: ring", "local-sgd, topology: ring",
    "adpsgd, wire: bfloat16", "adpsgd, guard: clip", "adpsgd, chance: 0.6",
    "adpsgd, exchanges: 3",
    "dpsgd, topology: ring, guard: balance")


def main():
    seed, digits, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    draw = random.Random(seed)
    learns = draw.random() < 0.4
    model = (f"model: {{kind: mlp, layers: [64, {draw.choice((4, 12))}, 10]}}",
             f"data: {{kind: idx, path: {digits}, split: iid}}",
             "train: {learning_rate: 0.05, batch: 4}") if learns else (
        f"model: {{kind: quadratic, dim: {draw.choice((8, 300, 4096))}, "
        "apart: 0.5}", "train: {learning_rate: 0.05}")
    steps = draw.choice((6, 15))
    method = draw.choice(METHODS)
    pushes = method.startswith(("gosgd", "gossip-push", "sgp"))
    drops = ", drop_push: 0.2" if pushes and draw.random() < 0.5 else ""
    lines = [
        f"name: aside{seed}", f"seed: {seed}",
        f"peers: {draw.choice((8, 31, 50, 64))}",
        "stop: {" + draw.choice((f"steps: {steps}", f"time: {steps * 5}ms",
                                 f"time: {steps * 5 - 1}ms",
                                 f"steps: {steps}, time: {steps * 5 + 3}ms"))
        + "}", *model,
        f"gossip: {{algorithm: {method}, every: {draw.choice((1, 1, 2))}}}",
        "network: {" + draw.choice((
            "latency: 1ms", "latency: 5ms", "latency: 2ms",
            "latency: 1ms, rate: 1Gbit", "latency: 1ms, loss: 0.05",
            "latency: 1ms, jitter: 1ms"))
        + f"{drops}}}",
        "compute: {step: " + draw.choice((
            "5ms", "5ms", "5ms, merge: 1ms", "5ms, spread: exponential"))
        + "}",
        draw.choice(("", "", "evaluate: 10ms", "evaluate: end",
                     "evaluate: full"))]
    with open(out, "w", encoding="utf-8") as file:
        print(*lines, sep="\n", file=file)


main()
