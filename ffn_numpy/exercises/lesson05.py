"""Lesson 05, inside real models: who writes a number, silent units, means folded into a bias, int8 per token."""
import numpy as np

from . import ROWS, Exercise


def _writer_inputs(c):
    d_ff = c.f + 4
    a, W_down = c.normal(d_ff), c.normal(d_ff, c.d)
    k = int(c.rng.integers(0, c.d))
    writes = np.abs(a * W_down[:, k])
    # The longest number, the longest row, the largest entry and the largest positive term are other units.
    j, big, row, entry, plus = c.rng.permutation(d_ff)[:5]
    a[big], W_down[big, k] = 4.0, 0.02
    W_down[row] *= 9
    W_down[row, k], a[row] = 0.02, 1.5
    W_down[entry, k], a[entry] = 7.0, 0.03
    a[j], W_down[j, k] = (-1) ** c.i * (1.6 + writes.max()), 1.5                # of either sign
    a[plus], W_down[plus, k] = 1.1, 1.2
    return a, W_down, k                                                         # (d_ff,), (d_ff, d_model), a number


def _silent_inputs(c):
    W1, b1, W2 = c.normal(c.d, c.f + 4), c.normal(c.f + 4), c.normal(c.f + 4, c.d)
    x = c.normal(c.lead[0], c.d)
    *below, zero = c.rng.permutation(c.f + 4)[:4]
    for j in below:                                                             # silent on x: below 0 at every token
        b1[j] = -1.0 - (x @ W1[:, j]).max()
    W1[:, zero] = b1[zero] = 0                                                  # exactly 0 is silent, too
    loud = c.rng.integers(0, c.f + 4)
    b1[loud] = 0.5 - (x @ W1[:, loud]).max()                                    # fires, but not on average
    return x, W1, b1, W2


def _fold_inputs(c):
    a, W2, b2 = c.normal(c.lead[0], c.f + 2), c.normal(c.f + 2, c.d), c.normal(c.d)  # of either sign: not only ReLU's
    gone = np.zeros(c.f + 2, bool)
    gone[c.rng.permutation(c.f + 2)[:3 + c.i % 2]] = True
    return a, W2, b2, gone


def _int8_inputs(c):
    a = c.normal(*c.lead, c.f + 3)
    rows = a.reshape(-1, a.shape[-1])
    rows[0] *= 900                                                              # one loud token
    if len(rows) > 2:
        rows[1] = 0                                                             # one that is 0 altogether
    if len(rows) > 3:
        rows[2] = 0
        rows[2, :2] = 1, -1                                                     # one whose sum is 0
    return (a,)


def _drop(x, W1, b1, W2, keep):
    return W1[:, keep], b1[keep], W2[keep]


def _silent(x, W1, b1, W2):
    return (x @ W1 + b1 > 0).any(axis=0)


def _fold(a, W2, b2, gone, mean=True, sign=1):
    return b2 + sign * (a[:, gone].mean(axis=0) if mean else a[:, gone].sum(axis=0)) @ W2[gone]


def _int8(a, axis=-1, limit=127, whole=np.rint, guard=True):
    largest = np.abs(a).max(axis=axis, keepdims=True)                           # (..., 1)
    step = np.where(largest == 0, 1, largest / limit) if guard else largest / limit
    return whole(a / step).astype(np.int8), step


def _int8_guarded_by_sum(a):
    largest = np.abs(a).max(axis=-1, keepdims=True)                             # (..., 1)
    step = np.where(a.sum(axis=-1, keepdims=True) == 0, 1, largest / 127)
    return np.rint(a / step).astype(np.int8), step


