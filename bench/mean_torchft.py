# In the place of exchange_gloo.py (BENCH_THEIRS=mean_torchft.py): the mean of a
# float32 vector between two processes by torchft's process group over gloo, in
# the clear. torchft 0.2.0 comes from PyPI; give its Python as BENCH_PYTHON.
#
# usage: mean_torchft.py ELEMENTS PORT; each line on standard input, a number of
# means, is answered by their median in seconds. End of file ends it.
import os
import statistics
import sys
import time

import torch
import torch.multiprocessing as mp
from torch.distributed import ReduceOp, TCPStore
from torch.distributed.distributed_c10d import AllreduceOptions
from torchft.process_group import ProcessGroupGloo


def mean(group, x):
    options = AllreduceOptions()
    options.reduceOp = ReduceOp.SUM
    began = time.perf_counter()
    group.allreduce([x], options).wait()
    x.div_(2)
    return time.perf_counter() - began


def run(rank, elements, port, pipe):
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    store = TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
    group = ProcessGroupGloo()
    group.configure(f"127.0.0.1:{port}/mean", str(rank), rank, 2)
    x = torch.ones(elements)
    mean(group, x)
    pipe.send("ready")
    while count := pipe.recv():
        pipe.send(statistics.median(mean(group, x) for _ in range(count)))
    del store


if __name__ == "__main__":
    mp.set_start_method("fork")
    pipes = [mp.Pipe() for _ in range(2)]
    workers = [
        mp.Process(target=run, args=(r, int(sys.argv[1]), int(sys.argv[2]), pipes[r][1]))
        for r in range(2)
    ]
    for w in workers:
        w.start()

    def ask(question=None):
        if question is not None:
            for p in pipes:
                p[0].send(question)
        return [p[0].recv() for p in pipes][0]

    print(ask(), flush=True)
    for line in sys.stdin:
        print(ask(int(line)), flush=True)
    for p in pipes:
        p[0].send(0)
    for w in workers:
        w.join()
