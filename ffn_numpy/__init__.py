"""The Transformer's feed-forward network in plain NumPy: lift, activate, gate, project down.

    >>> import numpy as np
    >>> from ffn_numpy import FeedForward
    >>> ffn = FeedForward.random(d_model=8, d_ff=32, activation="gelu")
    >>> ffn(np.ones((7, 8))).shape
    (7, 8)

`ffn.trace(x)` prints every shape. The lessons that explain it all are in `notebooks/`.
`ffn_numpy.plots` draws; it is imported by itself, because it needs matplotlib.
"""
from .activations import ACTIVATIONS, Activation, gelu, identity, quick_gelu, relu, sigmoid, silu
from .block import TransformerBlock, attention, layer_norm, rms_norm, softmax
from .ffn import FeedForward, GatedFeedForward, dropout
from .moe import MixtureOfExperts, Route, load_balancing_loss
from .pretrained import RealLayer, decode_q4_1, from_state_dict, layer_stats, load, read_safetensors
from .sizing import (
    attention_flops,
    attention_parameters,
    ffn_flops,
    ffn_parameters,
    gated_d_ff,
    llama_d_ff,
    minimind_d_ff,
    round_up,
)
from .trace import Trace

__version__ = "0.1.0"

__all__ = [
    "ACTIVATIONS", "Activation", "FeedForward", "GatedFeedForward", "MixtureOfExperts", "RealLayer", "Route", "Trace",
    "TransformerBlock", "attention", "attention_flops", "attention_parameters", "decode_q4_1", "dropout", "ffn_flops",
    "ffn_parameters", "from_state_dict", "gated_d_ff", "gelu", "identity", "layer_norm", "layer_stats", "llama_d_ff",
    "load", "load_balancing_loss", "minimind_d_ff", "quick_gelu", "read_safetensors", "relu", "rms_norm", "round_up",
    "sigmoid", "silu", "softmax",
]
