"""Model files to named arrays: safetensors (also in shards), GGUF, bfloat16. Knows nothing of FFNs."""
from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ._validate import positive_int, short


class TensorFile(Mapping):
    """The tensors of a file, name -> array. Nothing is read before a tensor is asked for.

    Attributes
    ----------
    shapes : dict
        Name -> shape, known without reading.

    Examples
    --------
    >>> tensors = TensorFile({"b": (lambda: np.zeros(3), (3,))})
    >>> tensors.shapes, tensors["b"]
    ({'b': (3,)}, array([0., 0., 0.]))
    """

    def __init__(self, entries: Mapping[str, tuple[Callable[[], np.ndarray], tuple[int, ...]]]) -> None:
        self._readers = {name: reader for name, (reader, _) in entries.items()}
        self.shapes = {name: shape for name, (_, shape) in entries.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __contains__(self, name: object) -> bool:
        return name in self._readers  # a Mapping's own would read the tensor

    def __repr__(self) -> str:
        return f"TensorFile of {len(self)} tensors: {', '.join(list(self)[:3])}{', ...' if len(self) > 3 else ''}"


# ---------------------------------------------------------------- safetensors

SAFETENSORS_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
                      "I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?"}


def read_safetensors(path: str | os.PathLike, prefix: str = "") -> TensorFile:
    """The tensors of a .safetensors file, or of a sharded model's index.json, whose names start with `prefix`.

    Files are mapped, and a tensor is read when it is asked for: opening a model of any size takes no memory.
    (By itself, the safetensors library cannot hand bfloat16, which most LLMs ship as, to NumPy.)

    Parameters
    ----------
    path : str or path-like
        "model.safetensors", or "model.safetensors.index.json" with the shards that it names beside it. Only
        shards that hold wanted tensors have to be there.
    prefix : str

    Returns
    -------
    TensorFile, a mapping of full name -> array
        bfloat16 becomes float32; anything else is a read-only view of the file.

    Raises
    ------
    ValueError
        If the file is something else or not whole (the message says what it is and what to do), or no name
        starts with prefix (the message lists some that exist). When a tensor is asked for: if it is broken,
        or its dtype unknown to NumPy.
    TypeError
        If path is not a path or prefix not a string.
    OSError
        If a file cannot be opened.

    Notes
    -----
    The format: 8 bytes with the length of a JSON header (name -> dtype, shape, byte range), the
    header, the numbers. https://huggingface.co/docs/safetensors

    Examples
    --------
    >>> import tempfile
    >>> header = b'{"fc1.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'
    >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> n = path.write_bytes(len(header).to_bytes(8, "little") + header + np.float32([1, 2]).tobytes())
    >>> read_safetensors(path)["fc1.weight"].tolist()
    [1.0, 2.0]
    """
    path = _path(path, prefix, ".safetensors file")
    if path.suffix == ".json":
        entries = _sharded(path, prefix)
    else:
        entries = _safetensors(path, prefix)
    return _wanted(entries, prefix, path)


def _path(path, prefix, what):
    if not isinstance(path, (str, os.PathLike)):  # a number would be taken as a file descriptor
        raise TypeError(f"path must be a path to a {what}, got {short(path)}")
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be a string, got {short(prefix)}")
    return Path(path)


def _wanted(entries, prefix, path):
    """A TensorFile of the entries whose names start with prefix; there must be one."""
    wanted = {name: entry for name, entry in entries.items() if name.startswith(prefix)}
    if prefix and not wanted:
        raise ValueError(f"prefix must be the start of a name in {path}, got {short(prefix)}; "
                         f"there is {_names_like(prefix, entries)}")
    return TensorFile(wanted)


def _names_like(prefix, names):
    """Two starts of names that end like prefix, or three names, for a message."""
    inside = dict.fromkeys(name[:name.index(prefix) + len(prefix)] for name in names if prefix in name)
    near = list(inside)[:2] or list(names)[:3]
    return (", ".join(near) or "no tensor") + (", ..." if len(names) > len(near) else "")


def _safetensors(path, prefix):
    """Name -> (reader, shape) of one file; its header is not trusted, where names start with prefix."""
    with open(path, "rb") as f:
        start, size = f.read(64), os.fstat(f.fileno()).st_size
        length = int.from_bytes(start[:8], "little")
        f.seek(8)
        text = f.read(length) if 2 <= length <= size - 8 else b""
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_without_doubles)
    except _Doubled as error:
        raise ValueError(f"{path} is broken: its header names {error} twice") from None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise ValueError(f"{path} is not a whole .safetensors file: {_what_is_it(path, start)}")
    header.pop("__metadata__", None)
    begin = 8 + length
    data = np.memmap(path, np.uint8, mode="r", offset=begin) if size > begin else np.empty(0, np.uint8)
    entries = dict.fromkeys(header)
    for name, entry in header.items():
        if name.startswith(prefix):
            where = f"{name} in {path}"
            shape = _check_entry(where, entry, data.size)
            entries[name] = (lambda where=where, entry=entry: _read_tensor(where, entry, data)), shape
    _check_ranges(path, header)
    return entries


