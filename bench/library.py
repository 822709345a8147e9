"""Python's half of bench_library.c: library.py WHAT FOLDER DIM COUNT prints the
median of COUNT calls in seconds; WHAT is empty, step or mean."""

import os
import signal
import statistics
import sys
import time

import numpy as np

import kith

what, folder, dim, count = (sys.argv[1], sys.argv[2], int(sys.argv[3]),
                            int(sys.argv[4]))


class Empty:
    def step(self, loss):
        return True


def open_peer(rank):
    return kith.Peer(np.zeros(dim, np.float32), f"{folder}/peer-{rank}.yaml",
                     start="own")


def timed(peer, pause_s, spare):
    times = []
    for _ in range(count + spare):
        until = time.perf_counter() + pause_s
        while time.perf_counter() < until:
            pass
        began = time.perf_counter()
        while not peer.step(0.5):
            pass
        times.append(time.perf_counter() - began)
    return statistics.median(times[spare:])


if what == "mean":
    other = os.fork()
    if other == 0:
        peer = open_peer(1)
        while True:
            peer.step(0.5)
    print(timed(open_peer(0), 0, 3), flush=True)
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
else:
    print(timed(Empty() if what == "empty" else open_peer(0), 50e-6, 10),
          flush=True)
