"""Where the FFN sits: softmax, the two norms, attention, and the Transformer block around them."""
import numpy as np

from ._validate import float_array, float_dtype, number, positive_int, random_generator, short, vectors
from .ffn import FeedForward, GatedFeedForward, check_backward, random_matrix
from .trace import Trace


def softmax(x, axis=-1):
    """exp(x) / sum of exp(x) along `axis`: positive numbers that sum to 1.

    Parameters
    ----------
    x : array_like
        float16, float32 or float64 (kept); integers become float64. -inf gives exactly 0.
    axis : int

    Returns
    -------
    ndarray, same shape as x

    Raises
    ------
    TypeError, ValueError
        If x does not hold real numbers, or has no such axis.

    Examples
    --------
    >>> softmax([0.0, 0.0, -np.inf]).tolist()
    [0.5, 0.5, 0.0]
    """
    x = float_array("x", x)
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis must be an integer, got {short(axis)}")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis must be an axis of x, which has shape {x.shape}; got {axis}")
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))  # the largest becomes 0: no overflow
        return e / e.sum(axis=axis, keepdims=True)


def softmax_backward(p, dp):
    """Gradient at the input of p = softmax(...) over the last dimension, from the gradient dp at p."""
    return p * (dp - (dp * p).sum(axis=-1, keepdims=True))


def layer_norm(x, gain, bias, eps=1e-5):
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
    return _norm("layer", *_norm_arguments(x, gain, bias, eps))[0]


def rms_norm(x, gain, eps=1e-6):
    """x / sqrt(mean of x^2 + eps) * gain, over the last dimension.

    Shapes, dtypes and errors as in `layer_norm`. Source: Zhang and Sennrich 2019 (arXiv:1910.07467).

    Examples
    --------
    >>> rms_norm([3.0, -3.0], [1, 1], eps=0).tolist()
    [1.0, -1.0]
    """
    return _norm("rms", *_norm_arguments(x, gain, None, eps))[0]


