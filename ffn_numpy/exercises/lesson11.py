"""Lesson 11, bug clinic: tests that find sick layers, and one patient with three diseases."""
import math

import numpy as np

from ..activations import silu
from . import ROWS, Exercise

# Layers that the checks of 11.1 to 11.3 must tell apart, healthy and sick; W is (d, d).


def _plain(W):
    return lambda x: np.maximum(x @ W.astype(x.dtype), 0)


def _creeping(W):
    return lambda x: np.maximum(x @ W.astype(x.dtype), 0) * np.ones(W.shape[1])  # float64 whatever comes in


def _narrowing(W):
    return lambda x: np.maximum(x @ W.astype(x.dtype), 0).astype(np.float32)


def _exchanging(W):
    return lambda x: (x @ W.astype(x.dtype)).astype(np.float64 if x.dtype == np.float32 else np.float32)


def _normed(x):
    """A layer norm that rounds nothing away: for whole x it is *exactly* blind to x + 1 and to 2 x."""
    centred = x.shape[-1] * x - x.sum(axis=-1, keepdims=True)                   # (T, d) whole numbers
    size = np.sqrt((centred * centred).mean(axis=-1, keepdims=True))            # (T, 1)
    return centred / np.maximum(size, 0.1)                                      # (T, d) 0 where all are equal


def _looking_back(W):
    return lambda x: np.cumsum(_normed(x) @ W.astype(x.dtype), axis=0)          # token t sees 0 .. t, normed


def _first_to_last(W):
    def layer(x):
        y = x @ W.astype(x.dtype)                                               # (T, d)
        y[-1] += y[0]                                                           # only the last token sees another
        return y
    return layer


def _last_to_first(W):
    def layer(x):
        y = x @ W.astype(x.dtype)                                               # (T, d)
        y[0] += y[-1]                                                           # only the last token is seen
        return y
    return layer


def _pair(W):
    def layer(x):
        y = x @ W.astype(x.dtype)                                               # (T, d)
        y[2] += y[3]                                                            # only token 2 sees another
        return y
    return layer


def _centred(W):
    return lambda x: x @ W.astype(x.dtype) - (x @ W.astype(x.dtype)).mean(axis=0)


def _in_place(W):
    def layer(x):
        np.maximum(x, 0, out=x)                                                 # the second call gives the same
        return x @ W.astype(x.dtype)
    return layer


def _in_place_last(W):
    def layer(x):
        x[-1] *= 2
        return x @ W.astype(x.dtype)
    return layer


def _in_place_middle(W):
    def layer(x):
        x[2] += 1
        return x @ W.astype(x.dtype)
    return layer


def _in_place_all(W):
    def layer(x):
        x += 1e-9 + 1e-6 * np.abs(x)                                            # too little for np.allclose
        return x @ W.astype(x.dtype)
    return layer


def _swapping(W):
    def layer(x):
        x[[0, 1]] = x[[1, 0]]                                                   # the sum stays the same
        return x @ W.astype(x.dtype)
    return layer


def _trials(*makers):
    """Inputs that go through the given layers in turn, one after the other."""
    def inputs(c):
        x = np.round(3 * c.normal(4 + c.lead[0], c.d))                          # whole: sums are exact
        return makers[c.i % len(makers)](c.normal(c.d, c.d)), x                 # layer, x
    return inputs


def _keeps_dtype(layer, x):
    return all(layer(x.astype(t)).dtype == t for t in (np.float32, np.float64))


def _random_nudge(token):
    return token + np.random.default_rng(0).normal(size=token.shape).astype(token.dtype)


def _influence(layer, x, change=_random_nudge):
    """(T, T) True where token j of the output changes with token i of the input."""
    y = layer(x)
    rows = []
    for i in range(len(x)):
        changed = x.copy()
        changed[i] = change(x[i])
        rows.append(np.any(layer(changed) != y, axis=-1))
    return np.array(rows)


def _others(layer, x, change=_random_nudge):
    """The same without the diagonal: where another token changes."""
    return _influence(layer, x, change) & ~np.eye(len(x), dtype=bool)


def _mixes(layer, x):
    return bool(_others(layer, x).any())


def _mixes_piling_up(layer, x):
    """The slip of changing x itself by + 1, token after token."""
    y = layer(x)
    for i in range(len(x)):
        x[i] += 1
        if (np.delete(layer(x) != y, i, axis=0)).any():
            return True
    return False


