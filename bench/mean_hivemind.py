"""The mean of a float32 vector between two processes by hivemind's averager over
its own encrypted channel, for bench_library (BENCH_HIVEMIND). hivemind 1.1.12
comes from PyPI. See two_ranks.py.

What is timed begins when both have found each other: finding a group takes at
least min_matchmaking_time (5 s, here 1) and is prepared beforehand; the all-reduce,
with the means written into the tensors, is what is left."""
import time

import torch
from torch.distributed import TCPStore
import hivemind
from hivemind.averaging.control import AveragingStage

import two_ranks


def open_mean(rank, elements, port):
    store = TCPStore("127.0.0.1", port, is_master=rank == 0,
                     wait_for_workers=False)
    known = [store.get("address").decode()] if rank == 1 else []
    dht = hivemind.DHT(start=True, initial_peers=known,
                       host_maddrs=["/ip4/127.0.0.1/tcp/0"])
    if rank == 0:
        store.set("address", str(dht.get_visible_maddrs()[0]))
    x = torch.full((elements,), float(rank))
    averager = hivemind.DecentralizedAverager(
        [x], dht, start=True, prefix="mean", target_group_size=2,
        min_matchmaking_time=1, request_timeout=0.5)
    step = None

    def prepare(_=store):  # which lives as long
        nonlocal step
        step = averager.step(wait=False, require_trigger=True, timeout=60)
        while step.stage != AveragingStage.AWAITING_TRIGGER:
            time.sleep(0.01)

    def mean():
        step.allow_allreduce()
        assert len(step.result()) == 2
        with averager.get_tensors() as averaged:
            assert abs(averaged[0][0].item() - 0.5) < 1e-6

    return prepare, mean


if __name__ == "__main__":
    two_ranks.answer(open_mean)
