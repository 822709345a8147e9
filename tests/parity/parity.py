#!/usr/bin/env python3
"""Holds kith's training against PyTorch's: same starting weights, same batches,
same hyper-parameters.

    python3 parity.py [--short] DUMP [CASE ...]     DUMP: tests/parity/dump

mlp, cnn, gpt, modern (gpt with RMSNorm and rotary positions)
                float32 losses over 100 steps agree to 1e-5 of the loss
resnet          float64 losses over 10 steps to 1e-6; float32: the first loss
                and every gradient tensor of the first step to 1e-4 of its norm;
                100 steps deviate at most 3 times as much as PyTorch with 1 and
                2 threads deviates from itself
logits          gpt, one checkpoint, both ways: max|a - b| <= 1e-4 max|a|

--short: a few steps of everything, in under a minute. Where a bound breaks, look
at float64 first: whoever strays from it is the one to ask.

Exit status 77 where PyTorch is not installed, 1 where a bound is broken.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"SKIP: {error}; add python3-torch or pip install torch")
    sys.exit(77)

FASHION = "/usr/share/datasets/fashion-mnist"
failures = []
short = False


def report(what, asked, measured):
    held = measured <= asked
    print(f"{what}: asked <= {asked:g}, measured {measured:.3g}"
          f"{'' if held else '  BROKEN'}", flush=True)
    if not held:
        failures.append(what)


# ---- safetensors, without a library

def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    types = {"F64": "<f8", "F32": "<f4"}
    return {name: torch.from_numpy(numpy.frombuffer(
        data[slice(*entry["data_offsets"])], types[entry["dtype"]])
        .reshape(entry["shape"]).copy())
        for name, entry in header.items() if name != "__metadata__"}


def write(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().to(torch.float32).numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# ---- models: functions of a dict of kith's tensors and a batch

def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def conv(p, name, x, stride=1, pad=1):
    """Weights are (kernel, kernel, in, out)."""
    weight = p[name + ".weight"].permute(3, 2, 0, 1)
    return F.conv2d(x, weight, p.get(name + ".bias"), stride, pad)


def norm(p, name, x):
    return F.batch_norm(x, None, None, p[name + ".weight"], p[name + ".bias"],
                        training=True, eps=1e-5)


def flat(x):
    return x.permute(0, 2, 3, 1).flatten(1)


def images(x, shape):
    return x.view(-1, *shape).permute(0, 3, 1, 2)


def mlp(p, x, layers):
    for i in range(1, layers):
        x = linear(p, f"fc{i}", x)
        x = F.relu(x) if i < layers - 1 else x
    return x


def cnn(p, x, shape, convolutions):
    x = images(x, shape)
    for i in range(1, convolutions + 1):
        x = F.max_pool2d(F.relu(conv(p, f"conv{i}", x)), 2)
    return linear(p, "fc", flat(x))


def resnet(p, x, shape, blocks=3):
    x = F.relu(norm(p, "bn1", conv(p, "conv1", images(x, shape))))
    for stage in range(1, 4):
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            y = F.relu(norm(p, name + ".bn1",
                            conv(p, name + ".conv1", x, stride)))
            y = norm(p, name + ".bn2", conv(p, name + ".conv2", y))
            if stride == 2:
                x = norm(p, name + ".downsample.1",
                         conv(p, name + ".downsample.0", x, 2, 0))
            x = F.relu(x + y)
    return linear(p, "fc", x.mean((2, 3)))


def rotated(x):
    """Elements i and i + size / 2 of a head turn by position 10000^(-2i/size)."""
    context, half = x.shape[-2], x.shape[-1] // 2
    angle = (torch.arange(context, dtype=torch.float64)[:, None] *
             10000 ** (-torch.arange(half, dtype=torch.float64) / half))
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * c - b * s, b * c + a * s), -1)


def gpt(p, x, depth, heads, modern=False):
    def layer_norm(name, x):
        if modern:
            square = x.square().mean(-1, keepdim=True)
            return x * (square + 1e-5).rsqrt() * p[name + ".weight"]
        return F.layer_norm(x, x.shape[-1:], p[name + ".weight"],
                            p[name + ".bias"], 1e-5)

    def conv1d(name, x):
        return x @ p[name + ".weight"] + p[name + ".bias"]

    rows, context = x.shape
    x = p["wte.weight"][x]
    if not modern:
        x = x + p["wpe.weight"][:context]
    for i in range(depth):
        q, k, v = conv1d(f"h.{i}.attn.c_attn",
                         layer_norm(f"h.{i}.ln_1", x)).chunk(3, -1)
        q, k, v = (t.view(rows, context, heads, -1).transpose(1, 2)
                   for t in (q, k, v))
        if modern:
            q, k = rotated(q), rotated(k)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        later = torch.ones(context, context, dtype=torch.bool).triu(1)
        y = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
        y = y.transpose(1, 2).reshape(rows, context, -1)
        x = x + conv1d(f"h.{i}.attn.c_proj", y)
        y = conv1d(f"h.{i}.mlp.c_fc", layer_norm(f"h.{i}.ln_2", x))
        x = x + conv1d(f"h.{i}.mlp.c_proj", F.gelu(y, approximate="tanh"))
    return layer_norm("ln_f", x) @ p["wte.weight"].T


# ---- a case: an experiment, its model in PyTorch

class Case:
    def __init__(self, dump, folder, experiment, model, tokens=False):
        self.dump, self.folder = dump, folder
        self.model, self.tokens = model, tokens
        self.train = experiment["train"]
        self.path = os.path.join(folder, "experiment.yaml")
        experiment |= {"seed": 7, "peers": 1, "name": "parity",
                       "stop": {"steps": 1000},
                       "gossip": {"algorithm": "local"}}
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(experiment, file)  # JSON is YAML

    def run(self, steps, *more):
        out = os.path.join(self.folder, "out.safetensors")
        subprocess.run([self.dump, self.path, str(steps), out, *more],
                       check=True)
        return read(out)

    def parameters(self, out, dtype):
        return {name[6:]: tensor.to(dtype, copy=True).requires_grad_(
            "running" not in name)
            for name, tensor in out.items() if name.startswith("start.")}

    def batch(self, out, step, dtype):
        inputs, labels = out["inputs"][step], out["labels"][step]
        return (inputs.long() if self.tokens else inputs.to(dtype),
                labels.long())

    def loss(self, p, out, step, dtype):
        inputs, labels = self.batch(out, step, dtype)
        scores = self.model(p, inputs)
        return F.cross_entropy(scores.view(len(labels), -1), labels)

    def optimiser(self, p):
        t = self.train
        learn = [q for q in p.values() if q.requires_grad]
        # Vectors do not decay.
        groups = [{"params": [q for q in learn if q.dim() > 1]},
                  {"params": [q for q in learn if q.dim() == 1],
                   "weight_decay": 0}]
        if t["optimiser"] == "adamw":
            return torch.optim.AdamW(groups, t["learning_rate"],
                                     (t["beta1"], t["beta2"]), 1e-8,
                                     t.get("weight_decay", 0))
        return torch.optim.SGD(groups, t["learning_rate"], t["momentum"],
                               weight_decay=t.get("weight_decay", 0))

    def losses(self, out, steps, dtype):
        p = self.parameters(out, dtype)
        optimiser, losses = self.optimiser(p), []
        warmup = self.train.get("warmup", 1)
        for step in range(steps):
            for group in optimiser.param_groups:
                group["lr"] = (self.train["learning_rate"] *
                               min(1, (step + 1) / warmup))
            optimiser.zero_grad()
            loss = self.loss(p, out, step, dtype)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return torch.tensor(losses, dtype=torch.float64)


def worst(a, b):
    return ((a - b).abs() / b.abs()).max().item()


def check_losses(name, case):
    steps = 10 if short else 100
    out = case.run(steps)
    ours, theirs = out["losses"], case.losses(out, steps, torch.float32)
    print(f"{name}: loss {ours[0]:.4f} -> {ours[-1]:.4f}")
    report(f"{name}: float32 losses, {steps} steps", 1e-5, worst(ours, theirs))


def check_resnet(case, few, wide):
    steps = 2 if short else 10
    out = wide.run(steps)
    report(f"resnet: float64 losses, {steps} steps", 1e-6,
           worst(out["losses"], wide.losses(out, steps, torch.float64)))
    out = few.run(1)
    p = few.parameters(out, torch.float32)
    loss = few.loss(p, out, 0, torch.float32)
    loss.backward()
    report("resnet: float32 first loss", 1e-4,
           abs(loss.item() - out["losses"][0].item()) / loss.item())
    report("resnet: float32 first gradients", 1e-4, max(
        ((out["gradient." + name] - q.grad).norm() / q.grad.norm()).item()
        for name, q in p.items() if q.requires_grad))
    if short:
        return
    out = case.run(100)
    runs = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        runs.append(case.losses(out, 100, torch.float32))
    own = (runs[0] - runs[1]).abs().mean().item()
    ours = min((out["losses"] - run).abs().mean().item() for run in runs)
    print(f"resnet: PyTorch's own mean deviation over 100 steps {own:.3g}")
    report("resnet: float32 losses, 100 steps, of PyTorch's own", 3,
           ours / max(own, 1e-12))


def check_logits(case):
    out = case.run(1)
    p = {name: q.detach() for name, q in
         case.parameters(out, torch.float32).items()}
    inputs, _ = case.batch(out, 0, torch.float32)
    scores = case.model(p, inputs).flatten(0, 1)
    report("logits: PyTorch from kith's weights", 1e-4,
           ((scores - out["scores"]).abs().max() / scores.abs().max()).item())
    torch.manual_seed(3)
    other = {name: torch.randn_like(q) * 0.05 + (".weight" in name and
             "ln_" in name) for name, q in p.items()}
    path = os.path.join(case.folder, "torch.safetensors")
    write(path, {"transformer." + name: q for name, q in other.items()} |
          {"lm_head.weight": other["wte.weight"]})
    out = case.run(1, "--weights", path)
    scores = case.model(other, inputs).flatten(0, 1)
    report("logits: kith from PyTorch's weights", 1e-4,
           ((scores - out["scores"]).abs().max() / scores.abs().max()).item())


# ---- the cases

SGD = {"optimiser": "sgd", "learning_rate": 0.05, "momentum": 0.9,
       "weight_decay": 5e-4}


def fashion(folder):
    if os.path.isdir(FASHION):
        return {"kind": "idx", "path": FASHION}
    return pictures(folder, (28, 28, 1))


def pictures(folder, shape):
    """Pictures with something to learn: a bright square by class, and noise."""
    rng = numpy.random.default_rng(5)
    for part, count in (("train", 1024), ("test", 64)):
        labels = rng.integers(0, 10, count).astype("u1")
        values = rng.integers(0, 160, (count, *shape)).astype("u1")
        for value, label in zip(values, labels):
            value[2 * label:2 * label + 6, 3:9] += 90
        numpy.save(os.path.join(folder, f"x_{part}.npy"), values)
        numpy.save(os.path.join(folder, f"y_{part}.npy"), labels)
    return {"kind": "npy", "path": folder}


def text(folder):
    """Shakespeare where it is at hand, else words in a random order."""
    for root in (os.environ.get("KITH_TESTDATA", ""), "../shared/data"):
        path = os.path.abspath(os.path.join(root, "tinyshakespeare.txt"))
        if os.path.isfile(path):
            return {"kind": "text", "path": path}, 65
    path = os.path.join(folder, "text.txt")
    rng = numpy.random.default_rng(5)
    with open(path, "w", encoding="ascii") as file:
        file.write(" ".join(rng.choice("to be or not that is the question".
                                       split(), 40000)))
    return {"kind": "text", "path": path}, len(set(open(path).read()))


def run_mlp(dump, folder):
    check_losses("mlp", Case(dump, folder, {
        "model": {"kind": "mlp", "layers": [784, 256, 128, 10]},
        "data": fashion(folder), "train": SGD | {"batch": 64}},
        lambda p, x: mlp(p, x, 4)))


# 0.8 million ReLUs and a pool at every fourth: at larger rates some last bit
# decides one of them within a few steps, and PyTorch's float32 strays from its
# own float64 by 5e-4 (0.05, momentum 0.9) to 3e-5 (0.01, without) in 100 steps.
def run_cnn(dump, folder):
    check_losses("cnn", Case(dump, folder, {
        "model": {"kind": "cnn", "image": [28, 28, 1], "channels": [16, 32],
                  "classes": 10},
        "data": fashion(folder),
        "train": SGD | {"learning_rate": 0.002, "momentum": 0, "batch": 64}},
        lambda p, x: cnn(p, x, (28, 28, 1), 2)))


# Adam's first step is almost the sign of the gradient: without a warm-up, an
# element whose gradient is mere rounding moves as far as any other.
def gpt_case(dump, folder, modern=False):
    more = {"norm": "rms", "positions": "rotary"} if modern else {}
    data, vocabulary = text(folder)
    return Case(dump, folder, {
        "model": {"kind": "gpt", "depth": 4, "heads": 4, "width": 128,
                  "context": 64, "vocabulary": vocabulary} | more, "data": data,
        "train": {"optimiser": "adamw", "learning_rate": 1e-3, "beta1": 0.9,
                  "beta2": 0.99, "weight_decay": 0.1, "batch": 12,
                  "warmup": 100}},
        lambda p, x: gpt(p, x, 4, 4, modern), tokens=True)


def run_gpt(dump, folder):
    check_losses("gpt", gpt_case(dump, folder))


def run_modern(dump, folder):
    check_losses("modern", gpt_case(dump, folder, modern=True))


def run_logits(dump, folder):
    check_logits(gpt_case(dump, folder))


# The first gradients are those of 8 pictures: one ReLU that a last bit decides
# moves them by 1e-3, and of the 12 million of 64 pictures PyTorch's float32
# decides some unlike its own float64 (1e-2), as does ours (2e-3).
def run_resnet(dump, folder):
    def case(name, batch, backend):
        inside = os.path.join(folder, name)
        os.mkdir(inside)
        return Case(dump, inside, {
            "model": {"kind": "resnet", "depth": 20, "image": [32, 32, 3],
                      "classes": 10},
            "data": pictures(inside, (32, 32, 3)),
            "train": SGD | {"batch": batch, "backend": backend}},
            lambda p, x: resnet(p, x, (32, 32, 3)))

    check_resnet(case("many", 64, "cpu"), case("few", 8, "cpu"),
                 case("wide", 8, "naive64"))


def main():
    global short
    arguments = [a for a in sys.argv[1:] if a != "--short"]
    short = len(arguments) < len(sys.argv) - 1
    cases = {"mlp": run_mlp, "cnn": run_cnn, "gpt": run_gpt, "modern": run_modern,
             "logits": run_logits, "resnet": run_resnet}
    print(f"PyTorch {torch.__version__}")
    torch.set_num_threads(1)
    for name in arguments[1:] or cases:
        with tempfile.TemporaryDirectory() as folder:
            cases[name](arguments[0], folder)
    if failures:
        print(f"broken: {', '.join(failures)}")
        sys.exit(1)


main()
