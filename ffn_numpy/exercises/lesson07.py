"""Lesson 07, in the block: both norms, the causal mask, a pre-norm block wired wrongly."""
import numpy as np

from ..block import layer_norm, rms_norm, softmax
from . import ANY, Exercise


def _rms_inputs(c):
    scale = 0.03 if c.i == 3 else 2.0                                         # small once: eps becomes visible
    return c.x(scale=scale) + 0.5 * scale, c.normal(c.d), (1.3e-3, 2.7e-3)[c.i % 2]  # x, gain, eps


def _norm_inputs(c):
    x, gain, eps = _rms_inputs(c)
    return x, gain, c.normal(c.d), eps                                          # x, gain, bias, eps


def _score_inputs(c):
    n = c.f
    return (c.normal(*c.lead, n, n, scale=2.0),)


def _block_inputs(c):
    W, W1, W2 = (c.normal(*s) / np.sqrt(c.d) for s in ((c.d, c.d), (c.d, c.f), (c.f, c.d)))
    gain, other = 1 + 0.3 * c.normal(c.d), 1 + 0.3 * c.normal(c.d)
    attend = lambda x: x @ W.astype(x.dtype)                                    # noqa: E731  one token: mixing is not the point
    ffn = lambda x: np.maximum(x @ W1.astype(x.dtype), 0) @ W2.astype(x.dtype)  # noqa: E731
    norm1, norm2 = (lambda x, g=g: rms_norm(x, g.astype(x.dtype)) for g in (gain, other))
    return 3 * c.x() + 1, attend, ffn, norm1, norm2


def _layer(x, gain, bias, eps, ddof=0, axis=-1, root=np.sqrt):
    centred = x - x.mean(axis=axis, keepdims=True)
    return centred / root(x.var(axis=axis, keepdims=True, ddof=ddof) + eps) * gain + bias


def _rms(x, gain, eps, mean=np.mean, root=np.sqrt, axis=-1):
    return x / root(mean(x * x, axis=axis, keepdims=True) + eps) * gain


def _nan_softmax(scores):
    e = np.exp(scores)
    return e / e.sum(axis=-1, keepdims=True)


def _future(scores):
    return np.triu(np.ones(scores.shape[-2:], bool), 1)


def _causal(scores, hide=-np.inf, axis=-1):
    return softmax(np.where(_future(scores), scores.dtype.type(hide), scores), axis)


def _pre_norm(x, attend, ffn, norm1, norm2):
    x = x + attend(norm1(x))
    return x + ffn(norm2(x))