def attention(x, W_q, W_k, W_v, W_o, n_heads=1, causal=False):
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
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.
    """
    weights = _attention_weights(W_q, W_k, W_v, W_o, n_heads)
    x = _sequence(x, weights["W_q"].shape[0])
    with np.errstate(all="ignore"):
        return _attend(x, x, weights, n_heads, causal)[0]


class TransformerBlock:
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
        None starts gains at 1 and, for "layer", biases at 0.

    Raises
    ------
    ValueError, TypeError
        If a shape does not fit or an option is unknown (named), when built.

    Notes
    -----
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.1; Xiong et al. 2020 (arXiv:2002.04745) for pre-norm.
    """

    def __init__(self, W_q, W_k, W_v, W_o, ffn=None, n_heads=1, causal=False, placement="pre", norm="rms",
                 gain1=None, bias1=None, gain2=None, bias2=None):
        if placement not in ("pre", "post"):
            raise ValueError(f"placement must be 'pre' or 'post', got {short(placement)}")
        if norm not in ("rms", "layer", None):
            raise ValueError(f"norm must be 'rms', 'layer' or None, got {short(norm)}")
        self.attention_weights = _attention_weights(W_q, W_k, W_v, W_o, n_heads)
        self.n_heads, self.causal, self.placement, self.norm = n_heads, bool(causal), placement, norm
        self.ffn, self.d_model = ffn, self.attention_weights["W_q"].shape[0]
        if ffn is not None and getattr(ffn, "d_model", None) != self.d_model:
            raise ValueError(f"ffn must have d_model = {self.d_model} like the attention weights, got {short(ffn)}")
        self.norms = {}
        for name, given, start in (("gain1", gain1, 1.0), ("bias1", bias1, 0.0), ("gain2", gain2, 1.0),
                                   ("bias2", bias2, 0.0)):
            used = norm == "layer" or (norm == "rms" and name.startswith("gain"))
            if not used or (name.endswith("2") and ffn is None):
                if given is not None:
                    raise ValueError(f"{name} is given, but norm={norm!r} with ffn={short(ffn)} has none")
                continue
            dtype = self.attention_weights["W_q"].dtype
            value = np.full(self.d_model, start, dtype) if given is None else float_array(name, given)
            if value.shape != (self.d_model,):
                raise ValueError(f"{name} must have shape {(self.d_model,)}, got {value.shape}")
            self.norms[name] = value

    @classmethod
    def random(cls, d_model, n_heads=1, ffn="swiglu", causal=False, placement="pre", norm="rms", seed=0,
               dtype=np.float64):
        """A random block: weights N(0, 1 / fan_in).

        ffn is an FFN object, None, "swiglu" (a GatedFeedForward) or an activation's name (a FeedForward).
        """
        d_model, rng = positive_int("d_model", d_model), random_generator("seed", seed)
        dtype = float_dtype("dtype", dtype)
        weights = [random_matrix(rng, d_model, d_model, dtype) for _ in range(4)]  # (d_model, d_model) each
        if isinstance(ffn, str):
            ffn = (GatedFeedForward.random(d_model, seed=rng, dtype=dtype) if ffn == "swiglu"
                   else FeedForward.random(d_model, activation=ffn, seed=rng, dtype=dtype))
        return cls(*weights, ffn, n_heads, causal, placement, norm)

    def parameters(self):
        """All parameters, name -> array; the FFN's as "ffn.W1" and so on."""
        ffn = {} if self.ffn is None else self.ffn.parameters()
        return self.attention_weights | self.norms | {f"ffn.{name}": p for name, p in ffn.items()}

    @property
    def n_parameters(self):
        """How many numbers all parameters hold."""
        return sum(p.size for p in self.parameters().values())

    def __repr__(self):
        return (f"TransformerBlock(d_model={self.d_model}, n_heads={self.n_heads}, causal={self.causal}, "
                f"placement={self.placement!r}, norm={self.norm!r}, ffn={self.ffn!r}, "
                f"{self.n_parameters:,} parameters)")

    def __call__(self, x):
        """The whole block, (..., T, d_model) -> (..., T, d_model)."""
        return self.forward(_sequence(x, self.d_model))[0]

    def trace(self, x):
        """Run the block on (a copy of) x and keep what every step gave, as a `Trace`."""
        x = np.array(_sequence(x, self.d_model))
        stages = self.forward(x)[1]["stages"]
        title = (f"TransformerBlock  {self.placement}-norm ({self.norm})   d_model = {self.d_model}   "
                 f"n_heads = {self.n_heads}   {self.n_parameters:,} parameters")
        return Trace(title, [("x", "", x, ""), *stages], maker=self)

    def backward(self, trace, dy):
        """Gradients for the input ("x") and every parameter, from `trace(x)` and the gradient at the output."""
        dy = check_backward(self, trace, dy)
        return self.gradients(self.forward(trace["x"])[1], dy)  # run again: cheaper than keeping everything

    # What training uses: a forward pass with a cache, and the backward pass from it.

    def forward(self, x, last_only=False):
        """Output and cache for `gradients`. last_only computes the last token's output alone, (..., 1, d_model)."""
        stream = x[..., -1:, :] if last_only else x  # (..., Tq, d_model)
        cache, stages, pre = {"x": x, "last_only": last_only}, [], self.placement == "pre"
        with np.errstate(all="ignore"):
            h, at = x, "x"
            if pre and self.norm:
                h, cache["norm1"] = self._norm("1", x)
                stages.append(("norm1", at, h, f"{self.norm}_norm(x)"))
                at = "norm1"
            queries = h[..., -1:, :] if last_only else h
            written, cache["attention"] = _attend(queries, h, self.attention_weights, self.n_heads, self.causal)
            stages.append(("attention", at, written, f"attention({at})"))
            stream = stream + written
            stages.append(("after_attention", "attention", stream, "x + attention"))
            if not pre and self.norm:
                stream, cache["norm1"] = self._norm("1", stream)
                stages.append(("norm1", "after_attention", stream, f"{self.norm}_norm(x + attention)"))
            if self.ffn is not None:
                h, at = stream, stages[-1][0]
                before = at
                if pre and self.norm:
                    h, cache["norm2"] = self._norm("2", stream)
                    stages.append(("norm2", at, h, f"{self.norm}_norm({at})"))
                    at = "norm2"
                cache["ffn"] = self.ffn.trace(h)
                stages.append(("ffn", at, cache["ffn"].output, f"ffn({at})"))
                stream = stream + cache["ffn"].output
                stages.append(("after_ffn", "ffn", stream, f"{before} + ffn"))
                if not pre and self.norm:
                    stream, cache["norm2"] = self._norm("2", stream)
                    stages.append(("norm2", "after_ffn", stream, f"{self.norm}_norm({before} + ffn)"))
        cache["stages"] = stages
        return stream, cache

    def gradients(self, cache, dy):
        """From the cache of `forward` and dy: gradients by name, "x" included."""
        grads, pre = {}, self.placement == "pre"
        with np.errstate(all="ignore"):
            if self.ffn is not None:
                if not pre and self.norm:
                    dy = self._norm_backward("2", cache, dy, grads)
                inner = self.ffn.backward(cache["ffn"], dy)
                dh = inner.pop("x")
                grads |= {f"ffn.{name}": g for name, g in inner.items()}
                dy = dy + (self._norm_backward("2", cache, dh, grads) if pre and self.norm else dh)
            if not pre and self.norm:
                dy = self._norm_backward("1", cache, dy, grads)
            dqueries, dh, inner = _attend_backward(cache["attention"], self.attention_weights, self.n_heads, dy)
            grads |= inner
            dh = _add_to_last(dh, dqueries, cache["last_only"])
            if pre and self.norm:
                dh = self._norm_backward("1", cache, dh, grads)
            grads["x"] = _add_to_last(dh, dy, cache["last_only"])
        return grads

    def _norm(self, which, x):
        return _norm(self.norm, x, self.norms[f"gain{which}"], self.norms.get(f"bias{which}"),
                     1e-5 if self.norm == "layer" else 1e-6)

    def _norm_backward(self, which, cache, dy, grads):
        unit, scale = cache[f"norm{which}"]
        dx, dgain, dbias = _norm_backward(self.norm, unit, scale, self.norms[f"gain{which}"], dy)
        grads[f"gain{which}"] = dgain
        if f"bias{which}" in self.norms:
            grads[f"bias{which}"] = dbias
        return dx


