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

import ctypes
import json
import os

__all__ = ["Error", "Peer", "version"]

_FLOAT32, _BFLOAT16, _FLOAT16 = range(3)
_DTYPES = {"float32": _FLOAT32, "bfloat16": _BFLOAT16, "float16": _FLOAT16}
_GOES_ON, _LATE, _OVER, _FAILED = 0, 1, 2, -1
_START = {"auto": 0, "own": 1, "adopt": 2}
_WAIT_MS = 100  # between two looks at Ctrl-C


class Error(RuntimeError):
    """What was attempted, found and to do."""


class _Vector(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_uint64),
                ("dtype", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


_LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("start", ctypes.c_uint32),
                ("log", _LOG), ("user", ctypes.c_void_p)]


def _load():
    """The library beside this file, else where KITH_LIBRARY or the system says."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "libkith.so.0")
    path = os.environ.get("KITH_LIBRARY") or (
        here if os.path.exists(here) else "libkith.so.0")
    library = ctypes.CDLL(path)
    library.kith_version.restype = ctypes.c_char_p
    library.kith_open.restype = ctypes.c_void_p
    library.kith_open.argtypes = [
        ctypes.c_char_p, ctypes.POINTER(_Vector), ctypes.c_uint32,
        ctypes.POINTER(_Options), ctypes.c_char_p, ctypes.c_size_t]
    library.kith_step.argtypes = [ctypes.c_void_p, ctypes.c_double,
                                  ctypes.c_uint32]
    library.kith_wait.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    library.kith_stats.restype = ctypes.c_size_t
    library.kith_stats.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                   ctypes.c_size_t]
    library.kith_close.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                   ctypes.c_size_t]
    return library


_library = None


def _lib():
    global _library
    if _library is None:
        _library = _load()
    return _library


def version():
    """The build of libkith."""
    return _lib().kith_version().decode()


def _tensors(params):
    """Of a module: parameters and floating buffers, tied ones once."""
    if hasattr(params, "named_parameters"):
        found, seen = [], set()
        for _, one in [*params.named_parameters(), *params.named_buffers()]:
            if one.is_floating_point() and one.data_ptr() not in seen:
                seen.add(one.data_ptr())
                found.append(one)
        return found
    if hasattr(params, "__array_interface__") or hasattr(params, "data_ptr"):
        return [params]
    return list(params)


def _vector(one):
    """(address, values, dtype) of a tensor or an array, whose memory it is."""
    name = str(one.dtype).replace("torch.", "")
    if name not in _DTYPES:
        raise TypeError(f"a parameter of {name}; allowed: {', '.join(_DTYPES)}")
    if hasattr(one, "data_ptr"):
        if one.device.type != "cpu":
            raise TypeError(f"a parameter on {one.device}; allowed: cpu")
        if not one.is_contiguous():
            raise TypeError("a parameter that is not contiguous")
        return one.data_ptr(), one.numel(), _DTYPES[name]
    if not one.flags.c_contiguous or not one.flags.writeable:
        raise TypeError("an array that is not contiguous, or read-only")
    return one.ctypes.data, one.size, _DTYPES[name]


class Peer:
    """A peer over a module's parameters, tensors or arrays of the host.

    start: "own" begins with the parameters as they are, "adopt" with a
    neighbour's; "auto" adopts from the second start on. timeout: seconds that
    step() waits at most for what a method waits for. log: called with lines,
    on another thread.
    """

    def __init__(self, params, peer_file, *, start="auto", timeout=30.0,
                 log=None):
        self._peer = None
        if start not in _START:
            raise ValueError(f"start: {start!r}; allowed: {', '.join(_START)}")
        self._kept = _tensors(params)
        vectors = (_Vector * max(1, len(self._kept)))(
            *[_Vector(*_vector(one), 0) for one in self._kept])
        say = _LOG(lambda _, line: log(line.decode(errors="replace"))
                   if log else None)
        self._log = say  # lives as long as the peer
        options = _Options(ctypes.sizeof(_Options), _START[start],
                           say if log else _LOG(), None)
        error = ctypes.create_string_buffer(1024)
        self._timeout = timeout
        self._process = os.getpid()
        self._peer = _lib().kith_open(
            os.fsencode(peer_file), vectors, len(self._kept),
            ctypes.byref(options), error, len(error))
        if not self._peer:
            raise Error(error.value.decode(errors="replace"))
        self.over = False
        self._patiently(_lib().kith_wait(self._peer, _WAIT_MS))

    def _patiently(self, said):
        left = self._timeout - _WAIT_MS / 1000
        while said == _LATE and left > 0:
            said = _lib().kith_wait(self._peer, _WAIT_MS)
            left -= _WAIT_MS / 1000
        if said == _FAILED:
            self.close()  # raises what had failed
        self.over = said == _OVER
        return said != _LATE

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
        return self._patiently(
            _lib().kith_step(self._peer, float(loss), _WAIT_MS))

    def serve(self, seconds):
        """Answers neighbours that still train, once one's own share is done."""
        self._alive()
        for _ in range(int(seconds * 1000 / _WAIT_MS) + 1):
            if _lib().kith_wait(self._peer, _WAIT_MS) == _FAILED:
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
        _lib().kith_stats(self._peer, text, len(text))
        return json.loads(text.value)

    def close(self):
        """Ends in order and saves; raises what had failed. Twice is once."""
        peer, self._peer = self._peer, None
        if peer is None or os.getpid() != self._process:
            return
        error = ctypes.create_string_buffer(1024)
        if _lib().kith_close(peer, error, len(error)) != 0:
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