EXERCISES = {
    "5.1": Exercise(
        1, "loudest_writer(a, W_down, k)", lambda a, W, k: int(np.argmax(np.abs(a * W[:, k]))), _writer_inputs, {
            "That is the unit with the largest number: what it writes is a[j] * W_down[j, k].":
                (lambda a, W, k: int(np.argmax(np.abs(a))), lambda a, W, k: int(np.argmax(a))),
            "That is the unit with the largest weight in column k: it writes nothing while its number is small. a[j] * "
            "W_down[j, k].": (lambda a, W, k: int(np.argmax(np.abs(W[:, k]))), lambda a, W, k: int(np.argmax(W[:, k]))),
            "That is the largest *positive* term: a unit that writes a large negative number is loud, too.":
                lambda a, W, k: int(np.argmax(a * W[:, k])),
            "That is the unit that writes most over all dimensions: only dimension k counts.":
                lambda a, W, k: int(np.argmax(np.abs(a) * np.linalg.norm(W, axis=1))),
            "The value came back, the unit's index is asked for: np.argmax.":
                lambda a, W, k: float(np.abs(a * W[:, k]).max()),
            "That unit writes the least.": lambda a, W, k: int(np.argmin(np.abs(a * W[:, k]))),
            "That is the most negative term: take the largest in size, either sign, np.abs.":
                lambda a, W, k: int(np.argmin(a * W[:, k])),
        }),
    "5.2": Exercise(
        2, "without_silent_units(x, W1, b1, W2)", lambda x, W1, b1, W2: _drop(x, W1, b1, W2, _silent(x, W1, b1, W2)),
        _silent_inputs, {
            "A unit is dropped that fires for some token: keep every unit that fires for at least one (any, not all or "
            "mean).": (lambda x, W1, b1, W2: _drop(x, W1, b1, W2, (x @ W1 + b1 > 0).all(axis=0)),
                       lambda x, W1, b1, W2: _drop(x, W1, b1, W2, (x @ W1 + b1).mean(axis=0) > 0),
                       lambda x, W1, b1, W2: _drop(x, W1, b1, W2, (x @ W1 + b1 > 0).mean(axis=0) > 0.5)),
            "The silent units were kept and the others dropped.":
                lambda x, W1, b1, W2: _drop(x, W1, b1, W2, ~_silent(x, W1, b1, W2)),
            "A unit whose number is exactly 0 does not fire: > 0, not >= 0.":
                lambda x, W1, b1, W2: _drop(x, W1, b1, W2, (x @ W1 + b1 >= 0).any(axis=0)),
            "Whether a unit fires was read without b1: x @ W1 + b1 > 0.":
                lambda x, W1, b1, W2: _drop(x, W1, b1, W2, (x @ W1 > 0).any(axis=0)),
            "The columns of W1 are gone, b1 still has all its numbers.":
                lambda x, W1, b1, W2: (W1[:, _silent(x, W1, b1, W2)], b1, W2[_silent(x, W1, b1, W2)]),
            "W2 still has the rows of the silent units.":
                lambda x, W1, b1, W2: (W1[:, _silent(x, W1, b1, W2)], b1[_silent(x, W1, b1, W2)], W2),
            "Set to 0, not removed: the arrays are to get smaller.":
                lambda x, W1, b1, W2: (W1 * _silent(x, W1, b1, W2), b1 * _silent(x, W1, b1, W2),
                                       W2 * _silent(x, W1, b1, W2)[:, None]),
            "Only the first token was looked at: a unit may fire at another.":
                lambda x, W1, b1, W2: _drop(x, W1, b1, W2, x[0] @ W1 + b1 > 0),
            "The new arrays must be built from the old numbers: here the rows of W2 stand in another order than the "
            "columns of W1.": lambda x, W1, b1, W2: (*_drop(x, W1, b1, W2, _silent(x, W1, b1, W2))[:2],
                                                    W2[_silent(x, W1, b1, W2)][::-1]),
        }, ((5,), (3,), (7,), (4,), (6,), (8,)), returns=("W1", "b1", "W2")),
    "5.3": Exercise(
        2, "folded_bias(a, W2, b2, gone)", _fold, _fold_inputs, {
            "b2 came back as it was: what the units in `gone` write on average is missing.":
                lambda a, W2, b2, gone: b2 + 0,
            "The mean of the units that *stay* was folded in: those in `gone` are the ones that will be missing.":
                lambda a, W2, b2, gone: _fold(a, W2, b2, ~gone),
            "Subtracted: the bias takes over what the units wrote, so it is added.":
                lambda a, W2, b2, gone: _fold(a, W2, b2, gone, sign=-1),
            "The sum over the tokens, not the mean.": lambda a, W2, b2, gone: _fold(a, W2, b2, gone, mean=False),
            "The mean of *all* units was folded in: only those in `gone` will be missing.":
                lambda a, W2, b2, gone: b2 + a.mean(axis=0) @ W2,
            "b2 itself got lost: add to it.": lambda a, W2, b2, gone: _fold(a, W2, 0 * b2, gone),
            "One number for all dimensions: mean over the tokens (axis=0) first, then @ W2[gone].":
                lambda a, W2, b2, gone: b2 + (a[:, gone] @ W2[gone]).mean(),
            "One bias for each token came back: take the mean over the tokens, axis=0.":
                lambda a, W2, b2, gone: b2 + a[:, gone] @ W2[gone],
            "The weights alone were added, without the numbers that the units have: a[:, gone].mean(axis=0) @ ...":
                lambda a, W2, b2, gone: b2 + W2[gone].sum(axis=0),
        }, ROWS[:4] + ((6,), (8,))),
    "5.4": Exercise(
        3, "repaired_int8(a)", _int8, _int8_inputs, {
            "Still as broken: one loud token decides the step of all others. Count the zeros of a quiet token.":
                lambda a: _int8(a, axis=None, whole=np.trunc, guard=False),
            "One step for the whole layer still: each token needs its own (axis=-1, keepdims=True).":
                (lambda a: _int8(a, axis=None), lambda a: _int8(a, axis=None, guard=False),
                 lambda a: (_int8(a, axis=None)[0], np.full((*a.shape[:-1], 1), np.abs(a).max() / 127)),
                 lambda a: (_int8(a, axis=None)[0], float(np.abs(a).max() / 127))),
            "Steps per token, but numbers are cut off, not rounded: np.rint before astype.":
                (lambda a: _int8(a, whole=np.trunc), lambda a: _int8(a, whole=np.trunc, guard=False)),
            "Right but for a token that is 0 altogether: its step is 0 and 0 / 0 is no number. Give it the step 1.":
                lambda a: _int8(a, guard=False),
            "A token whose sum is 0 got the step 1: numbers may cancel and still not be 0. Ask for the largest size.":
                _int8_guarded_by_sum,
            "One step for each hidden unit: the loud token still decides. One for each token, axis=-1.":
                lambda a: _int8(a, axis=tuple(range(np.ndim(a) - 1)) if np.ndim(a) > 1 else None),
            "Divided by 128: the largest number becomes 128, which int8 does not have; 127.":
                lambda a: _int8(a, limit=128),
            "Divided by 255: int8 has a sign, so 127 steps on each side.": lambda a: _int8(a, limit=255),
            "The steps have lost their axis: keepdims=True, so that q * step works.":
                lambda a: (_int8(a)[0], _int8(a)[1][..., 0]),
            "The largest number, not the largest size: a large negative one falls out of the range. np.abs before max.":
                lambda a: ((a / np.maximum(np.max(a, axis=-1, keepdims=True), 1e-9) * 127).clip(-127, 127).round()
                           .astype(np.int8), np.maximum(np.max(a, axis=-1, keepdims=True), 1e-9) / 127),
        }, returns=("q", "step"), float64_only=True),
}
