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
from typing import TYPE_CHECKING

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

# Imported when first used, so that `import ffn_numpy` costs little more than `import numpy`. A new name goes in three
# places, all here: _LATER for Python, the imports under it for type checkers and editors, and __all__.
_LATER = {
    "block": ("TransformerBlock", "attention", "layer_norm", "rms_norm", "softmax"),
    "moe": ("MixtureOfExperts", "Route", "load_balancing_loss"),
    "pretrained": ("RealLayer", "layer_stats", "load"),
    "naming": ("FFNRecord", "find_ffns", "from_state_dict"),
    "formats": ("TensorFile", "decode_q4_1", "read_gguf", "read_safetensors"),
}

if TYPE_CHECKING:
    from .block import TransformerBlock, attention, layer_norm, rms_norm, softmax
    from .formats import TensorFile, decode_q4_1, read_gguf, read_safetensors
    from .moe import MixtureOfExperts, Route, load_balancing_loss
    from .naming import FFNRecord, find_ffns, from_state_dict
    from .pretrained import RealLayer, layer_stats, load
else:  # hidden from type checkers, which would take any name at all for one that it finds
    def __getattr__(name):
        for module, names in _LATER.items():
            if name == module or name in names:
                loaded = import_module(f".{module}", __name__)
                return loaded if name == module else getattr(loaded, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

__all__ = [
    "ACTIVATIONS", "Activation", "FFNRecord", "FeedForward", "GatedFeedForward", "MixtureOfExperts", "RealLayer",
    "Route", "TensorFile", "Trace", "TransformerBlock", "attention", "attention_flops", "attention_parameters",
    "decode_q4_1", "dropout", "ffn_flops", "ffn_parameters", "find_ffns", "from_state_dict", "gated_d_ff", "gelu",
    "identity", "layer_norm", "layer_stats", "llama_d_ff", "load", "load_balancing_loss", "minimind_d_ff",
    "quick_gelu", "read_gguf", "read_safetensors", "relu", "relu2", "rms_norm", "round_up", "sigmoid", "silu",
    "softmax",
]


def __dir__():
    return sorted({*globals(), *__all__})
