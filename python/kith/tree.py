"""Arrays that nothing changes in place, as JAX's: a nest of them in, a nest of
new ones out."""

import ctypes
from collections.abc import Mapping

from ._library import DTYPES, MEMORY_HOST, TRAINED, Error, Vector, lib
from .dlpack import CPU, Place, library_of, make
from .vectors import is_in_place, number


def is_tree(params):
    """A dict, a nest, or arrays that are neither a tensor nor NumPy's."""
    if hasattr(params, "named_parameters") or is_in_place(params):
        return False
    if isinstance(params, (list, tuple)):
        return not all(is_in_place(one) for one in params)
    return isinstance(params, Mapping) or hasattr(params, "__dlpack__")


def _flatten(tree, path=""):
    """(path, array) of each, in an order that all peers have: dicts by key."""
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from _flatten(tree[key], f"{path}[{key!r}]")
    elif isinstance(tree, (list, tuple)):
        for i, one in enumerate(tree):
            yield from _flatten(one, f"{path}[{i}]")
    elif tree is not None:
        yield path or "[]", tree


def _filled(tree, arrays):
    """The same nest, of the next of `arrays` each, in _flatten()'s order."""
    if isinstance(tree, Mapping):
        made = {key: _filled(tree[key], arrays) for key in sorted(tree)}
        return type(tree)((key, made[key]) for key in tree)
    if isinstance(tree, (list, tuple)):
        made = [_filled(one, arrays) for one in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") else \
            type(tree)(made)
    return None if tree is None else next(arrays)


class _ArrayPlace:
    """A Place of a NumPy array, which older ones do not lend by DLPack where it
    is read-only."""

    def __init__(self, array):
        self._array = array
        self.address = array.__array_interface__["data"][0]
        self.device, self.dtype = CPU, str(array.dtype)
        self.shape, self.count = array.shape, array.size
        self.is_contiguous = array.flags.c_contiguous


def _place(path, one):
    if hasattr(one, "__array_interface__"):
        place = _ArrayPlace(one)
    elif hasattr(one, "__dlpack__"):
        device = one.__dlpack_device__()
        if device[0] != CPU:
            raise TypeError(f"params{path} lies on device {tuple(device)} of "
                            "DLPack; allowed: the host's memory, (1, 0)")
        place = Place(one)
    else:
        raise TypeError(f"params{path}: found {type(one).__name__}; allowed: "
                        "dicts, lists and tuples of arrays that speak DLPack")
    if place.dtype not in DTYPES:
        raise TypeError(f"params{path} has {place.dtype}; allowed: "
                        f"{', '.join(DTYPES)}")
    if not place.is_contiguous:
        raise TypeError(f"params{path} is not contiguous, row by row")
    return place


class Tree:
    """The arrays of step(params), whose memory kith reads as they are; what
    peers average it writes in memory of its own, of which new arrays are made.
    """

    base, memory, stream = 0, MEMORY_HOST, None

    def __init__(self, params, chosen=None):
        if chosen is not None:
            raise TypeError("params: a choice of a module's parameters; here "
                            "is a tree of arrays: pass those alone")
        self._tree = params
        places = self._look(params)
        self._kinds = [(path, place.shape, place.dtype)
                       for path, place in places]
        self._libraries = [library_of(one) for _, one in _flatten(params)]
        self._memory = [
            (ctypes.c_uint16 * (place.count * (2 if place.dtype == "float32"
                                               else 1)))()
            for _, place in places]
        self._move_in(places)
        self.table = (Vector * max(1, len(places)))(
            *[Vector(ctypes.addressof(memory), place.count,
                     DTYPES[place.dtype], TRAINED)
              for memory, (_, place) in zip(self._memory, places)])
        self._try_libraries()
        self._read, self._writes = [], 0

    def __len__(self):
        return len(self._kinds)

    def _look(self, params):
        return [(path, _place(path, one)) for path, one in _flatten(params)]

    def _move_in(self, places):
        for memory, (_, place) in zip(self._memory, places):
            ctypes.memmove(memory, place.address, ctypes.sizeof(memory))

    def _try_libraries(self):
        """Now, and not behind the first exchange."""
        for library, (path, _, dtype) in zip(self._libraries, self._kinds):
            try:
                make(library, None, (0,), dtype)
            except Exception as error:
                raise TypeError(
                    f"params{path}: from_dlpack() of "
                    f"{getattr(library, '__name__', 'its library')} makes no "
                    f"array of {dtype}: {error}") from error

    def _check(self, places):
        found = [(path, place.shape, place.dtype) for path, place in places]
        if found == self._kinds:
            return
        if len(found) != len(self._kinds):
            raise ValueError(f"step(params): found {len(found)} arrays, where "
                             f"this peer was opened with {len(self._kinds)}")
        for one, own in zip(found, self._kinds):
            if one != own:
                raise ValueError(
                    f"step(params): found params{one[0]}, {one[2]} of "
                    f"{one[1]}, where this peer was opened with "
                    f"params{own[0]}, {own[2]} of {own[1]}")

    def begin(self, peer, given, loss):
        """The arrays are those of `given` from now on; returns the loss."""
        if given is None or isinstance(given, (int, float)):
            raise TypeError("step(): this peer's arrays are not changed in "
                            "place: params = peer.step(params, loss=loss)")
        places = self._look(given)
        self._check(places)
        addresses = (ctypes.c_void_p * len(places))(
            *[place.address for _, place in places])
        if lib().kith_read_from(peer, addresses, len(places)) != 0:
            raise Error("this peer has failed: close() says why")
        self._tree, self._read = given, places
        return number(loss)

    def end(self, peer, _):
        """What step() returns."""
        return self.current(peer)

    def check(self):
        """Its memory is kith's, or was looked at by step()."""

    def current(self, peer):
        """The tree as it is now: new arrays where kith has written."""
        writes = 0 if peer is None else lib().kith_writes(peer)
        if writes != self._writes:
            self._writes, self._read = writes, []
            self._tree = _filled(self._tree, iter(
                [make(library, ctypes.addressof(memory), shape, dtype)
                 for library, memory, (_, shape, dtype) in
                 zip(self._libraries, self._memory, self._kinds)]))
        return self._tree

    def settle(self, peer):
        """As close() begins, which may write a last time: the values are in
        kith's memory, and current() makes arrays of them once more."""
        if self._read and lib().kith_writes(peer) == self._writes:
            self._move_in(self._read)
        lib().kith_read_from(peer, None, 0)
        self._writes = -1
