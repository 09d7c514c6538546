"""Against PyTorch: values that tests/make_references.py computed once and stored in references.npz."""
from pathlib import Path

import numpy as np
import pytest

from ffn_numpy import ACTIVATIONS, from_state_dict

NAMES = ("relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "sigmoid", "identity")


@pytest.fixture(scope="module")
def reference():
    with np.load(Path(__file__).parent / "references.npz") as f:
        return {name: f[name] for name in f.files}


@pytest.mark.parametrize("name", NAMES)
def test_activation_and_derivative(reference, name):
    x = reference["activation_x"]
    np.testing.assert_allclose(ACTIVATIONS[name].function(x), reference[f"{name}_y"], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ACTIVATIONS[name].derivative(x), reference[f"{name}_dy"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize("kind", ["plain", "gated"])
def test_forward_and_every_gradient(reference, kind, activation):
    start = f"{kind}/{activation}/"
    tensors = {name[len(start):]: value for name, value in reference.items() if name.startswith(start)}
    ffn = from_state_dict(tensors, activation=activation)
    trace = ffn.trace(reference["ffn_x"])
    np.testing.assert_allclose(trace.output, tensors["y"], rtol=0, atol=1e-13)

    gradients = ffn.backward(trace, reference["ffn_dy"])
    torch_names = {"plain": {"1": "linear1", "2": "linear2"},
                   "gated": {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}}[kind]
    assert set(gradients) == {"x", *ffn.parameters()}
    for ours, gradient in gradients.items():
        if ours == "x":
            expected = tensors["grad/x"]
        else:
            is_weight, part = ours[0] == "W", torch_names[ours.lstrip("Wb_")]
            expected = tensors[f"grad/{part}.{'weight' if is_weight else 'bias'}"]
            expected = expected.T if is_weight else expected
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-12, err_msg=ours)
