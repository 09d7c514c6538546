"""Activation functions and their derivatives, elementwise on arrays of any shape.

Every function takes anything that `np.asarray` takes, keeps float16, float32 and float64
(integers become float64), keeps NaN, gives the limits at +-inf, never modifies its input and
never warns. The formulas are the ones of the papers; the comments say where floating point
needs care.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._validate import float_array, one_of

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import ArrayLike

BLOCK_BYTES = 2**17  # worked on at a time, so that temporaries stay in the processor's cache


def _elementwise(kernel, x):
    """Fill a new array like x with kernel(block of x, block to fill), block by block.

    Kernels see 1-D float32 or float64 blocks. They use the block to fill as their working space: fewer
    passes over memory than one temporary per operation.
    """
    x = float_array("x", x)
    flat, out, block = x.reshape(-1), np.empty(x.size, x.dtype), BLOCK_BYTES // x.itemsize
    half = x.dtype.char == "e"  # too few digits to compute in: float16 blocks are worked on in float32
    # Overflow and underflow are wanted: exp(large) = inf gives the exact limit 1 / inf = 0.
    with np.errstate(all="ignore"):
        for i in range(0, x.size, block):
            if half:
                single = flat[i:i + block].astype(np.float32)
                kernel(single, filled := np.empty_like(single))
                out[i:i + block] = filled
            else:
                kernel(flat[i:i + block], out[i:i + block])
    return out.reshape(x.shape)[()]  # a scalar in, a scalar out, as NumPy's own functions do


# ---------------------------------------------------------------- sigmoid, ReLU, SiLU, identity

def _sigmoid(x, out):
    np.exp(np.negative(x, out=out), out=out)
    out += 1
    np.divide(1, out, out=out)


def _sigmoid_derivative(x, out):
    _sigmoid(-np.abs(x), out)  # sigma' is even, and 1 - sigma(-|x|) does not cancel
    out *= 1 - out


def _relu(x, out):
    np.maximum(x, 0, out=out)


def _relu_derivative(x, out):
    np.heaviside(x, 0, out=out)  # 0 at x = 0, as every framework has it; NaN stays NaN


def _relu2(x, out):
    np.maximum(x, 0, out=out)
    out *= out


def _relu2_derivative(x, out):
    np.maximum(x, 0, out=out)
    out *= 2


def _silu(x, out, slope=1.0):
    x = np.clip(x, -1000, np.inf)  # silu(-inf) is 0, but -inf * 0 would be NaN
    np.exp(np.multiply(x, -slope, out=out), out=out)
    out += 1
    np.divide(x, out, out=out)


def _silu_derivative(x, out, slope=1.0):
    z = slope * np.clip(x, -1000, 1000)
    _sigmoid(z, out)
    out += z * out * (1 - out)


def _identity(x, out):
    out[:] = x


def _identity_derivative(x, out):
    out[:] = np.where(np.isnan(x), x, 1)


# ---------------------------------------------------------------- GELU, exact and tanh

def _erfcx(z):
    """exp(z^2) erfc(z): the definition for small z, Laplace's continued fraction beyond."""
    if z < 2:
        return math.exp(z * z) * math.erfc(z)
    tail = z
    for k in range(120, 0, -1):
        tail = z + k / 2 / tail
    return 1 / (math.sqrt(math.pi) * tail)


@cache
def _erfc_polynomial(n_terms, dtype):
    """Coefficients, highest power first, of log(erfcx(z) / t) in u = 2 t - 1, where t = 2 / (2 + z).

    The function is smooth on all of 0 <= z < inf, that is -1 < u <= 1, so its interpolation at
    Chebyshev nodes converges fast: 24 terms give 1e-14, 10 terms 5e-7.
    """
    nodes = np.cos(np.pi * (np.arange(n_terms) + 0.5) / n_terms)  # (n_terms,)
    values = [math.log(_erfcx(4 / (u + 1) - 2) * 2 / (u + 1)) for u in nodes.tolist()]
    chebyshev = np.polynomial.chebyshev.chebfit(nodes, values, n_terms - 1)
    powers = np.polynomial.chebyshev.cheb2poly(chebyshev)[::-1]
    return [np.array(c, dtype) for c in powers]  # 0-d arrays: twice as fast as Python floats below


