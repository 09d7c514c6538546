"""Lesson 09, train it: a leaky bend backwards, a matrix used twice, slopes measured, SwiGLU backwards."""
import numpy as np

from ..activations import ACTIVATIONS, sigmoid, silu
from . import ROWS, Exercise

silu_slope = ACTIVATIONS["silu"].derivative


def _leaky_inputs(c):
    return c.normal(*c.lead, c.f), c.normal(*c.lead, c.f), (0.1, 0.25, 0.01)[c.i % 3]  # dy, h, leak


def _tied_inputs(c):
    return c.normal(c.lead[0], c.d), c.normal(c.d, c.f), c.normal(c.lead[0], c.d)  # x, W, dy


def _measure_inputs(c):
    a, shape = (1 + c.rng.random(6)) * (-1) ** np.arange(6), ((5,), (2, 3), (4,), (3, 2), (1,), (2, 1, 3))[c.i]
    f = lambda w: float((a[:w.size] * w.ravel() ** 3).sum() + w.ravel()[0] * w.ravel()[-1])  # noqa: E731
    return f, c.normal(*shape), (1e-2, 2e-2, 5e-3)[c.i % 3]                     # f, w, step


def _gate_inputs(c):
    return tuple(c.normal(*c.lead, c.f) for _ in range(3))                      # dp, gate, up


def _leaky(dy, h, leak):
    return dy * np.where(h > 0, 1, leak).astype(h.dtype)


def _tied(x, W, dy, slope=lambda h: h > 0, out=1.0, into=1.0):
    """dx and dW of relu(x @ W) @ W.T; out and into weigh the parts of dW from writing and from reading."""
    h = x @ W                                                                   # (T, f)
    dh = (dy @ W) * slope(h)                                                    # (T, f)
    return dh @ W.T, out * (dy.T @ np.maximum(h, 0)) + into * (x.T @ dh)


def _tied_dx(x, W, dy, dx):
    return dx(x, W, dy), _tied(x, W, dy)[1]


def _each(w, slope, step, ahead=1.0, back=1.0, places=None):
    """slope(plus, minus) for every number of w (or other places), moved ahead and back by so many steps."""
    result = np.zeros(w.shape)
    for i in np.ndindex(w.shape) if places is None else places:
        plus, minus = w.copy(), w.copy()
        plus[i] += ahead * step
        minus[i] -= back * step
        result[i] = slope(plus, minus)
    return result


def _slopes(f, w, step, ahead=1.0, back=1.0, scale=None, places=None):
    width = ahead + back if scale is None else scale
    return _each(w, lambda plus, minus: (f(plus) - f(minus)) / (width * step), step, ahead, back, places)


