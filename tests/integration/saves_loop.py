"""A loop that goes on from its own saves, to the bit. NumPy, or torch's
deterministic mode:

  saves_loop.py numpy|torch PEER.yaml RANK STEPS OUT [save FILE AT | load FILE]

`save`: after step AT kith's state goes to FILE and the loop's own (momentum, its
draws) to FILE.own; the loop goes on until it is killed. `load`: from both."""
import pickle
import sys
import time

import numpy as np

import kith

kind, file, rank, steps, out, what, saved = (sys.argv[1:] + ["", ""])[:7]
at = int(sys.argv[8]) if what == "save" else None
load = saved if what == "load" else None
own = {"momentum": np.zeros(1000, "f"), "draws": np.random.default_rng(7)}
if load:
    with open(load + ".own", "rb") as kept:
        own = pickle.load(kept)

if kind == "torch":
    import torch
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    model = torch.nn.Linear(40, 25, bias=False)
    with torch.no_grad():
        model.weight.zero_()
    x = model.weight.detach().numpy().reshape(-1)  # the same memory
    made = model
else:
    made = x = np.zeros(1000, "f")


def gradient():
    rows = own["draws"].standard_normal((8, 40)).astype("f")
    wanted = rows[:, :25] * np.float32(1 + int(rank))
    if kind == "torch":
        model.zero_grad()
        error = model(torch.from_numpy(rows)) - torch.from_numpy(wanted)
        (error ** 2).mean().backward()
        return model.weight.grad.numpy().reshape(-1)
    error = rows @ x.reshape(25, 40).T - wanted
    return (error.T @ rows / np.float32(100)).reshape(-1)


peer = kith.Peer(made, file, load=load, start="own", timeout=100,
                 log=lambda line: print(line, file=sys.stderr))
step = peer.stats["step"]
print("begins at", step, flush=True)
while not peer.over and step < int(steps):
    own["momentum"] = np.float32(0.9) * own["momentum"] + gradient()
    x -= np.float32(0.05) * own["momentum"]
    assert peer.step(), "its round was too late"
    step += 1
    if step == at:
        peer.save(saved)
        with open(saved + ".own", "wb") as kept:
            pickle.dump(own, kept)
        print("saved", flush=True)
    if at is not None and step > at:
        time.sleep(0.01)
np.save(out, x)
print("ends at", step, peer.stats["step"], flush=True)
peer.serve(0.5)
peer.close()
