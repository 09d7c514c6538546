"""Files to named arrays: safetensors, bfloat16, GGUF's Q4_1. Knows nothing of FFNs."""
import json
import math
import os

import numpy as np

from ._validate import short

SAFETENSORS_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
                      "I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?"}


def read_safetensors(path, prefix=""):
    """Read the tensors of a .safetensors file whose names start with `prefix`; bfloat16 becomes float32.

    The file is mapped, not read: only the tensors asked for take memory. (By itself, the safetensors
    library cannot hand bfloat16, which most LLMs ship as, to NumPy.)

    Parameters
    ----------
    path : str or path-like
    prefix : str

    Returns
    -------
    dict
        Full name -> array. All but bfloat16 are read-only views of the file.

    Raises
    ------
    ValueError
        If the file is not a whole safetensors file, no name starts with prefix (the message lists some
        that exist), or a wanted tensor's dtype is unknown to NumPy.
    TypeError
        If path is not a path or prefix not a string.
    OSError
        If the file cannot be opened.

    Notes
    -----
    The format: 8 bytes with the length of a JSON header (name -> dtype, shape, byte range), the
    header, the numbers. https://huggingface.co/docs/safetensors
    """
    if not isinstance(path, (str, os.PathLike)):  # a number would be taken as a file descriptor
        raise TypeError(f"path must be a path to a .safetensors file, got {short(path)}")
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be a string, got {short(prefix)}")
    with open(path, "rb") as f:
        length, size = int.from_bytes(f.read(8), "little"), os.fstat(f.fileno()).st_size
        if length > size - 8:
            raise ValueError(f"{path} is not a whole .safetensors file: its header does not fit into the file")
        try:
            header = dict(json.loads(f.read(length)))
        except (ValueError, TypeError, RecursionError):
            raise ValueError(f"{path} is not a .safetensors file: its header is no JSON object") from None
    header.pop("__metadata__", None)
    wanted = [name for name in header if name.startswith(prefix)]
    if prefix and not wanted:
        inside = {name[:name.index(prefix) + len(prefix)]: None for name in header if prefix in name}
        near = list(inside)[:2] or list(header)[:3]
        raise ValueError(f"prefix must be the start of a name in {path}, got {short(prefix)}; "
                         f"there is {', '.join(near) or 'no tensor'}{', ...' if len(header) > len(near) else ''}")
    n_bytes = size - 8 - length
    data = np.memmap(path, np.uint8, mode="r", offset=8 + length) if n_bytes else np.empty(0, np.uint8)
    return {name: _read_tensor(f"{name} in {path}", header[name], data) for name in wanted}


def _read_tensor(name, entry, data):
    """One tensor of a safetensors file from its header entry, which is not trusted."""
    try:
        dtype, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        sound = all(type(n) is int and n >= 0 for n in (*shape, start, end)) and isinstance(dtype, str) and start <= end
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(f"{name} has a broken header entry: {short(entry)}")
    if dtype not in SAFETENSORS_DTYPES:
        raise ValueError(f"{name} is stored as {short(dtype)}, which NumPy does not have; "
                         f"known are {', '.join(SAFETENSORS_DTYPES)}")
    if end > data.size:
        raise ValueError(f"{name} ends at byte {end} of {data.size}: the file is cut off")
    if end - start != math.prod(shape) * np.dtype(SAFETENSORS_DTYPES[dtype]).itemsize:
        raise ValueError(f"{name} has {end - start} bytes, which do not fit shape {shape} of {dtype}")
    array = np.asarray(data[start:end]).view(SAFETENSORS_DTYPES[dtype]).reshape(shape)
    return from_bfloat16(array) if dtype == "BF16" else array


def from_bfloat16(bits):
    """bfloat16, given as uint16 bits, is the upper half of a float32."""
    wide = np.array(bits, np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def decode_q4_1(blocks, shape):
    """Decode GGUF Q4_1, 4-bit weights: 20 bytes hold 32 weights w = d q + m.

    Parameters
    ----------
    blocks : uint8 (n_bytes,)
        Per block a float16 scale d, a float16 minimum m, then 16 bytes with two 4-bit q each: the
        low halves are weights 0-15, the high halves weights 16-31.
    shape : (out, in)

    Returns
    -------
    float32 (out, in)

    Raises
    ------
    TypeError, ValueError
        If blocks is not a uint8 vector, or shape does not fit its number of bytes.
    """
    if not isinstance(blocks, np.ndarray) or blocks.dtype != np.uint8 or blocks.ndim != 1:
        raise TypeError(f"blocks must be a uint8 array (n_bytes,), got {short(blocks)}")
    sizes = np.asarray(shape)
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or sizes.min() < 1 or sizes.prod() * 20 != blocks.size * 32:
        raise ValueError(f"shape must be (out, in) with 32 weights per 20 bytes, that is {blocks.size * 32 // 20} "
                         f"weights for {blocks.size} bytes; got {short(shape)}")
    blocks = blocks.reshape(-1, 20)                                      # (n_blocks, 20)
    d, m = blocks[:, :4].copy().view(np.float16).astype(np.float32).T    # (n_blocks,) each
    q = np.hstack([blocks[:, 4:] & 15, blocks[:, 4:] >> 4])              # (n_blocks, 32)
    with np.errstate(all="ignore"):
        return (d[:, None] * q + m[:, None]).reshape(sizes)              # (out, in)
