#!/usr/bin/env python3
"""kith's training steps beside PyTorch's, alternating, in samples per second.

    usage: train_torch.py BENCH_TRAIN_PROGRAM [CASE ...]

The cases of bench_train.c: an MLP 784-512-512-10 at batch 64 and 256, a CNN
(convolutions 16 and 32, 28x28, batch 64), ResNet-20 (32x32, batch 128), GPT (4
blocks, width 128, context 128, batch 16); float32, on the CPU; and gpt512-bf16, a
GPT of width 512 (batch 8) on backend cpu-bf16 beside kith's own float32 and
PyTorch's bfloat16 autocast. PyTorch gets its batches ready made, kith draws its
own. Each side runs at its best: kith with
its fastest provider of products, PyTorch eager with its faster layout of
images and fused optimisers where they win, both with 1 and 2 threads, per round
whichever is faster; torch.compile stands beside it. Memory is each process's
peak less what it held just before the model was built. Shares are of the
multiply-add rate of as many cores, measured in the same run.

BENCH_SECONDS: of one measurement (0.5); BENCH_COMPILE=0: no torch.compile.
Measured with PyTorch 2.15.0; the version at hand is printed.
"""
import os
import statistics
import subprocess
import sys
import time

# OpenMP threads that spin starve everybody else on few cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
ROUNDS = 9
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.5"))
COMPILE = os.environ.get("BENCH_COMPILE", "1") != "0"
# Floor and goal, kith : PyTorch.
CASES = {"mlp64": (1.15, 1.4), "mlp256": (1.0, 1.2), "cnn": (1.0, 1.3),
         "resnet20": (0.8, 1.0), "gpt": (1.0, 1.2), "gpt512-bf16": (0.9, 0.9)}
# Case in bfloat16: the same in float32, and how much faster it has to be.
NARROW = {"gpt512-bf16": ("gpt512", 1.5)}
CONTEXT, VOCABULARY = 128, 65

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    print("# PyTorch is not installed, so nothing to compare with: add "
          "python3-torch (Debian, Ubuntu) or, for the current release, pip "
          "install torch --index-url https://download.pytorch.org/whl/cpu")
    sys.exit(0)


# ---- PyTorch's side

class Block(nn.Module):
    """Of ResNet-20."""

    def __init__(self, ins, outs):
        super().__init__()
        stride = 1 if ins == outs else 2
        self.conv1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outs)
        self.conv2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outs)
        self.down = None if ins == outs else nn.Sequential(
            nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.down is None else self.down(x)
        return F.relu(y, inplace=True)


def resnet20():
    widths = [16] * 4 + [32] * 3 + [64] * 3
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
        nn.ReLU(inplace=True), *map(Block, widths, widths[1:]),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Layer(nn.Module):
    """Of GPT-2."""

    def __init__(self, width, heads):
        super().__init__()
        self.width, self.heads = width, heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.fc = nn.Linear(width, 4 * width)
        self.out = nn.Linear(4 * width, width)

    def forward(self, x):
        rows, context, _ = x.shape
        q, k, v = (t.view(rows, context, self.heads, -1).transpose(1, 2)
                   for t in self.attn(self.ln_1(x)).split(self.width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(rows, context, self.width))
        y = F.gelu(self.fc(self.ln_2(x)), approximate="tanh")
        return x + self.out(y)


class Gpt(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, width)
        self.wpe = nn.Embedding(CONTEXT, width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(4)))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, x):
        x = self.wte(x) + self.wpe.weight
        x = self.ln_f(self.layers(x))
        return (x @ self.wte.weight.T).view(-1, VOCABULARY)


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512),
                         nn.ReLU(), nn.Linear(512, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10))


MODELS = {"mlp64": (mlp, 64, (784,)), "mlp256": (mlp, 256, (784,)),
          "cnn": (cnn, 64, (1, 28, 28)), "resnet20": (resnet20, 128, (3, 32, 32)),
          "gpt": (lambda: Gpt(128, 4), 16, None),
          "gpt512-bf16": (lambda: Gpt(512, 8), 8, None)}


class Trainer:
    """One model and a ring of ready batches."""

    def __init__(self, case, how):
        build, self.batch, shape = MODELS[case]
        torch.manual_seed(1)
        last = "last" in how
        self.batches = []
        for _ in range(8):
            if shape is None:
                x = torch.randint(VOCABULARY, (self.batch, CONTEXT))
                y = torch.randint(VOCABULARY, (self.batch * CONTEXT,))
            else:
                x = torch.rand(self.batch, *shape)
                y = torch.randint(10, (self.batch,))
                x = x.to(memory_format=torch.channels_last) if last else x
            self.batches.append((x, y))
        self.unit = self.batch * (CONTEXT if shape is None else 1)
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        self.before = status_bytes("VmRSS:")
        model = build()
        if last:
            model = model.to(memory_format=torch.channels_last)
        fused = "fused" in how
        self.optimiser = (
            torch.optim.AdamW(model.parameters(), 0.001, weight_decay=0,
                              fused=fused) if case.startswith("gpt") else
            torch.optim.SGD(model.parameters(), 0.001, momentum=0.9,
                            fused=fused))
        self.model = torch.compile(model) if "compile" in how else model
        self.narrow = case in NARROW

    def step(self, i):
        x, y = self.batches[i % len(self.batches)]
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.narrow):
            loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimiser.step()

    def run(self, threads, seconds):
        if threads != torch.get_num_threads():
            torch.set_num_threads(threads)
        steps, start = 0, time.monotonic()
        now = start
        while now - start < seconds:
            self.step(steps)
            steps += 1
            now = time.monotonic()
        return steps * self.unit / (now - start)


