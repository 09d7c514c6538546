"""Where the FFN sits: softmax, the two norms, attention, and the Transformer block around them.

float16 is computed in float32 and returned as float16.
"""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._validate import (
    float_array,
    float_dtype,
    narrow,
    not_negative,
    one_of,
    positive_int,
    random_generator,
    short,
    vectors,
    wide,
)
from .ffn import Layer, check_backward, make_ffn, random_matrix
from .trace import Trace

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import ArrayLike, DTypeLike

    from ._types import Parameter

EPS: dict[str | None, float] = {"layer": 1e-5, "rms": 1e-6}  # the usual ones


def softmax(x: ArrayLike, axis: int = -1) -> np.ndarray:
    """exp(x) / sum of exp(x) along `axis`: positive numbers that sum to 1.

    Parameters
    ----------
    x : array_like
        float16, float32 or float64 (kept); integers become float64. -inf gives exactly 0, but where all are
        -inf (a row that is masked altogether) or one is +inf, there is no answer: NaN, as in PyTorch.
    axis : int

    Returns
    -------
    ndarray, same shape as x

    Raises
    ------
    TypeError, ValueError
        If x does not hold real numbers, or has no such axis.

    Notes
    -----
    Source: Bridle 1990, "Probabilistic Interpretation of Feedforward Classification Network Outputs".

    Examples
    --------
    >>> softmax([0.0, 0.0, -np.inf]).tolist()
    [0.5, 0.5, 0.0]
    """
    x = float_array("x", x)
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis must be an integer, got {short(axis)}")
    if x.ndim == 0:
        raise ValueError("x must have at least one dimension, got a scalar")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis must be an axis of x, which has shape {x.shape}; got {short(axis)}")
    return narrow(_softmax(wide(x), axis), x)


def _softmax(x, axis=-1):
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))  # the largest becomes 0: no overflow
        return e / e.sum(axis=axis, keepdims=True)


def softmax_backward(p: np.ndarray, dp: np.ndarray) -> np.ndarray:
    """Gradient at the input of p = softmax(...) over the last dimension, from the gradient dp at p."""
    return p * (dp - (dp * p).sum(axis=-1, keepdims=True))


def layer_norm(x: ArrayLike, gain: ArrayLike, bias: ArrayLike | None, eps: float = 1e-5) -> np.ndarray:
    """(x - mean) / sqrt(variance + eps) * gain + bias, over the last dimension.

    Parameters
    ----------
    x : array_like (..., d_model)
    gain : array_like (d_model,)
    bias : array_like (d_model,) or None
    eps : float, at least 0

    Returns
    -------
    ndarray (..., d_model)

    Raises
    ------
    ValueError, TypeError
        If shapes do not fit (named) or something is not a real number.

    Notes
    -----
    The variance is divided by d_model. Source: Ba et al. 2016 (arXiv:1607.06450).

    Examples
    --------
    >>> layer_norm([1.0, 3.0], [1, 1], [0, 0], eps=0).tolist()
    [-1.0, 1.0]
    """
    return _public_norm("layer", x, gain, bias, eps)


def rms_norm(x: ArrayLike, gain: ArrayLike, eps: float = 1e-6) -> np.ndarray:
    """x / sqrt(mean of x^2 + eps) * gain, over the last dimension.

    Shapes, dtypes and errors as in `layer_norm`. Gemma stores gain - 1: its norm is rms_norm(x, 1 + w).
    Source: Zhang and Sennrich 2019 (arXiv:1910.07467).

    Examples
    --------
    >>> rms_norm([3.0, -3.0], [1, 1], eps=0).tolist()
    [1.0, -1.0]
    """
    return _public_norm("rms", x, gain, None, eps)


