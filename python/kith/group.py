"""Several processes in one peer: see kith.GroupPeer."""

import contextlib
import math

from .peer import Peer, _count
from .vectors import collect, number


class GroupPeer:
    """One peer of a torch.distributed group whose processes hold the same
    model, as under DistributedDataParallel: its first rank exchanges, and what
    changed is broadcast to the others.

    All ranks make one and call step() alike. group: gloo, or None: the default
    one; the rest as kith.Peer. Sharded parameters (FSDP2) are refused by name.
    """

    def __init__(self, model, peer_file=None, *, group=None, **options):
        import torch
        import torch.distributed as dist
        self._torch, self._dist, self._group = torch, dist, group
        self._first = dist.get_global_rank(group or dist.group.WORLD, 0)
        kept, _ = collect(model, options.get("params"))
        self._tensors = [one for _, one, _ in kept]
        self._peer, self._items, failed = None, 0, None
        self.over = False
        if dist.get_rank() == self._first:
            try:
                self._peer = Peer(model, peer_file, **options)
            except Exception as error:  # the others must not wait for ever
                failed = error
        self._told = self._tell(str(failed) if failed else None)
        if failed:
            raise failed
        if self._told:
            raise RuntimeError(f"rank {self._first}: {self._told}")
        self._on_first(lambda peer: True)

    def _tell(self, what):
        box = [what]
        self._dist.broadcast_object_list(box, self._first, self._group)
        return box[0]

    def _share(self, changed, failed=None):
        """Of the first rank: is it over, was the model changed, and then it;
        or what has failed there, on all ranks."""
        said = self._torch.zeros(3)
        if self._peer is not None:
            said[:] = self._torch.tensor(
                [self.over, changed, failed is not None], dtype=said.dtype)
        self._dist.broadcast(said, self._first, self._group)
        self.over = bool(said[0])
        if said[2]:
            told = self._tell(str(failed))
            raise failed or RuntimeError(f"rank {self._first}: {told}")
        if said[1]:
            for one in self._tensors:
                self._dist.broadcast(one.data, self._first, self._group)

    def _on_first(self, call):
        """call(peer) where the peer is; true: the model was changed."""
        changed, failed = False, None
        if self._peer is not None:
            try:
                changed = call(self._peer)
                self.over = self._peer.over
            except Exception as error:  # the others must not wait for ever
                failed = error
        self._share(changed, failed)

    def step(self, loss=math.nan, *, samples=0):
        """A step of all ranks is done; loss, samples: of this one's part of the
        batch. One that says 0 says it for all; what is wrong raises on all
        ranks, or those that wait in the next collective would stay there.
        """
        failed, own = None, [math.nan, 0, 1]
        try:
            own = [number(loss), _count(samples), samples == 0]
        except (TypeError, ValueError) as error:
            failed = error
        sums = self._torch.tensor([*own, failed is not None],
                                  dtype=self._torch.float64)
        self._dist.all_reduce(sums, group=self._group)
        if sums[3]:
            raise failed or ValueError("step(): loss or samples of another "
                                       "rank's are wrong: its error says how")
        count = 0 if sums[2] else _count(sums[1].item())

        def step(peer):
            peer.step(sums[0].item() / self._dist.get_world_size(self._group),
                      samples=count)
            before, self._items = self._items, peer.stats["items"]
            return self._items != before
        self._on_first(step)

    @contextlib.contextmanager
    def paused(self):
        """As kith.Peer's, on all ranks together. What is raised within it ends
        it on the first rank, and no other waits for that."""
        with contextlib.ExitStack() as pause:
            still = False

            def enter(peer):
                nonlocal still
                still = pause.enter_context(peer.paused())
                return True

            def leave(_):
                pause.close()
                return True
            self._on_first(enter)
            yield self._tell(still)
            self._on_first(leave)

    @property
    def stats(self):
        """Those of the peer, on all ranks, which ask together."""
        return self._tell(self._peer.stats if self._peer else None)

    def save(self, path):
        """As kith.Peer's, on all ranks together; the first one writes."""
        self._on_first(lambda peer: bool(peer.save(path)))

    def report(self, loss=math.nan, accuracy=math.nan):
        """As kith.Peer's; what the first rank says counts."""
        if self._peer is not None:
            self._peer.report(loss, accuracy)

    def close(self):
        """On all ranks: neighbours may be answered until the end, and what they
        change is the model of all."""
        def close(peer):
            peer.close()
            return True
        self._on_first(close)
