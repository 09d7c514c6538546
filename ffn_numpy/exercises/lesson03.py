"""Lesson 03, gate: which branch is activated, a layer that multiplies, a fused matrix on two devices."""
import numpy as np

from ..activations import gelu, sigmoid, silu
from . import Exercise


def _branches(c):
    return c.normal(*c.lead, c.f), c.normal(*c.lead, c.f)                       # gate, lift


def _swiglu_inputs(c):
    return c.x(), c.normal(c.d, c.f), c.normal(c.d, c.f), c.normal(c.f, c.d)    # x, W_gate, W_up, W_down


def _device_inputs(c):
    return c.x(), c.normal(c.d, 4 * c.f), c.normal(2 * c.f, c.d)                # x, W_in = [gate; lift], W_down


def _hidden_tokens(c):
    """m, and a bilinear layer that waits for its matrices: the answer builds it and never sees the tokens."""
    tokens = c.normal(*c.lead, 2 * c.d).astype(c.dtype)                         # (..., 2 m)

    def layer(W_gate, W_up, W_down):
        W_gate, W_up, W_down = (np.asarray(W, tokens.dtype) for W in (W_gate, W_up, W_down))
        for name, W in (("W_gate", W_gate), ("W_up", W_up)):
            if W.ndim != 2 or len(W) != 2 * c.d:
                raise ValueError(f"{name} must have 2 m = {2 * c.d} rows; yours has shape {W.shape}. Is it on its "
                                 "side?")
        if W_down.ndim != 2:
            raise ValueError(f"W_down must have two axes, (number of units, 1); yours has shape {W_down.shape}.")
        return (tokens @ W_gate) * (tokens @ W_up) @ W_down                     # (..., 1)
    return c.d, layer


def _dot_of_halves(m, layer):
    return layer(np.eye(2 * m, m), np.eye(2 * m, m, -m), np.ones((m, 1)))


def _ones(m, half):
    """One column that adds up the first or the second half of a token."""
    return np.repeat([1.0 - half, half], m)[:, None]


def _swiglu(x, W_gate, W_up, W_down):
    return silu(x @ W_gate) * (x @ W_up) @ W_down


def _halves(x, W_in):
    return np.split(x @ W_in, 2, axis=-1)


def _product(x, W_in):
    gate, lift = _halves(x, W_in)
    return silu(gate) * lift


def _swiglu_fused(x, W_in, W_down):
    return _product(x, W_in) @ W_down


def _per_device(gate, lift, W_down):
    return tuple(a @ rows for a, rows in zip(np.split(silu(gate) * lift, 2, axis=-1), np.split(W_down, 2)))


def _two_devices(x, W_in, W_down):
    return _per_device(*_halves(x, W_in), W_down)


def _cut_straight(x, W_in, W_down):
    """The broken one: W_in cut in the middle, between gate and lift."""
    return tuple(_swiglu_fused(x, W, rows) for W, rows in zip(np.split(W_in, 2, axis=1), np.split(W_down, 2)))


