"""DLPack by ctypes: where a library's array lies, and new arrays of its own.

A DLManagedTensor that is given away stands in one block with its values, whose
deleter is libc's free(): nothing of Python's is called when the other library
drops it, at whatever time and on whatever thread that is.
"""

import ctypes
import sys

CPU = 1
_DTYPES = {(2, 32): "float32", (2, 16): "float16", (4, 16): "bfloat16"}
_CODES = {name: code for code, name in _DTYPES.items()}
_ALIGNMENT = 64  # that XLA takes memory as it is
_UNUSED, _VERSIONED = b"dltensor", b"dltensor_versioned"


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64),
                ("tensor", _Tensor)]


_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]
_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                  ctypes.c_void_p]
_python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Place:
    """Where an array's values lie, as long as this does. dtype: kith's name of
    it, else the array's own."""

    def __init__(self, array):
        try:
            self._capsule = array.__dlpack__(max_version=(1, 0))
        except TypeError:  # older than DLPack 1.0
            self._capsule = array.__dlpack__()
        is_new = _python.PyCapsule_IsValid(self._capsule, _VERSIONED)
        managed = (_Versioned if is_new else _Managed).from_address(
            _python.PyCapsule_GetPointer(self._capsule,
                                         _VERSIONED if is_new else _UNUSED))
        tensor = managed.tensor
        self.device = tensor.device_type
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[:tensor.rank])
        self.dtype = _DTYPES.get((tensor.code, tensor.bits * tensor.lanes)) or \
            str(getattr(array, "dtype", (tensor.code, tensor.bits)))
        strides = tensor.strides[:tensor.rank] if tensor.strides else None
        self.count, self.is_contiguous = 1, True
        for i in reversed(range(tensor.rank)):
            if strides and self.shape[i] > 1 and strides[i] != self.count:
                self.is_contiguous = False
            self.count *= self.shape[i]


class _Given:
    """One array for another library, which takes it by from_dlpack()."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return CPU, 0


def library_of(array):
    """The module whose from_dlpack() makes arrays as this one."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules.get(type(array).__module__.partition(".")[0])


def make(library, address, shape, dtype):
    """A new array of the library's, of a copy of the values at `address`."""
    code, bits = _CODES[dtype]
    rank, count = len(shape), 1
    for side in shape:
        count *= side
    head = -(-(ctypes.sizeof(_Managed) + 8 * rank) // _ALIGNMENT) * _ALIGNMENT
    size = -(-(head + count * bits // 8) // _ALIGNMENT) * _ALIGNMENT
    block = _libc.aligned_alloc(_ALIGNMENT, size)
    if not block:
        raise MemoryError(f"{size} bytes for an array of {shape}")
    sides = (ctypes.c_int64 * rank).from_address(
        block + ctypes.sizeof(_Managed))
    sides[:] = shape
    managed = _Managed.from_address(block)
    managed.tensor = _Tensor(
        block + head, CPU, 0, rank, code, bits, 1,
        ctypes.cast(sides, ctypes.POINTER(ctypes.c_int64)), None, 0)
    managed.context = None
    managed.deleter = ctypes.cast(_libc.free, ctypes.c_void_p)
    ctypes.memmove(block + head, address, count * bits // 8)
    capsule = _python.PyCapsule_New(block, _UNUSED, None)
    try:
        return library.from_dlpack(_Given(capsule))
    finally:
        if _python.PyCapsule_IsValid(capsule, _UNUSED):  # it was not taken
            _libc.free(block)
