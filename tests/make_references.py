"""Make tests/references.npz with PyTorch: the values that test_references.py compares with.

    pip install torch==2.13.0 numpy
    python tests/make_references.py

PyTorch is needed only here, never by the package or its tests. Everything is float64, seeded.
"""
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
OUT = {}

# ---- activations and their derivatives by autograd, on a grid with both tails
x = torch.linspace(-12, 12, 241, requires_grad=True)  # (241,)
OUT["activation_x"] = x
ACTIVATIONS = {
    "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"),
    "quick_gelu": lambda v: v * torch.sigmoid(1.702 * v), "silu": F.silu, "sigmoid": torch.sigmoid,
    "identity": lambda v: v,
}
for name, function in ACTIVATIONS.items():
    y = function(x)
    OUT[f"{name}_y"], (OUT[f"{name}_dy"],) = y, torch.autograd.grad(y.sum(), x)

# ---- both FFNs, forward and every gradient, as nn.Linear computes them (weights stored (out, in))
D_MODEL, D_FF = 6, 10
tokens = torch.randn(2, 5, D_MODEL, requires_grad=True)  # (B, T, d_model)
dy = torch.randn(2, 5, D_MODEL)                          # (B, T, d_model)
OUT["ffn_x"], OUT["ffn_dy"] = tokens, dy


def record(kind, layers, y):
    """Store the output, the weights and the gradients of sum(y * dy)."""
    parameters = {f"{name}.{part}": p for name, layer in layers.items() for part, p in layer.named_parameters()}
    gradients = torch.autograd.grad((y * dy).sum(), [tokens, *parameters.values()])
    OUT[f"{kind}/y"], OUT[f"{kind}/grad/x"] = y, gradients[0]
    for (name, p), g in zip(parameters.items(), gradients[1:]):
        OUT[f"{kind}/{name}"], OUT[f"{kind}/grad/{name}"] = p, g


for name, act in ACTIVATIONS.items():
    layers = {"linear1": torch.nn.Linear(D_MODEL, D_FF), "linear2": torch.nn.Linear(D_FF, D_MODEL)}
    record(f"plain/{name}", layers, layers["linear2"](act(layers["linear1"](tokens))))
    layers = {"gate_proj": torch.nn.Linear(D_MODEL, D_FF), "up_proj": torch.nn.Linear(D_MODEL, D_FF),
              "down_proj": torch.nn.Linear(D_FF, D_MODEL)}
    hidden = act(layers["gate_proj"](tokens)) * layers["up_proj"](tokens)
    record(f"gated/{name}", layers, layers["down_proj"](hidden))

path = Path(__file__).parent / "references.npz"
np.savez_compressed(path, torch_version=np.array(torch.__version__.split("+")[0]),
                    **{name: value.detach().numpy() for name, value in OUT.items()})
print(f"{path.name}: {len(OUT)} arrays, {path.stat().st_size / 1024:.0f} KB, PyTorch {torch.__version__}")
