"""Trained FFNs with their real inputs and outputs: three that ship with the package, and the reader's own."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._validate import float_array, short
from .ffn import FeedForward, GatedFeedForward
from .formats import decode_q4_1

DATA = Path(__file__).parent / "data"
LAYERS = ("anarcii_enc0", "minilm_L2", "smollm2_L11")
CLASSES = {"FeedForward": FeedForward, "GatedFeedForward": GatedFeedForward}


@dataclass(frozen=True, eq=False)
class RealLayer:
    """One trained FFN with its real inputs and the outputs that the model itself gave for them.

    Parameters
    ----------
    ffn : FeedForward or GatedFeedForward
    x, y : float (n_tokens, d_model)
        Input of the FFN and reference output, row by row.
    tokens : str (n_tokens,)
    sentence_id : int (n_tokens,) or None
        Which sentence a token belongs to; None: all to one.
    meta : dict
        What else is known and JSON can hold: model, layer, licence, formula, sentences.

    Raises
    ------
    TypeError, ValueError
        If a part is of another kind, or does not fit the others (named).

    Examples
    --------
    >>> ffn = FeedForward.random(8)
    >>> RealLayer(ffn, np.ones((2, 8)), ffn(np.ones((2, 8))), ["Far", "away"], meta={"model": "mine", "layer": 0})
    RealLayer('mine', layer 0, x (2, 8), FeedForward(d_model=8, d_ff=32, activation='relu', 552 parameters, float64))
    """

    ffn: FeedForward | GatedFeedForward
    x: np.ndarray
    y: np.ndarray
    tokens: np.ndarray
    sentence_id: np.ndarray | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.ffn).__name__ not in CLASSES:
            raise TypeError(f"ffn must be a FeedForward or GatedFeedForward, got {short(self.ffn)}")
        x, y, tokens = float_array("x", self.x), float_array("y", self.y), np.asarray(self.tokens)
        if x.ndim != 2 or x.shape[1] != self.ffn.d_model:
            raise ValueError(f"x must have shape (n_tokens, {self.ffn.d_model}), got {x.shape}")
        if y.shape != x.shape:
            raise ValueError(f"y must have x's shape {x.shape}, got {y.shape}")
        if tokens.dtype.kind != "U" or tokens.shape != x.shape[:1]:
            raise ValueError(f"tokens must be {len(x)} strings, one per row of x; got {short(self.tokens)}")
        sentence_id = np.zeros(len(x), np.int16) if self.sentence_id is None else np.asarray(self.sentence_id)
        if sentence_id.dtype.kind not in "iu" or sentence_id.shape != tokens.shape:
            raise ValueError(f"sentence_id must be {len(x)} integers, one per row of x; got {short(self.sentence_id)}")
        if not isinstance(self.meta, dict):
            raise TypeError(f"meta must be a dict, got {short(self.meta)}")
        for name, value in (("x", x), ("y", y), ("tokens", tokens), ("sentence_id", sentence_id)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (f"RealLayer({self.meta.get('model', '')!r}, layer {self.meta.get('layer', '?')}, x {self.x.shape}, "
                f"{self.ffn})")

    def save(self, path: str | os.PathLike) -> None:
        """Write the layer to one file that `load(path)` opens again, the same to the last bit.

        An existing file is replaced only when the new one is complete.

        Raises
        ------
        TypeError
            If meta holds what JSON cannot.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "mine.npz")
        >>> load("anarcii_enc0").save(path)
        >>> load(path)
        RealLayer('ANARCII 2.0.8 antibody model 4_2_128_512, encoder (post-LN Transformer, d=128, ff=512)', \
layer 0, x (122, 128), FeedForward(d_model=128, d_ff=512, activation='relu', 131,712 parameters, float32))
        """
        try:
            meta = json.dumps(self.meta)
        except (TypeError, ValueError) as error:
            raise TypeError(f"meta must hold what JSON can: {error}") from None
        path = Path(path)
        part = path.with_name(path.name + ".part")
        with open(part, "wb") as f:  # an open file: given a name, np.savez would add .npz to it
            np.savez_compressed(f, kind=type(self.ffn).__name__, activation=self.ffn.activation, x=self.x, y=self.y,
                                tokens=self.tokens, sentence_id=self.sentence_id, meta=meta, **self.ffn.parameters())
        os.replace(part, path)


def load(name: str | os.PathLike) -> RealLayer:
    """Load one of the three trained layers that ship with the package, or a file that `RealLayer.save` wrote.

    Parameters
    ----------
    name : {"anarcii_enc0", "minilm_L2", "smollm2_L11"} or path
        ReLU 128 -> 512, exact GELU 384 -> 1536, SwiGLU 576 -> 1536; or the path of your own layer.

    Returns
    -------
    RealLayer

    Raises
    ------
    ValueError
        If it is neither one of the names nor an existing file (the message lists the names), or the file was
        not written by `RealLayer.save`.

    Notes
    -----
    Provenance and licences: `ffn_numpy/data/README.md`.

    Examples
    --------
    >>> load("anarcii_enc0").ffn
    FeedForward(d_model=128, d_ff=512, activation='relu', 131,712 parameters, float32)
    """
    if isinstance(name, str) and name in LAYERS:
        return _shipped(name)
    if not isinstance(name, (str, os.PathLike)) or not Path(name).is_file():
        raise ValueError(f"name must be one of {', '.join(LAYERS)}, or the path of a file that RealLayer.save wrote; "
                         f"got {short(name)}")
    try:
        with open(name, "rb") as file, np.load(file) as f:  # no pickles: a file from elsewhere must not run code
            arrays = {key: f[key] for key in f.files}
        cls, activation = CLASSES[str(arrays.pop("kind"))], str(arrays.pop("activation"))
        meta = json.loads(str(arrays.pop("meta")))
        rest = [arrays.pop(key) for key in ("x", "y", "tokens", "sentence_id")]
        ffn = cls(**dict.fromkeys(cls.shapes) | arrays, activation=activation)
        return RealLayer(ffn, *rest, meta)
    except Exception as error:  # a damaged zip file raises whatever zlib and zipfile think of
        raise ValueError(f"{name} is not a file that RealLayer.save wrote: {short(str(error))}") from None


def _shipped(name):
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


def layer_stats() -> dict[str, np.ndarray]:
    """Statistics of every layer of the three models, trained and random twin: name -> array.

    `stat_names`, `keep_fractions`, `bins_lin` and `bins_logabs` name the columns and bin edges;
    `ffn_numpy/data/README.md` defines each array.

    Examples
    --------
    >>> layer_stats()["smollm2_trained_stats"].shape  # (n_layers, n_stats)
    (30, 11)
    """
    with np.load(DATA / "layer_stats.npz") as f:
        return {name: f[name] for name in f.files}
