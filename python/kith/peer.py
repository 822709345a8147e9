"""A peer in a training loop of the caller's; see kith.Peer."""

import atexit
import ctypes
import json
import os
import sys
import weakref

from ._library import (ERROR_BYTES, FAILED, LATE, LOG, OVER, START, Error,
                       Options, lib)
from .vectors import Vectors

_WAIT_MS = 100  # between two looks at Ctrl-C
_open = weakref.WeakSet()


@atexit.register
def _close_all():
    """While Python still runs: once it ends, a thread of kith's that comes with
    a line for the log would be stopped in the middle."""
    for peer in list(_open):
        try:
            peer.close()
        except Error as error:
            print(f"kith: {error}", file=sys.stderr)


class Peer:
    """A peer over a module's parameters, tensors or arrays of the host.

    model: a module, a tensor, an array, or several of those. peer_file: that of
    `kith peer`; None: the place that `kith lab` has given to this process
    (model.run). params: of a module those that are averaged, a function of a
    name or names, where these are not all that require a gradient; the others
    have to be the same on all peers.

    start: "own" begins with the parameters as they are, "adopt" with a
    neighbour's; "auto" adopts from the second start on. timeout: seconds that
    step() waits at most for what a method waits for. log: called with lines,
    on another thread.
    """

    def __init__(self, model, peer_file=None, *, params=None, start="auto",
                 timeout=30.0, log=None):
        self._peer = None
        if start not in START:
            raise ValueError(f"start: {start!r}; allowed: {', '.join(START)}")
        self._vectors = Vectors(model, params)
        say = LOG(lambda _, line: log(line.decode(errors="replace"))
                  if log else None)
        self._log = say  # lives as long as the peer
        options = Options(ctypes.sizeof(Options), START[start],
                          say if log else LOG(), None, self._vectors.base)
        error = ctypes.create_string_buffer(ERROR_BYTES)
        self._timeout = timeout
        self._process = os.getpid()
        self._peer = lib().kith_open(
            None if peer_file is None else os.fsencode(peer_file),
            self._vectors.table, len(self._vectors),
            ctypes.byref(options), error, len(error))
        if not self._peer:
            raise Error(error.value.decode(errors="replace"))
        _open.add(self)
        self.over = False
        self._patiently(lib().kith_wait(self._peer, _WAIT_MS))

    def _patiently(self, said):
        left = self._timeout - _WAIT_MS / 1000
        while said == LATE and left > 0:
            said = lib().kith_wait(self._peer, _WAIT_MS)
            left -= _WAIT_MS / 1000
        if said == FAILED:
            self.close()  # raises what had failed
        self.over = said == OVER
        return said != LATE

    def _alive(self):
        if self._peer is None:
            raise Error("this peer is closed")
        if os.getpid() != self._process:
            raise Error("this peer is the parent process's: after fork() it "
                        "is none here")

    def step(self, loss=float("nan")):
        """A step of yours is done. False: the method's wait ran into the
        timeout, and goes on with the next call."""
        self._alive()
        self._vectors.check()
        return self._patiently(
            lib().kith_step(self._peer, float(loss), _WAIT_MS))

    def report(self, loss=float("nan"), accuracy=float("nan")):
        """How good the model is now, by a test of yours (accuracy: a share),
        for the rows of `kith lab`; of the averaged model where it has given
        this process that one, whose `over` is True from the start."""
        self._alive()
        if lib().kith_report(self._peer, float(loss), float(accuracy)) != 0:
            self.close()

    def serve(self, seconds):
        """Answers neighbours that still train, once one's own share is done."""
        self._alive()
        for _ in range(int(seconds * 1000 / _WAIT_MS) + 1):
            if lib().kith_wait(self._peer, _WAIT_MS) == FAILED:
                self.close()

    def attach(self, optimizer):
        """step() after each of the optimiser's own; its closure's loss, if
        there is one, is not known here."""
        return optimizer.register_step_post_hook(
            lambda *_: None if self.over else self.step())

    @property
    def stats(self):
        self._alive()
        text = ctypes.create_string_buffer(1024)
        lib().kith_stats(self._peer, text, len(text))
        return json.loads(text.value)

    def close(self):
        """Ends in order and saves; raises what had failed. Twice is once."""
        peer, self._peer = self._peer, None
        if peer is None or os.getpid() != self._process:
            return
        error = ctypes.create_string_buffer(1024)
        if lib().kith_close(peer, error, len(error)) != 0:
            raise Error(error.value.decode(errors="replace"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:  # nobody is there to hear it
            pass