def status_bytes(key):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file
                    if line.startswith(key))


def serve(case, how):
    """Answers like bench_train: "THREADS SECONDS" -> rate, bytes."""
    trainer = Trainer(case, how)
    for line in sys.stdin:
        threads, seconds = line.split()
        rate = trainer.run(int(threads), float(seconds))
        print(rate, status_bytes("VmHWM:") - trainer.before, flush=True)


# ---- the comparison

class Side:
    """A process that trains when it is asked to."""

    def __init__(self, *command):
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.bytes = 0

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def rate(self, threads, seconds=SECONDS):
        rate, size = self.ask(f"{threads} {seconds}").split()
        self.bytes = max(self.bytes, int(size))
        return float(rate)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def torch_side(case, how):
    return Side(sys.executable, os.path.abspath(__file__), "serve", case, how)


def best_of(rates):
    """The name whose rates are the largest, by their median."""
    return max(rates, key=lambda name: statistics.median(rates[name]))


def choose_torch(case, threads):
    """PyTorch's fastest eager setting of this case."""
    ways = ["eager", "eager+fused"]
    if case in ("cnn", "resnet20"):
        ways += ["eager+last", "eager+last+fused"]
    sides = {way: torch_side(case, way) for way in ways}
    rates = {way: [] for way in ways}
    for way, side in sides.items():
        side.rate(threads, SECONDS / 4)
    for _ in range(3):
        for way, side in sides.items():
            rates[way].append(side.rate(threads, SECONDS / 2))
    best = best_of(rates)
    for way, side in sides.items():
        if way != best:
            side.close()
    return best, sides[best]


def choose_products(kith, case, threads):
    """kith's fastest provider of this case; cpu-bf16 has one."""
    if case in NARROW:
        return "onednn in bfloat16"
    names = [name for name in ("own", "openblas", "onednn")
             if kith.ask(f"product {name}") == "1\n"]
    rates = {name: [] for name in names}
    for _ in range(3):
        for name in names:
            kith.ask(f"product {name}")
            rates[name].append(kith.rate(threads, SECONDS / 3))
    best = best_of(rates)
    kith.ask(f"product {best}")
    return best


def spread(values):
    return (f"{statistics.median(values):.4g} "
            f"[{min(values):.4g}..{max(values):.4g}]")


def compare(program, case, threads):
    kith = Side(program, "serve", case)
    line = kith.process.stdout.readline()
    if line == "":
        print(f"\n== {case}: not run, see above")
        return
    flops = float(line)
    products = choose_products(kith, case, threads[-1])
    way, eager = choose_torch(case, threads[-1])
    sides = {"kith": kith, "torch": eager}
    if COMPILE:
        sides["compile"] = torch_side(case, way.replace("eager", "compile"))
    if case in NARROW:
        sides["float32"] = Side(program, "serve", NARROW[case][0])
        sides["float32"].process.stdout.readline()
        choose_products(sides["float32"], NARROW[case][0], threads[-1])
    rates = {(who, t): [] for who in sides for t in threads}
    peaks = {t: float(kith.ask(f"peak {t}")) for t in threads}
    for who, side in sides.items():
        for t in threads:
            side.rate(t, SECONDS / 4)
    for _ in range(ROUNDS):
        for t in threads:
            for who, side in sides.items():
                rates[who, t].append(side.rate(t))
            peaks[t] = max(peaks[t], float(kith.ask(f"peak {t}")))
    print(f"\n== {case}: kith's products by {products}; PyTorch {way}")
    for (who, t), values in rates.items():
        share = statistics.median(values) * flops / peaks[t] if peaks[t] else 0
        print(f"{who}, threads {t}: {spread(values)} /s, {share:.1%} of "
              f"{peaks[t] / 1e9:.0f} GFLOP/s")

    def best(who):
        return [max(rates[who, t][i] for t in threads) for i in range(ROUNDS)]

    floor, goal = CASES[case]
    ratios = [a / b for a, b in zip(best("kith"), best("torch"))]
    median = statistics.median(ratios)
    verdict = "goal met" if median >= goal else (
        "floor met" if median >= floor else "MISSED")
    print(f"kith : PyTorch eager: {spread(ratios)}, floor {floor}, goal "
          f"{goal}: {verdict}")
    if case in NARROW:
        ratios = [a / b for a, b in zip(best("kith"), best("float32"))]
        floor = NARROW[case][1]
        print(f"kith : kith's float32: {spread(ratios)}, floor {floor}: "
              f"{'met' if statistics.median(ratios) >= floor else 'MISSED'}")
    if COMPILE:
        ratios = [a / b for a, b in zip(best("kith"), best("compile"))]
        print(f"kith : torch.compile: {spread(ratios)}")
    print(f"memory: kith {kith.bytes / 2**20:.1f} MiB, PyTorch "
          f"{eager.bytes / 2**20:.1f} MiB: "
          f"{'met' if kith.bytes <= eager.bytes else 'MISSED'}", flush=True)
    for side in sides.values():
        side.close()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3])
        return
    threads = [1, 2] if len(os.sched_getaffinity(0)) > 1 else [1]
    print(f"# beside PyTorch {torch.__version__}, OMP_WAIT_POLICY="
          f"{os.environ['OMP_WAIT_POLICY']}")
    for case in sys.argv[2:] or CASES:
        compare(sys.argv[1], case, threads)


if __name__ == "__main__":
    main()
