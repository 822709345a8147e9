"""A loop down |x - rank|^2 / 2, by kith lab: own.py [WHAT GOES WRONG]."""
import os
import subprocess
import sys
import time

import numpy as np

wrong = sys.argv[1] if len(sys.argv) > 1 else ""
if wrong == "no-peer":
    sys.exit(0)
if wrong == "early-error":
    1 / 0
import kith  # noqa: E402

first = "KITH_PLACE" in os.environ
x = [np.zeros(1000, np.float32)]
if wrong == "odd":
    x.append(np.zeros(os.getpid() % 7, np.float32))
peer = kith.Peer(x)
rank = peer.stats["rank"]
print(f"peer {rank}: own.py began at {x[0][0]:.2f}", flush=True)
assert first and os.listdir("/proc/self/fd")
if wrong == "child":  # not waited for: it goes with its peer
    subprocess.Popen(["sleep", "1000"])
try:
    kith.Peer(x)
    sys.exit("a second peer in one place")
except kith.Error as error:
    assert "is taken" in str(error) or "is not a place" in str(error), error
step = 0
while not peer.over or wrong == "blind" and step < 50:
    loss = float(np.mean((x[0] - rank) ** 2) / 2)
    x[0] -= 0.1 * (x[0] - rank)
    if not peer.over:
        more = wrong == "paused" and step >= 100
        peer.step(loss, samples=10 + rank if more else 0)
    step += 1
    if wrong == "paused" and rank == 0 and step == 50:
        with peer.paused() as still:
            assert still
            before = x[0].copy()
            time.sleep(1)
            assert (x[0] == before).all()
    if rank == 2 and step == 20:
        if wrong == "error":
            {}["no such key"]
        if wrong == "early":
            break
        if wrong == "exit":
            os._exit(0)
mean = float(np.mean(x[0]))
peer.report(loss=abs(mean - 1), accuracy=max(0, 1 - abs(mean - 1) / 4))
peer.close()
