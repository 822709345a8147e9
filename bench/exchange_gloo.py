# The ceiling of bench_exchange: gloo's plaintext exchange of a float32 vector
# between two processes on loopback, and the average of the two.
#
# usage: exchange_gloo.py ELEMENTS PORT; each line on standard input, a number
# of exchanges, is answered by their median in seconds. End of file ends it.
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def exchange(rank, x, y):
    dist.barrier()
    began = time.perf_counter()
    work = [dist.isend(x, 1 - rank), dist.irecv(y, 1 - rank)]
    for w in work:
        w.wait()
    x.lerp_(y, 0.5)
    return time.perf_counter() - began


def run(rank, elements, port, stdin):
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo"
    )
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    x, y = torch.ones(elements), torch.empty(elements)
    exchange(rank, x, y)
    if rank == 0:
        lines = os.fdopen(stdin)
        print("ready", flush=True)
    while True:
        line = lines.readline() if rank == 0 else ""
        count = torch.tensor([int(line) if line.strip() else 0])
        dist.broadcast(count, 0)
        if count.item() == 0:
            break
        times = [exchange(rank, x, y) for _ in range(count.item())]
        if rank == 0:
            print(statistics.median(times), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.set_start_method("fork")
    workers = [
        mp.Process(target=run, args=(r, int(sys.argv[1]), int(sys.argv[2]), os.dup(0)))
        for r in range(2)
    ]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
