"""Lesson 03, gate: which branch is activated, the fused matrix, the names of Llama's files."""
import numpy as np

from ..activations import gelu, relu, sigmoid, silu
from . import Exercise


def _branches(c):
    return c.normal(*c.lead, c.f), c.normal(*c.lead, c.f)                       # gate, up


def _swiglu_inputs(c):
    return c.x(), c.normal(c.d, c.f), c.normal(c.d, c.f), c.normal(c.f, c.d)    # x, W_gate, W_up, W_down


def _fused_inputs(c):
    return c.x(), c.normal(c.d, 2 * c.f), c.normal(c.f, c.d)                    # x, W_in = [gate; up], W_down


def _llama_inputs(c):
    return c.x(), c.normal(c.f, c.d), c.normal(c.d, c.f), c.normal(c.f, c.d)    # x, w1, w2, w3, all (out, in)


def _swiglu(x, W_gate, W_up, W_down):
    return silu(x @ W_gate) * (x @ W_up) @ W_down


def _halves(x, W_in):
    return np.split(x @ W_in, 2, axis=-1)


def _swiglu_fused(x, W_in, W_down):
    gate, up = _halves(x, W_in)
    return silu(gate) * up @ W_down


EXERCISES = {
    "3.1": Exercise(
        1, "gated(gate, up)", lambda gate, up: silu(gate) * up, _branches, {
            "That is gate * silu(up): the two branches are swapped; the gate is the activated one.":
                lambda gate, up: gate * silu(up),
            "That is silu(gate * up): activate the gate first, then multiply.": lambda gate, up: silu(gate * up),
            "That is silu(gate) + up: a gate multiplies.": lambda gate, up: silu(gate) + up,
            "No activation: that is the bilinear gate, gate * up.": lambda gate, up: gate * up,
            "That is sigmoid(gate) * up, GLU: SwiGLU uses silu.": lambda gate, up: sigmoid(gate) * up,
            "Both branches are activated: only the gate should be.": lambda gate, up: silu(gate) * silu(up),
            "That is silu(gate) alone: multiply it by up.": lambda gate, up: silu(gate),
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
            "The product is activated, silu(gate * up): activate the gate alone, then multiply.":
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
            "Both lifts use W_gate: up is x @ W_up.": lambda x, Wg, Wu, Wd: silu(x @ Wg) * (x @ Wg) @ Wd,
            "Both lifts use W_up: gate is x @ W_gate.": lambda x, Wg, Wu, Wd: silu(x @ Wu) * (x @ Wu) @ Wd,
            "W_up is not used: that is the plain FFN silu(x W_gate) W_down.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) @ Wd,
            "Both branches are activated: only the gate should be.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) * silu(x @ Wu) @ Wd,
            "The way down is missing: multiply by W_down, back to d_model numbers.":
                lambda x, Wg, Wu, Wd: silu(x @ Wg) * (x @ Wu),
        }),
    "3.3": Exercise(
        2, "swiglu_fused(x, W_in, W_down)", _swiglu_fused, _fused_inputs, {
            "The halves are swapped: the first d_ff columns of W_in are the gate, the last d_ff are up.":
                lambda x, W, Wd: silu(_halves(x, W)[1]) * _halves(x, W)[0] @ Wd,
            "Every second column was taken: the matrices stand side by side, first all of the gate, then all of up.":
                lambda x, W, Wd: silu((x @ W)[..., ::2]) * (x @ W)[..., 1::2] @ Wd,
            "No activation: silu belongs on the first half.":
                lambda x, W, Wd: _halves(x, W)[0] * _halves(x, W)[1] @ Wd,
            "silu was applied before the split, so both halves are bent: only the gate should be.":
                lambda x, W, Wd: silu(_halves(x, W)[0]) * silu(_halves(x, W)[1]) @ Wd,
            "The way down is missing: multiply by W_down, back to d_model numbers.":
                lambda x, W, Wd: silu(_halves(x, W)[0]) * _halves(x, W)[1],
        }),
    "3.4": Exercise(
        3, "repaired_llama(x, w1, w2, w3)", lambda x, w1, w2, w3: _swiglu(x, w1.T, w3.T, w2.T), _llama_inputs, {
            "Still as broken: the wrong branch is activated. Hint 1 has an example to work by hand.":
                lambda x, w1, w2, w3: _swiglu(x, w3.T, w1.T, w2.T),
            "That is ReGLU: the file belongs to a SwiGLU model.":
                lambda x, w1, w2, w3: relu(x @ w1.T) * (x @ w3.T) @ w2.T,
            "That is GEGLU: the file belongs to a SwiGLU model.":
                lambda x, w1, w2, w3: gelu(x @ w1.T) * (x @ w3.T) @ w2.T,
            "The product is activated, silu(gate * up): activate the gate alone, then multiply.":
                lambda x, w1, w2, w3: silu((x @ w1.T) * (x @ w3.T)) @ w2.T,
            "Both branches are activated: only the gate should be.":
                lambda x, w1, w2, w3: silu(x @ w1.T) * silu(x @ w3.T) @ w2.T,
            "No activation is left: silu belongs on the branch of w1.":
                lambda x, w1, w2, w3: (x @ w1.T) * (x @ w3.T) @ w2.T,
            "A matrix is reshaped where it should be transposed: .T, not reshape.": (
                lambda x, w1, w2, w3: _swiglu(x, *(w.reshape(w.shape[::-1]) for w in (w1, w3, w2))),
                lambda x, w1, w2, w3: _swiglu(x, w1.reshape(w1.shape[::-1]), w3.reshape(w3.shape[::-1]), w2.T)),
            "w2 is used as it is stored, (out, in): it needs .T as well. With square matrices no shape shows it.":
                lambda x, w1, w2, w3: silu(x @ w1.T) * (x @ w3.T) @ w2,
            "w1 and w3 are used as they are stored, (out, in): they need .T. With square matrices no shape shows it.":
                lambda x, w1, w2, w3: _swiglu(x, w1, w3, w2.T),
            "w2 is used as the up branch: the numbers in the names do not follow the order of use.": (
                lambda x, w1, w2, w3: _swiglu(x, w1.T, w2, w3), lambda x, w1, w2, w3: _swiglu(x, w1.T, w2.T, w3.T)),
            "No matrix is transposed: the file stores (out, in). With square matrices no shape shows it.":
                lambda x, w1, w2, w3: _swiglu(x, w1, w3, w2),
        }),
}
