"""Against PyTorch: values that tests/scripts/make_references.py computed once and stored in references.npz."""
from pathlib import Path

import numpy as np
import pytest

import ffn_numpy as F
from ffn_numpy import ACTIVATIONS, from_state_dict

NAMES = ("relu", "relu2", "gelu", "gelu_tanh", "quick_gelu", "silu", "sigmoid", "identity")


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
    ffn = from_state_dict({n: t for n, t in tensors.items() if n.startswith(("linear", "gate", "up", "down"))},
                          activation=activation)
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


def test_softmax_and_norms(reference):
    x, gain, bias = (reference[n] for n in ("block_x", "gain", "bias"))
    np.testing.assert_allclose(F.softmax(x), reference["softmax"], rtol=1e-13)
    np.testing.assert_allclose(F.layer_norm(x, gain, bias), reference["layer_norm"], rtol=0, atol=1e-13)
    np.testing.assert_allclose(F.rms_norm(x, gain), reference["rms_norm"], rtol=0, atol=1e-13)


@pytest.mark.parametrize("causal", ["full", "causal"])
@pytest.mark.parametrize("n_heads", [1, 2, 4])
def test_attention_and_its_gradients(reference, n_heads, causal):
    names = ("W_q", "W_k", "W_v", "W_o")
    weights, x, dy = [reference[n] for n in names], reference["block_x"], reference["block_dy"]
    name = f"attention/{n_heads}/{causal}"
    y = F.attention(x, *weights, n_heads=n_heads, causal=causal == "causal")
    np.testing.assert_allclose(y, reference[name], rtol=0, atol=1e-12)
    # without FFN and norms, the block is x + attention(x)
    block = F.TransformerBlock(*weights, n_heads=n_heads, causal=causal == "causal", norm=None)
    gradients = block.backward(block.trace(x), dy)
    np.testing.assert_allclose(gradients["x"] - dy, reference[f"{name}/grad/x"], rtol=0, atol=1e-11)
    for n in names:
        np.testing.assert_allclose(gradients[n], reference[f"{name}/grad/{n}"], rtol=0, atol=1e-11, err_msg=n)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_gradients_of_the_norms(reference, norm):
    """Post-norm with attention weights of zero is norm(x): its gradients are the norm's."""
    zero = np.zeros((8, 8))
    biases = {"bias1": reference["bias"]} if norm == "layer" else {}
    block = F.TransformerBlock(zero, zero, zero, zero, placement="post", norm=norm, gain1=reference["gain"], **biases)
    trace = block.trace(reference["block_x"])
    np.testing.assert_allclose(trace.output, reference[f"{norm}_norm"], rtol=0, atol=1e-12)
    gradients = block.backward(trace, reference["block_dy"])
    for ours, theirs in (("x", "x"), ("gain1", "gain"), *([("bias1", "bias")] if biases else [])):
        np.testing.assert_allclose(gradients[ours], reference[f"{norm}_norm/grad/{theirs}"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("top_k", [1, 2])
def test_mixture_of_experts_and_its_gradients(reference, top_k, renormalize):
    parts = ("W_gate", "W_up", "W_down")
    experts = [F.GatedFeedForward(*(reference[f"moe/{e}/{part}"] for part in parts)) for e in range(4)]
    moe = F.MixtureOfExperts(reference["moe/W_router"], experts, top_k, renormalize)
    name = f"moe/top{top_k}/{'renormalized' if renormalize else 'plain'}"
    trace = moe.trace(reference["block_x"])
    np.testing.assert_array_equal(trace["choices"], reference[f"{name}/choices"])
    np.testing.assert_allclose(trace["weights"], reference[f"{name}/weights"], rtol=1e-13)
    np.testing.assert_allclose(trace.output, reference[name], rtol=0, atol=1e-12)
    gradients = moe.backward(trace, reference["block_dy"])
    for n in ("x", "W_router"):
        np.testing.assert_allclose(gradients[n], reference[f"{name}/grad/{n}"], rtol=0, atol=1e-11, err_msg=n)
    for e in range(4):
        for part in parts:
            np.testing.assert_allclose(gradients[f"experts[{e}].{part}"], reference[f"{name}/grad/{e}/{part}"],
                                       rtol=0, atol=1e-11)
