"""The mean of a float32 vector between two processes by torchft's process group
over gloo, in the clear. In the place of exchange_gloo.py
(BENCH_THEIRS=mean_torchft.py, its Python as BENCH_PYTHON), and in bench_library
(BENCH_TORCHFT). torchft 0.2.0 comes from PyPI. See two_ranks.py."""
import os

import torch
from torch.distributed import ReduceOp, TCPStore
from torch.distributed.distributed_c10d import AllreduceOptions
from torchft.process_group import ProcessGroupGloo

import two_ranks


def open_mean(rank, elements, port):
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    store = TCPStore("127.0.0.1", port, is_master=rank == 0,
                     wait_for_workers=False)
    group = ProcessGroupGloo()
    group.configure(f"127.0.0.1:{port}/mean", str(rank), rank, 2)
    x = torch.ones(elements)
    options = AllreduceOptions()
    options.reduceOp = ReduceOp.SUM

    def mean(_=store):  # which lives as long
        group.allreduce([x], options).wait()
        x.div_(2)

    return lambda: None, mean


if __name__ == "__main__":
    two_ranks.answer(open_mean)