def _changes_input(layer, x):
    before = x.copy()
    layer(x)
    return not np.array_equal(x, before)


def _patient_inputs(c):
    W_gate = c.normal(c.d, c.f)
    W_gate[:, 0] *= 2000.0                                                      # gates at which exp overflows
    W_gate[:, 1] = -W_gate[:, 0]
    W_up = c.normal(c.d, c.f)
    W_up[:, 2] *= 2000.0
    return c.x(), W_gate, W_up, c.normal(c.f, c.d)


def _healthy(x, Wg, Wu, Wd):
    return silu(x @ Wg) * (x @ Wu) / math.sqrt(Wu.shape[1]) @ Wd


EXERCISES = {
    "11.1": Exercise(
        1, "keeps_dtype(layer, x)", _keeps_dtype, _trials(_plain, _creeping, _narrowing, _exchanging, _narrowing), {
            "Only the dtype of x as it came is tried: a layer that always returns float64 passes with a float64 x. "
            "Try float32, too.": lambda layer, x: layer(x).dtype == x.dtype,
            "Only float32 is tried: a layer that always returns float32 passes.":
                lambda layer, x: layer(x.astype(np.float32)).dtype == np.float32,
            "Only float64 is tried: a layer that always returns float64 passes.":
                lambda layer, x: layer(x.astype(np.float64)).dtype == np.float64,
            "The wrong way round: True means that the dtype is kept.": lambda layer, x: not _keeps_dtype(layer, x),
            "x itself may be float32 or float64: give the layer one of each, x.astype(...).": (
                lambda layer, x: layer(x.astype(np.float32)).dtype == np.float32 and layer(x).dtype == np.float64,
                lambda layer, x: layer(x).dtype == np.float32 and layer(x.astype(np.float64)).dtype == np.float64),
            "It is enough for you that one of the two dtypes is kept: both must be.":
                lambda layer, x: any(layer(x.astype(t)).dtype == t for t in (np.float32, np.float64)),
            "True for every layer: give the layer an input of each dtype, and look at the dtype of its *output*.":
                lambda layer, x: True,
            "False for every layer: convert the *input* with x.astype(...), and compare dtypes with ==, not with is.":
                lambda layer, x: False,
        }, ROWS),
    "11.2": Exercise(
        2, "mixes_tokens(layer, x)", _mixes, _trials(_plain, _centred, _last_to_first, _first_to_last, _pair,
                                                    _looking_back), {
            "True for every layer: is the changed token itself left out, is x copied anew for each token, "
            "is a *row* changed?":
                lambda layer, x: True,
            "x itself is changed, so that every plain layer seems to mix: take a new copy for each token. And add "
            "random numbers: a layer norm takes away what is added to all of a token.": _mixes_piling_up,
            "False for every layer: compare the outputs of the *other* tokens before and after, "
            "and change a copy of x.":
                lambda layer, x: False,
            "The wrong way round: True means that tokens are mixed.": lambda layer, x: not _mixes(layer, x),
            "The wrong way round: a row that stays the same says nothing; one that moves says that tokens are mixed.":
                lambda layer, x: bool((~_influence(layer, x)).any()),
            "One token without effect is not enough for False: return False only after all have been tried.":
                lambda layer, x: bool(_others(layer, x).any(axis=1).all()),
            "Tokens that look at an *earlier* one are not found: change every token, not only the last, "
            "and compare the rows behind it, too.": (
                lambda layer, x: bool(_influence(layer, x)[-1, :-1].any()),
                lambda layer, x: bool(np.tril(_influence(layer, x), -1).any())),
            "Tokens that look at a *later* one are not found: change every token, not only the first, "
            "and compare the rows before it, too.": (
                lambda layer, x: bool(_influence(layer, x)[0, 1:].any()),
                lambda layer, x: bool(np.triu(_influence(layer, x), 1).any())),
            "Not every token is changed: a layer in which one token looks at one other is not found.": (
                lambda layer, x: bool(_others(layer, x)[1].any()),
                lambda layer, x: bool(_others(layer, x)[len(x) // 2].any()),
                lambda layer, x: bool(_others(layer, x)[[0, -1]].any()),
                lambda layer, x: bool(_others(layer, x)[:-1].any()),
                lambda layer, x: bool(_others(layer, x)[1:].any())),
            "A layer that mixes tokens *behind a layer norm* is not found: the norm takes away what is added to all "
            "of a token, and a factor. Add random numbers.": (
                lambda layer, x: bool(_others(layer, x, lambda token: token + 1).any()),
                lambda layer, x: bool(_others(layer, x, lambda token: 2 * token).any())),
            "A token that looks at a distant one is not found: change every token, and compare all other rows.": (
                lambda layer, x: any(np.diagonal(_influence(layer, x), k).any() for k in (-1, 1)),
                lambda layer, x: bool(_others(layer, x)[3].any())),
            "Shuffled tokens: a layer that treats all alike, such as one that subtracts their mean, "
            "is not found. Change tokens instead.":
                lambda layer, x: not np.allclose(layer(x[::-1]), layer(x)[::-1]),
        }, ROWS),
    "11.3": Exercise(
        2, "changes_input(layer, x)", _changes_input, _trials(_plain, _in_place, _in_place_middle, _in_place_all,
                                                       _swapping, _in_place_last), {
            "False for every layer: either `before` is no copy (x, x[:]), or the layer got a copy, "
            "or not the numbers were compared.":
                lambda layer, x: False,
            "np.allclose forgives small changes: compare exactly, np.array_equal or (x != before).any().":
                lambda layer, x: (lambda b: layer(x) is not None and not np.allclose(x, b))(x.copy()),
            "True only if *every* number has changed: one is enough (any, not all).":
                lambda layer, x: (lambda b: layer(x) is not None and bool((x != b).all()))(x.copy()),
            "Only the sum (or mean) is compared: numbers that trade places are not noticed.": (
                lambda layer, x: (lambda s: layer(x) is not None and bool(x.sum() != s))(x.sum()),
                lambda layer, x: (lambda s: layer(x) is not None and not np.isclose(x.sum(), s))(x.sum())),
            "True for every layer: compare the numbers of x before and after the call, not the output, not the names.":
                lambda layer, x: True,
            "The wrong way round: True means that the input was changed.":
                lambda layer, x: not _changes_input(layer, x),
            "Equal numbers were looked for: one *different* number is a change.":
                lambda layer, x: (lambda b: layer(x) is not None and bool((x == b).any()))(x.copy()),
            "Some tokens are not compared: compare all of x.": tuple(
                lambda layer, x, rows=rows: (lambda b: layer(x) is not None and not np.array_equal(x[rows], b[rows]))(
                    x.copy()) for rows in ([0], [-1], [0, -1])),
            "Two calls are compared: that finds a layer that changes its input only if the second result "
            "differs. Compare x itself.": lambda layer, x: not np.array_equal(layer(x), layer(x)),
        }, ROWS, may_change_inputs=True),
    "11.4": Exercise(
        3, "repaired_patient(x, W_gate, W_up, W_down)", _healthy, _patient_inputs, {
            "The wrong branch is activated. (Large numbers and the dtype are looked at once the values are right.)":
                lambda x, Wg, Wu, Wd: _healthy(x, Wu, Wg, Wd),
            "The division by sqrt(d_ff) got lost.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) * (x @ Wu) @ Wd,
            "Divided by sqrt(d_model): the patient divides by the square root of d_ff.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) * (x @ Wu) / math.sqrt(Wu.shape[0]) @ Wd,
            "Both branches are activated: only the gate should be.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) * silu(x @ Wu) / math.sqrt(Wu.shape[1]) @ Wd,
            "The gate is a sigmoid now: SwiGLU's is silu, gate * sigmoid(gate).":
                lambda x, Wg, Wu, Wd: (0.5 + 0.5 * np.tanh(x @ Wg / 2)) * (x @ Wu) / math.sqrt(Wu.shape[1]) @ Wd,
            "No activation is left.":
                lambda x, Wg, Wu, Wd: (x @ Wg) * (x @ Wu) / math.sqrt(Wu.shape[1]) @ Wd,
            "Some results are NaN: exp overflows. Exercise 2.2 has a form that cannot.":
                lambda x, Wg, Wu, Wd: (lambda g: g * np.exp(g) / (1 + np.exp(g)))(x @ Wg) * (x @ Wu)
                / math.sqrt(Wu.shape[1]) @ Wd,
            "tanh gets the wrong argument: exercise 2.2 has the form.":
                lambda x, Wg, Wu, Wd: 0.5 * (x @ Wg) * (1 + np.tanh(x @ Wg)) * (x @ Wu) / math.sqrt(Wu.shape[1]) @ Wd,
        }, no_overflow=True),
}
