"""Lesson 01, lift: the affine map, averages, the column convention, reshape for transpose."""
import numpy as np

from ..activations import relu
from . import ROWS, Exercise


def _lift_inputs(c):
    return c.x(), c.normal(c.d, c.f), c.normal(c.f)                             # x, W1, b1


def _mix_inputs(c):
    n = c.lead[0]                                                               # tokens
    weights = c.rng.random((n, n if c.i == 3 else n + 2)) + 0.1                 # square in one trial
    return weights, c.normal(weights.shape[1], c.d)


def _column_inputs(c):
    n_tokens = c.f if c.i % 2 else c.lead[0]                                    # equal to d_ff: any axis fits
    return c.normal(c.d, n_tokens), c.normal(c.f, c.d), c.normal(c.f)           # X, W, b


def _broken_lift(x, W1, b1):
    return x.reshape(W1.shape[0], -1).T @ W1 + b1


EXERCISES = {
    "1.1": Exercise(
        1, "lift(x, W1, b1)", lambda x, W1, b1: x @ W1 + b1, _lift_inputs, {
            "The bias is missing: add b1 to x @ W1.": lambda x, W1, b1: x @ W1,
            "W1 is transposed: its shape is (d_model, d_ff) already, so x @ W1. "
            "(x @ W1.T runs only if both are equal.)":
                lambda x, W1, b1: x @ W1.T + b1,
            "b1 was added to W1, before the product: it is added once, to x @ W1.": lambda x, W1, b1: x @ (W1 + b1),
            "The bias is subtracted: it should be added.": lambda x, W1, b1: x @ W1 - b1,
            "That is relu(x @ W1 + b1): the lift alone, please; the activation is a step of its own.":
                lambda x, W1, b1: relu(x @ W1 + b1),
        }),
    "1.2": Exercise(
        2, "mix(weights, values)", lambda w, v: w / w.sum(axis=1, keepdims=True) @ v, _mix_inputs, {
            "The weights are used as they are: divide each row by its sum first, so that it sums to 1.":
                lambda w, v: w @ v,
            "Each column of the weights was made to sum to 1: it should be each row.":
                lambda w, v: w / w.sum(axis=0, keepdims=True) @ v,
            "All weights together were made to sum to 1: it should be each row by itself.":
                lambda w, v: w / w.sum() @ v,
            "Rows are divided by the sums of other rows: "
            "the T sums must stand in a column, shape (T, 1).": lambda w, v: w / w.sum(axis=1) @ v,
            "Divided by the number of values: divide by the sum of the row's weights.": lambda w, v: w @ v / len(v),
            "The rows sum to 1 already: dividing by the number of values is one division too many.":
                lambda w, v: w / w.sum(axis=1, keepdims=True) @ v / len(v),
            "Every value has the same weight: that is the plain mean, weights is not used.":
                lambda w, v: np.ones((len(w), 1)) * v.mean(axis=0),
            "That is a sum over softmax weights: here the weights are positive already; just divide by their sum.":
                lambda w, v: np.exp(w) / np.exp(w).sum(axis=1, keepdims=True) @ v,
        }, ROWS),
    "1.3": Exercise(
        2, "lift_columns(X, W, b)", lambda X, W, b: W @ X + b[:, None], _column_inputs, {
            "The bias is missing: add b to every column.": lambda X, W, b: W @ X,
            "The bias went along the tokens, the last axis: b has one number for each *row* of W @ X.":
                lambda X, W, b: W @ X + b,
            "b was added to W, before the product: it is added once, to W @ X.": lambda X, W, b: (W + b[:, None]) @ X,
            "Something is reshaped where it should be transposed: reshape mixes numbers of different tokens.": (
                lambda X, W, b: ((W @ X).reshape(X.shape[1], -1) + b).reshape(len(b), -1),
                lambda X, W, b: ((W @ X).reshape(X.shape[1], -1) + b).T,
                lambda X, W, b: (X.T @ W.T + b).reshape(len(b), -1)),
            "The result has tokens as rows: here a token is a column, so the shape is (d_ff, T).":
                lambda X, W, b: (W @ X + b[:, None]).T,
            "W is transposed: its shape is (d_ff, d_model), so W @ X.": lambda X, W, b: W.T @ X + b[:, None],
            "The order is swapped: W @ X, not X @ W.": lambda X, W, b: X @ W + b[:, None],
        }, ROWS),
    "1.4": Exercise(
        3, "repaired_lift(x, W1, b1)", lambda x, W1, b1: x @ W1 + b1, _lift_inputs, {
            "Still as broken: numbers of different tokens get mixed. Hint 1 says where to look.": _broken_lift,
            "x.T has tokens as columns; @ W1 needs them as rows.": lambda x, W1, b1: x.T @ W1 + b1,
            "Tokens are still mixed: reshape does not transpose, whatever its arguments.":
                (lambda x, W1, b1: (W1.T @ x.reshape(W1.shape[0], -1)).reshape(-1, W1.shape[1]) + b1,
                 lambda x, W1, b1: x.reshape(W1.shape[0], -1, order="F").T @ W1 + b1,
                 lambda x, W1, b1: x.T.reshape(-1, W1.shape[0]) @ W1 + b1,
                 lambda x, W1, b1: (W1.T @ x.T).reshape(-1, W1.shape[1]) + b1),
            "The bias got lost in the repair.": lambda x, W1, b1: x @ W1,
            "The last transposition is missing: tokens are columns of your result.":
                lambda x, W1, b1: W1.T @ x.T + b1[:, None],
        }, ROWS),
}
