"""A small GPT learns to write byte by byte, in the manner of nanoGPT: a peer by the
three lines that say `peer`.

    nanogpt.py [TEXT [PEER.yaml]]      eight at once: kith lab nanogpt.yaml
TEXT: any file; without one, this project's own pages (docs/). Its letters are the
256 bytes, so that peers with texts of their own have one model.
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import kith

HERE = pathlib.Path(__file__).resolve().parent
CONTEXT, WIDTH, HEADS, DEPTH, BATCH = 64, 96, 4, 3, 8
LETTERS = 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                 nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, HEADS, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(LETTERS, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, LETTERS, bias=False)
        self.head.weight = self.tokens.weight  # tied: travels once
        for one in self.parameters():
            if one.dim() > 1:
                nn.init.normal_(one, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        scores = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


texts = sys.argv[1:2] or sorted((HERE.parent.parent / "docs").glob("*.md"))
if not texts:
    sys.exit("nanogpt.py: there are no pages beside it: give it a TEXT")
text = b"".join(pathlib.Path(one).read_bytes() for one in texts)
data = torch.tensor(list(text))
train, test = data[:len(data) * 9 // 10], data[len(data) * 9 // 10:]


def batch(data, random, rows):
    at = random.integers(len(data) - CONTEXT - 1, size=rows)
    cut = torch.stack([data[i:i + CONTEXT + 1] for i in at])
    return cut[:, :-1], cut[:, 1:]


def evaluate():
    random = np.random.default_rng(0)
    with torch.no_grad():
        return np.mean([model(*batch(test, random, 32)).item()
                        for _ in range(8)])


torch.set_num_threads(1)
torch.manual_seed(1)  # the same start everywhere
model = GPT()
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99))
peer = kith.Peer(model, *sys.argv[2:3])
rank = peer.stats["rank"]
random = np.random.default_rng(1 + rank)
step = 0
while not peer.over:
    loss = model(*batch(train, random, BATCH))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    peer.step(loss.item())
    step += 1
    if step % 100 == 0:
        peer.report(loss=evaluate())
        print(f"peer {rank}, step {step}: loss {loss.item():.3f}", flush=True)
loss = evaluate()
peer.report(loss=loss)
print(f"peer {rank}, end: test loss {loss:.3f}", flush=True)
peer.close()
