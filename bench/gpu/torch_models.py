"""GPT-2 and ResNet-50 in PyTorch, and the rows that run.sh reads."""
import torch
from torch import nn
from torch.nn import functional as F

FAILED = False


def row(part, name, value, unit="", reference="", verdict="info"):
    """One result, as in rows.c."""
    global FAILED  # pylint: disable=global-statement
    FAILED = FAILED or verdict == "FAILED"
    value = value if isinstance(value, str) else f"{value:.6g}"
    print("ROW", part, name, value, unit, reference, verdict, sep="\t",
          flush=True)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.fc = nn.Linear(width, 4 * width)
        self.proj = nn.Linear(4 * width, width)

    def forward(self, x):
        rows, context, width = x.shape
        q, k, v = (t.view(rows, context, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.ln_1(x)).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, context, width))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, depth, heads, width, context, words):
        super().__init__()
        self.wte = nn.Embedding(words, width)
        self.wpe = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.ln_f = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, labels):
        place = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(place)
        for block in self.blocks:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.weight.t()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def gpt_loss(p, heads, inputs, labels):
    """The same with weights by kith's names, matrices stored (in, out)."""
    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], p[name + ".weight"],
                            p[name + ".bias"])

    def linear(name, x):
        return F.linear(x, p[name + ".weight"].t(), p[name + ".bias"])

    rows, context = inputs.shape
    x = F.embedding(inputs, p["wte.weight"]) + p["wpe.weight"][:context]
    width = x.shape[-1]
    depth = sum(name.endswith(".ln_1.weight") for name in p)
    for i in range(depth):
        q, k, v = (t.view(rows, context, heads, -1).transpose(1, 2) for t in
                   linear(f"h.{i}.attn.c_attn",
                          norm(f"h.{i}.ln_1", x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(rows, context, width)
        x = x + linear(f"h.{i}.attn.c_proj", y)
        y = F.gelu(linear(f"h.{i}.mlp.c_fc", norm(f"h.{i}.ln_2", x)),
                   approximate="tanh")
        x = x + linear(f"h.{i}.mlp.c_proj", y)
    logits = norm("ln_f", x) @ p["wte.weight"].t()
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Bottleneck(nn.Module):
    def __init__(self, ins, width, stride):
        super().__init__()
        outs = 4 * width
        self.conv1 = nn.Conv2d(ins, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outs)
        self.down = None if ins == outs and stride == 1 else nn.Sequential(
            nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.down is None else self.down(x)),
                      inplace=True)


def resnet50(classes=1000):
    """As torchvision's, which need not be here."""
    layers, ins = [], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for i in range(blocks):
            stride = 2 if stage > 0 and i == 0 else 1
            layers.append(Bottleneck(ins, 64 << stage, stride))
            ins = 256 << stage
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64),
        nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), *layers,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(ins, classes))
