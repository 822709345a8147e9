#!/usr/bin/env python3
"""torch.topk of |v| beside our selections, on one core.

    usage: BENCH_TOP_K=FILE bench/bench_top_k   (writes the last FILE: 25 M values)
           top_k_torch.py FILE [bench/bench_top_k]

Prints milliseconds of CPU time of torch.topk of the largest 1 % of the sizes,
sorted and not, of the 10^6 first values and of all; |v| is taken outside the
clock, which favours torch. With the bench's path it runs that in between, so
that both see the same machine. Debian's python3-torch will do.
"""
import os
import subprocess
import sys
import time

import numpy
import torch

ROUNDS = 7


def spread(values):
    values = sorted(values)
    return f"{values[len(values) // 2]:.4g} [{values[0]:.4g}..{values[-1]:.4g}]"


def measure(sizes):
    kept = len(sizes) // 100
    for name, is_sorted in (("sorted", True), ("unsorted", False)):
        spent = []
        for i in range(-1, ROUNDS if len(sizes) < 1e7 else 3):
            began = time.process_time()
            torch.topk(sizes, kept, sorted=is_sorted)
            if i >= 0:
                spent.append(1e3 * (time.process_time() - began))
        print(f"torch.topk {name}, {len(sizes)} values: {spread(spent)} ms",
              flush=True)


def main():
    os.sched_setaffinity(0, {0})
    torch.set_num_threads(1)
    print("torch", torch.__version__)
    sizes = torch.from_numpy(numpy.fromfile(sys.argv[1], "float32")).abs()
    for n in (1000000, len(sizes)):
        measure(sizes[:n].clone())
        if len(sys.argv) > 2:
            subprocess.run([sys.argv[2]], check=True, env={
                k: v for k, v in os.environ.items() if k != "BENCH_TOP_K"})


main()
