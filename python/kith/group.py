"""Several processes in one peer: see kith.GroupPeer."""

import math

from .peer import Peer
from .vectors import collect


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
        self._share(True)

    def _tell(self, what):
        box = [what]
        self._dist.broadcast_object_list(box, self._first, self._group)
        return box[0]

    def _share(self, changed):
        """Of the first rank: is it over, was the model changed, and then it."""
        said = self._torch.zeros(2)
        if self._peer is not None:
            said[0], said[1] = self._peer.over, changed
        self._dist.broadcast(said, self._first, self._group)
        self.over = bool(said[0])
        if said[1]:
            for one in self._tensors:
                self._dist.broadcast(one.data, self._first, self._group)

    def step(self, loss=math.nan):
        """A step of all ranks is done; loss: of this one's part of the batch."""
        mean = self._torch.tensor(float(loss), dtype=self._torch.float64)
        self._dist.all_reduce(mean, group=self._group)
        changed = False
        if self._peer is not None:
            self._peer.step(
                mean.item() / self._dist.get_world_size(self._group))
            items, self._items = self._items, self._peer.stats["items"]
            changed = items != self._items
        self._share(changed)

    @property
    def stats(self):
        """Those of the peer, on all ranks, which ask together."""
        return self._tell(self._peer.stats if self._peer else None)

    def report(self, loss=math.nan, accuracy=math.nan):
        """As kith.Peer's; what the first rank says counts."""
        if self._peer is not None:
            self._peer.report(loss, accuracy)

    def close(self):
        if self._peer is not None:
            self._peer.close()