def attention(x: ArrayLike, W_q: ArrayLike, W_k: ArrayLike, W_v: ArrayLike, W_o: ArrayLike, n_heads: int = 1,
              causal: bool = False) -> np.ndarray:
    """Multi-head self-attention, softmax(Q K^T / sqrt(d_head)) V W_o, without biases.

    Parameters
    ----------
    x : array_like (..., T, d_model)
    W_q, W_k, W_v, W_o : array_like (d_model, d_model)
    n_heads : int
        Divides d_model; d_head = d_model / n_heads.
    causal : bool
        True lets token t look at tokens 0..t only.

    Returns
    -------
    ndarray (..., T, d_model)

    Raises
    ------
    ValueError, TypeError
        If shapes do not fit (named), n_heads does not divide d_model, or something is not a real number.

    Notes
    -----
    Dtypes as in `softmax`; where x and weights differ, NumPy's promotion decides.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.

    Examples
    --------
    >>> x, W = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], np.eye(2)    # 3 tokens; W leaves them as they are
    >>> print(attention(x, W, W, W, W, causal=True).round(2))     # the first token sees itself alone
    [[1.   0.  ]
     [0.33 0.67]
     [0.75 0.75]]
    """
    block = TransformerBlock(W_q, W_k, W_v, W_o, n_heads=n_heads, causal=causal, norm=None)  # checks the arguments
    x = _sequence(x, block.d_model, "W_q has")
    with np.errstate(all="ignore"):
        return narrow(block.attend(wide(x))[0], x, *block.parameters().values())


class AttentionCache(NamedTuple):
    """What attention's way back needs; `probabilities` says who looks at whom."""

    queries: np.ndarray        # (..., Tq, d_model), the last rows of x
    x: np.ndarray              # (..., T, d_model)
    q: np.ndarray              # (..., n_heads, Tq, d_head)
    k: np.ndarray              # (..., n_heads, T, d_head)
    v: np.ndarray              # (..., n_heads, T, d_head)
    probabilities: np.ndarray  # (..., n_heads, Tq, T)
    mixed: np.ndarray          # (..., Tq, d_model)


class Step(NamedTuple):
    """One residual step of a block: its output, the caches of norm and sublayer, the stages of a trace."""

    stream: np.ndarray
    norm: tuple | None
    inner: object
    stages: list


class BlockCache(NamedTuple):
    """The steps of a block's forward pass; ffn is None where there is no FFN."""

    attention: Step
    ffn: Step | None