EXERCISES = {
    "9.1": Exercise(
        1, "leaky_backward(dy, h, leak)", _leaky, _leaky_inputs, {
            "That is ReLU's way back: where h is negative the slope is leak here, not 0.":
                lambda dy, h, leak: dy * (h > 0),
            "That is dy times the *value* of the leaky ReLU: the slope is 1 or leak.":
                lambda dy, h, leak: dy * np.where(h > 0, h, leak * h),
            "What counts is the sign of *h*, not that of dy.": (
                lambda dy, h, leak: np.where(dy > 0, dy, leak * dy),
                lambda dy, h, leak: np.maximum(dy, leak * dy)),
            "The wrong side: dy passes whole where h > 0 and is weakened where h is negative.":
                lambda dy, h, leak: dy * np.where(h > 0, leak, 1).astype(h.dtype),
            "That is the slope alone, 1 or leak: multiply it by dy.":
                lambda dy, h, leak: np.where(h > 0, 1, leak).astype(h.dtype),
            "Where h is negative leak came back alone: there, too, dy is multiplied by the slope.":
                lambda dy, h, leak: np.where(h > 0, dy, leak).astype(h.dtype),
            "Where h is positive 1 came back alone: there, too, dy is multiplied by the slope.":
                lambda dy, h, leak: np.where(h > 0, 1, leak * dy).astype(h.dtype),
            "The sign for negative h: the line max(h, leak * h) rises there too, its slope is + leak.":
                lambda dy, h, leak: dy * np.where(h > 0, 1, -leak).astype(h.dtype),
            "The whole dy passes: where h is negative it is multiplied by leak.": lambda dy, h, leak: dy,
            "dy * leak everywhere: where h is positive the slope is 1.": lambda dy, h, leak: dy * leak,
            "Where h is positive leak was added: the slope there is 1, not 1 + leak.":
                lambda dy, h, leak: dy * ((h > 0) + leak).astype(h.dtype),
            "That is the leaky ReLU of h, the way forward: dy is not used.":
                lambda dy, h, leak: np.maximum(h, leak * h),
            "That is the leaky ReLU of dy * h: multiply dy by the slope, 1 or leak, not by h.":
                lambda dy, h, leak: np.maximum(dy * h, leak * dy * h),
            "leak is an argument: use it, not a fixed number.": tuple(
                lambda dy, h, leak, s=s: _leaky(dy, h, s) for s in (0.01, 0.1, 0.2)),
        }),
    "9.2": Exercise(
        2, "tied_backward(x, W, dy)", _tied, _tied_inputs, {
            "dx is right; in dW only the way *out* (@ W.T) is counted: W is used twice, and its two slopes add up.":
                lambda x, W, dy: _tied(x, W, dy, into=0.0),
            "dx is right; in dW only the way *in* (x @ W) is counted: W is used twice, and its two slopes add up.":
                lambda x, W, dy: _tied(x, W, dy, out=0.0),
            "dx is right; dW is the mean of the two parts: W is used twice, and its two slopes *add up*.":
                lambda x, W, dy: _tied(x, W, dy, out=0.5, into=0.5),
            "dx is right; in dW the two parts are subtracted: they add up.": (
                lambda x, W, dy: _tied(x, W, dy, into=-1.0), lambda x, W, dy: _tied(x, W, dy, out=-1.0)),
            "ReLU's slope is missing: the way back passes only where h > 0.":
                lambda x, W, dy: _tied(x, W, dy, slope=np.ones_like),
            "The way back passed through relu(h), its value: ReLU's *slope* is 1 where h > 0.":
                lambda x, W, dy: _tied(x, W, dy, slope=lambda h: np.maximum(h, 0)),
            "The way back passed where h is negative: ReLU's slope is 1 where h > 0.":
                lambda x, W, dy: _tied(x, W, dy, slope=lambda h: h < 0),
            "dx is right; in the part of dW from the way out, h stands before ReLU: it is dy.T @ a.":
                lambda x, W, dy: (_tied(x, W, dy)[0], _tied(x, W, dy, out=0.0)[1] + dy.T @ (x @ W)),
            "dx is right; dW is transposed: a slope for every number of W, so its shape is W's, (d, f).":
                lambda x, W, dy: (_tied(x, W, dy)[0], _tied(x, W, dy)[1].T),
            "dx is right; dW is divided by the number of tokens: the loss has done that already, if at all.":
                lambda x, W, dy: (_tied(x, W, dy)[0], _tied(x, W, dy)[1] / len(x)),
            "dx is right; dW lacks ReLU's slope in its part from the way in.":
                lambda x, W, dy: (_tied(x, W, dy)[0], _tied(x, W, dy, slope=np.ones_like)[1]),
            "dW is right; dx lacks ReLU's slope.":
                lambda x, W, dy: _tied_dx(x, W, dy, lambda x, W, dy: dy @ W @ W.T),
            "dW is right; dx is dh: one more step, through x @ W, leads to x.":
                lambda x, W, dy: _tied_dx(x, W, dy, lambda x, W, dy: (dy @ W) * (x @ W > 0)),
            "dW is right; dx has dy added: there is no residual connection here.":
                lambda x, W, dy: _tied_dx(x, W, dy, lambda x, W, dy: _tied(x, W, dy)[0] + dy),
            "Both are right, but the order is not: return dx, dW.":
                lambda x, W, dy: _tied(x, W, dy)[::-1],
        }, ROWS, ("dx", "dW")),
    "9.3": Exercise(
        2, "slopes(f, w, step)", _slopes, _measure_inputs, {
            "One-sided, (f(w + step) - f(w)) / step: step to both sides; the error shrinks from step to step².":
                lambda f, w, step: _slopes(f, w, step, back=0.0),
            "One-sided, (f(w) - f(w - step)) / step: step to both sides; the error shrinks from step to step².":
                lambda f, w, step: _slopes(f, w, step, ahead=0.0),
            "Twice too large: from w - step to w + step it is 2 step.":
                lambda f, w, step: _slopes(f, w, step, scale=1.0),
            "Every slope is 0. If plus = w stands in your code: that is no copy, and both steps go into one array.":
                lambda f, w, step: 0 * w,
            "Brackets: the *difference* is divided, (f(plus) - f(minus)) / (2 * step).":
                lambda f, w, step: _each(w, lambda plus, minus: f(plus) - f(minus) / (2 * step), step),
            "step is an argument: use it, not a fixed number.": tuple(
                lambda f, w, step, s=s: _slopes(f, w, s) for s in (1e-3, 1e-4, 1e-5, 1e-6)),
            "The differences are not divided by 2 step.": lambda f, w, step: _slopes(f, w, step) * 2 * step,
            "The sign is the wrong way round: f(w + step) - f(w - step).": lambda f, w, step: -_slopes(f, w, step),
            "All numbers of w are moved at once: move one, measure, put it back.":
                lambda f, w, step: np.full(w.shape, (f(w + step) - f(w - step)) / (2 * step)),
            "All numbers of w are moved at once, and one slope came back: one for each number is asked for.":
                lambda f, w, step: (f(w + step) - f(w - step)) / (2 * step),
            "A whole row of w is moved at once: for i in range(len(w)) counts rows; np.ndindex(w.shape) every number.":
                lambda f, w, step: _slopes(f, w, step, places=range(len(w))),
            "Numbers that were moved are not put back before the next one is measured.":
                lambda f, w, step: _slopes_without_restoring(f, w, step),
            "Multiplied by step / 2 where (2 * step) belongs in brackets: a / 2 * step is (a / 2) * step.":
                lambda f, w, step: _slopes(f, w, step) * step * step,
            "Both sides are moved by half a step only: w + step and w - step, in full.":
                lambda f, w, step: _slopes(f, w, step / 2) / 2,
        }, float64_only=True),
    "9.4": Exercise(
        3, "repaired_backward(dp, gate, up)", lambda dp, g, u: (dp * u * silu_slope(g), dp * silu(g)), _gate_inputs, {
            "Still as broken: d_up is right; d_gate differs from the measured slope. Hint 1 asks why.":
                lambda dp, g, u: (dp * u, dp * silu(g)),
            "The results are swapped: return d_gate, d_up.":
                lambda dp, g, u: (dp * silu(g), dp * u * silu_slope(g)),
            "d_up is right; d_gate has silu(gate) where silu's *slope* belongs.":
                lambda dp, g, u: (dp * u * silu(g), dp * silu(g)),
            "d_up is right; d_gate has sigmoid(gate), a part of silu's slope: silu is gate * sigmoid(gate), a product.":
                lambda dp, g, u: (dp * u * sigmoid(g), dp * silu(g)),
            "d_up is right; in d_gate a bracket of silu's slope is misplaced.": (
                lambda dp, g, u: (dp * u * sigmoid(g) * (1 + g) * (1 - sigmoid(g)), dp * silu(g)),
                lambda dp, g, u: (dp * u * (sigmoid(g) + g * (1 - sigmoid(g))), dp * silu(g))),
            "d_up is right; d_gate has the slope of the sigmoid: silu is gate * sigmoid(gate), a product.":
                lambda dp, g, u: (dp * u * sigmoid(g) * (1 - sigmoid(g)), dp * silu(g)),
            "d_up is right; d_gate has the slope at up: it is taken at gate, where silu was applied.":
                lambda dp, g, u: (dp * u * silu_slope(u), dp * silu(g)),
            "d_up is right; d_gate has silu(gate) (1 - silu(gate)): that pattern belongs to the sigmoid.":
                lambda dp, g, u: (dp * u * silu(g) * (1 - silu(g)), dp * silu(g)),
            "d_gate is right; d_up is dp * silu(up): silu was applied to gate.":
                lambda dp, g, u: (dp * u * silu_slope(g), dp * silu(u)),
            "d_up is right; d_gate lacks dp.": lambda dp, g, u: (u * silu_slope(g), dp * silu(g)),
            "d_up is right; d_gate lacks the factor up.":
                lambda dp, g, u: (dp * silu_slope(g), dp * silu(g)),
            "d_gate is right; d_up should be dp * silu(gate), not dp * gate.":
                lambda dp, g, u: (dp * u * silu_slope(g), dp * g),
            "d_gate is right; d_up has silu's slope: up is only multiplied, so its gradient is dp * silu(gate).":
                lambda dp, g, u: (dp * u * silu_slope(g), dp * silu_slope(g)),
            "d_gate is right; d_up lacks dp.": lambda dp, g, u: (dp * u * silu_slope(g), silu(g)),
            "dp is missing in both.": lambda dp, g, u: (u * silu_slope(g), silu(g)),
        }, returns=("d_gate", "d_up")),
}


def _slopes_without_restoring(f, w, step):
    w, result = w.copy(), np.zeros(w.shape)
    for i in np.ndindex(w.shape):
        w[i] += step
        plus = f(w)
        w[i] -= 2 * step
        result[i] = (plus - f(w)) / (2 * step)
    return result