def _upper_tail(a, out):
    """Q(a) = erfc(a / sqrt 2) / 2, the share of normal draws above a >= 0, with relative accuracy."""
    t = a * math.sqrt(0.5)
    t += 2
    np.divide(2, t, out=t)
    u = 2 * t
    u -= 1
    first, second, *rest = _erfc_polynomial(10 if a.dtype.char == "f" else 24, a.dtype.char)
    np.multiply(u, first, out=out)
    out += second
    for c in rest:  # Horner's rule, in place
        out *= u
        out += c
    np.multiply(a, a, out=u)
    u *= 0.5
    out -= u
    np.exp(out, out=out)
    out *= t
    out *= 0.5


def _gelu(x, out):
    # ReLU(x) - |x| Q(|x|): no 1 + erf(x) that cancels for negative x.
    a = np.abs(x)
    np.clip(a, 0, 40, out=a)  # Q(40) is 0 in float64, and inf * 0 would be NaN
    _upper_tail(a, out)
    a *= out
    np.clip(x, 0, np.inf, out=out)  # ReLU; on large arrays, clip is faster than maximum
    out -= a


def _gelu_derivative(x, out):
    a = np.minimum(np.abs(x), 40)
    _upper_tail(a, out)
    phi = np.exp(-0.5 * a * a) * (1 / math.sqrt(2 * math.pi))
    out -= a * phi
    np.copyto(out, 1 - out, where=x > 0)  # Phi(x) + x phi(x); both parts are odd around 1/2


TANH_SCALE = math.sqrt(2 / math.pi)  # math.sqrt: np.sqrt's float64 scalar would promote float32


def _gelu_tanh(x, out):
    # x (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)). In float32 exp is twice as fast as tanh; float64 keeps
    # the formula as it is written, so that every digit is the one that frameworks print.
    single = x.dtype.char == "f"
    scale = -2 * TANH_SCALE if single else TANH_SCALE
    np.multiply(x, x, out=out)
    out *= scale * 0.044715
    out += scale
    out *= x  # -2 u, or u
    x = np.clip(x, -100, np.inf)  # the limit is reached there; -inf * 0 would be NaN
    if single:
        np.exp(out, out=out)
        out += 1
        np.divide(x, out, out=out)
    else:
        np.tanh(out, out=out)
        out += 1
        out *= 0.5
        out *= x


def _gelu_tanh_derivative(x, out):
    x = np.clip(x, -30, 30)  # the limits are reached there
    _sigmoid(2 * TANH_SCALE * (x + 0.044715 * x * x * x), out)  # (1 + tanh(u)) / 2 without its cancellation
    out += x * out * (1 - out) * (2 * TANH_SCALE * (1 + 3 * 0.044715 * x * x))


# ---------------------------------------------------------------- the public functions

def sigmoid(x: ArrayLike) -> np.ndarray:
    """Logistic sigmoid, 1 / (1 + exp(-x)), between 0 and 1.

    Parameters
    ----------
    x : array_like, any shape
        float16, float32 or float64 (kept); integers become float64.

    Returns
    -------
    ndarray, same shape as x

    Raises
    ------
    TypeError, ValueError
        If x does not hold real numbers, or is ragged.

    Examples
    --------
    >>> float(sigmoid(0.0))
    0.5
    """
    return _elementwise(_sigmoid, x)


def relu(x: ArrayLike) -> np.ndarray:
    """Rectified linear unit, max(0, x).

    Shapes, dtypes and errors as in `sigmoid`. Source: Nair and Hinton 2010; the activation of
    Vaswani et al. 2017 (arXiv:1706.03762), equation 2.

    Examples
    --------
    >>> relu([-2.0, 0.0, 3.0]).tolist()
    [0.0, 0.0, 3.0]
    """
    return _elementwise(_relu, x)


def relu2(x: ArrayLike) -> np.ndarray:
    """Squared ReLU, max(0, x)^2; its derivative, 2 max(0, x), has no jump.

    Shapes, dtypes and errors as in `sigmoid`. Source: So et al. 2021 (arXiv:2109.08668), "Primer"; used by
    Nemotron and BitNet.

    Examples
    --------
    >>> relu2([-2.0, 0.5, 3.0]).tolist()
    [0.0, 0.25, 9.0]
    """
    return _elementwise(_relu2, x)