# ---------------------------------------------------------------- the norms, forward and backward

def _norm_arguments(x, gain, bias, eps):
    gain = float_array("gain", gain)
    if gain.ndim != 1:
        raise ValueError(f"gain must have shape (d_model,), got {gain.shape}")
    bias = None if bias is None else float_array("bias", bias)
    if bias is not None and bias.shape != gain.shape:
        raise ValueError(f"bias must have gain's shape {gain.shape}, got {bias.shape}")
    x = vectors("x", x, gain.size, "d_model")
    if not number("eps", eps, "a number that is at least 0") >= 0:
        raise ValueError(f"eps must be a number that is at least 0, got {eps}")
    return x, gain, bias, float(eps)


def _norm(kind, x, gain, bias, eps):
    """The normalised x, times gain plus bias; and the cache (unit, scale) of the backward pass."""
    with np.errstate(all="ignore"):
        centred = x - x.mean(axis=-1, keepdims=True) if kind == "layer" else x   # (..., d_model)
        scale = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)  # (..., 1)
        unit = centred / scale                                                   # (..., d_model)
        y = unit * gain
        return (y if bias is None else y + bias), (unit, scale)


def _norm_backward(kind, unit, scale, gain, dy):
    tokens = tuple(range(dy.ndim - 1))
    d = dy * gain                                                                # (..., d_model)
    dx = (d - unit * (d * unit).mean(axis=-1, keepdims=True)) / scale            # (..., d_model)
    if kind == "layer":
        dx = dx - dx.mean(axis=-1, keepdims=True)
    return dx, (dy * unit).sum(axis=tokens), dy.sum(axis=tokens)


