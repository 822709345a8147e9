"""A loop of one's own down |x - rank|^2 / 2: loop.py PEER.yaml RANK STEPS."""
import sys
import time

import numpy as np

import kith

file, rank, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
x = [np.zeros(1000, np.float32), np.zeros((20, 30), np.float32)]
moved = 0.0  # the most that step() changed the mean
with kith.Peer(x, file, log=lambda line: print(line, file=sys.stderr)) as peer:
    for step in range(steps):
        loss = float(np.mean([np.mean((a - rank) ** 2) / 2 for a in x]))
        for a in x:
            a -= 0.1 * (a - rank)
        time.sleep(0.001)
        before = float(np.mean(x[0]))
        peer.step(loss)
        moved = max(moved, abs(float(np.mean(x[0])) - before))
        if step == 0:
            print("first step", file=sys.stderr, flush=True)
        if peer.over:
            break
    mean, stats = float(np.mean(x[0])), peer.stats
    print(rank, mean, moved, stats["steps"], stats["items"], flush=True)
    peer.serve(1)
