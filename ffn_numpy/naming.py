"""How published models name the tensors of their FFNs: a state dict in, one of our FFNs out."""
from collections.abc import Mapping

import numpy as np

from ._validate import FLOATS, short
from .ffn import FeedForward, GatedFeedForward
from .formats import from_bfloat16

# The parts (name -> role), the activation when none is given, and a model that uses these names.
# Where not noted, weights are stored as PyTorch's Linear does, (out, in).
FAMILIES = [
    ({"gate_proj": "gate", "up_proj": "up", "down_proj": "down"}, "silu", "Llama"),
    ({"gate_up_proj": "fused", "down_proj": "down"}, "silu", "Phi-3"),
    ({"w1": "gate", "w3": "up", "w2": "down"}, "silu", "Meta's Llama"),
    ({"wi_0": "gate", "wi_1": "up", "wo": "down"}, "gelu_tanh", "T5 v1.1"),
    ({"wi": "lift", "wo": "down"}, "relu", "T5"),
    ({"c_fc": "lift", "c_proj": "down"}, "gelu_tanh", "GPT-2"),  # (in, out) or (out, in): the bias decides
    ({"intermediate.dense": "lift", "output.dense": "down"}, "gelu", "BERT"),
    ({"fc1": "lift", "fc2": "down"}, "relu", "OPT"),
    ({"linear1": "lift", "linear2": "down"}, "relu", "torch"),
]
UNDERSTOOD = "; ".join(f"{' '.join(parts)} ({model})" for parts, _, model in FAMILIES)


