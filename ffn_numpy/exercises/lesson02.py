"""Lesson 02, activate: two units, SiLU without overflow, folds through points, an activation that is thrown away."""
import numpy as np

from ..activations import gelu, quick_gelu, relu, sigmoid, silu
from . import Exercise


def _wide_numbers(c):
    x = c.x(scale=2.0)
    x[..., 0], x[..., 1] = -30.0, 30.0
    return (x,)


def _large_numbers(c):
    x = c.x(scale=2.0)
    x[..., 0], x[..., 1] = -1000.0, 1000.0                                      # exp(1000) is too large for a float
    return (x,)


def _points(c):
    return c.normal() + np.cumsum(c.rng.uniform(0.4, 2.5, size=c.f)), c.normal(c.f, scale=2.0)      # t, y


def _slopes(t, y):
    return np.diff(y) / np.diff(t)


def _folds(t, y):
    return -t[:-1], np.diff(_slopes(t, y), prepend=0), y[0]


def ffn_inputs(c):
    return c.x(), c.normal(c.d, c.f), c.normal(c.f), c.normal(c.f, c.d), c.normal(c.d)


def relu_ffn(x, W1, b1, W2, b2):
    return relu(x @ W1 + b1) @ W2 + b2


# For 2.4, which asks for a ReLU FFN.
RELU_FFN_MISTAKES = {
    "The bias b1 is missing.": lambda x, W1, b1, W2, b2: relu(x @ W1) @ W2 + b2,
    "The bias b2 is missing.": lambda x, W1, b1, W2, b2: relu(x @ W1 + b1) @ W2,
    "Both biases are missing.": lambda x, W1, b1, W2, b2: relu(x @ W1) @ W2,
    "The bias b1 comes after the bend: it belongs before it, relu(x @ W1 + b1).":
        lambda x, W1, b1, W2, b2: (relu(x @ W1) + b1) @ W2 + b2,
    "The activation stands at the end: it belongs between the two matrices, on the d_ff hidden numbers.":
        lambda x, W1, b1, W2, b2: relu((x @ W1 + b1) @ W2 + b2),
    "The output is bent too: it must be allowed to be negative; no activation after W2.":
        lambda x, W1, b1, W2, b2: relu(relu(x @ W1 + b1) @ W2 + b2),
    "The input is bent, not the lifted numbers: activate after x @ W1 + b1.":
        lambda x, W1, b1, W2, b2: (relu(x) @ W1 + b1) @ W2 + b2,
    "True and False took the place of the numbers: relu keeps the positive numbers themselves.":
        lambda x, W1, b1, W2, b2: (x @ W1 + b1 > 0) @ W2 + b2,
    "np.max(h, 0) takes the largest along axis 0, over the tokens; np.maximum compares number by number.":
        lambda x, W1, b1, W2, b2: np.max(x @ W1 + b1, 0) @ W2 + b2,
    "x is added: that is the residual connection of the block (lesson 07), not part of the FFN.":
        lambda x, W1, b1, W2, b2: x + relu(x @ W1 + b1) @ W2 + b2,
    "That is the GELU FFN: ReLU is asked for.": lambda x, W1, b1, W2, b2: gelu(x @ W1 + b1) @ W2 + b2,
    "That is only the hidden part: the way down, @ W2 + b2, is missing.":
        lambda x, W1, b1, W2, b2: relu(x @ W1 + b1),
}