EXERCISES = {
    "3.1": Exercise(
        1, "gated(gate, lift)", lambda gate, lift: silu(gate) * lift, _branches, {
            "That is gate * silu(lift): the two branches are swapped; the gate is the activated one.":
                lambda gate, lift: gate * silu(lift),
            "That is silu(gate * lift): activate the gate first, then multiply.": lambda gate, lift: silu(gate * lift),
            "That is silu(gate) + lift: a gate multiplies.": lambda gate, lift: silu(gate) + lift,
            "No activation: that is the bilinear gate, gate * lift.": lambda gate, lift: gate * lift,
            "That is sigmoid(gate) * lift, GLU: SwiGLU uses silu.": lambda gate, lift: sigmoid(gate) * lift,
            "Both branches are activated: only the gate should be.": lambda gate, lift: silu(gate) * silu(lift),
            "That is silu(gate) alone: multiply it by lift.": lambda gate, lift: silu(gate),
        }),
    "3.2": Exercise(
        2, "swiglu(x, W_gate, W_up, W_down)", _swiglu, _swiglu_inputs, {
            "That is silu(x W_up) * (x W_gate): the two branches are swapped; the gate is the activated one.":
                lambda x, Wg, Wu, Wd: _swiglu(x, Wu, Wg, Wd),
            "No activation: silu belongs on x @ W_gate. (Without it this is the bilinear layer.)":
                lambda x, Wg, Wu, Wd: (x @ Wg) * (x @ Wu) @ Wd,
            "That is GLU, sigmoid(x W_gate) * (x W_up): SwiGLU's gate is silu.":
                lambda x, Wg, Wu, Wd: sigmoid(x @ Wg) * (x @ Wu) @ Wd,
            "That is GEGLU: SwiGLU's gate is silu, not gelu.": lambda x, Wg, Wu, Wd: gelu(x @ Wg) * (x @ Wu) @ Wd,
            "The product is activated, silu(gate * lift): activate the gate alone, then multiply.":
                lambda x, Wg, Wu, Wd: silu((x @ Wg) * (x @ Wu)) @ Wd,
            "The branches are added: a gate multiplies.": lambda x, Wg, Wu, Wd: (silu(x @ Wg) + x @ Wu) @ Wd,
            "x itself was activated: silu belongs on x @ W_gate.": (
                lambda x, Wg, Wu, Wd: (silu(x) @ Wg) * (x @ Wu) @ Wd,
                lambda x, Wg, Wu, Wd: (silu(x) @ Wg) * (silu(x) @ Wu) @ Wd),
            "The output is activated, too: nothing comes after W_down.":
                lambda x, Wg, Wu, Wd: silu(_swiglu(x, Wg, Wu, Wd)),
            "silu stands at the end: it belongs on x @ W_gate.": lambda x, Wg, Wu, Wd: silu((x @ Wg) * (x @ Wu) @ Wd),
            "x is added: that is the residual connection of the block (lesson 07), not part of the FFN.":
                lambda x, Wg, Wu, Wd: x + _swiglu(x, Wg, Wu, Wd),
            "Both branches use W_gate: the lift is x @ W_up.": lambda x, Wg, Wu, Wd: silu(x @ Wg) * (x @ Wg) @ Wd,
            "Both branches use W_up: the gate is x @ W_gate.": lambda x, Wg, Wu, Wd: silu(x @ Wu) * (x @ Wu) @ Wd,
            "W_up is not used: that is the plain FFN silu(x W_gate) W_down.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) @ Wd,
            "Both branches are activated: only the gate should be.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) * silu(x @ Wu) @ Wd,
            "The way down is missing: multiply by W_down, back to d_model numbers.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) * (x @ Wu),
        }),
    "3.3": Exercise(
        2, "dot_of_halves(m, layer)", _dot_of_halves, _hidden_tokens, {
            "Both branches read the first half: that is its squared length. The lift should read the second half.":
                lambda m, layer: layer(np.eye(2 * m, m), np.eye(2 * m, m), np.ones((m, 1))),
            "Both branches read the second half: that is its squared length. The gate should read the first half.":
                lambda m, layer: layer(np.eye(2 * m, m, -m), np.eye(2 * m, m, -m), np.ones((m, 1))),
            "Every number meets itself: that is the squared length of the whole token.":
                lambda m, layer: layer(np.eye(2 * m), np.eye(2 * m), np.ones((2 * m, 1))),
            "Neighbours meet, 0 with 1, 2 with 3: number i of the first half should meet number m + i.":
                lambda m, layer: layer(np.eye(2 * m)[:, ::2], np.eye(2 * m)[:, 1::2], np.ones((m, 1))),
            "That is one product of two sums: each pair needs a hidden unit of its own; add after multiplying.":
                lambda m, layer: layer(_ones(m, 0), _ones(m, 1), np.ones((1, 1))),
            "Only the first pair is multiplied: m pairs need m hidden units.":
                lambda m, layer: layer(np.eye(2 * m, 1), np.eye(2 * m, 1, -m), np.ones((1, 1))),
            "The second half is read backwards: number i of the first half should meet number m + i.":
                lambda m, layer: layer(np.eye(2 * m, m), np.eye(2 * m, m, -m)[:, ::-1], np.ones((m, 1))),
            "The products are not added up: W_down has one column, (number of units, 1).":
                lambda m, layer: layer(np.eye(2 * m, m), np.eye(2 * m, m, -m), np.eye(m)),
            "That is the mean of the products, not their sum: the numbers in W_down are 1.":
                lambda m, layer: layer(np.eye(2 * m, m), np.eye(2 * m, m, -m), np.full((m, 1), 1 / m)),
            "One branch reads both halves at once, a sum: each column of W_gate and W_up needs a single 1.": (
                lambda m, layer: layer(np.eye(2 * m, m) + np.eye(2 * m, m, -m), np.eye(2 * m, m, -m),
                                       np.ones((m, 1))),
                lambda m, layer: layer(np.eye(2 * m, m), np.eye(2 * m, m) + np.eye(2 * m, m, -m),
                                       np.ones((m, 1)))),
        }),
    "3.4": Exercise(
        3, "two_devices(x, W_in, W_down)", _two_devices, _device_inputs, {
            "Still as broken: each device multiplies numbers that do not belong to one hidden unit. (Hint 1)":
                _cut_straight,
            "The sum is right, but the units are dealt out in turn: device 0 should have the first half of them.":
                lambda x, W, Wd: (_product(x, W)[..., ::2] @ Wd[::2], _product(x, W)[..., 1::2] @ Wd[1::2]),
            "The sum is right, but the devices are exchanged: device 0 should have the first half of the units.":
                lambda x, W, Wd: _two_devices(x, W, Wd)[::-1],
            "Both devices compute the whole layer: each should have half of the hidden units.":
                lambda x, W, Wd: (_swiglu_fused(x, W, Wd),) * 2,
            "That is half of the whole output, twice: each device should compute its own hidden units, fully.":
                lambda x, W, Wd: (_swiglu_fused(x, W, Wd) / 2,) * 2,
            "One device has all the work, the other none: each should have half of the hidden units.":
                lambda x, W, Wd: (_swiglu_fused(x, W, Wd), 0 * _swiglu_fused(x, W, Wd)),
            "The gate of one half meets the lift of the other: gate and lift of a device belong to the same units.":
                lambda x, W, Wd: _per_device(_halves(x, W)[0], np.roll(_halves(x, W)[1], len(Wd) // 2, axis=-1), Wd),
            "The lift is activated instead of the gate: the first d_ff columns of W_in are the gate.":
                lambda x, W, Wd: _per_device(*_halves(x, W)[::-1], Wd),
            "The rows of W_down are exchanged: unit j writes row j, on whichever device it is.":
                lambda x, W, Wd: _per_device(*_halves(x, W), np.roll(Wd, len(Wd) // 2, axis=0)),
            "Every second column of W_in was taken as the gate: the first d_ff columns are the gate.":
                lambda x, W, Wd: _per_device((x @ W)[..., ::2], (x @ W)[..., 1::2], Wd),
            "Those are the products of each device: its rows of W_down are missing.":
                lambda x, W, Wd: tuple(np.split(_product(x, W), 2, axis=-1)),
            "No activation is left: silu belongs on the gate.":
                lambda x, W, Wd: tuple(a @ rows for a, rows in zip(
                    np.split(_halves(x, W)[0] * _halves(x, W)[1], 2, axis=-1), np.split(Wd, 2))),
        }, returns=("device 0", "device 1")),
}
