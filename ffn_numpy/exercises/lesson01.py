"""Lesson 01, lift: the affine map, averages, a lift written by hand, reshape for transpose."""
import numpy as np

from ..activations import relu
from . import ROWS, Exercise


def _lift_inputs(c):
    return c.x(), c.normal(c.d, c.f), c.normal(c.f)                             # x, W1, b1


def _mix_inputs(c):
    n = c.lead[0]                                                               # tokens
    weights = c.rng.random((n, n if c.i == 3 else n + 2)) + 0.1                 # square in one trial
    return weights, c.normal(weights.shape[1], c.d)


def _day_inputs(c):
    return c.d, float(np.round(c.rng.uniform(15, 25), 1))                       # n, limit


def _day(n, limit, each=None, rises=None, mean=None, b1=None):
    """The lift of exercise 1.3, or one of its parts done otherwise."""
    W1 = [np.eye(n) if each is None else each, _rises(n) if rises is None else rises,
          np.full((n, 1), 1 / n) if mean is None else mean]
    return np.hstack(W1), np.r_[np.full(n, -limit), np.zeros(n)] if b1 is None else b1


def _rises(n):
    return np.eye(n, n - 1, -1) - np.eye(n, n - 1)                              # column i: + at i + 1, - at i


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
        2, "day_lift(n, limit)", _day, _day_inputs, {
            "The limit is added: a number above the limit should come out positive, x - limit.":
                lambda n, limit: _day(n, limit, b1=np.r_[np.full(n, limit), np.zeros(n)]),
            "The limit is subtracted from every lifted number: the rises and the mean have no limit, their bias is 0.":
                lambda n, limit: _day(n, limit, b1=np.full(2 * n, -limit)),
            "The limit stands in W1, where it would be multiplied by a number of x: what does not depend on x "
            "is a bias.": (
                lambda n, limit: _day(n, limit, each=np.eye(n) - limit, b1=np.zeros(2 * n)),
                lambda n, limit: _day(n, limit, each=(1 - limit) * np.eye(n), b1=np.zeros(2 * n)),
                lambda n, limit: _day(n, limit, each=-limit * np.eye(n), b1=np.zeros(2 * n))),
            "The limit is missing: the bias is 0 everywhere.": lambda n, limit: _day(n, limit, b1=np.zeros(2 * n)),
            "Those are falls: a rise is the later number minus the earlier one.":
                lambda n, limit: _day(n, limit, rises=-_rises(n)),
            "Those are the rises since the first measurement: each should be from one to the next.":
                lambda n, limit: _day(n, limit, rises=np.eye(n, n - 1, -1) - np.eye(n, 1)),
            "The columns of the rises only pick the later number: the earlier one is to be subtracted.":
                lambda n, limit: _day(n, limit, rises=np.eye(n, n - 1, -1)),
            "The last column gives the sum: for the mean each number counts 1 / n.":
                lambda n, limit: _day(n, limit, mean=np.ones((n, 1))),
            "W1 is transposed: one *column* for each lifted number, shape (n, 2 n).":
                lambda n, limit: (_day(n, limit)[0].T, _day(n, limit)[1]),
            "The order is another: first the n numbers above the limit, then the n - 1 rises, then the mean.": (
                lambda n, limit: (np.roll(_day(n, limit)[0], 1, axis=1), np.roll(_day(n, limit)[1], 1)),
                lambda n, limit: (np.roll(_day(n, limit)[0], -n, axis=1), np.roll(_day(n, limit)[1], -n))),
        }, returns=("W1", "b1")),
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
