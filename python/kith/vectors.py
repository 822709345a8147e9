"""What peers average of what a caller has: the memory of a module's floating
parameters and buffers, of tensors, or of arrays."""

import ctypes
import hashlib
import warnings

from ._library import (BUFFER, DTYPES, MEMORY_CUDA, MEMORY_HOST, TRAINED,
                       Error, Vector)

_STEPS = 32  # without a change, until that is said
_SAMPLES = 256  # of each vector


class Vectors:
    """Memory that peers average, where it lies as long as this does: see
    collect(). `base` is the hash of what is not averaged; `memory` and `stream`
    are those of struct kith_options."""

    def __init__(self, params, chosen=None):
        self._params = params
        kept, self.base = collect(params, chosen)
        self.memory, self.stream = _place(kept)
        self._names = [name for name, _, _ in kept]
        self._given = [one for _, one, _ in kept]
        # A module may be given other memory; this one stands until the end.
        self._alive = [one.detach() if hasattr(one, "detach") else one
                       for one in self._given]
        self.table = (Vector * max(1, len(kept)))(
            *[_vector(name, one, role) for name, one, role in kept])
        self._looked = self._unchanged = 0
        self._before = []  # what end() sampled; None: a step has changed it

    def __len__(self):
        return len(self._given)

    def begin(self, _, given, loss):
        """Of step(): the loss."""
        at = self._looked = (self._looked + 1) % len(self._given)
        self._check(at)
        if self._before is not None:
            self._look_for_change()
        try:
            return number(loss if given is None else given)
        except TypeError as error:
            raise TypeError(f"step(): found {type(given).__name__}; what this "
                            "peer was opened with is changed in place: "
                            "peer.step(loss)") from error

    def end(self, _, on_time):
        """What step() returns."""
        if self._before is not None:
            self._before = self._sample()
        return on_time

    def _sample(self):
        """Some of the values of each, as integers; of the host."""
        if self.memory != MEMORY_HOST:
            return []
        return [((ctypes.c_uint16 if one.dtype else ctypes.c_uint32) *
                 one.count).from_address(one.data)
                [::max(1, one.count // _SAMPLES)]
                for one in self.table if one.count > 0]

    def _look_for_change(self):
        """Says once that steps leave all as it is: a loop that makes other
        arrays, or whose optimiser has another copy, trains what nobody
        averages. Not looked for any more once a step has changed something."""
        self._unchanged += 1
        if self._before and self._before != self._sample():
            self._before = None
        elif self._before and self._unchanged > _STEPS:
            self._before = None
            warnings.warn(
                f"{_STEPS} steps have changed none of what kith.Peer() was "
                "given, which is what peers average: change it in place (w -= "
                "..., and not w = w - ...), and give the optimiser the same "
                "parameters", RuntimeWarning, stacklevel=4)

    def current(self, _):
        return self._params

    def settle(self, _):
        """Changed in place by close(), too."""

    def check(self):
        """Raises where a module was moved or cast; step() looks at one of them
        a call."""
        for at in range(len(self._given)):
            self._check(at)

    def _check(self, at):
        place = self.table[at]
        if _place_of(self._now(at)) != (place.data or 0, place.count):
            raise Error(f"{self._names[at]} lies elsewhere than when this peer "
                        "was opened, or has another size: .to(), .half(), new "
                        "parameters and the like come before kith.Peer()")

    def _now(self, at):
        """What has this name in the module now; else what was given."""
        path, _, last = self._names[at].rpartition(".")
        try:
            return getattr(self._params.get_submodule(path), last, None)
        except AttributeError:
            return self._given[at]


def is_in_place(one):
    """A tensor or a NumPy array."""
    return hasattr(one, "data_ptr") or hasattr(one, "__array_interface__")


def _place_of(one):
    """(address, count)."""
    if hasattr(one, "data_ptr"):
        return one.data_ptr(), one.numel()
    return (one.__array_interface__["data"][0], one.size) \
        if is_in_place(one) else None


def number(loss):
    """A loss that still has its graph is a number without PyTorch's warning."""
    return float(loss.detach() if hasattr(loss, "detach") else loss)


def share(accuracy):
    """Of right answers; one in per cent would be drawn and asserted as such."""
    accuracy = number(accuracy)
    if accuracy < 0 or accuracy > 1:  # NaN: not known
        raise ValueError(f"accuracy: {accuracy:g}; allowed: a share, 0 to 1")
    return accuracy


def collect(params, chosen=None):
    """([(name, tensor or array, TRAINED or BUFFER)], base) of a module, of
    tensors, or of arrays.

    `chosen`: of a module which parameters, a function of a name or names; None:
    those that require a gradient. Its others are the same on all peers: base is
    their hash, 0 where there are none. Floating buffers are averaged, plainly
    and behind the parameters; integer ones stay the module's own. Tied ones
    count once.
    """
    if hasattr(params, "named_parameters") and not isinstance(params, type):
        return _of_module(params, chosen)
    if chosen is not None:
        raise TypeError("params: a choice of a module's parameters; here are "
                        "tensors or arrays: pass those alone")
    return [(f"[{i}]", one, TRAINED)
            for i, one in enumerate(_several(params))], 0


def _several(params):
    try:
        several = [params] if is_in_place(params) else list(params)
    except TypeError:
        several = [params]
    for one in several:
        if not is_in_place(one):
            raise TypeError(f"the model: found {type(one).__name__}; allowed: "
                            "a module, a tensor, a NumPy array, or a list of "
                            "tensors or arrays")
    return several


def _of_module(module, chosen):
    named = dict(module.named_parameters())
    wanted = _wanted(named, chosen)
    found = [(name, one, TRAINED) for name, one in named.items()
             if name in wanted]
    found += [(name, one, BUFFER) for name, one in module.named_buffers()
              if one.is_floating_point()]
    kept, seen = [], set()
    for name, one, role in found:
        if one.numel() > 0 and one.data_ptr() not in seen:
            seen.add(one.data_ptr())
            kept.append((name, one, role))
    return kept, _hash((name, one) for name, one in named.items()
                       if name not in wanted)


def _wanted(named, chosen):
    if chosen is None:
        wanted = {name for name, one in named.items() if one.requires_grad}
    elif callable(chosen):
        wanted = {name for name in named if chosen(name)}
    else:
        wanted = {chosen} if isinstance(chosen, str) else set(chosen)
        unknown = sorted(wanted - set(named))
        if unknown:
            raise ValueError(f"params: the module has no {unknown[0]!r}; it "
                             f"has {', '.join(list(named)[:8])} ...")
    if not wanted:
        raise ValueError("params: none of the module's parameters requires a "
                         "gradient, or is named")
    return wanted


def _hash(named):
    """64 bits of names, shapes and bytes; 0: there are none."""
    total = None
    for name, one in named:
        total = total or hashlib.blake2b(digest_size=8)
        flat = one.detach().cpu().contiguous()
        total.update(f"{name} {tuple(flat.shape)} {flat.dtype};".encode())
        size = flat.numel() * flat.element_size()
        if size > 0:
            total.update((ctypes.c_char * size).from_address(flat.data_ptr()))
    return 0 if total is None else int.from_bytes(total.digest(), "big") or 1


def _place(kept):
    """(memory, stream): all on the host, or all on one CUDA device, whose
    stream of now is the one that the loop computes on."""
    devices = {}
    for name, one, _ in kept:
        device = one.device if hasattr(one, "data_ptr") else "cpu"
        devices.setdefault(str(device), (name, device))
    unknown = [(name, device) for kind, (name, device) in devices.items()
               if kind.split(":")[0] not in ("cpu", "cuda")]
    if unknown or len(devices) > 1:
        name, device = (unknown or list(devices.values())[1:])[0]
        raise TypeError(f"{name} is a parameter on {device}; allowed: all on "
                        "cpu, or all on one cuda device")
    if not devices or "cpu" in devices:
        return MEMORY_HOST, None
    import torch
    (_, device), = devices.values()
    return MEMORY_CUDA, torch.cuda.current_stream(device).cuda_stream or None


def _vector(name, one, role):
    if hasattr(one, "placements"):  # a DTensor
        raise TypeError(f"{name} is sharded over processes (FSDP2, a DTensor); "
                        "allowed: whole ones, as under "
                        "DistributedDataParallel with kith.GroupPeer")
    dtype = str(one.dtype).replace("torch.", "")
    if dtype not in DTYPES:
        raise TypeError(f"{name} is a parameter of {dtype}; allowed: "
                        f"{', '.join(DTYPES)}")
    if hasattr(one, "data_ptr"):
        if not one.is_contiguous():
            raise TypeError(f"{name} is a parameter that is not contiguous; "
                            ".contiguous() makes one that is")
        return Vector(one.data_ptr(), one.numel(), DTYPES[dtype], role)
    if not one.flags.c_contiguous:
        raise TypeError(f"{name} is an array that is not contiguous; "
                        "numpy.ascontiguousarray() makes one that is")
    if not one.flags.writeable:
        raise TypeError(f"{name} is an array that is read-only; "
                        "numpy.array() makes one that is not")
    return Vector(one.ctypes.data, one.size, DTYPES[dtype], role)
