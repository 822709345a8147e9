#!/usr/bin/env python3
"""kith's convolutions beside PyTorch's, alternating, in milliseconds per call.

    usage: conv_torch.py BENCH_CONV_PROGRAM [THREADS]

The shapes of bench_conv.c, float32, on the CPU: forward, gradient of the data,
gradient of the weights. PyTorch's tensors are channels-last, the layout it is
fastest in for most of these, or contiguous where that is faster; the better of
the two counts. The ratio is taken round by round: above 1, kith is faster.
"""
import os
import statistics
import subprocess
import sys
import time

# OpenMP threads that spin starve everybody else on few cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
ROUNDS = 7
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.05"))
# Size, in, out, kernel, stride, pad, rows: as in bench_conv.c.
SHAPES = [(28, 1, 16, 3, 1, 1, 64), (14, 16, 32, 3, 1, 1, 64),
          (32, 3, 16, 3, 1, 1, 128), (32, 16, 16, 3, 1, 1, 128),
          (32, 16, 32, 3, 2, 1, 128), (32, 16, 32, 1, 2, 0, 128),
          (16, 32, 32, 3, 1, 1, 128), (16, 32, 64, 3, 2, 1, 128),
          (8, 64, 64, 3, 1, 1, 128)]
PASSES = ("forward", "data", "weights")

try:
    import torch
except ImportError:
    print("# PyTorch is not installed, so nothing to compare with: add "
          "python3-torch (Debian, Ubuntu) or, for the current release, pip "
          "install torch --index-url https://download.pytorch.org/whl/cpu")
    sys.exit(0)


def passes_of(shape, layout):
    """One callable per pass of PyTorch."""
    size, ins, outs, kernel, stride, pad, rows = shape
    x = torch.rand(rows, ins, size, size).to(memory_format=layout)
    w = torch.rand(outs, ins, kernel, kernel).to(memory_format=layout)
    y = torch.nn.functional.conv2d(x, w, None, stride, pad)
    dy = torch.rand_like(y)

    def backward(mask):
        return torch.ops.aten.convolution_backward(
            dy, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1,
            mask)

    return (lambda: torch.nn.functional.conv2d(x, w, None, stride, pad),
            lambda: backward([True, False, False]),
            lambda: backward([False, True, False]))


def run(call, seconds, threads):
    """Seconds per call; of the CPU where one thread runs, as bench_conv."""
    clock = time.thread_time if threads == 1 else time.monotonic
    calls, start = 0, clock()
    now = start
    while now - start < seconds:
        call()
        calls += 1
        now = clock()
    return (now - start) / calls


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    threads = int(sys.argv[2]) if len(sys.argv) == 3 else 1
    torch.set_num_threads(threads)
    print(f"# beside PyTorch {torch.__version__}, {threads} thread(s)")
    with subprocess.Popen([sys.argv[1], "serve"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as kith:

        def ours(shape, which, seconds):
            kith.stdin.write(f"{shape} {which} {threads} {seconds}\n")
            kith.stdin.flush()
            return float(kith.stdout.readline())

        with torch.no_grad():
            for i, shape in enumerate(SHAPES):
                layouts = [passes_of(shape, layout) for layout in
                           (torch.channels_last, torch.contiguous_format)]
                for p, name in enumerate(PASSES):
                    theirs = min((layout[p] for layout in layouts),
                                 key=lambda call: run(call, SECONDS / 2, threads))
                    ratios, times = [], []
                    for _ in range(ROUNDS):
                        mine = ours(i, p, SECONDS)
                        times.append(mine)
                        ratios.append(run(theirs, SECONDS, threads) / mine)
                    print(f"{shape[0]}x{shape[0]}x{shape[1]} -> {shape[2]}, "
                          f"{shape[3]}x{shape[3]}/{shape[4]} {name}: "
                          f"{1e3 * statistics.median(times):.3f} ms, torch : "
                          f"kith {statistics.median(ratios):.2f} "
                          f"[{min(ratios):.2f}..{max(ratios):.2f}]",
                          flush=True)
        kith.stdin.close()


if __name__ == "__main__":
    main()
