"""One peer of several processes: an MLP on the digits under
DistributedDataParallel, whose first rank exchanges for all of them.

    ddp.py RANKS BATCH [SAVE]      by kith lab: ddp.yaml
BATCH rows a step, which the ranks divide: 2 ranks learn what 1 rank does.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist

import idx
import kith

DATA = pathlib.Path(__file__).parent.parent / "data" / "digits"
ranks, batch = int(sys.argv[1]), int(sys.argv[2])
rank = int(os.environ.get("RANK", "0"))
meeting = os.environ.setdefault("MEETING", tempfile.mktemp(prefix="kith-ddp-"))
others = [subprocess.Popen([sys.executable, *sys.argv],
                           env={**os.environ, "RANK": str(other)})
          for other in range(1, ranks if rank == 0 else 0)]
dist.init_process_group("gloo", f"file://{meeting}", rank=rank,
                        world_size=ranks)

torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(),
                            torch.nn.Linear(32, 10))
ddp = torch.nn.parallel.DistributedDataParallel(model)
loss_of = torch.nn.CrossEntropyLoss()
optimiser = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
images, labels = map(torch.from_numpy, idx.read(DATA, "train"))
peer = kith.GroupPeer(model)
who = peer.stats["rank"]
random = np.random.default_rng(who)
while not peer.over:
    rows = random.integers(len(images), size=batch)[rank::ranks]
    loss = loss_of(ddp(images[rows]), labels[rows])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    peer.step(loss.item())

if rank == 0:
    images, labels = map(torch.from_numpy, idx.read(DATA, "t10k"))
    with torch.no_grad():
        scores = model(images)
    peer.report(loss=loss_of(scores, labels).item(),
                accuracy=(scores.argmax(1) == labels).float().mean().item())
    if len(sys.argv) > 3:
        np.save(f"{sys.argv[3]}-{who}.npy", np.concatenate(
            [one.detach().numpy().ravel() for one in model.parameters()]))
peer.close()
for other in others:
    other.wait()
dist.destroy_process_group()
