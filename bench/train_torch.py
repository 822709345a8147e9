#!/usr/bin/env python3
"""kith's TRAIN beside PyTorch's step, alternating, in samples per second.

    usage: train_torch.py BENCH_TRAIN_PROGRAM

MLP 784-512-512-10, ReLU, cross-entropy, SGD with momentum 0.9, float32, on the
CPU. PyTorch gets its batches ready made, kith draws its own from bytes. Both
run with 1 and 2 threads (as many as there are cores); per round each side's
better setting counts. Floors: 1.0 at batch 64, 0.9 at batch 256.
"""
import os
import statistics
import subprocess
import sys
import time

# OpenMP threads that spin starve everybody else on few cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
ROUNDS = 7
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.5"))
FLOORS = {64: 1.0, 256: 0.9}

try:
    import torch
except ImportError:
    print("# PyTorch is not installed, so nothing to compare with: add "
          "python3-torch (Debian, Ubuntu) or, for the current release, pip "
          "install torch --index-url https://download.pytorch.org/whl/cpu")
    sys.exit(0)


class Trainer:
    """PyTorch's side: one model and a ring of ready batches."""

    def __init__(self, batch):
        torch.manual_seed(1)
        nn = torch.nn
        self.batch = batch
        self.model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(),
                                   nn.Linear(512, 512), nn.ReLU(),
                                   nn.Linear(512, 10))
        self.loss = nn.CrossEntropyLoss()
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.01,
                                         momentum=0.9)
        self.batches = [(torch.rand(batch, 784),
                         torch.randint(0, 10, (batch,))) for _ in range(16)]

    def step(self, i):
        x, y = self.batches[i % len(self.batches)]
        self.optimiser.zero_grad(set_to_none=True)
        self.loss(self.model(x), y).backward()
        self.optimiser.step()

    def run(self, threads, seconds):
        torch.set_num_threads(threads)
        steps, start = 0, time.monotonic()
        now = start
        while now - start < seconds:
            self.step(steps)
            steps += 1
            now = time.monotonic()
        return steps * self.batch / (now - start)


def spread(values):
    return (f"{statistics.median(values):.4g} "
            f"[{min(values):.4g}..{max(values):.4g}]")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    threads = [1, 2] if len(os.sched_getaffinity(0)) > 1 else [1]
    print(f"# beside PyTorch {torch.__version__}, OMP_WAIT_POLICY="
          f"{os.environ['OMP_WAIT_POLICY']}")
    with subprocess.Popen([sys.argv[1], "serve"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as kith:

        def ours(batch, count, seconds):
            kith.stdin.write(f"{batch} {count} {seconds}\n")
            kith.stdin.flush()
            return float(kith.stdout.readline())

        for batch, floor in FLOORS.items():
            trainer = Trainer(batch)
            rates = {(who, t): [] for who in ("kith", "torch") for t in threads}
            for t in threads:
                ours(batch, t, SECONDS / 4)
                trainer.run(t, SECONDS / 4)
            for _ in range(ROUNDS):
                for t in threads:
                    rates["kith", t].append(ours(batch, t, SECONDS))
                    rates["torch", t].append(trainer.run(t, SECONDS))
            for (who, t), values in rates.items():
                print(f"{who}, batch {batch}, threads {t}: {spread(values)} "
                      "samples/s")
            ratios = [max(rates["kith", t][i] for t in threads) /
                      max(rates["torch", t][i] for t in threads)
                      for i in range(ROUNDS)]
            median = statistics.median(ratios)
            print(f"kith : torch, batch {batch}: {spread(ratios)} ratio, "
                  f"target >= {floor}: {'met' if median >= floor else 'MISSED'}")
        kith.stdin.close()


if __name__ == "__main__":
    main()
