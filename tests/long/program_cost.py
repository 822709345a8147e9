"""A peer of accept_program.py: 25 million parameters, and what kith costs their
steps. By the clock that both peers have, spans of SPAN s take turns in which
step() is called and is not; a span's first steps are left out, for an exchange of
the one before may end in them. Rank 0 prints a line for each span:

    with (1 or 0), steps, wall s, CPU s of the process, of kith's own, and the
    median of what training alone has of the CPU in a step

Kith's own: what threads other than this loop's have had, which are kith's
alone (PyTorch computes on one), and this loop within step().

    program_cost.py SPAN"""
import statistics
import sys
import time

import torch
from torch import nn

import kith

SPAN, SKIPPED = float(sys.argv[1]), 10
torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(6)))
optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.randn(32, 2048)
peer = kith.Peer(model)
rank = peer.stats["rank"] if not peer.over else None
within = 0.0  # CPU of step()


def train():
    loss = model(x).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


def clocks():
    process, thread = time.process_time(), time.thread_time()
    return time.monotonic(), process, process - thread + within


while not peer.over:
    span = int(time.monotonic() / SPAN)
    began, trained = None, []
    while int(time.monotonic() / SPAN) == span and not peer.over:
        entered = time.thread_time()
        loss = train()
        trained.append(time.thread_time() - entered)
        if span % 2 == 0:
            entered = time.thread_time()
            peer.step(loss)
            within += time.thread_time() - entered
        if len(trained) == SKIPPED:
            began = clocks()
    if rank == 0 and began is not None and len(trained) > 2 * SKIPPED:
        print(1 - span % 2, len(trained) - SKIPPED,
              *(after - before for before, after in zip(began, clocks())),
              statistics.median(trained[SKIPPED:]), flush=True)
peer.close()
