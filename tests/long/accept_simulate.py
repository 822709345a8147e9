"""Two comparisons of kith.simulate() with PyTorch.

Twins: the built-in MLP, and the same in PyTorch with its first weights and its
batches (engine_twin.py), have one trace hash
and the same losses of training and test to 1e-5 over 100 steps.

A thousand: softmax regression on the digits, STEPS (20) each, a twentieth crashes
and comes back, a partition: twice the same hash and bits; then PAIRS (5) times,
in turn, the simulator and the same steps in a bare loop: wall time at most 1.5
times as long by the median. `accept_simulate.py twins`, or thousand, is one of them."""
import gzip
import os
import resource
import statistics
import sys
import time

import numpy as np
import torch

import kith
from accept import OUT, TOP, Table, kith as run_kith, rows
from engine_twin import batches, fill, first_weights, own_rows

DIGITS = os.path.join(TOP, "examples", "data", "digits")
SEED, PEERS, STEPS, BATCH = 7, 8, 100, 16
PAIRS = int(os.environ.get("PAIRS", "5"))
torch.set_num_threads(1)


def read(name, skipped):
    with gzip.open(os.path.join(DIGITS, name)) as file:
        return np.frombuffer(file.read()[skipped:], np.uint8)


def digits(part):
    images = read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 64)
    return (torch.from_numpy((images / 255).astype("float32")),
            torch.from_numpy(read(f"{part}-labels-idx1-ubyte.gz", 8).astype("int64")))


TRAIN, TEST = digits("train"), digits("t10k")


def score(model):
    with torch.no_grad():
        scores = model(TEST[0])
        loss = torch.nn.functional.cross_entropy(scores, TEST[1])
        return float(loss), float((scores.argmax(1) == TEST[1]).float().mean())


# ---- twins

class Twin:
    def __init__(self, rank, first):
        self.model = self.params = torch.nn.Sequential(
            torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        fill([self.model[0], self.model[2]], first)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05, 0.9)
        own = own_rows(SEED, rank, PEERS, len(TRAIN[0]))
        self.batches = batches(SEED, rank, own, BATCH)

    def step(self):
        chosen = next(self.batches)
        loss = torch.nn.functional.cross_entropy(self.model(TRAIN[0][chosen]),
                                                 TRAIN[1][chosen])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


TWINS = f"""name: twin-{{kind}}
seed: {SEED}
peers: {PEERS}
stop: {{{{steps: {STEPS}}}}}
model: {{model}}
train: {{{{learning_rate: 0.05, momentum: 0.9, batch: {BATCH}}}}}
gossip: {{{{algorithm: adpsgd, every: 2, topology: random, guard: none}}}}
network: {{{{latency: 1ms, jitter: 200us}}}}
compute: {{{{step: 5ms}}}}
evaluate: 5ms
faults:
  - {{{{at: 102ms, for: 100ms, partition: "peer(0..3) <-> peer(4..7)"}}}}
  - {{{{at: 251ms, for: 50ms, pause: "peer(5)"}}}}
"""


def write(name, text):
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, name + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def twins(table):
    data = f"data: {{kind: idx, path: {DIGITS}, split: iid}}"
    mlp = write("twin-mlp", TWINS.format(
        kind="mlp", model="{kind: mlp, layers: [64, 32, 10]}\n" + data))
    program = write("twin-program", TWINS.format(
        kind="program", model="{kind: program}"))
    first = first_weights(mlp)
    model = Twin(0, first).model

    def evaluate(values):
        torch.nn.utils.vector_to_parameters(values, model.parameters())
        return score(model)

    built = run_kith("sim", mlp)
    twin = kith.simulate(lambda rank: Twin(rank, first), program, folder=OUT,
                         evaluate=evaluate)
    told = [rows(run, "SELECT peer, time_s, loss, test_loss, accuracy FROM "
                      "series ORDER BY time_s, peer") for run in (built, twin)]
    apart, count = 0.0, 0
    for ours, theirs in zip(*told):
        assert ours[:2] == theirs[:2], (ours, theirs)
        for a, b in zip(ours[2:4], theirs[2:4]):
            assert (a is None) == (b is None), (ours, theirs)
            if a is not None:
                apart, count = max(apart, abs(a - b)), count + 1
    table.add("trace hash of the twins", built["trace_hash"],
              twin["trace_hash"], built["trace_hash"] == twin["trace_hash"])
    table.add("losses, greatest difference", "<= 1e-5",
              f"{apart:.2g} of {count}", apart <= 1e-5 and count > 1000)
    table.add("accuracy of the average",
              f"{built['accuracy']['averaged']:.4f}",
              f"{twin['accuracy']['averaged']:.4f}",
              abs(built["accuracy"]["averaged"] -
                  twin["accuracy"]["averaged"]) < 0.005)


