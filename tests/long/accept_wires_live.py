"""The exchange and the guard hold with every wire what they hold with float32.

    python3 accept_wires_live.py [search] [mixing] [harm]      all three: default

  search   kith swarm --random with each wire: no violation
  mixing   of 48 simulated peers, -ln of the distance's ratio per trigger as in
           reference/overlap.md, beside float32: from a cold start for wires that
           need not know how far models are apart, and for all of them eight peers
           that train at a constant rate: the squared distance that is left,
           which has what a wire rounds in it, and is told
  harm     `clip` beside no guard where nobody lies, digits, 10 peers, paired by
           seed: the loss, and the upper end of its 95 % interval, which may be
           half a point, or what it is with float32

KITH and OUT are those of accept.py; SEEDS (5) of harm; RUNS (1000) and SEED (7)
of each search; WIRES, comma-separated.
"""
import itertools
import json
import math
import os
import statistics
import subprocess
import sys

from accept import KITH, OUT, TOP, Table, kith, mean
from byzantine import STUDENT

WIRES = os.environ.get("WIRES", "bfloat16,int8,moniqua8,moniqua4").split(",")
SEEDS = range(7, 7 + int(os.environ.get("SEEDS", "5")))
RUNS, SEED = os.environ.get("RUNS", "1000"), os.environ.get("SEED", "7")
HARM = 0.5      # points, of the upper end
# Of float32's mixing, three seeds of ten triggers a peer.
NO_WORSE = 0.97
# Models that differ by more than is known of them are read over several
# exchanges: the modular wires begin with one model, as training does.
MODULAR = ("moniqua8", "moniqua4")
COLD = """name: wires-live
peers: 48
stop: {steps: 10}
model: {kind: consensus, dim: 32}
train: {learning_rate: 0, batch: 1}
gossip: {algorithm: adpsgd, every: 1, topology: random}
network: {rate: 100Mbit}
compute: {step: 5ms, spread: exponential}
"""
DIGITS = f"""name: wires-live
peers: 10
stop: {{epochs: 60}}
model: {{kind: mlp, layers: [64, 32, 10]}}
data: {{kind: idx, path: {TOP}/examples/data/digits}}
train: {{learning_rate: 0.05, momentum: 0.9, batch: 16, schedule: linear}}
gossip: {{algorithm: adpsgd, every: 2}}
network: {{latency: 200us, rate: 10Gbit}}
compute: {{step: 5ms}}
evaluate: end
"""
# Algorithm, graph, own steps between exchanges; modular: moniqua reads it.
METHODS = (("adpsgd", "random", 2, True), ("dpsgd", "complete", 1, True),
           ("dpsgd-atc", "complete", 1, True), ("gosgd", "random", 1, False),
           ("sgp", "random", 1, False), ("local-sgd", "complete", 20, True),
           ("diloco", "complete", 20, False),
           ("noloco", "random-matching", 20, False))


def file_of(name, text):
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, f"{name}.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def run(path, *settings):
    result = kith("sim", path, *settings)
    os.unlink(result["database"])
    return result


def search(table):
    for wire in WIRES:
        folder = os.path.join(OUT, f"search-{wire}")  # a journal of its own
        os.makedirs(folder, exist_ok=True)
        line = [KITH, "swarm", "--random", "--json", "--runs", RUNS, "--seed",
                SEED, "--set", f"gossip.wire={wire}", "--out", folder]
        done = subprocess.run(line, stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(line)}: exit {done.returncode}")
        found = json.loads(done.stdout)
        print(f"  {wire}:", {name: mark["runs"] for name, mark in
                             found["marks"].items()})
        table.add(f"search, {wire}: violations in {found['runs']} runs", "0",
                  str(len(found["violations"])), not found["violations"])


def cold(wire, latency):
    path = file_of("wires-cold", COLD)
    runs = [run(path, f"seed={seed}", f"gossip.wire={wire}",
                f"network.latency={latency}") for seed in SEEDS[:3]]
    apart = mean(math.log(r["consensus_distance"] / math.sqrt(32))
                 for r in runs)
    return -2 * apart / 10


def warm(wire, algorithm):
    """The squared distance that training at a constant rate is left with."""
    path = file_of("wires-warm", DIGITS)
    runs = [run(path, f"seed={seed}", f"gossip.wire={wire}", "peers=8",
                f"gossip.algorithm={algorithm}", "stop.epochs=20",
                "train.schedule=constant", "train.learning_rate=0.02",
                "network.latency=1ms", "gossip.topology=" +
                ("ring" if algorithm == "acid" else "random"))
            for seed in SEEDS]
    return mean(r["consensus_distance"] ** 2 for r in runs)


def mixing(table):
    for latency in ("20us", "1ms", "4ms"):
        base = cold("float32", latency)
        for wire in WIRES:
            share = cold(wire, latency) / base
            what = f"mixing at {latency}, {wire}, of float32's {base:.2f}"
            if wire in MODULAR:
                table.note(what, f"{share:.3f}")
            else:
                table.at_least(what, NO_WORSE, share)
    for algorithm, modular in (("adpsgd", True), ("elastic", True),
                               ("swarm", False), ("acid", False)):
        base = warm("float32", algorithm)
        for wire in WIRES:
            if wire in MODULAR and not modular:
                continue
            table.note(f"distance^2 while it trains, {algorithm}, {wire}, of "
                       "float32's", f"{warm(wire, algorithm) / base:.2f}")


def harm(table):
    path = file_of("wires-harm", DIGITS)
    for (algorithm, graph, every, modular), split in itertools.product(
            METHODS, ("iid", "dirichlet(0.1)")):
        most = HARM
        for wire in ["float32"] + WIRES:
            if wire in MODULAR and not modular:
                continue
            lost = []
            for seed in SEEDS:
                none, clip = (100 * run(
                    path, f"seed={seed}", f"gossip.wire={wire}",
                    f"gossip.algorithm={algorithm}",
                    f"gossip.topology={graph}", f"gossip.every={every}",
                    f"data.split={split}",
                    f"gossip.guard={guard}")["accuracy"]["mean"]
                    for guard in ("none", "clip"))
                lost.append(none - clip)
            upper = (mean(lost) + STUDENT[len(lost) - 1] *
                     statistics.stdev(lost) / len(lost) ** 0.5)
            what = f"harm, {algorithm}, {split}, {wire}: loss, upper"
            measured = f"{mean(lost):.2f}, {upper:.2f}"
            if wire == "float32":
                most = max(HARM, upper)
                table.note(what, measured)
            else:
                table.add(what, f"<= {most:.2f}", measured, upper <= most)


def main():
    parts = {"search": search, "mixing": mixing, "harm": harm}
    asked = sys.argv[1:] or list(parts)
    if set(asked) - parts.keys():
        sys.exit(f"accept_wires_live.py: {asked}: not among {', '.join(parts)}")
    table = Table(f"Every wire: {', '.join(WIRES)}")
    for name in asked:
        parts[name](table)
    table.end()


if __name__ == "__main__":
    main()