EXERCISES = {
    "2.1": Exercise(
        1, "quiet(x)", lambda x: relu(x - 1) - relu(-x - 1), _wide_numbers, {
            "One unit is missing: numbers below -1 should become x + 1.": lambda x: relu(x - 1),
            "One unit is missing: numbers above 1 should become x - 1.": lambda x: -relu(-x - 1),
            "The sign is lost: -3 should become -2, so the unit that reads -x counts negative.":
                lambda x: relu(x - 1) + relu(-x - 1),
            "Every sign is the wrong way round: 3 should become 2.": lambda x: relu(-x - 1) - relu(x - 1),
            "That is x - 1 everywhere, a straight line: both folds are at 1. relu(-x + b) folds at x = b.":
                lambda x: relu(x - 1) - relu(1 - x),
            "Both biases have the wrong sign: relu(x + b) folds at x = -b, so the fold at 1 needs b = -1.":
                lambda x: relu(x + 1) - relu(1 - x),
            "Both units read x: the second one should rise towards the left, so it reads -x.":
                lambda x: relu(x - 1) - relu(x + 1),
            "Nothing changed: both folds are at 0, where relu(x) - relu(-x) is x. The biases move them.": lambda x: x,
            "There is a jump at 1: numbers beyond it should become smaller by 1, not stay as they are.":
                lambda x: np.where(np.abs(x) > 1, x, 0).astype(x.dtype),
            "That is the noise: what lies between -1 and 1 should be 0.": lambda x: np.clip(x, -1, 1),
        }, elementwise=True),
    "2.2": Exercise(
        2, "my_silu(h)", silu, _large_numbers, {
            "That is sigmoid(h) alone: SiLU is h times it.": sigmoid,
            "The sign inside exp is the wrong way round: sigmoid(h) is 1 / (1 + exp(-h)).": lambda h: h * sigmoid(-h),
            "That is ReLU.": relu,
            "That is GELU: SiLU multiplies h by sigmoid(h).": gelu,
            "That is the quick GELU, h * sigmoid(1.702 h): SiLU has no factor.": quick_gelu,
            "tanh stands where the sigmoid belongs: tanh goes from -1 to 1.": lambda h: h * np.tanh(h),
            "Half of it is missing: tanh goes from -1 to 1, a sigmoid from 0 to 1.":
                lambda h: 0.5 * h * np.tanh(h / 2),
            "tanh gets the wrong argument: at h = 1 the sigmoid is 0.731, your factor is 0.881. "
            "(Hint 3)": lambda h: 0.5 * h * (1 + np.tanh(h)),
            "It is right except where exp(h) overflows: there your result is NaN. "
            "Use a form that cannot overflow. (Hint 2)": lambda h: h * np.exp(h) / (1 + np.exp(h)),
        }, elementwise=True, no_overflow=True),
    "2.3": Exercise(
        2, "folds(t, y)", _folds, _points, {
            "w2 holds the slopes: the slopes of all units that are on add up, so each row is the *change* of slope "
            "at its fold.": lambda t, y: (-t[:-1], _slopes(t, y), y[0]),
            "w2 is made from rises: a slope is the rise divided by the width of its piece.":
                lambda t, y: (-t[:-1], np.diff(np.diff(y), prepend=0), y[0]),
            "w2 holds the rises: divide them by the widths, then take the change of slope at each fold.":
                lambda t, y: (-t[:-1], np.diff(y), y[0]),
            "The biases have the wrong sign: relu(x + b) folds at x = -b.": lambda t, y: (t[:-1], *_folds(t, y)[1:]),
            "Each unit folds where its piece ends: it should fold where the piece begins.":
                lambda t, y: (-t[1:], *_folds(t, y)[1:]),
            "b2 is 0: where all units are off, the curve should have the height y[0].":
                lambda t, y: (*_folds(t, y)[:2], 0.0),
            "The changes of slope have the wrong sign: it is the slope after the fold minus the slope before it.":
                lambda t, y: (-t[:-1], -_folds(t, y)[1], y[0]),
            "The first unit is missing: left of t[0] the slope is 0, so there is a fold at t[0], too.":
                lambda t, y: (-t[1:-1], np.diff(_slopes(t, y)), y[0]),
            "One unit too many: the curve goes on beyond the last point, so there is no fold.": (
                lambda t, y: (-t, np.diff(_slopes(t, y), prepend=0, append=0), y[0]),
                lambda t, y: (-t, np.r_[_folds(t, y)[1], 0], y[0])),
        }, returns=("b1", "w2", "b2"), float64_only=True),
    "2.4": Exercise(3, "repaired_ffn(x, W1, b1, W2, b2)", relu_ffn, ffn_inputs, {
        "Still a straight layer: what reaches W2 has not been bent. Hint 1 says how to see it.":
            lambda x, W1, b1, W2, b2: (x @ W1 + b1) @ W2 + b2} | RELU_FFN_MISTAKES),
}
