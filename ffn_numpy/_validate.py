"""Checks shared by every module: an error names the argument, what was expected and what came."""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

FLOATS = "efd"  # dtype characters of float16, float32, float64


def short(value: Any) -> str:
    """repr(value) on one line, cut to fit into an error message."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def float_array(name: str, value: Any) -> np.ndarray:
    """Return `value` as a float16, float32 or float64 array; integers and booleans become float64.

    Raises
    ------
    TypeError
        If `value` is None, text, complex, masked, an object array or any other non-number.
    ValueError
        If `value` is a ragged nested list.
    """
    if type(value) is np.ndarray and value.dtype.char in FLOATS:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a plain array, got a masked one: its mask would be lost; fill it first")
    try:
        array = np.asarray(value)
    except Exception as error:  # whatever a foreign __array__ raises, such as a PyTorch tensor with gradient
        if "inhomogeneous" in str(error):
            raise ValueError(f"{name} must be an array of numbers, but its rows have different lengths "
                             f"(a ragged {type(value).__name__})") from None
        raise TypeError(f"{name} must be an array of numbers, got a {type(value).__name__} that NumPy cannot "
                        f"read: {short(str(error))}") from None
    if array.dtype.char in FLOATS:
        return array
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    came = "None" if value is None else f"a {type(value).__name__} of dtype {array.dtype}"
    raise TypeError(f"{name} must hold real numbers (float16, float32, float64 or integers), got {came}")


def wide(array: np.ndarray) -> np.ndarray:
    """float16 as float32, anything else as it is: float16 has too few digits and too small a range to compute in."""
    return array.astype(np.float32) if array.dtype.char == "e" else array


def narrow(array: np.ndarray, *inputs: np.ndarray) -> np.ndarray:
    """`array`, computed from `wide` inputs, in the dtype that the inputs themselves would have given."""
    with np.errstate(all="ignore"):  # what float16 cannot hold becomes inf or 0
        return array.astype(np.result_type(*inputs), copy=False)


def vectors(name: str, value: Any, size: int, size_name: str, owner: str = "this FFN was built for") -> np.ndarray:
    """Return `value` as a float array (..., size), or raise a ValueError that says what came instead.

    owner: who wants that size, for the message.
    """
    array = float_array(name, value)
    if array.ndim and array.shape[-1] == size:
        return array
    if array.ndim == 0:
        raise ValueError(f"{name} must have shape (..., {size}), got a scalar")
    raise ValueError(f"{name} has last dimension {array.shape[-1]}, but {owner} {size_name} = {size} "
                     f"({name}.shape = {array.shape})")


def indices(name, value, n):
    """Return `value` as an array of integers in 0..n-1, or raise a TypeError or ValueError that names it."""
    try:
        array = np.asarray(value)
    except Exception:  # ragged lists, and whatever a foreign __array__ raises
        raise TypeError(f"{name} must be integers, got {short(value)}") from None
    if array.dtype.kind not in "iu":
        came = "None" if value is None else f"a {type(value).__name__} of dtype {array.dtype}"
        raise TypeError(f"{name} must be integers, got {came}")
    if array.size and not 0 <= array.min() <= array.max() < n:
        raise ValueError(f"{name} must be in 0..{n - 1}, got {array.min()}..{array.max()}")
    return array


def one_of(name, value, options):
    """Return `value` if it is one of the options, strings or None; else a ValueError that lists them."""
    if (value is None and None in options) or (isinstance(value, str) and value in options):
        return value
    *first, last = map(repr, options)
    raise ValueError(f"{name} must be {', '.join(first)} or {last}, got {short(value)}")


def positive_int(name: str, value: Any) -> int:
    """Return `value` as a Python int of at least 1; floats, booleans and text are a TypeError."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a positive integer, got {short(value)}") from None
    if number < 1:
        raise ValueError(f"{name} must be a positive integer, got {short(number)}")
    return number


def number(name, value, expected):
    """Return `value` if it is a Python or NumPy number; `expected` completes the message of the TypeError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be {expected}, got {short(value)}")
    return value


def not_negative(name, value):
    """Return `value` if it is a number that is at least 0."""
    expected = "a number that is at least 0"
    if not number(name, value, expected) >= 0:
        raise ValueError(f"{name} must be {expected}, got {short(value)}")
    return value


def generator(name: str, value: Any) -> np.random.Generator:
    """Return `value` if it is a numpy.random.Generator; a seed is no generator."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(f"{name} must be a numpy.random.Generator such as np.random.default_rng(0), "
                        f"got {type(value).__name__}")
    return value


def float_dtype(name: str, value: Any) -> np.dtype:
    """Return `value` as a NumPy dtype, one of float16, float32 and float64."""
    try:
        dtype = None if value is None else np.dtype(value)
    except TypeError:
        dtype = None
    if dtype is None or dtype.char not in FLOATS:
        raise TypeError(f"{name} must be float16, float32 or float64, got {short(value)}")
    return dtype.newbyteorder("=")


def random_generator(name: str, value: Any) -> np.random.Generator:
    """Return `np.random.default_rng(value)`; a value that it does not take is an error that names it."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be a non-negative integer or a numpy.random.Generator, "
                          f"got {short(value)}") from None
