"""What peers average of what a caller has: the memory of a module's floating
parameters and buffers, of tensors, or of arrays."""

from ._library import DTYPES, Vector


def tensors_of(params):
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


def vector_of(one):
    """The Vector of a tensor or an array, whose memory it is."""
    name = str(one.dtype).replace("torch.", "")
    if name not in DTYPES:
        raise TypeError(f"a parameter of {name}; allowed: {', '.join(DTYPES)}")
    if hasattr(one, "data_ptr"):
        if one.device.type != "cpu":
            raise TypeError(f"a parameter on {one.device}; allowed: cpu")
        if not one.is_contiguous():
            raise TypeError("a parameter that is not contiguous")
        return Vector(one.data_ptr(), one.numel(), DTYPES[name], 0)
    if not one.flags.c_contiguous or not one.flags.writeable:
        raise TypeError("an array that is not contiguous, or read-only")
    return Vector(one.ctypes.data, one.size, DTYPES[name], 0)