class TransformerBlock(Layer):
    """One block: attention, then an FFN, each added to the residual stream, each with a norm.

    placement "pre" (most LLMs) is x + attention(norm1(x)), then + ffn(norm2(...)); "post" (the original
    Transformer) is norm1(x + attention(x)), then norm2(... + ffn(...)).

    Parameters
    ----------
    W_q, W_k, W_v, W_o : array_like (d_model, d_model)
    ffn : FeedForward, GatedFeedForward, MixtureOfExperts or None
        None leaves the FFN (and norm2) out.
    n_heads : int
    causal : bool
    placement : {"pre", "post"}
    norm : {"rms", "layer", None}
        None leaves both norms out.
    gain1, bias1, gain2, bias2 : array_like (d_model,) or None
        None starts gains at 1 and, for "layer", biases at 0. Gemma stores gain - 1: give 1 + w.
    eps : float or None
        None takes 1e-6 for "rms" and 1e-5 for "layer".

    Raises
    ------
    ValueError, TypeError
        If a shape does not fit or an option is unknown (named), when built or when one is replaced.

    Notes
    -----
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.1; Xiong et al. 2020 (arXiv:2002.04745) for pre-norm.

    Examples
    --------
    >>> block = TransformerBlock.random(8, n_heads=2, causal=True)
    >>> print(block.trace(np.ones((7, 8))))
    TransformerBlock  pre-norm (rms)   d_model = 8   n_heads = 2   776 parameters
      x                (7, 8)
      norm1            (7, 8) -> (7, 8)  rms_norm(x)
      attention        (7, 8) -> (7, 8)  attention(norm1)
      after_attention  (7, 8) -> (7, 8)  x + attention
      norm2            (7, 8) -> (7, 8)  rms_norm(after_attention)
      ffn              (7, 8) -> (7, 8)  ffn(norm2)
      after_ffn        (7, 8) -> (7, 8)  after_attention + ffn
    """

    shapes = ({name: ("d_model", "d_model") for name in ("W_q", "W_k", "W_v", "W_o")}
              | {name: ("d_model",) for name in ("gain1", "bias1", "gain2", "bias2")})
    W_q: Parameter[np.ndarray]
    W_k: Parameter[np.ndarray]
    W_v: Parameter[np.ndarray]
    W_o: Parameter[np.ndarray]
    ffn: Layer | None
    n_heads: int
    causal: bool
    placement: Literal["pre", "post"]
    norm: Literal["rms", "layer"] | None
    gain1: Parameter[np.ndarray | None]
    bias1: Parameter[np.ndarray | None]
    gain2: Parameter[np.ndarray | None]
    bias2: Parameter[np.ndarray | None]
    eps: float | None

    def __init__(self, W_q: ArrayLike, W_k: ArrayLike, W_v: ArrayLike, W_o: ArrayLike,
                 ffn: Layer | None = None, n_heads: int = 1,
                 causal: bool = False, placement: Literal["pre", "post"] = "pre",
                 norm: Literal["rms", "layer"] | None = "rms", gain1: ArrayLike | None = None,
                 bias1: ArrayLike | None = None, gain2: ArrayLike | None = None, bias2: ArrayLike | None = None,
                 eps: float | None = None) -> None:
        self._set_sizes("W_q", W_q)
        self.W_q, self.W_k, self.W_v, self.W_o = W_q, W_k, W_v, W_o
        self.ffn, self.n_heads, self.causal = ffn, n_heads, bool(causal)
        self.placement, self.norm = placement, norm
        self.eps = eps
        given = {"gain1": gain1, "bias1": bias1, "gain2": gain2, "bias2": bias2}
        for name, value in given.items():
            missing = ("norm=None has no gains and biases" if norm is None
                       else "norm='rms' has no biases" if norm == "rms" and name.startswith("bias")
                       else "ffn=None has no second norm" if ffn is None and name.endswith("2") else None)
            if value is not None and missing:
                raise ValueError(f"{name} is given, but {missing}")
            if value is None and not missing:
                value = np.full(self.d_model, 1.0 if name.startswith("gain") else 0.0, self.W_q.dtype)
            setattr(self, name, value)

    @classmethod
    def random(cls, d_model: int, n_heads: int = 1,
               ffn: str | Layer | None = "swiglu", causal: bool = False,
               placement: Literal["pre", "post"] = "pre", norm: Literal["rms", "layer"] | None = "rms",
               seed: int | np.random.Generator = 0, dtype: DTypeLike = np.float64) -> TransformerBlock:
        """A random block: weights N(0, 1 / fan_in), gains 1, biases 0.

        ffn is an FFN object, None, or a kind that `ffn.make_ffn` knows, such as "swiglu", "geglu" or "relu":
        a gated FFN without biases, or a plain one with biases, in its class's usual width.

        Raises
        ------
        ValueError, TypeError
            As the class does, and for a bad size, kind, seed or dtype (named).

        Notes
        -----
        Source as in `FeedForward.random`.

        Examples
        --------
        >>> TransformerBlock.random(8, ffn="geglu").ffn
        GatedFeedForward(d_model=8, d_ff=21, activation='gelu', 504 parameters, float64)
        """
        d_model, rng = positive_int("d_model", d_model), random_generator("seed", seed)
        dtype = float_dtype("dtype", dtype)
        W_q, W_k, W_v, W_o = (random_matrix(rng, d_model, d_model, dtype) for _ in range(4))  # (d_model, d_model)
        if isinstance(ffn, str):
            ffn = make_ffn(ffn, d_model, seed=rng, bias=None, dtype=dtype)
        return cls(W_q, W_k, W_v, W_o, ffn, n_heads, causal, placement, norm)

    def __setattr__(self, name, value):
        """Check options as `Layer` checks parameters: when they are first set and whenever they are replaced."""
        if name == "placement":
            one_of("placement", value, ("pre", "post"))
        elif name == "norm":
            one_of("norm", value, ("rms", "layer", None))
        elif name == "n_heads" and self.d_model % positive_int("n_heads", value):
            raise ValueError(f"n_heads must divide d_model = {self.d_model}, got {short(value)}")
        elif name == "eps":
            value = EPS.get(self.norm) if value is None else float(not_negative("eps", value))
        elif name == "ffn" and value is not None:
            if not isinstance(value, Layer) or isinstance(value, TransformerBlock):
                raise TypeError(f"ffn must be a FeedForward, GatedFeedForward, MixtureOfExperts or None, "
                                f"got {short(value)}")
            if value.d_model != self.d_model:
                raise ValueError(f"ffn must have d_model = {self.d_model} like the attention weights, "
                                 f"got {short(value)}")
        # The gains and biases that exist hang on the norm and on whether there is an FFN: both stay as built.
        now = self.__dict__.get(name)
        if name in self.__dict__ and ((name == "norm" and value != now) or (
                name in ("ffn", "gain1", "bias1", "gain2", "bias2") and (value is None) != (now is None))):
            raise ValueError(f"{name} was {short(now)} when the block was built and cannot become {short(value)}: "
                             f"build another block")
        super().__setattr__(name, value)

    def parameters(self) -> dict[str, np.ndarray]:
        """All parameters, name -> array (not copied); the FFN's as "ffn.W1" and so on."""
        ffn = {} if self.ffn is None else self.ffn.parameters()
        return super().parameters() | {f"ffn.{name}": p for name, p in ffn.items()}

    def __repr__(self):
        return (f"TransformerBlock(d_model={self.d_model}, n_heads={self.n_heads}, causal={self.causal}, "
                f"placement={self.placement!r}, norm={self.norm!r}, ffn={self.ffn!r}, "
                f"{self.n_parameters:,} parameters)")

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The whole block, (..., T, d_model) -> (..., T, d_model)."""
        x = _sequence(x, self.d_model, "this block was built for")
        return narrow(self.forward(wide(x))[0], x, *self.parameters().values())

    def trace(self, x: ArrayLike) -> Trace:
        """Run the block on (a copy of) x and keep what every step gave, as a `Trace`."""
        x = np.array(_sequence(x, self.d_model, "this block was built for"))
        cache = self.forward(wide(x))[1]
        stages = cache.attention.stages + ([] if cache.ffn is None else cache.ffn.stages)
        if x.dtype.char == "e":
            stages = [(name, source, narrow(a, x, *self.parameters().values()), formula)
                      for name, source, a, formula in stages]
        title = (f"TransformerBlock  {self.placement}-norm ({self.norm})   d_model = {self.d_model}   "
                 f"n_heads = {self.n_heads}   {self.n_parameters:,} parameters")
        return Trace(title, [("x", "", x, ""), *stages], maker=self)

    def backward(self, trace: Trace, dy: ArrayLike) -> dict[str, np.ndarray]:
        """Gradients for the input ("x") and every parameter, from `trace(x)` and the gradient at the output.

        Arguments, result and errors as in `FeedForward.backward`.
        """
        dy, x = check_backward(self, trace, dy), trace["x"]
        gradients = self.gradients(self.forward(wide(x))[1], wide(dy))  # run again: cheaper than keeping everything
        return self._narrow(gradients, x, dy)

    # What training uses: a forward pass with a cache, and the way back from it. Each is two residual steps.

    def forward(self, x: np.ndarray, last_only: bool = False) -> tuple[np.ndarray, BlockCache]:
        """Output and cache for `gradients`. last_only computes the last token's output alone, (..., 1, d_model).

        x : ndarray (..., T, d_model) is not checked again.
        """
        with np.errstate(all="ignore"):
            first = self._step("1", "attention", partial(self.attend, last_only=last_only), x, "x")
            if self.ffn is None:
                return first.stream, BlockCache(first, None)
            second = self._step("2", "ffn", self._feed, first.stream, first.stages[-1][0])
        return second.stream, BlockCache(first, second)

    def gradients(self, cache: BlockCache, dy: np.ndarray) -> dict[str, np.ndarray]:
        """From the cache of `forward` and dy: gradients by name, "x" included."""
        grads: dict[str, np.ndarray] = {}
        with np.errstate(all="ignore"):
            if cache.ffn is not None:
                dy = self._step_back("2", cache.ffn, self._feed_back, dy, grads)
            dx = self._step_back("1", cache.attention, self._attend_back, dy, grads)
        return grads | {"x": dx}

    def _step(self, which, name, sublayer, x, at):
        """x + sublayer(norm(x)), or norm(x + sublayer(x)); `at` is the stage that x is."""
        norm, h, stages = None, x, []
        if self.norm and self.placement == "pre":
            h, norm = self._norm(which, x)
            stages.append((f"norm{which}", at, h, f"{self.norm}_norm({at})"))
        source = stages[-1][0] if stages else at
        written, inner = sublayer(h)                                 # (..., Tq, d_model)
        stages.append((name, source, written, f"{name}({source})"))
        stream = x[..., -written.shape[-2]:, :] + written            # (..., Tq, d_model)
        stages.append((f"after_{name}", name, stream, f"{at} + {name}"))
        if self.norm and self.placement == "post":
            stream, norm = self._norm(which, stream)
            stages.append((f"norm{which}", f"after_{name}", stream, f"{self.norm}_norm({at} + {name})"))
        return Step(stream, norm, inner, stages)

    def _step_back(self, which, step, sublayer_back, dy, grads):
        """The gradient at x of `_step`, from dy at its output; adds those of the parameters to grads."""
        if self.norm and self.placement == "post":
            dy = self._norm_back(which, step.norm, dy, grads)
        dh = sublayer_back(step.inner, dy, grads)
        if self.norm and self.placement == "pre":
            dh = self._norm_back(which, step.norm, dh, grads)
        return _add_to_last(dh, dy)

    def _norm(self, which, x):
        return _norm(self.norm, x, getattr(self, f"gain{which}"), getattr(self, f"bias{which}"), self.eps)

    def _norm_back(self, which, cache, dy, grads):
        dx, dgain, dbias = _norm_back(self.norm, *cache, getattr(self, f"gain{which}"), dy)
        grads[f"gain{which}"] = dgain
        if getattr(self, f"bias{which}") is not None:
            grads[f"bias{which}"] = dbias
        return dx

    def attend(self, x: np.ndarray, last_only: bool = False) -> tuple[np.ndarray, AttentionCache]:
        """Attention alone, without norm and residual, on a sequence that is checked already; and its cache."""
        queries = x[..., -1:, :] if last_only else x  # (..., Tq, d_model)
        return _attend(queries, x, self.W_q, self.W_k, self.W_v, self.W_o, self.n_heads, self.causal)

    def _attend_back(self, cache, dy, grads):
        dqueries, dx, inner = _attend_back(cache, self.W_q, self.W_k, self.W_v, self.W_o, dy)
        grads |= inner
        return _add_to_last(dx, dqueries)

    def _feed(self, x):
        trace = self.ffn.trace(x)
        return trace.output, trace

    def _feed_back(self, trace, dy, grads):
        inner = self.ffn.backward(trace, dy)
        dx = inner.pop("x")
        grads |= {f"ffn.{name}": g for name, g in inner.items()}
        return dx


# ---------------------------------------------------------------- the norms, forward and back

def _public_norm(kind, x, gain, bias, eps):
    """A norm with its arguments checked, in the dtype of its inputs."""
    gain = float_array("gain", gain)
    if gain.ndim != 1:
        raise ValueError(f"gain must have shape (d_model,), got {gain.shape}")
    bias = None if bias is None else float_array("bias", bias)
    if bias is not None and bias.shape != gain.shape:
        raise ValueError(f"bias must have gain's shape {gain.shape}, got {bias.shape}")
    x = vectors("x", x, gain.size, "d_model", "gain has")
    eps = float(not_negative("eps", eps))
    return narrow(_norm(kind, wide(x), gain, bias, eps)[0], x, gain, *([] if bias is None else [bias]))


def _norm(kind, x, gain, bias, eps):
    """The normalised x, times gain plus bias; and the cache (unit, scale) of the way back."""
    with np.errstate(all="ignore"):
        centred = x - x.mean(axis=-1, keepdims=True) if kind == "layer" else x   # (..., d_model)
        scale = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)  # (..., 1)
        unit = centred / scale                                                   # (..., d_model)
        y = unit * gain
        return (y if bias is None else y + bias), (unit, scale)


def _norm_back(kind, unit, scale, gain, dy):
    """Gradients at x, gain and bias."""
    tokens = tuple(range(dy.ndim - 1))
    d = dy * gain                                                                # (..., d_model)
    dx = (d - unit * (d * unit).mean(axis=-1, keepdims=True)) / scale            # (..., d_model)
    if kind == "layer":
        dx = dx - dx.mean(axis=-1, keepdims=True)
    return dx, (dy * unit).sum(axis=tokens), dy.sum(axis=tokens)


# ---------------------------------------------------------------- attention, forward and back

def _sequence(x: ArrayLike, d_model: int, owner: str) -> np.ndarray:
    x = float_array("x", x)
    if x.ndim < 2:
        raise ValueError(f"x must have shape (..., T, {d_model}), got {x.shape if x.ndim else 'a scalar'}")
    return vectors("x", x, d_model, "d_model", owner)


def _rows(x, W):
    """x @ W as one product over all rows, not one for each sequence of a batch."""
    return (x.reshape(-1, x.shape[-1]) @ W).reshape(*x.shape[:-1], W.shape[1])


def _split(x, n_heads):
    """(..., T, d_model) -> (..., n_heads, T, d_head)."""
    return x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-2, -3)


def _merge(x):
    """(..., n_heads, T, d_head) -> (..., T, d_model)."""
    x = x.swapaxes(-2, -3)
    return x.reshape(*x.shape[:-2], -1)


def _attend(queries, x, W_q, W_k, W_v, W_o, n_heads, causal):
    """Attention of `queries`, the last rows of x, over x; and the cache of the way back."""
    q = _split(_rows(queries, W_q), n_heads)                   # (..., n_heads, Tq, d_head)
    k = _split(_rows(x, W_k), n_heads)                         # (..., n_heads, T, d_head)
    v = _split(_rows(x, W_v), n_heads)                         # (..., n_heads, T, d_head)
    scores = q @ k.swapaxes(-1, -2) / q.dtype.type(np.sqrt(q.shape[-1]))  # (..., n_heads, Tq, T)
    if causal:
        T, Tq = scores.shape[-1], scores.shape[-2]
        scores = np.where(np.tri(Tq, T, T - Tq, dtype=bool), scores, scores.dtype.type(-np.inf))
    p = _softmax(scores)                                       # (..., n_heads, Tq, T)
    mixed = _merge(p @ v)                                      # (..., Tq, d_model)
    return _rows(mixed, W_o), AttentionCache(queries, x, q, k, v, p, mixed)


def _attend_back(cache, W_q, W_k, W_v, W_o, dy):
    """Gradients for the queries' rows, for x as keys and values, and for the four matrices."""
    queries, x, q, k, v, p, mixed = cache
    dmixed = _split(_rows(dy, W_o.T), q.shape[-3])             # (..., n_heads, Tq, d_head)
    dp = dmixed @ v.swapaxes(-1, -2)                           # (..., n_heads, Tq, T)
    dscores = softmax_backward(p, dp) / q.dtype.type(np.sqrt(q.shape[-1]))
    dq = _merge(dscores @ k)                                   # (..., Tq, d_model)
    dk = _merge(dscores.swapaxes(-1, -2) @ q)                  # (..., T, d_model)
    dv = _merge(p.swapaxes(-1, -2) @ dmixed)                   # (..., T, d_model)

    def outer(a, b):
        return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])
    grads = {"W_q": outer(queries, dq), "W_k": outer(x, dk), "W_v": outer(x, dv), "W_o": outer(mixed, dy)}
    return _rows(dq, W_q.T), _rows(dk, W_k.T) + _rows(dv, W_v.T), grads


def _add_to_last(dx, d):
    """dx + d, where d belongs to the last rows of dx, or to all of them."""
    if d.shape == dx.shape:
        return dx + d
    dx = dx.copy()
    dx[..., -d.shape[-2]:, :] += d
    return dx
