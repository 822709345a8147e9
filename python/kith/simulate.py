"""A training loop of yours with many virtual peers; see simulate()."""

import ctypes
import json
import math
import sys

from ._library import BUFFER, ERROR_BYTES, Error, encoded, lib
from .vectors import collect, number, share

_JSON_BYTES = 1 << 16
_RANK, _USER = ctypes.c_uint32, ctypes.c_void_p
_VALUES = ctypes.POINTER(ctypes.c_float)
_REAL = ctypes.POINTER(ctypes.c_double)
_BEGIN = ctypes.CFUNCTYPE(ctypes.c_void_p, _USER, _RANK)
_STEP = ctypes.CFUNCTYPE(ctypes.c_int, _USER, _RANK, ctypes.c_uint64, _REAL)
_END = ctypes.CFUNCTYPE(None, _USER, _RANK)
_EVALUATE = ctypes.CFUNCTYPE(ctypes.c_int, _USER, _VALUES, _REAL, _REAL)
_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, _USER, *[ctypes.c_double] * 3)


class _Simulation(ctypes.Structure):  # struct kith_simulation
    _fields_ = [("size", ctypes.c_uint32), ("setting_count", ctypes.c_uint32),
                ("experiment", ctypes.c_char_p),
                ("settings", ctypes.POINTER(ctypes.c_char_p)),
                ("folder", ctypes.c_char_p), ("count", ctypes.c_uint64),
                ("buffers", ctypes.c_uint64),
                ("user", _USER), ("begin", _BEGIN), ("step", _STEP),
                ("end", _END), ("evaluate", _EVALUATE),
                ("progress", _PROGRESS), ("calibrates", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


def _floats_of(address, count):
    return (ctypes.c_float * count).from_address(address)


class _Virtual:
    """One peer: its trainer, whose params are views of `flat`."""

    def __init__(self, trainer):
        self.trainer = trainer
        params = getattr(trainer, "params", trainer)
        kept, _ = collect(params)
        self.params = [one for _, one, _ in kept]
        self.buffers = sum(one.numel() for _, one, role in kept
                           if role == BUFFER)
        for one in self.params:
            if str(one.dtype).replace("torch.", "") != "float32":
                raise TypeError(f"a parameter of {one.dtype}; the simulator's "
                                "are float32")
        self.torch = bool(self.params) and hasattr(self.params[0], "data_ptr")
        if self.torch:
            self._gather_tensors()
        else:
            self._gather_arrays(params)
        self.places = self._places()

    def _gather_tensors(self):
        import torch
        self.count = sum(one.numel() for one in self.params)
        # Whatever the caller has made the default: kith writes float32 there.
        self.flat = torch.empty(self.count, dtype=torch.float32, device="cpu")
        at = 0
        self.address = self.flat.data_ptr()
        for one in self.params:
            if one.device.type != "cpu":
                raise TypeError(f"a parameter on {one.device}; allowed: cpu")
            view = self.flat[at:at + one.numel()].view(one.shape)
            view.copy_(one.detach())
            one.data = view
            at += one.numel()

    def _gather_arrays(self, params):
        import numpy
        self.count = sum(one.size for one in self.params)
        memory, at = numpy.empty(self.count + 16, "float32"), 0
        skip = -memory.ctypes.data % 64 // 4
        self.flat = memory[skip:skip + self.count]
        self.address = self.flat.ctypes.data
        views = []
        for one in self.params:
            views.append(self.flat[at:at + one.size].reshape(one.shape))
            views[-1][...] = one
            at += one.size
        alone = hasattr(params, "__array_interface__")
        self.trainer.params = views[0] if alone else views

    def _places(self):
        if self.torch:
            return [one.data_ptr() for one in self.params]
        return [one.ctypes.data for _, one, _ in
                collect(self.trainer.params)[0]]

    def check(self):
        if self._places() != self.places:
            raise Error("a parameter lies elsewhere than when its peer began: "
                        "step() changes parameters in place, and each "
                        "make_trainer(rank) has its own")

    def step(self):
        loss = self.trainer.step()
        if self.torch:
            for one in self.params:
                one.grad = None  # peers share the memory of gradients
        if loss is None:
            return math.nan
        return number(loss)


class _Run:
    """What libkith calls. The first exception ends the run and is raised when
    it is over; nothing of the caller's is called after it."""

    def __init__(self, make_trainer, evaluate, progress):
        self.make, self.score, self.tell = make_trainer, evaluate, progress
        self.peers, self.stepped, self.raised = {}, set(), None
        self.first = _Virtual(make_trainer(0))
        self.count, self.torch = self.first.count, self.first.torch
        self.buffers = self.first.buffers

    def guarded(self, function, failed):
        def call(_, *arguments):
            if self.raised is not None:
                return failed
            try:
                return function(*arguments)
            except BaseException as error:  # Ctrl-C, too
                self.raised = error
                return failed
        return call

    def begin(self, rank):
        first, self.first = self.first, None
        peer = first if first and rank == 0 else _Virtual(self.make(rank))
        if (peer.count, peer.buffers) != (self.count, self.buffers):
            raise Error(f"peer {rank}: found {peer.count} values, of peer 0 "
                        f"{self.count}; all peers have the same parameters")
        self.peers[rank] = peer
        return peer.address

    def step(self, rank, _, loss):
        peer = self.peers[rank]
        loss[0] = peer.step()
        if rank not in self.stepped:
            self.stepped.add(rank)
            peer.check()
        return 0

    def end(self, rank):
        peer = self.peers.pop(rank)
        self.stepped.discard(rank)
        peer.check()

    def evaluate(self, values, loss, accuracy):
        floats = _floats_of(ctypes.addressof(values.contents), self.count)
        if self.torch:
            import torch
            own = torch.frombuffer(floats, dtype=torch.float32).clone()
        else:
            import numpy
            own = numpy.frombuffer(floats, "float32").copy()
        found = self.score(own)
        if isinstance(found, (tuple, list)):
            of_loss, of_accuracy = found
            loss[0], accuracy[0] = number(of_loss), share(of_accuracy)
        else:
            loss[0] = number(found)
        return 0

    def progress(self, share, virtual_s, wall_s):
        if self.tell is True:
            done = "" if math.isnan(share) else f" ({100 * share:.0f} %)"
            print(f"\r{virtual_s:8.2f} s virtual, {wall_s:.1f} s real{done}",
                  end="", file=sys.stderr, flush=True)
        elif self.tell:
            self.tell(share, virtual_s, wall_s)
        return 0


def simulate(make_trainer, experiment, *, evaluate=None, progress=None,
             folder=".", settings=(), calibrate=False):
    """Runs the experiment's peers in virtual time, in this thread.

    make_trainer(rank) gives an object with
      params   a module, tensors, or NumPy arrays, of float32, on the host; all
               ranks begin with the same values (seed before you make them)
      step()   one step of training, in place; returns the loss of its batch
    From then on params lie in the simulator's vector, where peers average them:
    tensors stay the objects that they are, arrays are replaced by views of it
    (`trainer.params`, one array or a list as it was). Gradients do not outlive
    a step. A peer that restarts after a crash is made anew.

        class Trainer:
            def __init__(self, rank):
                torch.manual_seed(0)
                self.params = self.model = torch.nn.Linear(64, 10)
                self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
                self.batches = batches_of(rank)

            def step(self):
                x, y = next(self.batches)
                loss = torch.nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                return loss

        result = kith.simulate(Trainer, "experiment.yaml")

    The file has `model: {kind: program}`, and `compute: {step: 5ms}`: what a
    step takes. evaluate(values) -> loss or (loss, accuracy), of one flat tensor
    or array in params' order (torch.nn.utils.vector_to_parameters puts it into
    a module without buffers); progress(share, virtual_s, wall_s), or True for a
    line on stderr; folder: of the run database, None writes none; settings:
    ["gossip.every=4"], over the file's; calibrate: a file without compute.step
    has it measured, on a trainer of its own, and kept in the run database.

    Returns the summary as `kith sim --json` prints it: trace_hash, database,
    accuracy, ... Raises Error, or what a callback raised.
    """
    run = _Run(make_trainer, evaluate, progress)
    texts = [encoded(text) for text in
             ([settings] if isinstance(settings, str) else settings)]
    simulation = _Simulation(
        size=ctypes.sizeof(_Simulation), setting_count=len(texts),
        experiment=encoded(experiment),
        settings=(ctypes.c_char_p * len(texts))(*texts),
        folder=None if folder is None else encoded(folder),
        count=run.count, buffers=run.buffers, calibrates=calibrate,
        begin=_BEGIN(run.guarded(run.begin, None)),
        step=_STEP(run.guarded(run.step, 1)),
        end=_END(run.guarded(run.end, None)),
        progress=_PROGRESS(run.guarded(run.progress, 1)))
    if evaluate is not None:
        simulation.evaluate = _EVALUATE(run.guarded(run.evaluate, 1))
    summary = ctypes.create_string_buffer(_JSON_BYTES)
    error = ctypes.create_string_buffer(ERROR_BYTES)
    failed = lib().kith_simulate(
        ctypes.byref(simulation), summary, ctypes.c_size_t(len(summary)), error,
        ctypes.c_size_t(len(error)))
    if progress is True:
        print(file=sys.stderr)
    if run.raised is not None:
        raise run.raised
    if failed:
        raise Error(error.value.decode(errors="replace"))
    return json.loads(summary.value)