# ---------------------------------------------------------------- attention, forward and backward

def _attention_weights(W_q, W_k, W_v, W_o, n_heads):
    weights = {name: float_array(name, W) for name, W in (("W_q", W_q), ("W_k", W_k), ("W_v", W_v), ("W_o", W_o))}
    shape = weights["W_q"].shape
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ValueError(f"W_q must have shape (d_model, d_model), got {shape}")
    for name, W in weights.items():
        if W.shape != shape:
            raise ValueError(f"{name} must have W_q's shape {shape}, got {W.shape}")
    if shape[0] % positive_int("n_heads", n_heads):
        raise ValueError(f"n_heads must divide d_model = {shape[0]}, got {n_heads}")
    return weights


def _sequence(x, d_model):
    x = vectors("x", x, d_model, "d_model")
    if x.ndim < 2:
        raise ValueError(f"x must have shape (..., T, {d_model}), got {x.shape}")
    return x


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


def _attend(queries, x, weights, n_heads, causal):
    """Attention of `queries`, the last rows of x, over x; and the cache of the backward pass."""
    q = _split(_rows(queries, weights["W_q"]), n_heads)        # (..., n_heads, Tq, d_head)
    k = _split(_rows(x, weights["W_k"]), n_heads)              # (..., n_heads, T, d_head)
    v = _split(_rows(x, weights["W_v"]), n_heads)              # (..., n_heads, T, d_head)
    scores = q @ k.swapaxes(-1, -2) / q.dtype.type(np.sqrt(q.shape[-1]))  # (..., n_heads, Tq, T)
    if causal:
        T, Tq = scores.shape[-1], scores.shape[-2]
        scores = np.where(np.tri(Tq, T, T - Tq, dtype=bool), scores, scores.dtype.type(-np.inf))
    p = softmax(scores)                                        # (..., n_heads, Tq, T)
    mixed = _merge(p @ v)                                      # (..., Tq, d_model)
    return _rows(mixed, weights["W_o"]), (queries, x, q, k, v, p, mixed)


def _attend_backward(cache, weights, n_heads, dy):
    """Gradients for the queries' rows, for x as keys and values, and for the four matrices."""
    queries, x, q, k, v, p, mixed = cache
    dmixed = _split(_rows(dy, weights["W_o"].T), n_heads)      # (..., n_heads, Tq, d_head)
    dp = dmixed @ v.swapaxes(-1, -2)                           # (..., n_heads, Tq, T)
    dscores = softmax_backward(p, dp) / q.dtype.type(np.sqrt(q.shape[-1]))
    dq = _merge(dscores @ k)                                   # (..., Tq, d_model)
    dk = _merge(dscores.swapaxes(-1, -2) @ q)                  # (..., T, d_model)
    dv = _merge(p.swapaxes(-1, -2) @ dmixed)                   # (..., T, d_model)

    def outer(a, b):
        return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])
    grads = {"W_q": outer(queries, dq), "W_k": outer(x, dk), "W_v": outer(x, dv), "W_o": outer(mixed, dy)}
    return _rows(dq, weights["W_q"].T), _rows(dk, weights["W_k"].T) + _rows(dv, weights["W_v"].T), grads


def _add_to_last(dx, d, last_only):
    """dx + d, where d belongs to the last token alone if last_only."""
    if not last_only:
        return dx + d
    dx = dx.copy()
    dx[..., -1:, :] += d
    return dx
