"""Lesson 07, in the block: a norm taken apart, the causal mask, a pre-norm block wired wrongly."""
import numpy as np

from ..block import rms_norm, softmax
from . import ANY, Exercise


def _size_inputs(c):
    return (c.f,)


def _fold_inputs(c):
    return 1 + 0.4 * c.normal(c.d), c.normal(c.d), c.normal(c.d, c.f), c.normal(c.f)  # gain, bias, W1, b1


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


def _centring(d):
    return np.eye(d) - 1 / d


def _fold(gain, bias, W1, b1):
    return gain[:, None] * W1, b1 + bias @ W1


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
        1, "centring_matrix(d)", _centring, _size_inputs, {
            "1 is subtracted everywhere: the mean is the sum *divided by d*.": lambda d: np.eye(d) - 1,
            "That gives the mean itself: it is to be subtracted from x.": lambda d: np.full((d, d), 1 / d),
            "That changes nothing: the mean is missing.": lambda d: np.eye(d),
            "Only a share of the number itself is subtracted: every entry needs - 1/d, off the diagonal, too.":
                lambda d: np.eye(d) - np.eye(d) / d,
            "The sign is turned around: x minus its mean, not the mean minus x.": lambda d: 1 / d - np.eye(d),
            "Brackets: only the 1 is divided by d, not the identity matrix.": lambda d: (np.eye(d) - 1) / d,
            "That adds the mean: subtract it.": lambda d: np.eye(d) + 1 / d,
            "That subtracts the mean of the *other* numbers: the mean is over all d, the number itself included.":
                lambda d: np.eye(d) - (1 - np.eye(d)) / (d - 1),
            "The diagonal stays 1: the number itself is a part of the mean, so 1 - 1/d.":
                lambda d: np.eye(d) - (1 - np.eye(d)) / d,
            "A row came back: d numbers in, d numbers out is a (d, d) matrix.": (
                lambda d: np.ones(d) / d, lambda d: np.ones(d) - 1 / d),
            "np.ones is a matrix full of ones: the one that leaves x as it is, is np.eye.":
                lambda d: np.ones((d, d)) - 1 / d,
        }),
    "7.2": Exercise(
        2, "fold_norm(gain, bias, W1, b1)", _fold, _fold_inputs, {
            "The gain is put on the columns of W1: it belongs to the numbers that go in, the rows, gain[:, None] * W1.":
                lambda g, b, W, b1: (W * g, b1 + b @ W),
            "The gain is missing: gain[:, None] * W1.": lambda g, b, W, b1: (W, b1 + b @ W),
            "The norm's bias is missing in b.": lambda g, b, W, b1: (g[:, None] * W, b1),
            "The norm's bias is not lifted: it goes through W1, like everything that comes out of the norm.":
                lambda g, b, W, b1: (g[:, None] * W, b1 + b),
            "The norm's bias is multiplied by the gain: it is added after the gain, so it goes through W1 as it is.":
                lambda g, b, W, b1: (g[:, None] * W, b1 + b @ (g[:, None] * W)),
            "Divided by the gain instead of multiplied.": lambda g, b, W, b1: (W / g[:, None], b1 + b @ W),
            "b1 is lost: the norm's bias comes on top of it.": lambda g, b, W, b1: (g[:, None] * W, b @ W),
            "The norm's bias is subtracted: add it.": lambda g, b, W, b1: (g[:, None] * W, b1 - b @ W),
            "W and b are returned in the other order.": lambda g, b, W, b1: _fold(g, b, W, b1)[::-1],
            "Used 1 + gain, as Gemma stores it: here the gain is used as it is.":
                lambda g, b, W, b1: ((1 + g)[:, None] * W, b1 + b @ W),
            "The bias was added to W1: it becomes a part of b.":
                lambda g, b, W, b1: (g[:, None] * W + b[:, None], b1),
            "The gain is multiplied into a vector: @ sums over d, and W must stay a (d, d_ff) matrix.":
                lambda g, b, W, b1: (g @ W, b1 + b @ W),
        }, returns=("W", "b")),
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
