"""A peer in a training loop of the caller's; see kith.Peer."""

import atexit
import contextlib
import ctypes
import json
import math
import os
import sys
import threading
import warnings
import weakref

from ._library import (ERROR_BYTES, FAILED, LATE, LOG, OVER, START, Error,
                       Options, encoded, lib)
from .tree import Tree, is_tree
from .vectors import Vectors, number, share

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


def _pass_on(own, log, line):
    """Without a log what went wrong is for the loop's next step() to say."""
    peer, text = own(), line.decode(errors="replace")
    if peer is not None:
        peer._log_thread = threading.get_ident()
        if log is None and text.startswith("save-failed "):
            peer._trouble = text
    del peer
    if log is not None:
        log(text)


class _Attached:
    """What attach() gives: remove() ends it."""

    def __init__(self, peer, handle):
        self._peer, self._handle = weakref.ref(peer), handle

    def remove(self):
        self._handle.remove()
        peer = self._peer()
        if peer is not None and peer._attached is self:
            peer._attached = None


def _count(samples):
    if not 0 <= samples < 1 << 32 or int(samples) != samples:
        raise ValueError(f"samples: {samples}; allowed: whole numbers, 0 to "
                         f"{(1 << 32) - 1}")
    return int(samples)


def _end(peer, *_):
    lib().kith_close(peer, None, 0)


