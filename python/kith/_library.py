"""libkith's functions and structs: what include/kith/kith.h declares."""

import ctypes
import os

DTYPES = {"float32": 0, "bfloat16": 1, "float16": 2}
TRAINED, BUFFER = 0, 1
MEMORY_HOST, MEMORY_CUDA = 0, 1
GOES_ON, LATE, OVER, FAILED = 0, 1, 2, -1
START = {"auto": 0, "own": 1, "adopt": 2}
ERROR_BYTES = 1024


class Error(RuntimeError):
    """What was attempted, found and to do."""

    __module__ = "kith"  # as a traceback and a reader name it


class Vector(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_uint64),
                ("dtype", ctypes.c_uint32), ("role", ctypes.c_uint32)]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("start", ctypes.c_uint32),
                ("log", LOG), ("user", ctypes.c_void_p),
                ("base", ctypes.c_uint64), ("memory", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32), ("stream", ctypes.c_void_p)]


def _load():
    """The library beside this file, else where KITH_LIBRARY or the system says."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "libkith.so.0")
    path = os.environ.get("KITH_LIBRARY") or (
        here if os.path.exists(here) else "libkith.so.0")
    try:
        return _declared(ctypes.CDLL(path))
    except (OSError, AttributeError) as error:  # none there; of another build
        raise Error(f"loading libkith: {error}; install kith's wheel, or have "
                    "KITH_LIBRARY name the libkith.so.0 that was built with "
                    "this package") from None


def _declared(library):
    library.kith_version.restype = ctypes.c_char_p
    library.kith_open.restype = ctypes.c_void_p
    library.kith_open.argtypes = [
        ctypes.c_char_p, ctypes.POINTER(Vector), ctypes.c_uint32,
        ctypes.POINTER(Options), ctypes.c_char_p, ctypes.c_size_t]
    library.kith_load.restype = ctypes.c_void_p
    library.kith_load.argtypes = [ctypes.c_char_p,
                                  *library.kith_open.argtypes]
    library.kith_save.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                  ctypes.c_uint32, ctypes.c_char_p,
                                  ctypes.c_size_t]
    library.kith_step.argtypes = [ctypes.c_void_p, ctypes.c_double,
                                  ctypes.c_uint32]
    library.kith_wait.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    library.kith_samples.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    library.kith_pause.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    library.kith_read_from.argtypes = [
        ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32]
    library.kith_writes.restype = ctypes.c_uint64
    library.kith_writes.argtypes = [ctypes.c_void_p]
    library.kith_report.argtypes = [ctypes.c_void_p, ctypes.c_double,
                                    ctypes.c_double]
    library.kith_stats.restype = ctypes.c_size_t
    library.kith_stats.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                   ctypes.c_size_t]
    library.kith_close.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                   ctypes.c_size_t]
    return library


_library = None


def lib():
    """The library, loaded at its first use."""
    global _library
    if _library is None:
        _library = _load()
    return _library


def encoded(path):
    """For C, where a path or a setting would end at a NUL and be another."""
    if b"\0" in os.fsencode(path):
        raise ValueError(f"{path!r}: embedded null byte")
    return os.fsencode(path)
