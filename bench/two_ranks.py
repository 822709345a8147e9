"""What mean_torchft.py and mean_hivemind.py share: two processes, ranks 0 and 1,
which average a vector whenever they are asked to.

usage of both: SCRIPT ELEMENTS PORT; each line on standard input, a number of
means, is answered by their median in seconds, as rank 0 sees them. End of file
ends it."""
import statistics
import sys
import time

import torch
import torch.multiprocessing as mp

PATIENCE_S = 120  # one that died says nothing


def run(rank, open_mean, meet, pipe):
    torch.set_num_threads(1)
    elements, port = map(int, sys.argv[1:3])
    prepare, mean = open_mean(rank, elements, port)

    def timed():
        prepare()
        meet.wait()
        began = time.perf_counter()
        mean()
        return time.perf_counter() - began

    timed()
    pipe.send("ready")
    while count := pipe.recv():
        pipe.send(statistics.median(timed() for _ in range(count)))


def answer(open_mean):
    """open_mean(rank, elements, port) -> prepare(), and mean() which is timed
    from when both are prepared."""
    context = mp.get_context("fork")
    meet = context.Barrier(2, timeout=PATIENCE_S)
    pipes = [context.Pipe() for _ in range(2)]
    workers = [context.Process(target=run, args=(r, open_mean, meet, pipes[r][1]))
               for r in range(2)]
    for worker in workers:
        worker.start()

    def ask(count=None):
        if count is not None:
            for ours, _ in pipes:
                ours.send(count)
        for ours, _ in pipes:
            if not ours.poll(PATIENCE_S):
                for worker in workers:
                    worker.kill()
                raise TimeoutError(f"a rank said nothing for {PATIENCE_S} s")
        return [ours.recv() for ours, _ in pipes][0]

    print(ask(), flush=True)
    for line in sys.stdin:
        print(ask(int(line)), flush=True)
    for ours, _ in pipes:
        ours.send(0)
    for worker in workers:
        worker.join()
