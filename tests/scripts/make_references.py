"""Make tests/references.npz with PyTorch: the values that test_references.py compares with.

    pip install torch==2.13.0 numpy
    python tests/scripts/make_references.py

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
    "relu": F.relu, "relu2": lambda v: F.relu(v) ** 2, "gelu": F.gelu,
    "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"),
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

# ---- softmax, the norms and multi-head attention, forward and gradients
h = torch.randn(2, 5, 8, requires_grad=True)  # (B, T, d_model)
dh = torch.randn(2, 5, 8)                     # (B, T, d_model)
gain, bias = (torch.randn(8, requires_grad=True) for _ in range(2))
OUT |= {"block_x": h, "block_dy": dh, "gain": gain, "bias": bias, "softmax": torch.softmax(h, -1)}
layer = F.layer_norm(h, (8,), gain, bias, eps=1e-5)
OUT["layer_norm"] = layer
OUT["layer_norm/grad/x"], OUT["layer_norm/grad/gain"], OUT["layer_norm/grad/bias"] = torch.autograd.grad(
    (layer * dh).sum(), [h, gain, bias])
rms = F.rms_norm(h, (8,), gain, eps=1e-6)
OUT["rms_norm"] = rms
OUT["rms_norm/grad/x"], OUT["rms_norm/grad/gain"] = torch.autograd.grad((rms * dh).sum(), [h, gain])

W = {name: torch.randn(8, 8, requires_grad=True) for name in ("W_q", "W_k", "W_v", "W_o")}  # (in, out)
OUT |= W
for heads in (1, 2, 4):
    for causal in (False, True):
        q, k, v = ((h @ W[n]).view(2, 5, heads, -1).transpose(1, 2) for n in ("W_q", "W_k", "W_v"))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(2, 5, 8) @ W["W_o"]
        name = f"attention/{heads}/{'causal' if causal else 'full'}"
        OUT[name] = y
        for n, g in zip(("x", *W), torch.autograd.grad((y * dh).sum(), [h, *W.values()])):
            OUT[f"{name}/grad/{n}"] = g

# ---- mixture of experts: softmax over all, top-k, with and without renormalisation; SwiGLU experts
router = torch.randn(8, 4, requires_grad=True)  # (d_model, n_experts)
experts = [[torch.randn(8, 6, requires_grad=True), torch.randn(8, 6, requires_grad=True),
            torch.randn(6, 8, requires_grad=True)] for _ in range(4)]
OUT["moe/W_router"] = router
for e, (g, u, d) in enumerate(experts):
    OUT |= {f"moe/{e}/W_gate": g, f"moe/{e}/W_up": u, f"moe/{e}/W_down": d}
for top_k in (1, 2):
    for renormalize in (False, True):
        p = torch.softmax(h @ router, -1)
        weights, choices = torch.topk(p, top_k)
        if renormalize:
            weights = weights / weights.sum(-1, keepdim=True)
        every = torch.stack([(F.silu(h @ g) * (h @ u)) @ d for g, u, d in experts], dim=-2)  # (B, T, E, d_model)
        chosen = torch.gather(every, -2, choices[..., None].expand(*choices.shape, 8))       # (B, T, k, d_model)
        y = (weights[..., None] * chosen).sum(-2)
        name = f"moe/top{top_k}/{'renormalized' if renormalize else 'plain'}"
        flat = [h, router, *(w for expert in experts for w in expert)]
        gradients = torch.autograd.grad((y * dh).sum(), flat, allow_unused=True)
        OUT |= {name: y, f"{name}/choices": choices, f"{name}/weights": weights,
                f"{name}/grad/x": gradients[0], f"{name}/grad/W_router": gradients[1]}
        for i, g in enumerate(gradients[2:]):
            OUT[f"{name}/grad/{i // 3}/{('W_gate', 'W_up', 'W_down')[i % 3]}"] = (
                torch.zeros_like(flat[2 + i]) if g is None else g)

path = Path(__file__).parents[1] / "references.npz"
np.savez_compressed(path, torch_version=np.array(torch.__version__.split("+")[0]),
                    **{name: value.detach().numpy() for name, value in OUT.items()})
print(f"{path.name}: {len(OUT)} arrays, {path.stat().st_size / 1024:.0f} KB, PyTorch {torch.__version__}")