EXERCISES = {
    "7.1": Exercise(
        1, "my_rms_norm(x, gain, eps)", rms_norm, _rms_inputs, {
            "The mean is subtracted: that is layer_norm; rms_norm only scales.":
                lambda x, g, eps: _layer(x, g, np.zeros_like(g), eps),
            "The square root is missing: divide by the root of the mean square.":
                lambda x, g, eps: _rms(x, g, eps, root=np.asarray),
            "The squares are summed: rms is the root of their *mean*.": lambda x, g, eps: _rms(x, g, eps, np.sum),
            "The mean of |x|: square first, take the mean, then the root.":
                (lambda x, g, eps: x / (np.abs(x).mean(axis=-1, keepdims=True) + eps) * g,
                 lambda x, g, eps: x / np.sqrt(x * x + eps).mean(axis=-1, keepdims=True) * g),
            "The gain is missing.": lambda x, g, eps: _rms(x, np.ones_like(g), eps),
            "The mean runs over the tokens (axis=0): each token is normalised by itself, axis=-1.":
                lambda x, g, eps: _rms(x, g, eps, axis=0),
            "One mean for all tokens: each token has its own, axis=-1 and keepdims=True.":
                lambda x, g, eps: _rms(x, g, eps, axis=None),
            "eps is missing: it stands beside the mean square, under the root.": lambda x, g, eps: _rms(x, g, 0 * eps),
            "eps is an argument: use it, not a fixed number.": tuple(
                lambda x, g, eps, e=e: _rms(x, g, e) for e in (1e-5, 1e-6, 1e-8)),
            "The mean lost its axis: one number for each token must stand in a column (keepdims=True).":
                lambda x, g, eps: x / np.sqrt((x * x).mean(axis=-1) + eps) * g,
            "eps stands outside the root: sqrt(mean square + eps).":
                lambda x, g, eps: x / (np.sqrt((x * x).mean(axis=-1, keepdims=True)) + eps) * g,
            "Multiplied by the rms instead of divided.":
                lambda x, g, eps: x * np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * g,
            "Divided by the std: that is not the rms when the mean is not 0.":
                lambda x, g, eps: x / np.sqrt(x.var(axis=-1, keepdims=True) + eps) * g,
        }),
    "7.2": Exercise(
        2, "my_layer_norm(x, gain, bias, eps)", layer_norm, _norm_inputs, {
            "The mean is not subtracted: that is an rms_norm.":
                lambda x, g, b, eps: _rms(x, g, eps) + b,
            "The mean is not subtracted, though the std is right.":
                lambda x, g, b, eps: x / np.sqrt(x.var(axis=-1, keepdims=True) + eps) * g + b,
            "Mean and variance run over the tokens (axis=0): each token is normalised by itself, axis=-1.":
                lambda x, g, b, eps: _layer(x, g, b, eps, axis=0),
            "One mean and variance for all tokens: each token has its own, axis=-1 and keepdims=True.":
                lambda x, g, b, eps: _layer(x, g, b, eps, axis=None),
            "The variance divides by d - 1: layer_norm divides by d (np.var without ddof).":
                lambda x, g, b, eps: _layer(x, g, b, eps, ddof=1),
            "Divided by the variance: take its square "
            "root.": lambda x, g, b, eps: _layer(x, g, b, eps, root=np.asarray),
            "The bias is missing.": lambda x, g, b, eps: _layer(x, g, 0 * b, eps),
            "The gain is missing.": lambda x, g, b, eps: _layer(x, np.ones_like(g), b, eps),
            "Gain and bias are both missing.": lambda x, g, b, eps: _layer(x, np.ones_like(g), 0 * b, eps),
            "The mean has to be subtracted before squaring: the variance is the mean of (x - mean)².":
                lambda x, g, b, eps: (x - x.mean(-1, keepdims=True))
                / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * g + b,
            "Divided by the number of tokens, len(x): a mean over the numbers of one token divides by x.shape[-1].":
                lambda x, g, b, eps: (lambda m: (x - m) / np.sqrt(((x - m) ** 2).sum(-1, keepdims=True) / len(x) + eps)
                                      * g + b)(x.sum(-1, keepdims=True) / len(x)),
            "Brackets: (x - mean) as a whole is divided.":
                lambda x, g, b, eps: x - x.mean(-1, keepdims=True) / np.sqrt(x.var(-1, keepdims=True) + eps) * g + b,
            "eps is an argument: use it, not a fixed number.": tuple(
                lambda x, g, b, eps, e=e: _layer(x, g, b, e) for e in (1e-5, 1e-6, 1e-8)),
            "Mean and variance lost their axis: one number for each token must stand in a column (keepdims=True).": (
                lambda x, g, b, eps: (x - x.mean(-1)) / np.sqrt(x.var(-1) + eps) * g + b,
                lambda x, g, b, eps: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1) + eps) * g + b),
            "Gain and bias are swapped.": lambda x, g, b, eps: _layer(x, b, g, eps),
            "The bias is added before the gain: gain * normalised + bias.":
                lambda x, g, b, eps: (_layer(x, np.ones_like(g), b, eps)) * g,
            "eps is missing: it stands beside the variance, "
            "under the root.": lambda x, g, b, eps: _layer(x, g, b, 0 * eps),
            "eps stands outside the root: sqrt(variance + eps), not sqrt(variance) + eps.":
                lambda x, g, b, eps: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + eps) * g + b,
        }),
    "7.3": Exercise(
        2, "causal_weights(scores)", _causal, _score_inputs, {
            "There is no mask: token t may look at tokens 0 to t only.": softmax,
            "The mask hides the past and shows the future: keep the lower triangle.":
                lambda s: softmax(np.where(np.tril(np.ones(s.shape[-2:], bool), -1), -np.inf, s)),
            "Every token is hidden from itself: token t may look at 0 to t, itself included (np.triu(..., 1)).":
                lambda s: softmax(np.where(np.triu(np.ones(s.shape[-2:], bool)), -1e9, s)),
            "The first row is NaN: token 0 may not look at anything. Every token may look at itself.":
                lambda s: _nan_softmax(np.where(np.triu(np.ones(s.shape[-2:], bool)), -np.inf, s)),
            "Everything is NaN: 0 * inf (choose with np.where instead of multiplying), or every score was hidden.": (
                lambda s: s * np.nan, lambda s: _nan_softmax(s - np.triu(np.ones(s.shape[-2:]), 1) * np.inf)),
            "The arguments of np.where are the wrong way round: future first, then what to put there.":
                lambda s: _nan_softmax(np.where(_future(s), s, -np.inf)),
            "A finite score such as -10 leaves the future some weight: -inf leaves none.": tuple(
                lambda s, low=low: _causal(s, low) for low in (-1, -5, -10, -100 / 10)),
            "Masked after the softmax: the rows no longer sum to 1. Hide the future before it.":
                lambda s: softmax(s) * ~_future(s),
            "The future scores are 0 instead of -inf: exp(0) is 1, so they still get weight.": lambda s: _causal(s, 0),
            "The softmax runs along the wrong axis: each row, token t's weights, must sum to 1 (axis=-1).":
                lambda s: _causal(s, axis=-2),
            "The exponentials are not divided by their sum.": lambda s: np.exp(np.where(_future(s), -np.inf, s)),
            "Weights are divided by the sum of all rows: each row must sum to 1 (axis=-1, keepdims=True).":
                lambda s: np.exp(np.where(_future(s), -np.inf, s)) / np.exp(np.where(_future(s), -np.inf, s)).sum(),
            "The diagonal is the wrong one: token t + 1 is visible to token t.":
                lambda s: softmax(np.where(np.triu(np.ones(s.shape[-2:], bool), 2), -np.inf, s)),
        }, ((), (2,), (1,), (3,), (), (2, 2))),
    "7.4": Exercise(
        3, "repaired_block(x, attend, ffn, norm1, norm2)", _pre_norm, _block_inputs, {
            "Still as broken: with silent parts the stream does not come through unchanged. Hint 1 asks for the "
            "line.": lambda x, at, ff, n1, n2: (lambda h: (lambda y: y + ff(n2(y)))(h + at(h)))(n1(x)),
            "The first residual is right now; the second carries norm2(x): only the input of ffn is normalised.":
                lambda x, at, ff, n1, n2: (lambda y: n2(y) + ff(n2(y)))(x + at(n1(x))),
            "Both residuals carry normalised values: add to x itself.":
                lambda x, at, ff, n1, n2: (lambda h: (lambda y: n2(y) + ff(n2(y)))(h + at(h)))(n1(x)),
            "That is a post-norm block, norm(x + part(x)): the norms belong in front of the parts.":
                lambda x, at, ff, n1, n2: (lambda y: n2(y + ff(y)))(n1(x + at(x))),
            "Attention reads the raw stream: norm1 is not used.":
                lambda x, at, ff, n1, n2: (lambda y: y + ff(n2(y)))(x + at(x)),
            "The norms stand behind the parts: each part *reads* a normalised copy, part(norm(x)).":
                lambda x, at, ff, n1, n2: (lambda y: y + n2(ff(y)))(x + n1(at(x))),
            "The FFN reads attention's output alone: it reads the stream after attention has written.": (
                lambda x, at, ff, n1, n2: (lambda y: x + y + ff(n2(y)))(at(n1(x))),
                lambda x, at, ff, n1, n2: (lambda y: x + ff(n2(y)))(at(n1(x)))),
            "The FFN reads x without a norm: ffn(norm2(x)).":
                lambda x, at, ff, n1, n2: (lambda y: y + ff(y))(x + at(n1(x))),
            "Attention's residual is missing: x + attend(norm1(x)).":
                lambda x, at, ff, n1, n2: (lambda y: y + ff(n2(y)))(at(n1(x))),
            "The FFN reads the norm of norm1's copy: it reads the stream after attention, norm2(x).":
                lambda x, at, ff, n1, n2: (lambda n: x + at(n) + ff(n2(n)))(n1(x)),
            "Attention is left out.": lambda x, at, ff, n1, n2: x + ff(n2(x)),
            "The FFN's residual is missing: x + ffn(norm2(x)).":
                lambda x, at, ff, n1, n2: ff(n2(x + at(n1(x)))),
            "Both parts read the block's input side by side: the FFN should read what attention has written.":
                lambda x, at, ff, n1, n2: x + at(n1(x)) + ff(n2(x)),
            "The FFN's result is added to the block's input: add it to the stream after attention.":
                lambda x, at, ff, n1, n2: x + ff(n2(x + at(n1(x)))),
            "The FFN comes first: attention, then the FFN.":
                lambda x, at, ff, n1, n2: (lambda y: y + at(n1(y)))(x + ff(n2(x))),
            "norm1 is used twice: the FFN has a norm of its own, norm2.":
                lambda x, at, ff, n1, n2: (lambda y: y + ff(n1(y)))(x + at(n1(x))),
            "The norms are swapped: norm1 belongs to attention, norm2 to the FFN.":
                lambda x, at, ff, n1, n2: (lambda y: y + ff(n1(y)))(x + at(n2(x))),
        }, ANY),
}
