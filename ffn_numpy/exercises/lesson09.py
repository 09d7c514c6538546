"""Lesson 09, train it: the slope through ReLU, a matrix product backwards, slopes measured, SwiGLU backwards."""
import numpy as np

from ..activations import ACTIVATIONS, sigmoid, silu
from . import ROWS, Exercise

silu_slope = ACTIVATIONS["silu"].derivative


def _slope_inputs(c):
    return c.normal(*c.lead, c.f), c.normal(*c.lead, c.f)                       # dy, h


def _product_inputs(c):
    return c.normal(c.lead[0], c.d), c.normal(c.d, c.f), c.normal(c.lead[0], c.f)  # x, W, dy


def _measure_inputs(c):
    a, shape = (1 + c.rng.random(6)) * (-1) ** np.arange(6), ((5,), (2, 3), (4,), (3, 2), (1,), (2, 1, 3))[c.i]
    f = lambda w: float((a[:w.size] * w.ravel() ** 3).sum() + w.ravel()[0] * w.ravel()[-1])  # noqa: E731
    return f, c.normal(*shape), (1e-2, 2e-2, 5e-3)[c.i % 3]                     # f, w, step


def _gate_inputs(c):
    return tuple(c.normal(*c.lead, c.f) for _ in range(3))                      # dp, gate, up


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
        1, "relu_backward(dy, h)", lambda dy, h: dy * (h > 0), _slope_inputs, {
            "That is dy * h: the slope of ReLU is 1 or 0, not h.": lambda dy, h: dy * h,
            "That is dy * relu(h): the slope of ReLU is 1 where h > 0, not its value.":
                lambda dy, h: dy * np.maximum(h, 0),
            "dy was cut where dy is negative: what counts is where *h* is positive.": lambda dy, h: np.maximum(dy, 0),
            "The wrong side: the gradient passes where h > 0.": lambda dy, h: dy * (h < 0),
            "That is the slope alone, 1 or 0: multiply it by dy.": lambda dy, h: (h > 0).astype(h.dtype),
            "True and False came back: multiply by dy.": lambda dy, h: h > 0,
            "The whole gradient passes: where h is negative it should be 0.": lambda dy, h: dy,
            "The comparison picked numbers out, so the shape is lost: multiply dy by (h > 0).":
                lambda dy, h: dy[h > 0],
            "That is relu(dy * h).": lambda dy, h: np.maximum(dy * h, 0),
            "That is h where dy is positive: the arguments are swapped.": lambda dy, h: h * (dy > 0),
            "That is relu(h): dy is not used.": lambda dy, h: np.maximum(h, 0),
        }),
    "9.2": Exercise(
        2, "linear_backward(x, W, dy)", lambda x, W, dy: (dy @ W.T, x.T @ dy, dy.sum(axis=0)), _product_inputs, {
            "dx and dW are right; db is a mean: every token adds its dy to the bias's gradient, so take the sum.":
                lambda x, W, dy: (dy @ W.T, x.T @ dy, dy.mean(axis=0)),
            "dx and db are right; dW is transposed: a gradient has the shape of what it belongs to, here W.":
                lambda x, W, dy: (dy @ W.T, dy.T @ x, dy.sum(axis=0)),
            "dW and db are right; dx uses W as it is, which runs only if W is square.":
                lambda x, W, dy: (dy @ W, x.T @ dy, dy.sum(axis=0)),
            "dW and db are right; dx is transposed: a gradient has the shape of what it belongs to, here x.":
                lambda x, W, dy: (W @ dy.T, x.T @ dy, dy.sum(axis=0)),
            "dx and dW are right; db is dy itself: sum it over the tokens, axis=0.":
                lambda x, W, dy: (dy @ W.T, x.T @ dy, dy),
            "dx and dW are right; db is summed over the wrong axis: over tokens, axis=0.":
                lambda x, W, dy: (dy @ W.T, x.T @ dy, dy.sum(axis=1)),
            "dx and dW are right; db is one number: sum over the tokens only, axis=0.":
                lambda x, W, dy: (dy @ W.T, x.T @ dy, dy.sum()),
            "dx and db are right; dW is divided by the number of tokens: the loss has done that already, if at all.":
                lambda x, W, dy: (dy @ W.T, x.T @ dy / len(x), dy.sum(axis=0)),
            "dW and db are both divided by the number of tokens: the loss has done that already, if at all.":
                lambda x, W, dy: (dy @ W.T, x.T @ dy / len(x), dy.mean(axis=0)),
            "All three are right, but the order is not: return dx, dW, db.":
                lambda x, W, dy: (x.T @ dy, dy @ W.T, dy.sum(axis=0)),
            "All three are right, but the order is not: return dx, dW, db. (dW came first, dx last.)":
                lambda x, W, dy: (x.T @ dy, dy.sum(axis=0), dy @ W.T),
        }, ROWS, ("dx", "dW", "db")),
    "9.3": Exercise(
        2, "slopes(f, w, step)", _slopes, _measure_inputs, {
            "One-sided, (f(w + step) - f(w)) / step: step to both sides; the error shrinks from step to step².":
                lambda f, w, step: _slopes(f, w, step, back=0.0),
            "One-sided, (f(w) - f(w - step)) / step: step to both sides; the error shrinks from step to step².":
                lambda f, w, step: _slopes(f, w, step, ahead=0.0),
            "Twice too large: from w - step to w + step it is 2 step.":
                lambda f, w, step: _slopes(f, w, step, scale=1.0),
            "plus = w is no copy: both steps go into the same array, "
            "and the difference is 0.": lambda f, w, step: 0 * w,
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
