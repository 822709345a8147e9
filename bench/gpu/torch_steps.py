"""PyTorch's steps at their best, beside kith's rates of steps.rates.

GPT-2 124M: autocast to bfloat16, torch.compile, cuDNN's or the flash attention,
forced, fused AdamW, vocabulary padded to 50,304. ResNet-50: channels last,
autocast, cudnn.benchmark, as it is and compiled. One batch size of each comes
first; more follow until TORCH_SECONDS (170) are over.
"""
import os
import statistics
import time

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from torch_models import GPT, resnet50, row

PART = "torch-steps"
GOAL = 1.0
FULL = {"sizes": (12, 12, 768, 1024, 50304), "rows": (32, 64, 16, 8),
        "side": 224, "images": 256, "rounds": 5, "steps": 5}
TINY = {"sizes": (2, 2, 64, 32, 72), "rows": (2, 1), "side": 64, "images": 2,
        "rounds": 1, "steps": 1}


class Clock:
    """Is there time for one more of what took so long?"""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.longest = 0.0

    def allows(self):
        return time.monotonic() + self.longest < self.end

    def run(self, function, *arguments):
        start = time.monotonic()
        found = function(*arguments)
        self.longest = max(self.longest, time.monotonic() - start)
        return found


def seconds(step, device, how):
    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(3):
        step()
    wait()
    took = []
    for _ in range(how["rounds"]):
        start = time.perf_counter()
        for _ in range(how["steps"]):
            step()
        wait()
        took.append((time.perf_counter() - start) / how["steps"])
    return statistics.median(took)


def forget(device):
    torch.compiler.reset()
    if device == "cuda":
        torch.cuda.empty_cache()


def kith_rates(folder):
    path = os.path.join(folder, "steps.rates")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {name: float(rate) for name, rate in
                (line.rstrip("\n").split("\t") for line in file)}


def compare(name, ours, theirs, how):
    """A row for each of kith's rates beside the best one here."""
    for key, rate in ours.items():
        if theirs == 0:
            continue
        ratio = rate / theirs
        verdict = "ok" if ratio >= GOAL else "MISSED"
        row(PART, f"kith : PyTorch, {name}, {key}", ratio, "",
            f">= {GOAL}" if how is FULL else "tiny: other models and devices",
            verdict if how is FULL else "info")


# ---- GPT-2

ATTENTIONS = {"cuDNN attention": SDPBackend.CUDNN_ATTENTION,
              "flash attention": SDPBackend.FLASH_ATTENTION}
ON_CPU = {"flash attention": SDPBackend.FLASH_ATTENTION,
          "plain attention": SDPBackend.MATH}


def gpt(how, device, rows, attention, kernel, half=True):
    """Tokens a second; 0 where it cannot run."""
    words, context = how["sizes"][4], how["sizes"][3]
    compiled = device == "cuda" and half
    name = f"GPT-2, {'bfloat16' if half else 'float32'}" \
           f"{', compile' if compiled else ''}, {attention}, batch {rows}"
    try:
        torch.manual_seed(1)
        model = GPT(*how["sizes"]).to(device)
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4,
                                      betas=(0.9, 0.95), weight_decay=0.1,
                                      fused=True)
        run = torch.compile(model) if compiled else model
        tokens = torch.randint(0, words, (rows, context), device=device)

        def step():
            with torch.autocast(device, torch.bfloat16, enabled=half):
                loss = run(tokens, tokens)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

        with sdpa_kernel(kernel):
            took = seconds(step, device, how)
    except Exception as error:  # pylint: disable=broad-exception-caught
        row(PART, name, 0.0, "tokens/s",
            (str(error) or repr(error)).splitlines()[0][:120])
        return 0.0
    rate = rows * context / took
    weights = sum(p.numel() for p in model.parameters())
    row(PART, name, rate, "tokens/s",
        f"{1e3 * took:.2f} ms, 6N is {6e-12 * weights * rate:.1f} TFLOP/s")
    return rate


# ---- ResNet-50

def resnet(how, device, compiled):
    rows, side = how["images"], how["side"]
    name = f"ResNet-50, bfloat16{', compile' if compiled else ''}, " \
           f"batch {rows}"
    torch.backends.cudnn.benchmark = True
    try:
        model = resnet50().to(device).to(memory_format=torch.channels_last)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9,
                                    weight_decay=1e-4, fused=True)
        run = torch.compile(model) if compiled else model
        images = torch.rand(rows, 3, side, side, device=device).to(
            memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (rows,), device=device)

        def step():
            with torch.autocast(device, torch.bfloat16):
                loss = F.cross_entropy(run(images), labels)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

        took = seconds(step, device, how)
    except Exception as error:  # pylint: disable=broad-exception-caught
        row(PART, name, 0.0, "images/s",
            (str(error) or repr(error)).splitlines()[0][:120])
        return 0.0
    row(PART, name, rows / took, "images/s", f"{1e3 * took:.2f} ms")
    return rows / took


def run(folder, device, tiny):
    how = TINY if tiny else FULL
    clock = Clock(float(os.environ.get("TORCH_SECONDS", "170")))
    rates = kith_rates(folder)
    ours = {model: {key: rate for key, rate in rates.items()
                    if key.startswith(f"{model} cuda-bf16")}
            for model in ("gpt", "resnet")}
    kernels = ATTENTIONS if device == "cuda" else ON_CPU
    first = {name: clock.run(gpt, how, device, how["rows"][0], name, kernel)
             for name, kernel in kernels.items()}
    attention = max(first, key=first.get)
    best = found = first[attention]
    compare("GPT-2", ours["gpt"], best, how)
    forget(device)
    theirs = clock.run(resnet, how, device, False)
    if device == "cuda" and clock.allows():
        theirs = max(theirs, clock.run(resnet, how, device, True))
    compare("ResNet-50", ours["resnet"], theirs, how)
    for rows in how["rows"][1:]:
        if not clock.allows():
            print(f"# no time for a batch of {rows}", flush=True)
            continue
        forget(device)
        best = max(best, clock.run(gpt, how, device, rows, attention,
                                   kernels[attention]))
    if best > found:
        compare("GPT-2, best batch", ours["gpt"], best, how)
    if clock.allows():
        torch.set_float32_matmul_precision("highest")
        gpt(how, device, how["rows"][-1], "any attention",
            list(SDPBackend.__members__.values())[1:], False)
