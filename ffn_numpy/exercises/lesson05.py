"""Lesson 05, inside real models: shares of zeros, energy, relative change, weights stored (out, in)."""
import math

import numpy as np

from ..activations import gelu, relu
from . import ROWS, Exercise


def _activations(c):
    a = relu(c.normal(*c.lead, c.f + 6))
    a[a > 1.8] *= -1                                                            # some negatives,
    small = c.rng.random(a.shape) < 0.15
    a[small] = 0.004                                                            # some that are only small, and
    a[..., 0], a[..., 1], a[..., 2], a[..., 3], a[..., 4] = 0.0, -0.5, 0.7, 1e-10, 0.004  # each kind at least once
    return (a,)


def _energy_inputs(c):
    k = 1 + c.i % 3 + (0.7, 0.3)[c.i % 2]                                       # to be rounded up or down
    return c.normal(c.lead[0], 4 * c.f) ** 3, k / (4 * c.f)                     # a (heavy tails), share


def _change_inputs(c):
    y = c.normal(c.lead[0], c.d) * np.exp(c.normal(c.lead[0], 1))               # tokens of different length
    return y + 0.3 * c.normal(*y.shape), y                                      # y_new, y


def _bert_inputs(c):
    return c.x(), {"intermediate.dense.weight": c.normal(c.f, c.d), "intermediate.dense.bias": c.normal(c.f),
                   "output.dense.weight": c.normal(c.d, c.f), "output.dense.bias": c.normal(c.d)}


def _top_energy(a, share, power=2):
    k = round(share * a.shape[1])
    energy = np.sort(np.abs(a) ** power, axis=1)[:, ::-1]                       # (T, d_ff) largest first
    return energy[:, :k].sum(axis=1) / energy.sum(axis=1)


def _relative(y_new, y):
    return np.linalg.norm(y_new - y, axis=-1) / np.linalg.norm(y, axis=-1)      # (T,)


def _bert(x, tensors, up="T", down="T", act=gelu, b1=1, b2=1):
    W1, W2 = tensors["intermediate.dense.weight"], tensors["output.dense.weight"]
    h = x @ (W1.T if up else W1) + b1 * tensors["intermediate.dense.bias"]
    return act(h) @ (W2.T if down else W2) + b2 * tensors["output.dense.bias"]