# ---- a thousand

MANY, MANY_STEPS = 1000, int(os.environ.get("STEPS", "20"))
THOUSAND = f"""name: thousand
seed: 1
peers: {MANY}
stop: {{steps: {MANY_STEPS}}}
model: {{kind: program}}
gossip: {{algorithm: adpsgd, every: 2, topology: random}}
network: {{latency: 5ms, jitter: 1ms}}
compute: {{step: {2000 // MANY_STEPS}ms}}
faults:
  - {{at: 550ms, crash: "frac(0.05)", restart: 300ms}}
  - {{at: 750ms, for: 500ms, partition: "peer(0..499) <-> peer(500..999)"}}
"""


class Softmax:
    def __init__(self, rank):
        torch.manual_seed(0)
        self.params = self.model = torch.nn.Linear(64, 10)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, 0.9)
        own = (torch.arange(64) * 22 + 7 * rank) % len(TRAIN[0])
        self.parts = [(TRAIN[0][half], TRAIN[1][half])
                      for half in (own[:32], own[32:])]
        self.steps = 0

    def step(self):
        x, y = self.parts[self.steps % 2]
        self.steps += 1
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def clocks():
    """Wall, and what this process had of the CPU: the same on a machine of its
    own."""
    return time.monotonic(), time.process_time()


def thousand(table):
    path = write("thousand", THOUSAND)
    probe = torch.nn.Linear(64, 10)

    def evaluate(values):
        torch.nn.utils.vector_to_parameters(values, probe.parameters())
        return score(probe)

    def simulated(**options):
        trainers = {}

        def make(rank):
            trainers[rank] = Softmax(rank)
            return trainers[rank]
        began = clocks()
        result = kith.simulate(make, path, folder=OUT, **options)
        spent = [b - a for a, b in zip(began, clocks())]
        bits = b"".join(one.detach().numpy().tobytes() for rank in range(MANY)
                        for one in trainers[rank].model.parameters())
        return result, bits, spent

    def bare():
        began = clocks()
        trainers = [Softmax(rank) for rank in range(MANY)]
        for _ in range(MANY_STEPS):
            for trainer in trainers:
                trainer.step().item()
        return [b - a for a, b in zip(began, clocks())]

    one, bits, _ = simulated(evaluate=evaluate)
    two, again, _ = simulated(evaluate=evaluate)
    print(f"  twice: {one['trace_hash']}, {two['trace_hash']}", bits == again,
          f"{one['accuracy']['averaged']:.3f}", flush=True)
    table.add("trace hash of 1,000, twice", one["trace_hash"],
              two["trace_hash"], one["trace_hash"] == two["trace_hash"])
    table.add("their models", "bit-equal", f"{len(bits)} bytes",
              bits == again)
    table.add("accuracy of the average", ">= 0.8",
              f"{one['accuracy']['averaged']:.3f}, {one['faults']} faults",
              one["accuracy"]["averaged"] >= 0.8 and one["faults"] >= 100)
    spans = []
    for _ in range(PAIRS):
        ours, theirs = simulated()[2], bare()
        spans.append([a / b for a, b in zip(ours, theirs)])
        print("  simulated {:.1f} s, CPU {:.1f} s;".format(*ours),
              "bare {:.1f} s, CPU {:.1f} s;".format(*theirs),
              f"load {os.getloadavg()[0]:.1f}", flush=True)
    wall, cpu = map(statistics.median, zip(*spans))
    table.add("wall time by the bare loop's", "<= 1.5", f"{wall:.2f}",
              wall <= 1.5)
    table.note("CPU time by the bare loop's", f"{cpu:.2f}")
    print(f"  {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB "
          "of memory at most")


def main():
    table = Table("kith.simulate() and PyTorch")
    for part in sys.argv[1:] or ("twins", "thousand"):
        {"twins": twins, "thousand": thousand}[part](table)
    table.end()


if __name__ == "__main__":
    main()
