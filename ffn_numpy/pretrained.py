"""Trained FFNs: three real layers that ship with the package, with their real inputs and outputs."""
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ._validate import short
from .ffn import FeedForward, GatedFeedForward
from .formats import decode_q4_1

DATA = Path(__file__).parent / "data"
LAYERS = ("anarcii_enc0", "minilm_L2", "smollm2_L11")

@dataclass(frozen=True, eq=False)
class RealLayer:
    """One trained FFN with its real inputs and the outputs of the reference implementation.

    ffn : FeedForward or GatedFeedForward, float32
    x, y : float32 (n_tokens, d_model), input and reference output
    tokens : str (n_tokens,)
    sentence_id : int (n_tokens,), which sentence a token belongs to
    meta : dict, model, licence, formula, sentences
    """

    ffn: FeedForward | GatedFeedForward
    x: np.ndarray
    y: np.ndarray
    tokens: np.ndarray
    sentence_id: np.ndarray
    meta: dict

    def __repr__(self):
        return f"RealLayer({self.meta['model']!r}, layer {self.meta['layer']}, x {self.x.shape}, {self.ffn})"


def load(name):
    """Load one of the three trained layers that ship with the package.

    Parameters
    ----------
    name : {"anarcii_enc0", "minilm_L2", "smollm2_L11"}
        ReLU 128 -> 512, exact GELU 384 -> 1536, SwiGLU 576 -> 1536.

    Returns
    -------
    RealLayer

    Raises
    ------
    ValueError
        For any other name; the message lists the names.

    Notes
    -----
    Provenance and licences: `ffn_numpy/data/README.md`.

    Examples
    --------
    >>> load("anarcii_enc0").ffn
    FeedForward(d_model=128, d_ff=512, activation='relu', 131,712 parameters, float32)
    """
    if not isinstance(name, str) or name not in LAYERS:
        raise ValueError(f"name must be one of {', '.join(LAYERS)}; got {short(name)}")
    with np.load(DATA / f"{name}.npz") as f:
        meta = json.loads(str(f["meta"]))
        if meta["act"] == "silu":
            gate, up, down = (decode_q4_1(f[f"W_{part}_q4_1"], f[f"shape_{part}"])
                              for part in ("gate", "up", "down"))  # each (out, in)
            ffn = GatedFeedForward(gate.T, up.T, down.T)
        else:
            W1, W2 = f["W1"].astype(np.float32), f["W2"].astype(np.float32)  # each (out, in)
            ffn = FeedForward(W1.T, f["b1"], W2.T, f["b2"], meta["act"].split()[0])
        return RealLayer(ffn, f["x"], f["y"], f["tokens"], f["sentence_id"], meta)


def layer_stats():
    """Statistics of every layer of the three models, trained and random twin: name -> array.

    `stat_names`, `keep_fractions`, `bins_lin` and `bins_logabs` name the columns and bin edges;
    `ffn_numpy/data/README.md` defines each array.
    """
    with np.load(DATA / "layer_stats.npz") as f:
        return {name: f[name] for name in f.files}