class Peer:
    """A peer over a module's parameters, tensors or arrays; of the host, or
    tensors of one CUDA device (docs/python.md, Devices).

    model: a module, a tensor, an array, or several of those, which are changed
    in place; or a tree, of which step() makes a new one: a dict or a nest of
    dicts, lists and tuples of arrays that speak DLPack, or such arrays where
    they are neither tensors nor NumPy's (JAX's). peer_file: that of
    `kith peer`; None: the place that `kith lab` has given to this process
    (model.run). params: of a module those that are averaged, a function of a
    name or names, where these are not all that require a gradient; the others
    have to be the same on all peers.

    start: "own" begins with the parameters as they are, and reads no save;
    "auto" does at the first start, and from the second on goes on from its save
    folder and adopts a neighbour's model where one is there; "adopt" adopts at
    the first start, too. load: go on from that file of save() instead; nothing
    is adopted unless start="adopt". timeout: seconds that
    step() waits at most for what a method waits for. log: called with lines,
    on another thread, where the peer cannot be used.

    A peer may be used by several threads, which wait for one another.
    """

    _peer = None  # of one that was never opened, too
    _trouble = None  # a line of kith's own thread, to be told
    _attached = None

    def __init__(self, model, peer_file=None, *, params=None, start="auto",
                 load=None, timeout=30.0, log=None):
        self._log_thread = None
        self._lock = threading.RLock()
        if start not in START:
            raise ValueError(f"start: {start!r}; allowed: {', '.join(START)}")
        if not isinstance(timeout, (int, float)) or not timeout >= 0:
            raise ValueError(f"timeout: {timeout!r}; allowed: seconds, such as "
                             "30.0, or math.inf")
        if log is not None and not callable(log):
            raise TypeError(f"log: found {type(log).__name__}; allowed: a "
                            "function of a line, such as print")
        self._vectors = (Tree if is_tree(model) else Vectors)(model, params)
        own = weakref.ref(self)
        say = LOG(lambda _, line: _pass_on(own, log, line))
        self._log = say  # lives as long as the peer
        options = Options(ctypes.sizeof(Options), START[start],
                          say, None, self._vectors.base, self._vectors.memory,
                          0, self._vectors.stream)
        error = ctypes.create_string_buffer(ERROR_BYTES)
        self._timeout = timeout
        self._samples = 0  # of a step, as kith knows it
        self._process = os.getpid()
        file = None if peer_file is None else encoded(peer_file)
        rest = (self._vectors.table, len(self._vectors), ctypes.byref(options),
                error, len(error))
        self._peer = lib().kith_open(file, *rest) if load is None else \
            lib().kith_load(file, encoded(load), *rest)
        if not self._peer:
            raise Error(error.value.decode(errors="replace"))
        _open.add(self)
        self.over = self.late = False
        self._patiently(lib().kith_wait(self._peer, _WAIT_MS))
        if self.late and timeout >= 1:
            warnings.warn(
                f"kith.Peer() has waited {timeout:g} s for neighbours, and goes "
                "on: until they are there, or `wait:` of the peer file ends, "
                "each step() waits as long; log=print says who comes, and "
                "`kith doctor` with the peer file which layer fails",
                RuntimeWarning, stacklevel=2)
        if self.over and peer_file is not None:
            warnings.warn(
                "the share of steps was done before, by an earlier start of "
                "this peer whose save it has gone on from: start=\"own\", or "
                "another save folder, begins anew", RuntimeWarning,
                stacklevel=2)

    def __reduce__(self):
        raise TypeError("a kith.Peer stays in its process: it is neither "
                        "copied nor handed to another (a DataLoader's worker)")

    @contextlib.contextmanager
    def _call(self):
        """One thread at a time; the one that brings log lines never: what it
        waited for would wait for it."""
        if threading.get_ident() == self._log_thread:
            raise Error("a peer cannot be used within its own log: note the "
                        "line, and use the peer in the loop")
        with self._lock:
            if self._peer is None:
                raise Error("this peer is closed")
            if os.getpid() != self._process:
                raise Error("this peer is the parent process's: after fork() "
                            "it is none here")
            yield self._peer

    def _failed(self):
        """What had failed, which close() knows."""
        self.close()
        raise Error("this peer has failed")

    def _patiently(self, said, again=None):
        left = self._timeout - _WAIT_MS / 1000
        again = again or lib().kith_wait
        while said == LATE and left > 0:
            said = again(self._peer, _WAIT_MS)
            left -= _WAIT_MS / 1000
        if said == FAILED:
            self._failed()
        if said != LATE:  # which says nothing of the share
            self.over = said == OVER
        self.late = said == LATE
        return not self.late

    def step(self, given=None, *, loss=math.nan, samples=0):
        """A step of yours is done; loss: the mean of its batch, where known;
        samples: how many examples it was of, 0: as the file's train.batch says.

            peer.step(loss)                          # changed in place
            params = peer.step(params, loss=loss)    # a tree

        Of a tree the same objects where nothing has changed them, else new
        arrays of the same library; what is donated is copied, for kith may
        still read it. Else True; False, and `late` of any: the method's wait
        ran into the timeout, and goes on with the next call."""
        if self._attached is not None:
            raise Error("step(): attach() calls it after each step of the "
                        "optimiser, and a step would count twice; leave one of "
                        "the two out")
        return self._step(given, loss, samples)

    def _tell_trouble(self, level):
        if self._trouble is not None:
            line, self._trouble = self._trouble, None
            warnings.warn(f"kith could not save: {line}", RuntimeWarning,
                          stacklevel=level)

    def _step(self, given=None, loss=math.nan, samples=0):
        self._tell_trouble(4)
        with self._call() as peer:
            if samples != self._samples:
                lib().kith_samples(peer, _count(samples))
                self._samples = samples
            loss = self._vectors.begin(peer, given, loss)
            return self._vectors.end(peer, self._patiently(
                lib().kith_step(peer, loss, _WAIT_MS)))

    @property
    def params(self):
        """The model as it is now. Of a tree: a neighbour's where Peer() has
        adopted one, and what serve(), paused() and close() have changed."""
        with self._lock:
            return self._vectors.current(self._peer)

    @contextlib.contextmanager
    def paused(self):
        """Within it no step() is to come, as in an evaluation that takes
        minutes: exchanges under way end first, then neighbours are told that
        this peer is busy and ask others, and nothing changes the parameters.
        `as still`: False where the timeout came first, and neighbours know
        nothing of a pause. It does not nest."""
        with self._call() as peer:
            pause = lib().kith_pause
            still = self._patiently(pause(peer, _WAIT_MS), pause)
        try:
            yield still
        finally:
            if self._peer is not None:
                with self._call() as peer:
                    self._patiently(lib().kith_wait(peer, _WAIT_MS))

    def save(self, path):
        """Between two steps: parameters as they are (of a tree: as step() has
        returned them), count of steps and the method's state, for
        Peer(..., load=path), beside a checkpoint of yours. It is on the disk
        when this returns; where it raises, the file before stays and the peer
        goes on."""
        file, error = encoded(path), ctypes.create_string_buffer(ERROR_BYTES)

        def save(peer, patience):
            return lib().kith_save(peer, file, patience, error, len(error))
        with self._call() as peer:
            self._vectors.check()
            left, said = self._timeout - _WAIT_MS / 1000, save(peer, _WAIT_MS)
            while said == LATE and left > 0:
                said = save(peer, _WAIT_MS)
                left -= _WAIT_MS / 1000
        if said != 0:
            raise Error(error.value.decode(errors="replace") or
                        f"writing {path}: a step that was late still is after "
                        f"{self._timeout} s")

    def report(self, loss=math.nan, accuracy=math.nan):
        """How good the model is now, by a test of yours (accuracy: a share),
        for the rows of `kith lab`; of the averaged model where it has given
        this process that one, whose `over` is True from the start."""
        loss, accuracy = number(loss), share(accuracy)
        with self._call() as peer:
            if lib().kith_report(peer, loss, accuracy) != 0:
                self._failed()

    def serve(self, seconds):
        """Answers neighbours that still train, once one's own share is done."""
        with self._call() as peer:
            for _ in range(int(seconds * 1000 / _WAIT_MS) + 1):
                if lib().kith_wait(peer, _WAIT_MS) == FAILED:
                    self._failed()

    def attach(self, optimizer):
        """step() after each of the optimiser's own, until the share is done,
        close(), or remove() of what this returns; its closure's loss, if there
        is one, is not known here. Of several optimisers that step in turn the
        last one: a step counts once."""
        if self._attached is not None:
            raise Error("attach(): this peer is attached already, and a step "
                        "would count twice; of several optimisers attach the "
                        "one that steps last, or remove() what the first "
                        "attach() returned")
        self._attached = _Attached(self, optimizer.register_step_post_hook(
            lambda *_: None if self.over or self._peer is None
            else self._step()))
        return self._attached

    @property
    def stats(self):
        text = ctypes.create_string_buffer(1024)
        with self._call() as peer:
            lib().kith_stats(peer, text, len(text))
        return json.loads(text.value)

    def close(self):
        """Ends in order and saves; raises what had failed, and warns of a peer
        that has exchanged nothing. Twice is once."""
        if self._peer is None or os.getpid() != self._process:
            return
        error = ctypes.create_string_buffer(ERROR_BYTES)
        with self._call() as peer:
            self._vectors.settle(peer)
            self._peer = None
            failed = lib().kith_close(peer, error, len(error)) != 0
        said = error.value.decode(errors="replace")
        if failed:
            raise Error(said)
        self._tell_trouble(3)
        if said:
            warnings.warn(said, RuntimeWarning, stacklevel=2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        # Wherever the last reference goes, within a log, too: on a thread that
        # may wait, which keeps what kith still reads.
        if self._peer is not None and os.getpid() == self._process:
            ending = threading.Thread(
                target=_end, args=(self._peer, self._vectors, self._log))
            ending.start()
            if threading.get_ident() != self._log_thread:
                ending.join()
