"""As much of torch as kith asks of tensors on a CUDA device, over the emulation
of tests/cuda/emulate.h, which does what streams are told as late as it may."""

import ctypes
import os
import sys
import types

import numpy

LATE = 1
_ALL = ctypes.CDLL(os.environ["EMULATION"])
_ALL.kith_emulate_allocate.restype = ctypes.c_void_p
_ALL.kith_emulate_allocate.argtypes = [ctypes.c_size_t]
_ALL.kith_emulate_stream.restype = ctypes.c_void_p
_ALL.kith_emulate_copy.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t]
_ALL.kith_emulate_copy.restype = None
_ALL.kith_emulate_synchronise.argtypes = [ctypes.c_void_p]
_ALL.kith_emulate_order(LATE)
STREAM = types.SimpleNamespace(cuda_stream=_ALL.kith_emulate_stream())
_ALL.kith_emulate_commands.restype = ctypes.c_ulong
commands = _ALL.kith_emulate_commands  # kernels, copies, fills told so far
choose, chosen = _ALL.kith_emulate_choose, _ALL.kith_emulate_chosen


class Tensor:
    """float32 values on the device; read and written on STREAM."""

    def __init__(self, values, device="cuda:0", address=None):
        self.dtype, self.device, self._count = "float32", device, len(values)
        self._address = address or _ALL.kith_emulate_allocate(4 * self._count)
        self._told = []  # what copies that are still to be made read
        if address is None:
            self.set(values)

    def data_ptr(self):
        return self._address

    def numel(self):
        return self._count

    def is_contiguous(self):
        return True

    def detach(self):
        return self

    def set(self, values):
        """Does not wait: what is told next comes behind it."""
        self._told.append(numpy.array(values, "f"))
        _ALL.kith_emulate_copy(STREAM.cuda_stream, self._address,
                               self._told[-1].ctypes.data, 4 * self._count)

    def get(self):
        values = numpy.empty(self._count, "f")
        _ALL.kith_emulate_copy(STREAM.cuda_stream, values.ctypes.data,
                               self._address, 4 * self._count)
        _ALL.kith_emulate_synchronise(STREAM.cuda_stream)
        self._told.clear()
        return values


sys.modules["torch"] = types.SimpleNamespace(
    cuda=types.SimpleNamespace(current_stream=lambda device: STREAM))