class _Doubled(Exception):
    """A name that a header has twice: JSON would keep the last one."""


def _without_doubles(pairs):
    names = {}
    for name, entry in pairs:
        if name in names:
            raise _Doubled(name)
        names[name] = entry
    return names


def _check_ranges(path, header):
    """Tensors lie back to back, as the format demands: no two share numbers, nothing lies between them."""
    offsets = {name: e.get("data_offsets") for name, e in header.items() if isinstance(e, dict)}
    ranges = [(*pair, name) for name, pair in offsets.items()
              if isinstance(pair, list) and [type(n) for n in pair] == [int, int]]
    if len(ranges) < len(header):
        return  # an entry that is broken is refused when its tensor is wanted
    for (_, end, name), (start, _, other) in _neighbours(ranges):
        if start != end:
            what = "share numbers" if start < end else "have numbers between them that belong to none"
            raise ValueError(f"{path} is broken: {name} and {other} {what}")


def _neighbours(ranges):
    """Pairs of (start, end, name) that follow each other in the file."""
    ranges = sorted(ranges, key=lambda r: r[:2])
    return zip(ranges, ranges[1:])


def _sharded(path, prefix):
    """Name -> (reader, shape) over the shards of an index.json, opening those alone that hold wanted names."""
    try:
        weight_map = dict(json.loads(path.read_text(encoding="utf-8-sig"))["weight_map"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(f"{path} is not the index of a sharded model: it has no \"weight_map\"; a model's "
                         f"config.json is for from_state_dict(..., config=...)") from None
    if not all(isinstance(shard, str) for shard in weight_map.values()):
        raise ValueError(f"{path} must name a file for every tensor")
    wanted = {name: shard for name, shard in weight_map.items() if name.startswith(prefix)}
    if not wanted:
        return dict.fromkeys(weight_map)
    entries = {}
    for shard in dict.fromkeys(wanted.values()):
        if Path(shard).name != shard or shard in ("", ".."):  # an index must not lead to other folders
            raise ValueError(f"{path} must name files in its own folder, got {short(shard)}")
        if not (file := path.parent / shard).exists():
            raise FileNotFoundError(f"{file} is missing: {path.name} says that it holds "
                                    f"{next(name for name, s in wanted.items() if s == shard)}")
        entries |= {name: entry for name, entry in _safetensors(file, prefix).items() if weight_map.get(name) == shard}
    if lost := [name for name in wanted if name not in entries]:
        raise ValueError(f"{wanted[lost[0]]} does not hold {lost[0]}, although {path.name} says so: "
                         f"the files are not of one model")
    return entries


def _check_entry(name, entry, size):
    """The shape in a header entry, once it is known to make sense in a file with `size` bytes of numbers."""
    try:
        dtype, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        sound = all(type(n) is int and n >= 0 for n in (*shape, start, end)) and isinstance(dtype, str) and start <= end
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(f"{name} has a broken header entry: {short(entry)}")
    if end > size:
        raise ValueError(f"{name} ends at byte {end} of {size}: the file is cut off")
    if dtype in SAFETENSORS_DTYPES and end - start != math.prod(shape) * np.dtype(SAFETENSORS_DTYPES[dtype]).itemsize:
        raise ValueError(f"{name} has {end - start} bytes, which do not fit shape {shape} of {dtype}")
    return shape


def _read_tensor(name, entry, data):
    dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in SAFETENSORS_DTYPES:
        raise ValueError(f"{name} is stored as {short(dtype)}, which NumPy does not have; "
                         f"known are {', '.join(SAFETENSORS_DTYPES)}")
    array = np.asarray(data[start:end]).view(SAFETENSORS_DTYPES[dtype]).reshape(shape)
    return from_bfloat16(array) if dtype == "BF16" else array


# The first bytes of files that people have instead, and what to do with them.
BEGINNINGS = {
    b"version https://git-lfs":
        "it is a Git-LFS pointer, the real file was not downloaded; run `git lfs pull` in its repository",
    b"GGUF": "it is a GGUF file; open it with read_gguf",
    b"\x80\x02":  # a pickle; newer PyTorch files are zip archives of one
        "it is a PyTorch file; read it in an environment with PyTorch, "
        "torch.load(path, map_location='cpu', weights_only=True), and pass that to from_state_dict",
    b"\x93NUMPY": "it is a NumPy .npy file; open it with np.load",
    b"\x89HDF": "it is an HDF5 file (Keras, TensorFlow); read it with h5py and pass a dict of its arrays",
    **dict.fromkeys((b"<!doctype", b"<html", b"<?xml"),
                    "it is a web page, an error or a login instead of the file; download it again"),
    **dict.fromkeys((b"{", b"["), "it is a JSON text; a sharded model's index must keep its ending .json"),
}


def _what_is_it(path, start):
    """What the first bytes of a file that is no safetensors file say, and what to do with it."""
    if start.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except zipfile.BadZipFile:
            return "it is the beginning of a zip file, perhaps of a PyTorch one that was not downloaded whole"
        if any(name.endswith(".npy") for name in names):
            return "it is a NumPy .npz file; open it with np.load, or with load if RealLayer.save wrote it"
        start = b"\x80\x02" if any(name.endswith("data.pkl") for name in names) else b"zip archive"
    for beginning, what in BEGINNINGS.items():
        if start.startswith(beginning) or start.lstrip().lower().startswith(beginning):
            return what
    if len(start) < 10:
        return f"it has {len(start)} bytes"
    return "it begins with no such header; is it a file of another kind, or a download that was cut off?"


# ---------------------------------------------------------------- GGUF

def read_gguf(path: str | os.PathLike, prefix: str = "") -> TensorFile:
    """The tensors of a GGUF file whose names start with `prefix`, decoded to float32 when they are asked for.

    Needs the `gguf` library, which decodes the quantised formats: pip install "ffn-numpy[gguf]". It reads the
    whole vocabulary when a file is opened, which takes seconds: open a file once, not once per layer.

    Parameters
    ----------
    path : str or path-like
    prefix : str
        Such as "blk.3." for one layer.

    Returns
    -------
    TensorFile, a mapping of full name -> float32 array
        Weights are (out, in), as PyTorch stores them (GGUF itself lists sizes in reverse).

    Raises
    ------
    ValueError
        If the file is no GGUF file, or no name starts with prefix; when a tensor is asked for: if the
        library cannot decode its format.
    TypeError
        If path is not a path or prefix not a string.
    ImportError
        Without the `gguf` library.
    OSError
        If the file cannot be opened.

    Notes
    -----
    Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    """
    path = _path(path, prefix, ".gguf file")
    with open(path, "rb") as f:
        start = f.read(64)
    if not start.startswith(b"GGUF"):
        raise ValueError(f"{path} is not a GGUF file" + (
            "" if start.startswith(b"\0") or not start else f": {_what_is_it(path, start)}"))
    try:
        import gguf
    except ImportError:
        raise ImportError('read_gguf needs the gguf library: pip install "ffn-numpy[gguf]"') from None
    try:
        tensors = gguf.GGUFReader(path).tensors
    except Exception as error:  # whatever a file that is cut off makes the library raise
        raise ValueError(f"{path} is not a whole GGUF file: {short(str(error))}") from None
    ranges = [(int(t.data_offset), int(t.data_offset) + int(t.n_bytes), t.name) for t in tensors]
    for (_, end, name), (begin, _, other) in _neighbours(ranges):
        if begin < end:  # the library does not look
            raise ValueError(f"{path} is broken: {name} and {other} share numbers")
    entries = {t.name: ((lambda t=t: _dequantize(gguf, t, path)), tuple(int(n) for n in t.shape[::-1]))
               for t in tensors}
    return _wanted(entries, prefix, path)


def _dequantize(gguf, tensor, path):
    try:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    except NotImplementedError:
        raise ValueError(f"{tensor.name} in {path} is stored as {tensor.tensor_type.name}, which the gguf library "
                         f"cannot decode") from None
    return array.astype(np.float32, copy=False).reshape(tensor.shape[::-1])


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """bfloat16, given as uint16 bits, is the upper half of a float32."""
    wide = np.array(bits, np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def decode_q4_1(blocks: np.ndarray, shape: Sequence[int]) -> np.ndarray:
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

    Notes
    -----
    Source: `block_q4_1` in https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h. `read_gguf` decodes
    all formats; this one is spelled out for lesson 05.

    Examples
    --------
    >>> d_and_m = np.array([0.5, -1], np.float16).view(np.uint8)                 # (4,) bytes
    >>> w = decode_q4_1(np.concatenate([d_and_m, np.full(16, 0x2F, np.uint8)]), (1, 32))
    >>> w[0, :2].tolist(), w[0, 16:18].tolist()                                  # 0.5 * 15 - 1, and 0.5 * 2 - 1
    ([6.5, 6.5], [0.0, 0.0])
    """
    if not isinstance(blocks, np.ndarray) or blocks.dtype != np.uint8 or blocks.ndim != 1:
        raise TypeError(f"blocks must be a uint8 array (n_bytes,), got {short(blocks)}")
    try:
        out, in_ = (positive_int("shape", n) for n in shape)
    except (TypeError, ValueError):
        out = in_ = 0
    if not out or out * in_ * 20 != blocks.size * 32:
        raise ValueError(f"shape must be (out, in) with 32 weights per 20 bytes, that is {blocks.size * 32 // 20} "
                         f"weights for {blocks.size} bytes; got {short(shape)}")
    blocks = blocks.reshape(-1, 20)                                      # (n_blocks, 20)
    d, m = blocks[:, :4].copy().view(np.float16).astype(np.float32).T    # (n_blocks,) each
    q = np.hstack([blocks[:, 4:] & 15, blocks[:, 4:] >> 4])              # (n_blocks, 32)
    with np.errstate(all="ignore"):
        return (d[:, None] * q + m[:, None]).reshape(out, in_)           # (out, in)
