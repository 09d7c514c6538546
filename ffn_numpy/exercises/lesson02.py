"""Lesson 02, activate: ReLU, SiLU without overflow, the tanh form of GELU, an activation that is thrown away."""
import math

import numpy as np

from ..activations import gelu, quick_gelu, relu, sigmoid, silu
from . import Exercise

ROOT = math.sqrt(2 / math.pi)


def _numbers(c):
    return (c.x(scale=2.0),)


def _wide_numbers(c):
    x = c.x(scale=2.0)
    x[..., 0], x[..., 1] = -30.0, 30.0
    return (x,)


def _large_numbers(c):
    x = c.x(scale=2.0)
    x[..., 0], x[..., 1] = -1000.0, 1000.0                                      # exp(1000) is too large for a float
    return (x,)


def ffn_inputs(c):
    return c.x(), c.normal(c.d, c.f), c.normal(c.f), c.normal(c.f, c.d), c.normal(c.d)


def relu_ffn(x, W1, b1, W2, b2):
    return relu(x @ W1 + b1) @ W2 + b2


# For 2.4 and 4.3, which both ask for a ReLU FFN.
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
        1, "my_relu(h)", relu, _wide_numbers, {
            "That is the absolute value: negative numbers became positive; they should become 0.": np.abs,
            "The negative numbers are kept and the positive ones became 0: the comparison is the wrong way round.":
                lambda h: np.minimum(h, 0),
            "That is 1 or 0, not the number: multiply by h, or use np.maximum.": lambda h: (h > 0).astype(h.dtype),
            "True and False came back: multiply the comparison by h, or use np.maximum.": lambda h: h > 0,
            "np.max(h, 0) takes the largest along axis 0; np.maximum(h, 0) compares number by number.":
                lambda h: np.max(h, 0),
            "One single number came back, the largest: np.maximum(h, 0) compares number by number.":
                lambda h: np.maximum(np.max(h), 0),
            "Negative numbers were dropped, so the shape is lost: they should stay in place as 0.": lambda h: h[h > 0],
            "Nothing changed: negative numbers should become 0.": lambda h: h,
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
        }, elementwise=True),
    "2.3": Exercise(
        2, "my_gelu_tanh(h)", lambda h: gelu(h, "tanh"), _numbers, {
            "tanh is closed too early: it must hold the whole product sqrt(2/pi) * (h + 0.044715 h**3). "
            "(Now GELU(2) is 2.563.)": lambda h: 0.5 * h * (1 + np.tanh(ROOT) * (h + 0.044715 * h**3)),
            "The cubic part stands outside the bracket: sqrt(2/pi) multiplies all of (h + 0.044715 h**3).":
                lambda h: 0.5 * h * (1 + np.tanh(ROOT * h + 0.044715 * h**3)),
            "0.5 multiplies only the first part: 0.5 * h * (1 + tanh(...)), with 1 + tanh in brackets.":
                lambda h: 0.5 * h * 1 + np.tanh(ROOT * (h + 0.044715 * h**3)),
            "The factor 0.5 is missing.": lambda h: 2 * gelu(h, "tanh"),
            "The factor h is missing: that is the share below h, without h itself.":
                lambda h: 0.5 * (1 + np.tanh(ROOT * (h + 0.044715 * h**3))),
            "The cube holds too much: only h is cubed, 0.044715 * h**3.": (
                lambda h: 0.5 * h * (1 + np.tanh(ROOT * (h + (0.044715 * h) ** 3))),
                lambda h: 0.5 * h * (1 + np.tanh(ROOT * (h + 0.044715 * h) ** 3))),
            "h**2 stands where h**3 belongs.": lambda h: 0.5 * h * (1 + np.tanh(ROOT * (h + 0.044715 * h**2))),
            "sqrt(pi / 2) stands where sqrt(2 / pi) belongs.":
                lambda h: 0.5 * h * (1 + np.tanh(math.sqrt(math.pi / 2) * (h + 0.044715 * h**3))),
            "sqrt(2) / pi stands where sqrt(2 / pi) belongs.":
                lambda h: 0.5 * h * (1 + np.tanh(math.sqrt(2) / math.pi * (h + 0.044715 * h**3))),
            "2 / pi stands where sqrt(2 / pi) belongs.":
                lambda h: 0.5 * h * (1 + np.tanh(2 / math.pi * (h + 0.044715 * h**3))),
            "The 1 + is missing: 0.5 * h * (1 + tanh(...)).": lambda h: 0.5 * h * np.tanh(ROOT * (h + 0.044715 * h**3)),
            "1 - tanh stands where 1 + tanh belongs.":
                lambda h: 0.5 * h * (1 - np.tanh(ROOT * (h + 0.044715 * h**3))),
            "That is the exact GELU: it differs from the tanh form by up to 0.00047. Here the tanh form is asked for.":
                gelu,
            "That is the quick GELU, h * sigmoid(1.702 h): it differs from the tanh form by up to 0.02.": quick_gelu,
        }, elementwise=True),
    "2.4": Exercise(3, "repaired_ffn(x, W1, b1, W2, b2)", relu_ffn, ffn_inputs, {
        "Still a straight layer: what reaches W2 has not been bent. Hint 1 says how to see it.":
            lambda x, W1, b1, W2, b2: (x @ W1 + b1) @ W2 + b2} | RELU_FFN_MISTAKES),
}