def from_state_dict(tensors, prefix="", activation=None, layout=None):
    """Build an FFN from the named tensors of a trained model.

    Parameters
    ----------
    tensors : mapping of str to array_like
        Weight names end in `.weight`, bias names (optional) in `.bias`. NumPy arrays, PyTorch
        tensors and what `read_safetensors` returns all work; bfloat16 becomes float32. Other
        entries under the prefix (norms, attention) are ignored.
    prefix : str
        What comes before the names below, such as "model.layers.3.mlp." (the last dot may be missing).
    activation : str or None
        A name in `ACTIVATIONS`. None takes the family's usual one, in brackets below; names and
        shapes cannot tell it, so look into the model's config (`hidden_act`, `activation_function`).
    layout : {None, "out_in", "in_out"}
        How the weights are stored. None means out_in, as PyTorch's Linear does, except for `c_fc`:
        GPT-2's Conv1D is in_out, nanoGPT's Linear out_in, and the bias of c_fc decides.

    Returns
    -------
    FeedForward or GatedFeedForward
        In the dtype of the tensors, whose memory it shares (bfloat16 is copied): float32 arrays of
        `read_safetensors` stay on disk and are read-only.

    Raises
    ------
    ValueError
        If a part is missing or no family is recognised (the message lists what was found and what is
        understood), two families fit, shapes do not fit, or nothing decides the layout.
    TypeError
        If tensors is not a mapping, or a tensor does not hold floating-point numbers.

    Notes
    -----
    - `gate_proj up_proj down_proj` [silu]: Llama, Mistral, Qwen. Gemma uses gelu_tanh.
    - `gate_up_proj down_proj` [silu]: Phi-3, the two stacked as [gate; up].
    - `w1 w3 w2` [silu]: Llama as Meta ships it, Mixtral's experts.
    - `wi_0 wi_1 wo` [gelu_tanh]: T5 v1.1, FLAN-T5.
    - `wi wo` [relu]: the first T5.
    - `c_fc c_proj` [gelu_tanh]: GPT-2. nanoGPT uses gelu, CLIP as OpenAI ships it quick_gelu.
    - `intermediate.dense output.dense` [gelu]: BERT, RoBERTa.
    - `fc1 fc2` [relu]: OPT. Whisper and ViT-like models use gelu, Phi-1 and 2 gelu_tanh, CLIP quick_gelu.
    - `linear1 linear2` [relu]: `torch.nn.TransformerEncoderLayer`.

    Examples
    --------
    >>> r = np.random.default_rng(0)
    >>> from_state_dict({"mlp.fc1.weight": r.normal(size=(32, 8)), "mlp.fc1.bias": np.zeros(32),
    ...                  "mlp.fc2.weight": r.normal(size=(8, 32))}, prefix="mlp")
    FeedForward(d_model=8, d_ff=32, activation='relu', 544 parameters, float64)
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors must be a mapping of names to arrays, such as read_safetensors gives, "
                        f"got {short(tensors)}")
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be a string, got {short(prefix)}")
    if layout is not None and (not isinstance(layout, str) or layout not in ("out_in", "in_out")):
        raise ValueError(f"layout must be None, 'out_in' or 'in_out', got {short(layout)}")
    start = f"{prefix}." if prefix and not prefix.endswith(".") else prefix
    found = {name[len(start):]: tensor for name, tensor in tensors.items()
             if isinstance(name, str) and name.startswith(start)}
    parts, usual_activation, _ = _family(found, tensors, prefix)
    for name in found:
        if any(name.startswith(f"{p}.") and name not in (f"{p}.weight", f"{p}.bias") for p in parts):
            raise ValueError(f"{start}{name} is neither a weight nor a bias: quantised or adapted layers "
                             f"(scales, LoRA) must be merged into plain weights first")

    W = {role: _array(f"{part}.weight", found[f"{part}.weight"], 2) for part, role in parts.items()}
    b = {role: _array(f"{part}.bias", found[f"{part}.bias"], 1) if f"{part}.bias" in found else None
         for part, role in parts.items()}
    if layout is None:
        layout = _layout_of_bias(W["lift"], b["lift"]) if "c_fc" in parts else "out_in"
    if layout == "out_in":
        W = {role: w.T for role, w in W.items()}  # all (in, out) from here on
    _check_sizes(parts, W, b, layout)

    activation = usual_activation if activation is None else activation
    if "lift" in W:
        return FeedForward(W["lift"], b["lift"], W["down"], b["down"], activation)
    if "fused" in W:
        W["gate"], W["up"] = np.split(W["fused"], 2, axis=1)  # (d_model, d_ff) each
        b["gate"], b["up"] = (None, None) if b["fused"] is None else np.split(b["fused"], 2)
    return GatedFeedForward(W["gate"], W["up"], W["down"], b["gate"], b["up"], b["down"], activation)


def _family(found, tensors, prefix):
    """The one entry of FAMILIES whose weights are all in `found`; else a ValueError that helps."""
    complete = [family for family in FAMILIES if all(f"{part}.weight" in found for part in family[0])]
    if len(complete) == 1:
        return complete[0]
    if complete:
        fits = " and ".join(" ".join(parts) for parts, _, _ in complete)
        raise ValueError(f"the tensors under prefix {prefix!r} fit more than one FFN ({fits}): "
                         f"pass only the tensors of one")
    names = [str(name) for name in (found or tensors)]
    listed = ", ".join(names[:8]) + (", ..." if names[8:] else "") or "no names"
    where = "" if found or not prefix else f" (none starts with prefix {prefix!r})"
    message = f"no FFN recognised: found {listed}{where}"
    missing = max((([p for p in parts if f"{p}.weight" in found], list(parts)) for parts, _, _ in FAMILIES),
                  key=lambda match: len(match[0]) / len(match[1]))
    if missing[0]:
        gone = " and ".join(f"{p}.weight" for p in missing[1] if p not in missing[0])
        message += f"; {' '.join(missing[1])} lacks {gone}"
    message += f"; understood are {UNDERSTOOD}, each with .weight and, where there is one, .bias"
    if not missing[0] and (prefixes := _prefixes(tensors, prefix)):
        message += f"; try prefix={prefixes[0]!r}" + (f" or {len(prefixes) - 1} more like it" if prefixes[1:] else "")
    raise ValueError(message)


def _prefixes(tensors, near=""):
    """The prefixes under which the names hold a whole family; those that contain `near`, if there are any."""
    names = {name for name in tensors if isinstance(name, str)}
    first = [(f".{list(parts)[0]}.weight", parts) for parts, _, _ in FAMILIES]
    starts = [start for name in tensors for end, parts in first
              if isinstance(name, str) and name.endswith(end)
              and all(f"{(start := name[:-len(end) + 1])}{part}.weight" in names for part in parts)]
    return [s for s in starts if f"{near.rstrip('.')}." in s] or starts


def _array(name, tensor, ndim):
    """A state dict's tensor as a float NumPy array of `ndim` dimensions; bfloat16 becomes float32."""
    try:
        if hasattr(tensor, "detach"):  # PyTorch: NumPy takes neither a gradient-tracking tensor nor bfloat16
            tensor = tensor.detach().cpu()
            tensor = tensor.float() if "bfloat16" in str(tensor.dtype) else tensor
        array = np.asarray(tensor)
    except Exception as error:  # whatever a foreign tensor raises
        raise TypeError(f"{name} must be an array of numbers, got a {type(tensor).__name__} that NumPy cannot read: "
                        f"{short(str(error))}") from None
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:  # bfloat16 of ml_dtypes, or np.load of one
        array = from_bfloat16(array.view(np.uint16))
    # int32 and int64 are somebody's small example; int8 and the like are quantised weights without their scale.
    if array.dtype.char not in FLOATS and array.dtype not in (np.int32, np.int64):
        raise TypeError(f"{name} must hold float16, float32, float64 or bfloat16 numbers, got {array.dtype}: "
                        f"dequantise it first; raw bfloat16 bits can be read with read_safetensors")
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, got shape {array.shape}")
    return array


def _layout_of_bias(W, b):
    """How c_fc.weight is stored: its bias has one number per output."""
    fits = [] if b is None else [layout for layout, out in (("out_in", 0), ("in_out", 1)) if W.shape[out] == b.size]
    if len(fits) != 1:
        why = "there is no bias" if b is None else f"its bias has shape {b.shape}"
        raise ValueError(f"nothing decides whether c_fc.weight {W.shape} is stored (out, in) or (in, out): "
                         f"{why}; pass layout='in_out' (GPT-2's Conv1D) or layout='out_in' (PyTorch's Linear)")
    return fits[0]


def _check_sizes(parts, W, b, layout):
    """Check every (in, out) weight and bias against d_model and d_ff, by the names of the state dict."""
    d_ff, d_model = W["down"].shape
    for part, role in parts.items():
        expected = {"down": (d_ff, d_model), "fused": (d_model, 2 * d_ff)}.get(role, (d_model, d_ff))
        hint = f"read as {layout}; is layout={'in_out' if layout == 'out_in' else 'out_in'!r} meant?"
        if W[role].shape != expected:
            raise ValueError(f"{part}.weight does not fit {list(parts)[-1]}.weight: in -> out is {W[role].shape}, "
                             f"expected {expected} ({hint})")
        if b[role] is not None and b[role].size != expected[1]:
            raise ValueError(f"{part}.bias has {b[role].size} numbers, but {part}.weight has {expected[1]} "
                             f"outputs ({hint})")