EXERCISES = {
    "5.1": Exercise(
        1, "share_of_zeros(a)", lambda a: float((a == 0).mean()), _activations, {
            "That counts them: a share is the count divided by a.size.": lambda a: int((a == 0).sum()),
            "That is the share of numbers that are *not* zero.": lambda a: float((a != 0).mean()),
            "Negative numbers are counted too: after GELU they are not zero. a == 0, not a <= 0.":
                lambda a: float((a <= 0).mean()),
            "Small numbers are counted too: a threshold measures the scale, not zeros. a == 0.":
                (lambda a: float((np.abs(a) < 0.01).mean()), lambda a: float(np.isclose(a, 0).mean()),
                 lambda a: float((np.abs(a) < 1e-6).mean())),
            "The mean of a is compared with 0: compare each number, then take the mean.": lambda a: bool(a.mean() == 0),
            "Divided by the number of rows: divide by the number of all numbers, a.size.":
                lambda a: float((a == 0).sum() / len(a)),
            "In percent: a share lies between 0 and 1.": lambda a: 100 * float((a == 0).mean()),
            "One share for each token: here one number for all of a.": lambda a: (a == 0).mean(axis=-1),
            "One share for each hidden unit: here one number for all of a.": lambda a: (a == 0).mean(axis=0),
        }),
    "5.2": Exercise(
        2, "top_energy(a, share)", _top_energy, _energy_inputs, {
            "Sizes are summed, not energies: square the numbers.": lambda a, s: _top_energy(a, s, power=1),
            "The number of units is cut off, not rounded: round(share * d_ff), not int(...).":
                lambda a, s: _top_energy(a, math.floor(s * a.shape[1]) / a.shape[1]),
            "That is the share of the *smallest* units: sorting puts small numbers first.":
                lambda a, s: np.sort(a**2, axis=1)[:, :round(s * a.shape[1])].sum(axis=1) / (a**2).sum(axis=1),
            "[::-1] turned the tokens round, not the units: [:, ::-1], or take the last columns.": (
                lambda a, s: np.sort(a**2, axis=1)[::-1][:, :round(s * a.shape[1])].sum(axis=1) / (a**2).sum(axis=1),
                lambda a, s: np.sort(a**2, axis=1)[::-1][:, :round(s * a.shape[1])].sum(axis=1)
                / (a**2)[::-1].sum(axis=1)),
            "The units are not sorted by their energy.": (
                lambda a, s: (a**2)[:, :round(s * a.shape[1])].sum(axis=1) / (a**2).sum(axis=1),
                lambda a, s: (a**2)[:, -round(s * a.shape[1]):].sum(axis=1) / (a**2).sum(axis=1)),
            "Divided by the energy of all tokens together: each token has its own whole (axis=1).":
                lambda a, s: _top_energy(a, s) * (a**2).sum(axis=1) / (a**2).sum(),
            "Sorted along the tokens (axis=0): each token has its own order, axis=1.":
                (lambda a, s: np.sort(a**2, axis=0)[:, -round(s * a.shape[1]):].sum(axis=1) / (a**2).sum(axis=1),
                 lambda a, s: np.sort(a**2, axis=0)[:, -round(s * a.shape[1]):].sum(axis=1)
                 / np.sort(a**2, axis=0).sum(axis=1)),
            "The number of units was taken from the number of tokens: d_ff is a.shape[1].":
                lambda a, s: np.sort(a**2, axis=1)[:, -round(s * len(a)):].sum(axis=1) / (a**2).sum(axis=1),
            "Signed numbers are sorted: large negative ones write as much as positive ones. Square before sorting.":
                lambda a, s: (np.sort(a, axis=1)[:, -round(s * a.shape[1]):] ** 2).sum(axis=1) / (a**2).sum(axis=1),
            "One number for all tokens together: here each token has its own top units (axis=1).":
                lambda a, s: _top_energy(a.reshape(1, -1), s)[0],
            "The mean over tokens came back: one number for each token is asked for.":
                lambda a, s: _top_energy(a, s).mean(),
            "Divided by the number of units instead of the token's whole energy.":
                lambda a, s: _top_energy(a, s) * (a**2).sum(axis=1) / a.shape[1],
            "The energy is not divided by the token's whole energy: a share is asked for.":
                lambda a, s: _top_energy(a, s) * (a**2).sum(axis=1),
            "The same units are taken for every token (those with the most energy in all): each token has its own.":
                lambda a, s: (a[:, np.argsort(-(a**2).sum(axis=0))[:round(s * a.shape[1])]] ** 2).sum(axis=1)
                / (a**2).sum(axis=1),
        }, ROWS),
    "5.3": Exercise(
        2, "typical_change(y_new, y)", lambda y_new, y: float(np.median(_relative(y_new, y))), _change_inputs, {
            "One norm over the whole matrix: a single loud token decides it. Take the norm of each token (axis=1), "
            "then the median.": lambda y_new, y: np.linalg.norm(y_new - y) / np.linalg.norm(y),
            "The mean over tokens: the median is asked for.": lambda y_new, y: _relative(y_new, y).mean(),
            "Divided by the norm of y_new: the change is relative to y, the original.":
                lambda y_new, y: np.median(np.linalg.norm(y_new - y, axis=1) / np.linalg.norm(y_new, axis=1)),
            "The change of the norm, not the norm of the change: two vectors can have the same length and differ.":
                (lambda y_new, y: np.median(np.abs(np.linalg.norm(y_new, axis=1) / np.linalg.norm(y, axis=1) - 1)),
                 lambda y_new, y: np.median(np.linalg.norm(y_new, axis=1) / np.linalg.norm(y, axis=1) - 1)),
            "Not divided by the norm of y: that is an absolute change.":
                lambda y_new, y: np.median(np.linalg.norm(y_new - y, axis=1)),
            "Divided number by number before the length was taken: divide the length of the change by the length of y.":
                lambda y_new, y: np.median(np.linalg.norm((y_new - y) / y, axis=1)),
            "The median of single numbers: take the norm of each token first.":
                lambda y_new, y: np.median(np.abs((y_new - y) / y)),
            "The norms run over the tokens (axis=0): one norm for each token is axis=1.":
                lambda y_new, y: np.median(np.linalg.norm(y_new - y, axis=0) / np.linalg.norm(y, axis=0)),
            "Squared lengths: the length is the root of the sum of squares.":
                lambda y_new, y: np.median(_relative(y_new, y) ** 2),
            "One number for each token: the median over tokens is asked for.": _relative,
            "The median of the changes divided by the median of the norms: divide for each token, "
            "then take the median.":
                lambda y_new, y: np.median(np.linalg.norm(y_new - y, axis=1)) / np.median(np.linalg.norm(y, axis=1)),
            "In percent: a ratio is asked for.": lambda y_new, y: 100 * np.median(_relative(y_new, y)),
        }, ((5,), (3,), (7,), (4,), (6,), (8,))),
    "5.4": Exercise(
        3, "repaired_bert(x, tensors)", _bert, _bert_inputs, {
            "Still as broken: read the printed shapes; in which order do in and out stand?":
                lambda x, t: _bert(x, t, up="", down=""),
            "Right except where d_ff = d_model: shapes cannot tell the layout there. The format says (out, "
            "in): always .T.":
                lambda x, t: _bert(x, t, up="T" * (len(t["intermediate.dense.bias"]) != x.shape[-1]),
                                   down="T" * (len(t["intermediate.dense.bias"]) != x.shape[-1])),
            "Both biases are missing.": lambda x, t: _bert(x, t, b1=0, b2=0),
            "intermediate.dense.weight is right, output.dense.weight is not transposed yet.":
                lambda x, t: _bert(x, t, down=""),
            "output.dense.weight is right, intermediate.dense.weight is not transposed yet.":
                lambda x, t: _bert(x, t, up=""),
            "The transposing is right, but that is the tanh form: BERT's \"gelu\" is the exact one.":
                lambda x, t: _bert(x, t, act=lambda h: gelu(h, "tanh")),
            "The transposing is right, but the activation is ReLU: BERT uses GELU.":
                lambda x, t: _bert(x, t, act=relu),
            "The activation got lost.": lambda x, t: _bert(x, t, act=np.asarray),
            "W @ x works for one single token only: tokens are rows here, x @ W.T.":
                lambda x, t: t["output.dense.weight"] @ gelu(t["intermediate.dense.weight"] @ x + t[
                    "intermediate.dense.bias"]) + t["output.dense.bias"],
            "intermediate.dense.bias is missing.": lambda x, t: _bert(x, t, b1=0),
            "output.dense.bias is missing.": lambda x, t: _bert(x, t, b2=0),
            "A weight is reshaped where it should be transposed: .T, not reshape (exercise 1.4).":
                lambda x, t: _bert(x, t | {k: v.reshape(v.shape[::-1]).T for k, v in t.items() if v.ndim == 2}),
            "The two matrices are exchanged, which makes the shapes fit: intermediate lifts, "
            "output brings down. Transpose them "
            "instead.": lambda x, t: gelu(x @ t["output.dense.weight"] + t["intermediate.dense.bias"]) @ t[
                "intermediate.dense.weight"] + t["output.dense.bias"],
        }),
}
