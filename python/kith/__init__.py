"""kith: a training loop of yours becomes a peer.

    import kith
    peer = kith.Peer(model, "peer.yaml")    # or NumPy arrays
    for batch in data:
        loss = ...                          # a step of your own
        peer.step(loss)
    peer.close()

ctypes over libkith alone. `peer.yaml` is that of `kith peer`; the experiment
that it names has `model: {kind: program}`. A module's floating parameters and
buffers, or the arrays, are what peers average: the same ones in the same order
on all of them. They are read and written within Peer(), step(), wait() and
close(), in place. docs/python.md; test: tests/integration/test_python.sh.
"""

from ._library import Error, lib
from .group import GroupPeer
from .peer import Peer
from .simulate import simulate

__all__ = ["Error", "GroupPeer", "Peer", "simulate", "version"]


def version():
    """The build of libkith."""
    return lib().kith_version().decode()
