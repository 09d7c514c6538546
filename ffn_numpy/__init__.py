"""The Transformer's feed-forward network in plain NumPy: lift, activate, gate, project down.

    >>> import numpy as np
    >>> from ffn_numpy import FeedForward
    >>> ffn = FeedForward.random(d_model=8, d_ff=32, activation="gelu")
    >>> ffn(np.ones((7, 8))).shape
    (7, 8)

`ffn.trace(x)` prints every shape. The lessons that explain it all are in `notebooks/`.
`ffn_numpy.plots` draws and `ffn_numpy.training` trains; both are imported by themselves.
"""
from importlib import import_module

from .activations import ACTIVATIONS, Activation, gelu, identity, quick_gelu, relu, relu2, sigmoid, silu
from .ffn import FeedForward, GatedFeedForward, dropout
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

# Imported when first used, so that `import ffn_numpy` costs little more than `import numpy`.
_LATER = {
    "block": ("TransformerBlock", "attention", "layer_norm", "rms_norm", "softmax"),
    "moe": ("MixtureOfExperts", "Route", "load_balancing_loss"),
    "pretrained": ("RealLayer", "layer_stats", "load"),
    "naming": ("FFNRecord", "find_ffns", "from_state_dict"),
    "formats": ("TensorFile", "decode_q4_1", "read_gguf", "read_safetensors"),
}


def __getattr__(name):
    for module, names in _LATER.items():
        if name == module or name in names:
            loaded = import_module(f".{module}", __name__)
            return loaded if name == module else getattr(loaded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ACTIVATIONS", "Activation", "FeedForward", "GatedFeedForward", "Trace", "attention_flops", "attention_parameters",
    "dropout", "ffn_flops", "ffn_parameters", "gated_d_ff", "gelu", "identity", "llama_d_ff", "minimind_d_ff",
    "quick_gelu", "relu", "relu2", "round_up", "sigmoid", "silu",
    *(name for names in _LATER.values() for name in names),
]


def __dir__():
    return sorted({*globals(), *__all__})
