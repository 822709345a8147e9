#!/usr/bin/env python3
"""The run of examples/shakespeare.yaml in PyTorch: what the same model, data
and hyper-parameters give there.

    usage: quality_torch.py TEXT [SEED ...]

4 blocks, 4 heads, width 128, context 64; AdamW, beta 0.9 and 0.99, no decay, no
dropout, 1e-3 to 1e-4 by a cosine after 100 steps of warm-up, 2,000 steps of 12
windows. Prints the mean loss per character over the whole last tenth, in
windows of 64. STEPS and BATCH in the environment change those two.
"""
import math
import os
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"SKIP: {error}; add python3-torch or pip install torch")
    sys.exit(77)

STEPS = int(os.environ.get("STEPS", "2000"))
BATCH = int(os.environ.get("BATCH", "12"))
DEPTH, HEADS, WIDTH, CONTEXT = 4, 4, 128, 64
RATE, FLOOR, WARMUP = 1e-3, 0.1, 100


def normal(*shape, spread=0.02):
    return (torch.randn(*shape) * spread).requires_grad_()


def constant(value, count):
    return torch.full((count,), float(value)).requires_grad_()


def start(vocabulary):
    """Weights as in src/training/model/gpt.c."""
    p = {"wte": normal(vocabulary, WIDTH), "wpe": normal(CONTEXT, WIDTH)}
    last = 0.02 / math.sqrt(2 * DEPTH)
    for name in [f"{i}.{n}" for i in range(DEPTH) for n in ("1", "2")] + ["f"]:
        p[name + ".w"], p[name + ".b"] = constant(1, WIDTH), constant(0, WIDTH)
    for i in range(DEPTH):
        for name, ins, outs, spread in (("qkv", 1, 3, 0.02), ("out", 1, 1, last),
                                        ("fc", 1, 4, 0.02),
                                        ("proj", 4, 1, last)):
            p[f"{i}.{name}.w"] = normal(outs * WIDTH, ins * WIDTH,
                                        spread=spread)
            p[f"{i}.{name}.b"] = constant(0, outs * WIDTH)
    return p


def scores(p, x):
    def norm(name, x):
        return F.layer_norm(x, (WIDTH,), p[name + ".w"], p[name + ".b"])

    def linear(name, x):
        return F.linear(x, p[name + ".w"], p[name + ".b"])

    rows, context = x.shape
    x = p["wte"][x] + p["wpe"][:context]
    for i in range(DEPTH):
        q, k, v = (t.view(rows, context, HEADS, -1).transpose(1, 2) for t in
                   linear(f"{i}.qkv", norm(f"{i}.1", x)).split(WIDTH, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(f"{i}.out",
                       y.transpose(1, 2).reshape(rows, context, WIDTH))
        y = F.gelu(linear(f"{i}.fc", norm(f"{i}.2", x)), approximate="tanh")
        x = x + linear(f"{i}.proj", y)
    return norm("f", x) @ p["wte"].T


def loss_of(p, x, y):
    return F.cross_entropy(scores(p, x).flatten(0, 1), y.flatten())


def factor(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    share = (step - WARMUP) / (STEPS - WARMUP)
    return FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * share)) / 2


def train(text, vocabulary, seed):
    torch.manual_seed(seed)
    p = start(vocabulary)
    optimiser = torch.optim.AdamW(p.values(), RATE, (0.9, 0.99),
                                  weight_decay=0, fused=True)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * factor(step)
        at = torch.randint(len(text) - CONTEXT, (BATCH,)).tolist()
        x = torch.stack([text[i:i + CONTEXT] for i in at])
        y = torch.stack([text[i + 1:i + CONTEXT + 1] for i in at])
        optimiser.zero_grad()
        loss_of(p, x, y).backward()
        optimiser.step()
    return p


def evaluate(p, text):
    windows = (len(text) - 1) // CONTEXT
    x = text[:windows * CONTEXT].view(windows, CONTEXT)
    y = text[1:windows * CONTEXT + 1].view(windows, CONTEXT)
    total = 0.0
    with torch.no_grad():
        for i in range(0, windows, 256):
            total += loss_of(p, x[i:i + 256],
                             y[i:i + 256]).item() * len(x[i:i + 256])
    return total / windows


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        characters = file.read()
    letters = sorted(set(characters))
    index = {letter: i for i, letter in enumerate(letters)}
    text = torch.tensor([index[letter] for letter in characters])
    cut = len(text) * 9 // 10
    print(f"# PyTorch {torch.__version__}, {len(letters)} characters, "
          f"{STEPS} steps of {BATCH}", flush=True)
    for seed in map(int, sys.argv[2:] or ("1",)):
        p = train(text[:cut], len(letters), seed)
        print(f"seed {seed}: loss over the last tenth "
              f"{evaluate(p, text[cut:]):.4f}", flush=True)


if __name__ == "__main__":
    main()