def gelu(x: ArrayLike, approximate: Literal["none", "tanh"] = "none") -> np.ndarray:
    """Gaussian error linear unit, x Phi(x), with Phi the normal cumulative distribution function.

    Parameters
    ----------
    x : array_like, any shape
        As in `sigmoid`.
    approximate : {"none", "tanh"}
        "none" is the definition, within 1e-12 of it (float64) or 1e-5 (float32), relative, for
        \\|x\\| <= 8. "tanh" is 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which differs by up
        to 4.7e-4. A trained model needs the one that it was trained with.

    Returns
    -------
    ndarray, same shape and dtype as x

    Raises
    ------
    TypeError, ValueError
        As in `sigmoid`, and a ValueError for an unknown `approximate`.

    Notes
    -----
    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415).

    Examples
    --------
    >>> print(f"{gelu(1.0):.4f} {gelu(-1.0):.4f} {gelu(1.0, approximate='tanh'):.4f}")
    0.8413 -0.1587 0.8412
    """
    exact = one_of("approximate", approximate, ("none", "tanh")) == "none"
    return _elementwise(_gelu if exact else _gelu_tanh, x)


def silu(x: ArrayLike) -> np.ndarray:
    """Sigmoid linear unit, x sigmoid(x); the same as Swish with beta = 1.

    Shapes, dtypes and errors as in `sigmoid`. Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415);
    Ramachandran et al. 2017 (arXiv:1710.05941).

    Examples
    --------
    >>> print(f"{silu(1.0):.4f} {silu(-1.0):.4f}")
    0.7311 -0.2689
    """
    return _elementwise(_silu, x)


def quick_gelu(x: ArrayLike) -> np.ndarray:
    """The sigmoid approximation of GELU, x sigmoid(1.702 x); off by up to 0.020.

    Shapes, dtypes and errors as in `sigmoid`. Source: Hendrycks and Gimpel 2016
    (arXiv:1606.08415), section 2; used by OpenAI's CLIP.

    Examples
    --------
    >>> print(f"{quick_gelu(1.0):.4f}")
    0.8458
    """
    return _elementwise(_quick_gelu, x)


def identity(x: ArrayLike) -> np.ndarray:
    """No activation: a copy of x. With a gate it makes the *bilinear* layer of Shazeer 2020.

    Shapes, dtypes and errors as in `sigmoid`.

    Examples
    --------
    >>> identity([1, -2]).tolist()
    [1.0, -2.0]
    """
    return _elementwise(_identity, x)


def _quick_gelu(x, out):
    _silu(x, out, slope=1.702)


class Activation(NamedTuple):
    """An activation function and its derivative, both elementwise: shapes, dtypes and errors as in `sigmoid`."""

    function: Callable[[ArrayLike], np.ndarray]
    derivative: Callable[[ArrayLike], np.ndarray]


def _activation(function, derivative_kernel):
    def derivative(x):
        return _elementwise(derivative_kernel, x)
    derivative.__name__ = f"{function.__name__}_derivative"
    derivative.__doc__ = f"Derivative of `{function.__name__}`, elementwise, same shape and dtype as x."
    return Activation(function, derivative)


def gelu_tanh(x: ArrayLike) -> np.ndarray:
    """`gelu(x, approximate="tanh")` under the name that state dicts and configs use.

    Shapes, dtypes, errors and source as in `gelu`.
    """
    return gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Activation] = {
    "relu": _activation(relu, _relu_derivative),
    "relu2": _activation(relu2, _relu2_derivative),
    "gelu": _activation(gelu, _gelu_derivative),
    "gelu_tanh": _activation(gelu_tanh, _gelu_tanh_derivative),
    "quick_gelu": _activation(quick_gelu, lambda x, out: _silu_derivative(x, out, slope=1.702)),
    "silu": _activation(silu, _silu_derivative),
    "sigmoid": _activation(sigmoid, _sigmoid_derivative),
    "identity": _activation(identity, _identity_derivative),
}
# The names that configs of published models use for the same functions.
ACTIVATIONS["swish"] = ACTIVATIONS["silu"]
ACTIVATIONS["gelu_new"] = ACTIVATIONS["gelu_pytorch_tanh"] = ACTIVATIONS["gelu_tanh"]
