"""kith's loss and gradients beside PyTorch's, at the same weights and tokens,
and two curves of losses. Reads the parity.* files that parity.c describes.

Of each tensor of the gradient, relative L2 distance to PyTorch's of the same
precision: at most 1e-4 in float32 and 2e-2 in bfloat16; of the loss likewise.
How far either lies from PyTorch's float32 in bfloat16 is said beside it.
"""
import os

import torch

from torch_models import gpt_loss, row

PART = "torch-parity"
LIMITS = {"single": 1e-4, "half": 2e-2}
NAMES = {"single": "float32", "half": "bfloat16"}
CURVE_LIMIT, CURVE_LAST = 0.02, 10


class Parity:
    """What kith left in the folder."""

    def __init__(self, folder, device):
        self.folder, self.device = folder, device
        self.views, self.losses, self.curve = {}, {}, []
        with open(self.path("layout"), encoding="utf-8") as file:
            for line in file:
                self.read_layout(line.split())
        with open(self.path("losses"), encoding="utf-8") as file:
            for word, *rest in (line.split() for line in file):
                if word == "step":
                    self.curve.append(float(rest[1]))
                else:
                    self.losses[word] = float(rest[0])
        count = self.steps * self.rows * (self.context + 1)
        self.tokens = torch.from_file(
            self.path("tokens"), size=count, dtype=torch.int32).view(
                self.steps, self.rows, self.context + 1).to(device).long()

    def read_layout(self, words):
        kind, rest = words[0], words[1:]
        if kind == "model":
            _, self.heads, _, self.context, _ = map(int, rest)
        elif kind == "training":
            self.rows, self.steps, self.warmup = map(int, rest[:3])
            (self.rate, self.beta1, self.beta2, self.epsilon,
             self.decay) = map(float, rest[3:])
        elif kind == "view":
            self.views[rest[0]] = (int(rest[1]), rest[2] == "1",
                                   tuple(map(int, rest[3:])))

    def path(self, name):
        return os.path.join(self.folder, "parity." + name)

    def vectors(self, name):
        """A file's tensors by view."""
        size = os.path.getsize(self.path(name)) // 4
        flat = torch.from_file(self.path(name), size=size, dtype=torch.float32)
        found = {}
        for view, (offset, _, shape) in self.views.items():
            count = 1
            for n in shape:
                count *= n
            found[view] = flat[offset:offset + count].view(shape).to(
                self.device)
        return found

    def start(self):
        return {name: x.clone().requires_grad_()
                for name, x in self.vectors("start").items()}

    def loss(self, weights, step, half):
        batch = self.tokens[step]
        with torch.autocast(self.device, torch.bfloat16, enabled=half):
            return gpt_loss(weights, self.heads, batch[:, :-1], batch[:, 1:])


def gradient(parity, half):
    weights = parity.start()
    loss = parity.loss(weights, 0, half)
    loss.backward()
    return loss.item(), {name: x.grad for name, x in weights.items()}


def apart(ours, theirs):
    """Relative L2 distance of each tensor."""
    return {name: ((ours[name] - theirs[name]).double().norm() /
                   theirs[name].double().norm()).item() for name in theirs}


def worst(distances):
    name = max(distances, key=lambda n: (distances[n] != distances[n],
                                         distances[n]))
    return name, distances[name]


def judge(name, value, limit):
    row(PART, name, value, "", f"<= {limit:g}",
        "ok" if value <= limit else "FAILED")


def compare_steps(parity):
    wide_loss, wide = gradient(parity, False)
    for kind in parity.losses:
        limit = LIMITS[kind]
        loss, theirs = ((wide_loss, wide) if kind == "single" else
                        gradient(parity, True))
        ours = parity.vectors(kind)
        distances = apart(ours, theirs)
        for name, value in distances.items():
            print(f"# {NAMES[kind]}: {name} {value:.2e}")
        judge(f"{NAMES[kind]}, loss, relative",
              abs(parity.losses[kind] / loss - 1), limit)
        name, value = worst(distances)
        judge(f"{NAMES[kind]}, gradient, worst of {len(distances)} tensors: "
              f"{name}", value, limit)
        if kind == "single":
            continue
        for who, distances in (("kith's", apart(ours, wide)),
                               ("PyTorch's", apart(theirs, wide))):
            name, value = worst(distances)
            row(PART, f"{NAMES[kind]}, gradient, {who} from PyTorch's float32:"
                f" {name}", value, "", "what rounding costs")


def curve(parity):
    weights = parity.start()
    groups = [{"params": [weights[name] for name, view in parity.views.items()
                          if view[1] == decays],
               "weight_decay": parity.decay if decays else 0.0}
              for decays in (True, False)]
    optimiser = torch.optim.AdamW(
        groups, lr=parity.rate, betas=(parity.beta1, parity.beta2),
        eps=parity.epsilon, fused=True)
    losses = []
    for step in range(parity.steps):
        for group in optimiser.param_groups:
            group["lr"] = parity.rate * min(1.0, (step + 1) / parity.warmup)
        optimiser.zero_grad(set_to_none=True)
        loss = parity.loss(weights, step, "half" in parity.losses)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def compare_curves(parity):
    if len(parity.curve) != parity.steps:
        row(PART, "curve", "-", "", "kith's has no end", "FAILED")
        return
    losses = curve(parity)
    for step in range(0, parity.steps, 10):
        print(f"# step {step + 1}: kith {parity.curve[step]:.4f}, PyTorch "
              f"{losses[step]:.4f}")
    ours, theirs = (sum(x[-CURVE_LAST:]) / CURVE_LAST
                    for x in (parity.curve, losses))
    first = f"{parity.steps - CURVE_LAST + 1} to {parity.steps}"
    row(PART, f"loss, mean of steps {first}: kith", ours)
    row(PART, f"loss, mean of steps {first}: PyTorch", theirs)
    judge(f"loss, mean of steps {first}: apart", abs(ours - theirs),
          CURVE_LIMIT)


def run(folder, device, tiny):
    if not os.path.exists(os.path.join(folder, "parity.losses")):
        row(PART, "files", "-", "", f"no parity.losses in {folder}: run "
            "bench_gpu --out there first", "FAILED")
        return
    if device == "cpu" and not tiny:
        print("# on the CPU: this takes long")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    parity = Parity(folder, device)
    compare_steps(parity)
    compare_curves(parity)
