#!/usr/bin/env python3
"""PyTorch on the models of bench_gpu, at its best, and the ratio to kith.

    usage: reference.py [LOG OF bench_gpu]

GPT-2 124M: autocast bf16, torch.compile, the fastest attention, fused AdamW,
vocabulary padded to 50304, sequences of 1024, the best of three micro-batches.
ResNet-50: channels-last, autocast bf16, eager, cudnn.benchmark, synthetic
images. Floors (kith : PyTorch): GPT-2 0.85, ResNet-50 0.8.
"""
import re
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

DEPTH, HEADS, WIDTH, CONTEXT, WORDS = 12, 12, 768, 1024, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        rows, context, width = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(width, dim=2)
        q, k, v = (t.view(rows, context, HEADS, width // HEADS).transpose(1, 2)
                   for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, context, width))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(WORDS, WIDTH)
        self.wpe = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.ln_f = nn.LayerNorm(WIDTH)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, labels):
        place = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(place)
        for block in self.blocks:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.weight.t()
        return F.cross_entropy(logits.view(-1, WORDS), labels.view(-1))


def seconds(step, rounds=9, steps=5):
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        took.append((time.perf_counter() - start) / steps)
    return statistics.median(took)


def gpt():
    best = 0.0
    for rows in (8, 16, 32):
        try:
            torch.manual_seed(1)
            model = GPT().cuda()
            optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4,
                                          betas=(0.9, 0.95), weight_decay=0.1,
                                          fused=True)
            compiled = torch.compile(model)
            tokens = torch.randint(0, 50257, (rows, CONTEXT), device="cuda")

            def step():
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = compiled(tokens, tokens)
                loss.backward()
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)

            rate = rows * CONTEXT / seconds(step)
        except torch.cuda.OutOfMemoryError:
            break
        print(f"torch, GPT-2 124M, {rows} x 1024: {rate:.0f} tokens/s",
              flush=True)
        best = max(best, rate)
        del model, optimiser, compiled
        torch.cuda.empty_cache()
    return best


def resnet(rows=256):
    try:
        from torchvision.models import resnet50
    except ImportError:
        print("# torchvision is not here: no ResNet-50 to compare with")
        return 0.0
    torch.backends.cudnn.benchmark = True
    model = resnet50().cuda().to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9,
                                weight_decay=1e-4, fused=True)
    images = torch.rand(rows, 3, 224, 224, device="cuda").to(
        memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (rows,), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    rate = rows / seconds(step)
    print(f"torch, ResNet-50, {rows} images: {rate:.0f} images/s", flush=True)
    return rate


def ours(log, model, unit):
    rates = re.findall(rf"{model}.* ([0-9.]+) {unit}", log)
    return max((float(r) for r in rates), default=0.0)


def main():
    torch.set_float32_matmul_precision("high")
    log = open(sys.argv[1], encoding="utf-8").read() if len(sys.argv) > 1 else ""
    missed = False
    print(f"# PyTorch {torch.__version__}")
    for name, theirs, unit, floor in (("GPT-2 124M", gpt(), "tokens/s", 0.85),
                                      ("ResNet-50", resnet(), "images/s", 0.8)):
        rate = ours(log, name, unit)
        if not log or theirs == 0:
            continue
        ratio = rate / theirs
        missed = missed or ratio < floor
        print(f"kith : torch, {name}: {ratio:.3f}, target >= {floor}: "
              f"{'met' if ratio >= floor else 'MISSED'}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
