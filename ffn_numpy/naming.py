"""How published models name the tensors of their FFNs: a state dict in, one of our layers out.

What is not understood is refused: every tensor under the prefix must be a part of the FFN or a known neighbour.
"""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ._validate import FLOATS, one_of, short
from .activations import ACTIVATIONS
from .config import CONV1D, LINEAR_C_FC, UNGATED_UP_PROJ, config_activation, read_config, routing
from .ffn import FeedForward, GatedFeedForward
from .formats import TensorFile, from_bfloat16
from .moe import MixtureOfExperts


class Family(NamedTuple):
    """One way to name the parts of an FFN.

    names, roles : the parts and what they are (lift, gate, up, fused or down; the way down last), by position
    models : who uses these names
    activation : the usual one, or a dict activation -> models where users differ: then it has to be given
    fused : which half of a fused matrix is the gate
    decided_by_bias : True where both layouts are in use, and only the biases tell which it is
    """

    names: str
    roles: str
    models: str
    activation: str | dict[str, str]
    fused: str = "gate_up"
    decided_by_bias: bool = False

    @property
    def parts(self) -> dict[str, str]:
        """name -> role."""
        return dict(zip(self.names.split(), self.roles.split()))


# A new family is one row here, a line in the docstring of from_state_dict and a reference in tests/test_naming.py.
# Weights are stored as PyTorch's Linear does, (out, in), except where the bias decides. Where two rows have the same
# names, the shapes choose.
FAMILIES = [
    # gated
    Family("gate_proj up_proj down_proj", "gate up down", "Llama, Mistral, Qwen, Gemma", "silu"),
    Family("gate_up_proj down_proj", "fused down", "Phi-3, GLM-4", "silu"),
    Family("w1 w3 w2", "gate up down", "Meta's Llama, Mixtral's experts, InternLM2", "silu"),
    Family("w1 w2 w3", "gate up down", "xformers, EVA without its inner norm", "silu"),
    Family("w1 w2 c_proj", "up gate down", "the first Qwen", "silu"),
    Family("c_fc c_fc2 c_proj", "up gate down", "Jais", "silu", decided_by_bias=True),
    Family("c_fc_0 c_fc_1 c_proj", "gate up down", "EXAONE 3", "silu"),
    Family("wi_0 wi_1 wo", "gate up down", "T5 v1.1", "gelu_tanh"),
    Family("Wi Wo", "fused down", "ModernBERT", "gelu"),
    Family("fc11 fc12 fc2", "up gate down", "NomicBERT", "silu"),
    Family("w12 w3", "fused down", "DINOv2", "silu"),
    Family("weights_in weights_out", "fused down", "DINOv2 in transformers", "silu"),
    Family("fc1_g fc1_x fc2", "gate up down", "timm's SwiGLU", "silu"),
    Family("fc1 fc2 fc3", "gate up down", "LLMs-from-scratch", "silu"),
    Family("fc1 fc3 fc2", "gate up down", "AIMv2", "silu"),
    Family("ff_proj up_proj ff_out", "gate up down", "LLaDA", "silu"),
    Family("ff_proj ff_out", "fused down", "the first OLMo", "silu", fused="up_gate"),
    Family("dense_h_to_4h dense_4h_to_h", "fused down", "ChatGLM2, ChatGLM3", "silu"),
    Family("net.0.proj net.2", "fused down", "diffusers' GEGLU", "gelu", fused="up_gate"),
    Family("W V W_2", "gate up down", "Shazeer 2020", {"silu": "SwiGLU", "gelu": "GEGLU", "relu": "ReGLU",
                                                       "sigmoid": "GLU", "identity": "bilinear"}),
    Family("ffn_gate ffn_up ffn_down", "gate up down", "GGUF", {"silu": "llama, qwen", "gelu_tanh": "gemma"}),
    Family("ffn_up ffn_down", "fused down", "GGUF without ffn_gate", {"silu": "phi3, chatglm, glm4",
                                                                      "gelu": "modern-bert"}),
    # plain
    Family("c_fc c_proj", "lift down", "GPT-2, StarCoder2", "gelu_tanh", decided_by_bias=True),
    Family("intermediate.dense output.dense", "lift down", "BERT, RoBERTa, ViT in transformers", "gelu"),
    Family("wi wo", "lift down", "T5", "relu"),
    Family("fc1 fc2", "lift down", "OPT, ViT, Whisper, Phi, CLIP", {
        "relu": "OPT, NLLB", "gelu": "ViT and DINOv2 in timm, Whisper, BART", "gelu_tanh": "Phi-1, Phi-2, SigLIP",
        "quick_gelu": "CLIP"}),
    Family("linear1 linear2", "lift down", "torch.nn.TransformerEncoderLayer", {
        "relu": "torch's default, DETR", "gelu": "with activation='gelu'"}),
    Family("dense_h_to_4h dense_4h_to_h", "lift down", "GPT-NeoX, BLOOM, Falcon", {
        "gelu": "Pythia, Falcon", "gelu_tanh": "GPT-NeoX-20B, BLOOM", "relu2": "Persimmon"}),
    Family("fc_in fc_out", "lift down", "GPT-J, CodeGen", {"gelu_tanh": "GPT-J, CodeGen"}),
    Family("up_proj down_proj", "lift down", "MPT, Nemotron", {"gelu": "MPT, DINOv3", "relu2": "Nemotron, Arcee"}),
    Family("intermediate_dense output_dense", "lift down", "wav2vec 2.0, HuBERT, WavLM", {"gelu": "all three"}),
    Family("linear_fc1 linear_fc2", "lift down", "the vision part of Qwen3-VL", {"gelu_tanh": "Qwen3-VL"}),
    Family("lin1 lin2", "lift down", "DistilBERT, XLM", {"gelu": "DistilBERT, XLM", "relu": "some XLM"}),
    Family("ffn ffn_output", "lift down", "ALBERT", {"gelu_tanh": "ALBERT v2", "gelu": "ALBERT v1"}),
    Family("ffn_up ffn_down", "lift down", "GGUF", {"gelu_tanh": "gpt2, bloom, starcoder2",
                                                    "gelu": "bert, falcon, gptneox", "relu2": "nemotron"}),
    Family("net.0.proj net.2", "lift down", "diffusers", {"gelu": "activation_fn='gelu'",
                                                          "gelu_tanh": "'gelu-approximate'",
                                                          "quick_gelu": "'geglu-approximate'"}),
    Family("layers.0 layers.2", "lift down", "LLMs-from-scratch", {"gelu_tanh": "its GPT chapters"}),
    Family("0 2", "lift down", "a torch.nn.Sequential: Linear, activation, Linear", {
        "relu": "if 1 is a ReLU", "gelu": "if it is a GELU", "silu": "if it is a SiLU"}),
    Family("0 3", "lift down", "a torch.nn.Sequential with a dropout", {
        "relu": "if 1 is a ReLU", "gelu": "if it is a GELU", "silu": "if it is a SiLU"}),
]


class MixtureFamily(NamedTuple):
    """One way to name a mixture of experts.

    router : the name of its weight, (n_experts, d_model)
    stacked : name of a 3-D weight, all experts in one -> the name of that part in FAMILIES; empty where the
        experts stand one by one under experts.0., experts.1., each in some naming of FAMILIES
    shared : a shared expert's weight -> the name of that part in FAMILIES; or the prefixes that it may have
    models : who uses these names
    """

    router: str
    stacked: dict[str, str]
    shared: dict[str, str] | tuple[str, ...]
    models: str


MIXTURES = [
    MixtureFamily("gate", {}, ("shared_expert.", "shared_experts."), "Mixtral, Qwen3-MoE, OLMoE, DeepSeek-V2"),
    MixtureFamily("gate", {"experts.gate_up_proj": "gate_up_proj", "experts.down_proj": "down_proj"},
                  ("shared_expert.", "shared_experts."), "the same as transformers 5 holds them"),
    MixtureFamily("ffn_gate_inp", {f"ffn_{part}_exps": f"ffn_{part}" for part in ("gate", "up", "down")},
                  {f"ffn_{part}_shexp": f"ffn_{part}" for part in ("gate", "up", "down")}, "GGUF"),
]
# What MixtureOfExperts cannot express, by the tensors that it needs.
NOT_EXPRESSED = {
    r"(gate|router|ffn_gate_inp)\.bias": "a router bias",
    r"e_score_correction_bias|exp_probs_b": "a bias that corrects the choice of experts (sigmoid routing)",
    r"shared_expert_gate|ffn_gate_inp_shexp": "a gate of the shared expert",
    r"router\.": "a router that this package does not know (gpt-oss and Llama 4 route in other ways)",
    r"experts\..*bias": "biases of stacked experts",
}

# Tensors beside an FFN that are none of its parts: norms, attention, and what scales a layer's output as a whole.
NEIGHBOUR = re.compile(r"(^|[._])\w*(norm|attn|attention)|^(q|k|v|o|att)_proj\.|^ln(_?\d|_f)?\."
                       r"|^(lambda|gamma|ls|layer_?scale)_?\d", re.I)
OF_THE_MODULE = re.compile(r"(mlp|ffn|ff|feed_forward|DenseReluDense)\.$")  # there, a norm is no neighbour


class FFNRecord(NamedTuple):
    """What `find_ffns` found; n_experts is 0 where it is no mixture."""

    prefix: str
    family: str
    d_model: int
    d_ff: int
    gated: bool
    n_experts: int = 0


def from_state_dict(
    tensors: Mapping[str, Any], prefix: str = "", activation: str | None = None, layout: str | None = None,
    names: Mapping[str, str] | None = None, fused: str | None = None,
    config: Mapping[str, Any] | str | os.PathLike | None = None,
) -> FeedForward | GatedFeedForward | MixtureOfExperts:
    """Build an FFN, or a mixture of experts, from the named tensors of a trained model.

    Parameters
    ----------
    tensors : mapping of str to array_like
        NumPy arrays, PyTorch tensors and what `read_safetensors` and `read_gguf` return all work; bfloat16
        becomes float32. Norms and attention beside the FFN are left alone. Anything else under the prefix that
        is not understood is an error, and so is every unused tensor with d_ff on an axis.
    prefix : str
        What comes before the names below, such as "model.layers.3.mlp." (the last dot may be missing);
        `find_ffns` lists the prefixes of a model.
    activation : str or None
        A name in `ACTIVATIONS`. None takes the config's, else the family's usual one, in brackets below. Where
        users of the same names differ, it must be given: neither names nor shapes tell it.
    layout : {None, "out_in", "in_out"}
        How the weights are stored. None means out_in, as PyTorch's Linear does, except for `c_fc`: GPT-2's
        Conv1D is in_out, nanoGPT's Linear out_in, and the biases decide.
    names : mapping or None
        For any other naming: role -> name after the prefix, with or without ".weight". Roles are lift and down;
        gate, up and down; or fused and down. A bias is found beside ".weight", or named as "lift_bias" and so on.
    fused : {None, "gate_up", "up_gate", "interleaved"}
        How one matrix holds gate and up: the gate's half first, second, or every other output from the first.
        None takes the family's usual order. Shapes and norms cannot show it: a wrong order gives another layer.
    config : mapping, path or None
        The model's config.json. Gives the activation; checks d_model; tells a mixture's top_k
        (`num_experts_per_tok`) and whether it renormalises (`norm_topk_prob`).

    Returns
    -------
    FeedForward, GatedFeedForward or MixtureOfExperts
        In the dtype of the tensors, whose memory it shares (bfloat16 is copied): float32 arrays of
        `read_safetensors` stay on disk and are read-only.

    Raises
    ------
    ValueError
        If a part is missing or no family is recognised (the message lists what was found and what is
        understood), two families fit, shapes do not fit, a tensor is left over, nothing decides the layout or the
        activation, or a mixture routes in a way that `MixtureOfExperts` does not.
    TypeError
        If an argument is of another kind, or a tensor does not hold floating-point numbers.

    Notes
    -----
    Gated, where a fused matrix is [gate; up] unless noted:

    - `gate_proj up_proj down_proj` [silu]: Llama, Mistral, Qwen. Gemma uses gelu_tanh: pass its config.
    - `gate_up_proj down_proj` [silu]: Phi-3, GLM-4. The audio part of Phi-4-multimodal is [up; gate], gpt-oss
      interleaved.
    - `w1 w3 w2` [silu]: Llama as Meta ships it, Mixtral's experts, InternLM2.
    - `w1 w2 w3` [silu], if the shapes say that w3 is the way down: xformers, EVA.
    - `w1 w2 c_proj` [silu]: the first Qwen, whose w2 is the gate.
    - `c_fc c_fc2 c_proj` [silu]: Jais, whose c_fc2 is the gate. Without c_fc2 (another file?) it looks like GPT-2.
    - `c_fc_0 c_fc_1 c_proj` [silu]: EXAONE 3.
    - `wi_0 wi_1 wo` [gelu_tanh]: T5 v1.1, FLAN-T5.
    - `Wi Wo` [gelu]: ModernBERT, whose code calls the ungated half "gate".
    - `fc11 fc12 fc2` [silu]: NomicBERT, whose fc12 is the gate.
    - `w12 w3`, `weights_in weights_out` [silu]: DINOv2's SwiGLU.
    - `fc1_g fc1_x fc2` [silu]: timm. With a norm inside it is refused.
    - `fc1 fc2 fc3` [silu]: LLMs-from-scratch; `fc1 fc3 fc2` [silu], if the shapes say that fc2
      is the way down: AIMv2.
    - `ff_proj up_proj ff_out` [silu]: LLaDA. `ff_proj ff_out` [silu]: the first OLMo, [up; gate].
    - `dense_h_to_4h dense_4h_to_h` [silu], if the first is twice as wide: ChatGLM2 and 3.
    - `net.0.proj net.2` [gelu], if the first is twice as wide: diffusers' GEGLU, [up; gate].
    - `W V W_2`: Shazeer 2020. The activation must be given, and the layout where names do not end in ".weight".
    - `ffn_gate ffn_up ffn_down`: GGUF; the activation must be given. So it must for
      `ffn_up ffn_down`, if the first is twice as wide: Phi-3 and others in GGUF.

    Plain:

    - `c_fc c_proj` [gelu_tanh]: GPT-2, StarCoder2. nanoGPT uses gelu, CLIP as OpenAI ships it quick_gelu.
    - `intermediate.dense output.dense` [gelu]: BERT, RoBERTa, ViT in transformers.
    - `wi wo` [relu]: the first T5.
    - The activation must be given for `fc1 fc2` (OPT, ViT, Whisper, Phi, CLIP), `linear1 linear2` (torch's
      TransformerEncoderLayer), `dense_h_to_4h dense_4h_to_h` (GPT-NeoX, BLOOM, Falcon), `fc_in fc_out` (GPT-J,
      CodeGen), `up_proj down_proj` (MPT, Nemotron), `intermediate_dense output_dense` (wav2vec 2.0),
      `linear_fc1 linear_fc2` (Qwen3-VL's vision part), `lin1 lin2` (DistilBERT), `ffn ffn_output` (ALBERT),
      `ffn_up ffn_down` (GGUF), `net.0.proj net.2` (diffusers), `layers.0 layers.2` (LLMs-from-scratch), `0 2` and
      `0 3` (a torch Sequential).

    Mixtures: a router `gate`, `router` or `ffn_gate_inp`; experts `experts.0.` and so on in any naming above, or
    stacked (`experts.gate_up_proj`, GGUF's `ffn_gate_exps`); a shared expert `shared_expert` or `shared_experts`.

    Examples
    --------
    >>> r = np.random.default_rng(0)
    >>> from_state_dict({"mlp.fc1.weight": r.normal(size=(32, 8)), "mlp.fc1.bias": np.zeros(32),
    ...                  "mlp.fc2.weight": r.normal(size=(8, 32)), "mlp.fc2.bias": np.zeros(8)},
    ...                 prefix="mlp", activation="relu")
    FeedForward(d_model=8, d_ff=32, activation='relu', 552 parameters, float64)
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors must be a mapping of names to arrays, such as read_safetensors gives, "
                        f"got {short(tensors)}")
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be a string, got {short(prefix)}")
    one_of("layout", layout, (None, "out_in", "in_out"))
    one_of("fused", fused, (None, "gate_up", "up_gate", "interleaved"))
    if activation is not None and (not isinstance(activation, str) or activation not in ACTIVATIONS):
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}; got {short(activation)}")
    source, config = _Source(tensors, prefix), read_config(config)
    options = _Options(activation, layout, fused, config)
    if names is None and (mixture := _mixture_family(source)):
        ffn = _mixture(source, mixture, options)
    else:
        ffn = _dense(source, _family_parts(source) if names is None else _named_parts(source, names), options)
    if config.get("mlp_bias") in (True, False) and isinstance(ffn, (FeedForward, GatedFeedForward)):
        if config["mlp_bias"] != any(name.startswith("b") for name in ffn.parameters()):
            raise ValueError(f"config has mlp_bias = {config['mlp_bias']}, but these tensors say otherwise: are some "
                             f"in another file?")
    size = next((key for key in ("hidden_size", "d_model", "n_embd", "dim") if key in config), None)
    if size and config[size] != ffn.d_model:
        raise ValueError(f"config has {size} = {short(config[size])}, but these tensors have d_model = {ffn.d_model}: "
                         f"is it another model's, or is layout= needed?")
    return ffn


def find_ffns(tensors: Mapping[str, Any]) -> list[FFNRecord]:
    """List every FFN whose naming is known, without reading a weight.

    Parameters
    ----------
    tensors : mapping of str to array_like
        As in `from_state_dict`; of what `read_safetensors` and `read_gguf` return, only the shapes are used.

    Returns
    -------
    list of FFNRecord, in the order of the file
        prefix (for `from_state_dict`), family (who uses these names), d_model, d_ff, gated, n_experts (0 where it
        is no mixture; a mixture's experts are not listed one by one).

    Raises
    ------
    TypeError
        If tensors is not a mapping.

    Notes
    -----
    Names and shapes alone are looked at: `from_state_dict` looks further and may still refuse. Two layouts that
    no bias tells apart are read so that d_ff is at least d_model.

    Examples
    --------
    >>> shapes = {"c_fc.weight": (8, 32), "c_fc.bias": (32,), "c_proj.weight": (32, 8), "c_proj.bias": (8,)}
    >>> find_ffns({f"h.{i}.mlp.{name}": np.empty(s) for i in range(2) for name, s in shapes.items()})[1]
    FFNRecord(prefix='h.1.mlp.', family='GPT-2, StarCoder2', d_model=8, d_ff=32, gated=False, n_experts=0)
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors must be a mapping of names to arrays, got {short(tensors)}")
    whole = _Source(tensors, "")
    firsts = dict.fromkeys([mixture.router for mixture in MIXTURES] + [f.names.split()[0] for f in FAMILIES])
    candidates = {}  # name -> the prefixes under which it would be the first part of an FFN
    for name in whole.shapes:
        stem = name.removesuffix(".weight")
        if not re.search(r"experts\.(\w+_)?\d+\.", name):
            candidates[name] = [stem.removesuffix(first) for first in firsts if f".{stem}".endswith(f".{first}")]
    groups = {prefix: {} for prefixes in candidates.values() for prefix in prefixes}
    for name, shape in whole.shapes.items():  # one pass: a model may have 50,000 names
        for end in [0, *(i + 1 for i, letter in enumerate(name) if letter == ".")]:
            if name[:end] in groups:
                groups[name[:end]][name[end:]] = shape
    records = {}  # prefix -> record or None, in the order of the file
    for prefixes in candidates.values():
        for prefix in prefixes:
            if prefix not in records:
                records[prefix] = _record(_Source.of(tensors, prefix, groups[prefix]))
                if records[prefix]:
                    break
    return [record for record in records.values() if record]


# ---------------------------------------------------------------- what is under a prefix

class _Source:
    """The tensors under a prefix: their names after it and their shapes, without reading; and arrays on demand."""

    def __init__(self, tensors, prefix):
        self.tensors = tensors
        self.prefix = f"{prefix}." if prefix and not prefix.endswith(".") else prefix
        known = tensors.shapes if isinstance(tensors, TensorFile) else None
        self.shapes = {name[len(self.prefix):]: known[name] if known else _shape(tensors[name])
                       for name in tensors if isinstance(name, str) and name.startswith(self.prefix)}

    @classmethod
    def of(cls, tensors, prefix, shapes):
        """The source whose names and shapes are known already."""
        part = cls({}, prefix)
        part.tensors, part.shapes = tensors, shapes
        return part

    def under(self, prefix):
        """The part of this source under a further prefix."""
        shapes = {name[len(prefix):]: shape for name, shape in self.shapes.items() if name.startswith(prefix)}
        return self.of(self.tensors, self.prefix + prefix, shapes)

    def weight(self, part):
        """The name of a part's weight, "fc1.weight" or just "fc1"; None if there is none."""
        return next((name for name in (f"{part}.weight", part) if name in self.shapes), None)

    def array(self, name, ndim):
        """One tensor as a float NumPy array of `ndim` dimensions; bfloat16 becomes float32."""
        return _array(self.prefix + name, self.tensors[self.prefix + name], ndim)


class _Parts(NamedTuple):
    """Which tensors are an FFN: role -> name of the weight, and of its bias or None."""

    weights: dict
    biases: dict
    family: Family | None  # None: the reader gave the names

    @property
    def gated(self):
        return "lift" not in self.weights


class _Options(NamedTuple):
    """What the caller of from_state_dict said."""

    activation: str | None
    layout: str | None
    fused: str | None
    config: dict


def _shape(tensor):
    return tuple(tensor.shape) if hasattr(tensor, "shape") else np.shape(tensor)


def _array(name, tensor, ndim):
    try:
        if hasattr(tensor, "detach"):  # PyTorch: NumPy takes neither a gradient-tracking tensor nor bfloat16
            tensor = tensor.detach().cpu()
            tensor = tensor.float() if "bfloat16" in str(tensor.dtype) else tensor
        array = np.asarray(tensor)
    except Exception as error:  # whatever a foreign tensor raises
        raise TypeError(f"{name} must be an array of numbers, got a {type(tensor).__name__} that NumPy cannot read: "
                        f"{short(str(error))}") from None
    if isinstance(tensor, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a plain array, got a masked one: its mask would be lost; fill it first")
    # bfloat16 of ml_dtypes, or np.load of one
    if array.dtype.kind == "V" and array.dtype.itemsize == 2 and array.dtype.names is None:
        array = from_bfloat16(array.view(np.uint16))
    # int64 is what NumPy makes of somebody's small list; other integers are quantised weights without their scale.
    if array.dtype.char not in FLOATS and array.dtype != np.int64:
        raise TypeError(f"{name} must hold float16, float32, float64 or bfloat16 numbers, got {array.dtype}: "
                        f"dequantise it first; raw bfloat16 bits can be read with read_safetensors")
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, got shape {array.shape}")
    return array


# ---------------------------------------------------------------- one FFN

def _families(source):
    """The families whose parts are all there; not those that are a part of another one that is there.

    Where several have the same names, those whose shapes fit, if any do.
    """
    complete = [f for f in FAMILIES if all(source.weight(part) for part in f.parts)]
    largest = [f for f in complete if not any(set(f.parts) < set(other.parts) for other in complete)]
    return [f for f in largest if _sizes(source, f)] or largest


def _sizes(source, family):
    """(d_model, d_ff) by the shapes, or None if they do not fit the family."""
    names = {role: source.weight(part) for part, role in family.parts.items()}
    shapes = {role: source.shapes[name] for role, name in names.items()}
    if any(len(shape) != 2 for shape in shapes.values()):
        return None
    fits = []
    for step in (1, -1) if _undecided(family, names) else (1,):  # stored (out, in), or (in, out)
        d_model, d_ff = shapes["down"][::step]
        expected = {"down": (d_model, d_ff), "fused": (2 * d_ff, d_model)}
        if all(shape[::step] == expected.get(role, (d_ff, d_model)) for role, shape in shapes.items()):
            fits.append((d_model, d_ff))
    bias = source.shapes.get(f"{family.names.split()[0]}.bias")
    if bias and len(fits) == 2:
        fits = [sizes for sizes in fits if bias == sizes[1:]] or fits
    return max(fits, key=lambda sizes: sizes[1], default=None)


def _undecided(family, names):
    """Do the names leave open whether weights are stored (out, in) or (in, out)?"""
    return bool(family and family.decided_by_bias) or not all(name.endswith(".weight") for name in names.values())


def _family_parts(source):
    """The `_Parts` of the one family that fits; else a ValueError that helps."""
    families = _families(source)
    if not families:
        raise ValueError(_not_recognised(source))
    if len(families) > 1:
        raise ValueError(f"the tensors under prefix {source.prefix!r} fit more than one FFN "
                         f"({' and '.join(f.names for f in families)}): name the parts with names=")
    (family,) = families
    weights = {role: source.weight(part) for part, role in family.parts.items()}
    biases = {role: bias if (bias := f"{part}.bias") in source.shapes else None for part, role in family.parts.items()}
    if None in biases.values() and any(biases.values()):
        without = next(part for part, role in family.parts.items() if not biases[role])
        raise ValueError(f"{source.prefix}{next(filter(None, biases.values()))} is there, but {without}.bias is not: "
                         f"is it in another file? If there is none, name the parts with names=")
    return _Parts(weights, biases, family)


def _named_parts(source, names):
    """The `_Parts` that the caller names."""
    if not isinstance(names, Mapping) or not all(isinstance(n, str) for pair in names.items() for n in pair):
        raise TypeError(f"names must be a mapping of role to name, got {short(names)}")
    roles = {role for role in names if not role.endswith("_bias")}
    allowed = ({"lift", "down"}, {"gate", "up", "down"}, {"fused", "down"})
    if roles not in allowed or any(role.removesuffix("_bias") not in roles for role in names):
        raise ValueError(f"names must have the roles lift and down, or gate, up and down, or fused and down, and their "
                         f"..._bias; got {', '.join(map(short, names))}")
    resolved = [source.weight(name) or name for name in names.values()]
    if len(set(resolved)) < len(names):
        raise ValueError(f"names must give each role a tensor of its own, got {short(dict(names))}")
    weights, biases = {}, {}
    for role in sorted(roles, key="lift gate up fused down".split().index):
        weights[role] = source.weight(names[role])
        bias = names.get(f"{role}_bias")
        for name, given in ((weights[role], names[role]), (bias in source.shapes, bias)):
            if given is not None and not name:
                raise ValueError(f"names must name tensors under prefix {source.prefix!r}, got {short(given)}; "
                                 f"there is {_listed(source.shapes)}")
        beside = f"{weights[role].removesuffix('.weight')}.bias"
        biases[role] = bias or (beside if beside in source.shapes else None)
    return _Parts(weights, biases, None)


def _dense(source, parts, options):
    """A FeedForward or GatedFeedForward of these parts."""
    W = {role: source.array(name, 2) for role, name in parts.weights.items()}
    b = {role: source.array(name, 1) if name else None for role, name in parts.biases.items()}
    if _layout(source, parts, W, b, options.layout, options.config.get("model_type")) == "out_in":
        W = {role: w.T for role, w in W.items()}  # all (in, out) from here on
    _refuse_leftovers(source, parts, d_ff=W["down"].shape[0])
    activation = _activation(source, parts, options)
    if options.fused and "fused" not in W:
        raise ValueError(f"fused = {options.fused!r} is given, but no part of this FFN is fused")
    if not parts.gated:
        return FeedForward(W["lift"], b["lift"], W["down"], b["down"], activation)
    if "fused" in W:
        order = _fused_order(source, parts, options)
        W["gate"], W["up"] = _unfuse(W["fused"], order)                             # (d_model, d_ff) each
        b["gate"], b["up"] = (None, None) if b["fused"] is None else _unfuse(b["fused"], order)  # (d_ff,) each
    return GatedFeedForward(W["gate"], W["up"], W["down"], b["gate"], b["up"], b["down"], activation)


def _fused_order(source, parts, options):
    """Which half of the fused matrix is the gate: what the caller says, else the family's usual order."""
    if options.fused:
        return options.fused
    if options.config.get("model_type") == "phi4_multimodal_audio" or "feed_forward_" in source.prefix:
        raise ValueError(f"fused must be given for {source.prefix}{parts.weights['fused']}: the audio part of "
                         f"Phi-4-multimodal stacks [up; gate] under the name that others use for [gate; up]")
    if parts.family is None:
        raise ValueError("fused must be given with names: 'gate_up', 'up_gate' or 'interleaved'; neither shapes "
                         "nor values tell it")
    return parts.family.fused


def _unfuse(array, order):
    """Gate and up from one array whose last axis has both."""
    if order == "interleaved":
        return array[..., ::2], array[..., 1::2]
    first, second = np.split(array, 2, axis=-1)
    return (first, second) if order == "gate_up" else (second, first)


def _layout(source, parts, W, b, given, model_type):
    """Which layout the weights are stored in, "out_in" or "in_out"; a ValueError if none fits or nothing decides."""
    fits = {layout: _misfit(parts, W if layout == "in_out" else {role: w.T for role, w in W.items()}, b)
            for layout in ("out_in", "in_out")}
    undecided = _undecided(parts.family, parts.weights)
    if given is None and parts.family and parts.family.decided_by_bias:
        given = {**dict.fromkeys(CONV1D, "in_out"), **dict.fromkeys(LINEAR_C_FC, "out_in")}.get(model_type)
    if given is None and not any(fits.values()) and (undecided or len(set(W["down"].shape)) == 1):
        (role, name), bias = next(iter(parts.weights.items())), next(filter(None, parts.biases.values()), None)
        raise ValueError(f"nothing decides whether {source.prefix}{name} {W[role].shape} is stored (out, in) or "
                         f"(in, out): {f'{bias} fits both' if bias else 'there is no bias'}; pass layout='out_in' "
                         f"(PyTorch's Linear) or layout='in_out' (GPT-2's Conv1D)")
    if given is None:
        given = "in_out" if undecided and fits["out_in"] and not fits["in_out"] else "out_in"
    if fits[given]:
        other = "in_out" if given == "out_in" else "out_in"
        hint = _other_roles(parts, W) if fits[other] else f"; they fit with layout={other!r}"
        raise ValueError(f"{source.prefix}{fits[given]} (read as {given}){hint}")
    return given


def _misfit(parts, W, b):
    """What does not fit among (in, out) weights and biases, or None."""
    d_ff, d_model = W["down"].shape
    for role, name in parts.weights.items():
        expected = {"down": (d_ff, d_model), "fused": (d_model, 2 * d_ff)}.get(role, (d_model, d_ff))
        if W[role].shape != expected:
            return (f"{name} does not fit {parts.weights['down']}: in -> out is {W[role].shape}, expected {expected}")
        if b[role] is not None and b[role].size != expected[1]:
            return f"{parts.biases[role]} has {b[role].size} numbers, but {name} has {expected[1]} outputs"
    return None


def _other_roles(parts, W):
    """A hint where the same matrices would fit in other roles, in PyTorch's layout; tried before it is given."""
    d_model, d_ff = W["down"].shape  # (out, in)
    if W.get("lift", W["down"]).shape == (2 * d_ff, d_model):
        return (f"; it is twice as wide: are gate and up fused in it? Then pass names={{'fused': "
                f"{parts.weights['lift']!r}, 'down': {parts.weights['down']!r}}} and fused=")
    shapes = {role: W[role].shape for role in W}
    for down, lifts in (("gate", ("up", "down")), ("up", ("gate", "down"))):
        if len(W) == 3 and shapes[lifts[0]] == shapes[lifts[1]] == shapes[down][::-1]:
            return (f"; by its shape {parts.weights[down]} is the way down here. Which of the others is the gate no "
                    f"shape tells: look into the model's code and pass names=")
    return ""


def _refuse_leftovers(source, parts, d_ff):
    """Every tensor under the prefix must be a part of the FFN, or a norm or attention beside it."""
    used = {*parts.weights.values(), *filter(None, parts.biases.values())}
    stems = tuple(name.removesuffix("weight") for name in parts.weights.values() if name.endswith(".weight"))
    for name, shape in source.shapes.items():
        if name in used:
            continue
        if stems and name.startswith(stems):
            raise ValueError(f"{source.prefix}{name} is neither a weight nor a bias: quantised or adapted layers "
                             f"(scales, LoRA) must be merged into plain weights first")
        if d_ff in shape:
            raise ValueError(f"{source.prefix}{name} {shape} has d_ff = {d_ff} on an axis, so it may be a part of this "
                             f"FFN (a norm or a scale inside it?) that {_users(parts)} does not have; if it is none, "
                             f"leave it out of tensors or take a longer prefix")
        if not NEIGHBOUR.search(name) or OF_THE_MODULE.search(source.prefix):
            raise ValueError(f"{source.prefix}{name} {shape} is not understood: if it is no part of this FFN, leave it "
                             f"out of tensors or take a longer prefix")


def _users(parts):
    return f"the FFN of {parts.family.models}" if parts.family else "what names= lists"


# ---------------------------------------------------------------- the activation, and the config

def _activation(source, parts, options):
    """The activation that the caller, the config or the family says."""
    try:
        said = config_activation(options.config, parts.gated)
    except ValueError:
        if options.activation is None:
            raise
        said = None  # the config is not clear about it, the caller is
    if said and options.activation and ACTIVATIONS[said] is not ACTIVATIONS[options.activation]:
        raise ValueError(f"activation = {options.activation!r} is given, but the config says {said}")
    chosen, usual = options.activation or said, parts.family.activation if parts.family else {}
    if chosen is None and isinstance(usual, str):
        chosen = usual
    if chosen is None:
        who = "; ".join(f"{name}: {models}" for name, models in usual.items()) or "names= says nothing about it"
        where = ("the config that was passed does not say it either" if options.config
                 else "the model's config.json does: pass config=")
        raise ValueError(f"activation must be given, {' and '.join(parts.weights.values())} do not tell it ({who}); "
                         f"{where}")
    if parts.family and not parts.gated:
        _check_that_no_gate_is_lost(source, parts.family, chosen, options.config)
    return chosen


def _check_that_no_gate_is_lost(source, family, activation, config):
    """A gated FFN whose gate lies in another file looks like a plain one."""
    for other in FAMILIES:
        lost = [part for part in other.parts if part not in family.parts]
        if not set(family.parts) < set(other.parts) or other.parts[family.names.split()[-1]] != "down":
            continue
        elsewhere = any(name.endswith(f".{lost[0]}.weight") for name in source.tensors if isinstance(name, str))
        ours, theirs = ([ACTIVATIONS[name] for name in _usual(f)] for f in (family, other))
        up = family.names.split()[0] in ("up_proj", "ffn_up")  # so few models have no gate there that they are listed
        model = config.get("model_type")
        if elsewhere or (ACTIVATIONS[activation] not in ours and (up or ACTIVATIONS[activation] in theirs)) or (
                model is not None and "up_proj" in family.parts and model not in UNGATED_UP_PROJ):
            raise ValueError(f"{lost[0]}.weight, which {other.models} have beside {' and '.join(family.parts)}, is not "
                             f"under prefix {source.prefix!r}: is it in another file? If there is none, name the parts "
                             f"with names=")


def _usual(family):
    return (family.activation,) if isinstance(family.activation, str) else tuple(family.activation)


# ---------------------------------------------------------------- mixtures of experts

def _mixture_family(source):
    """The `MixtureFamily` whose router and experts are under the prefix, or None if it looks like no mixture."""
    experts = [name for name in source.shapes if re.match(r"experts\.|.*_exps\.|shared_experts?\.", name)]
    if not experts:
        return None
    for pattern, what in NOT_EXPRESSED.items():
        for name in source.shapes:
            if re.search(rf"(^|\.){pattern}", name):
                raise ValueError(f"{source.prefix}{name} is {what}, which MixtureOfExperts does not have")
    for mixture in MIXTURES:
        if source.weight(mixture.router) and (
                all(map(source.weight, mixture.stacked)) if mixture.stacked else source.under("experts.0.").shapes):
            return mixture
    understood = "; ".join(f"{m.router} with {' '.join(m.stacked) or 'experts.0. and so on'} ({m.models})"
                           for m in MIXTURES)
    raise ValueError(f"{source.prefix}{experts[0]} looks like a part of a mixture of experts, but router and experts "
                     f"are not all there; understood are {understood}")


def _mixture(source, mixture, options):
    """A MixtureOfExperts: the router, the experts, the shared expert."""
    router = source.weight(mixture.router)
    W_router = source.array(router, 2)                                    # (n_experts, d_model)
    top_k, renormalize = routing(options.config, len(W_router))
    experts, used = _unstacked(source, mixture, len(W_router)) if mixture.stacked else _one_by_one(source, W_router)
    shared, used_too = _shared(source, mixture)
    wanted = options.config.get("n_shared_experts") or options.config.get("shared_expert_intermediate_size")
    if wanted and shared is None:
        raise ValueError(f"config says that there is a shared expert, but none is under prefix {source.prefix!r}: is "
                         f"it in another file?")
    for name, shape in source.shapes.items():
        if name not in {router, *used, *used_too} and (
                not NEIGHBOUR.search(name) or re.search(r"rout|gate|exp", name) or OF_THE_MODULE.search(source.prefix)):
            raise ValueError(f"{source.prefix}{name} {shape} is not understood as a part of this mixture "
                             f"({mixture.models})")
    ffns = [_dense(one, _family_parts(one), options) for one in ([*experts, shared] if shared else experts)]
    if ffns[0].d_model != W_router.shape[1]:
        hint = "; is layout='in_out' meant?" if ffns[0].d_ff == W_router.shape[1] else ""
        raise ValueError(f"{source.prefix}{router} {W_router.shape} is for d_model = {W_router.shape[1]}, but the "
                         f"experts read as d_model = {ffns[0].d_model}, d_ff = {ffns[0].d_ff}{hint}")
    return MixtureOfExperts(W_router.T, ffns[:len(W_router)], top_k, renormalize, ffns[-1] if shared else None)


def _shared(source, mixture):
    """The shared expert as a source of its own, or None, and the names that it uses."""
    if isinstance(mixture.shared, dict) and all(map(source.weight, mixture.shared)):
        weights = {name: source.weight(name) for name in mixture.shared}
        return _Source({f"{source.prefix}{mixture.shared[name]}.weight": source.array(weight, 2)
                        for name, weight in weights.items()}, source.prefix), {*weights.values()}
    for prefix in mixture.shared:
        if prefix.endswith(".") and source.under(prefix).shapes:  # a second one would be left over, and refused
            return source.under(prefix), {name for name in source.shapes if name.startswith(prefix)}
    return None, set()


def _one_by_one(source, W_router):
    """The experts as sources of their own, and the names that they use."""
    numbers = {int(m[1]) for name in source.shapes if (m := re.match(r"experts\.(\d+)\.", name))}
    if numbers != set(range(len(W_router))):
        raise ValueError(f"{source.prefix} has a router for {len(W_router)} experts, but {len(numbers)} are there "
                         f"({_listed(sorted(numbers))}): are some in another file?")
    return ([source.under(f"experts.{e}.") for e in range(len(W_router))],
            {name for name in source.shapes if re.match(r"experts\.\d+\.", name)})


def _unstacked(source, mixture, n_experts):
    """The same from 3-D weights: expert e has the e-th matrix of each."""
    stacks = {part: source.array(source.weight(name), 3) for name, part in mixture.stacked.items()}
    for part, W in stacks.items():
        if len(W) != n_experts:
            raise ValueError(f"{source.prefix} has a router for {n_experts} experts, but {part} is stacked as "
                             f"{W.shape}")
    prefixes = [f"{source.prefix}experts.{e}." for e in range(n_experts)]  # for messages
    return ([_Source({f"{prefix}{part}.weight": W[e] for part, W in stacks.items()}, prefix)
             for e, prefix in enumerate(prefixes)], {*map(source.weight, mixture.stacked)})


# ---------------------------------------------------------------- what was found, for lists and messages

def _record(source):
    """The `FFNRecord` of what is under a prefix, from shapes alone; None if there is no FFN."""
    for mixture in MIXTURES:
        router = source.weight(mixture.router)
        if router and len(source.shapes[router]) == 2:
            n_experts, d_model = source.shapes[router]
            if mixture.stacked and all(map(source.weight, mixture.stacked)):
                down = source.shapes[source.weight(list(mixture.stacked)[-1])]
                d_ff = next((n for n in down[1:] if n != d_model), d_model)
                return FFNRecord(source.prefix, mixture.models, d_model, d_ff, True, n_experts)
            if not mixture.stacked and (expert := _record(source.under("experts.0."))):
                return expert._replace(prefix=source.prefix, family=mixture.models, n_experts=n_experts)
    for family in _families(source):
        if sizes := _sizes(source, family):
            return FFNRecord(source.prefix, family.models, *sizes, "lift" not in family.roles)
    return None


def _listed(names):
    names = list(map(str, names))
    return ", ".join(names[:8]) + (", ..." if names[8:] else "") or "no names"


def _not_recognised(source):
    """Why no family fits: what was found, what is missing, what is understood, which prefixes would do."""
    where = f" (none starts with prefix {source.prefix!r})" if source.prefix and not source.shapes else ""
    message = f"no FFN recognised: found {_listed(source.shapes or source.tensors)}{where}"
    nearest = max(FAMILIES, key=lambda f: sum(map(bool, map(source.weight, f.parts))) / len(f.parts))
    missing = [part for part in nearest.parts if not source.weight(part)]
    if len(missing) < len(nearest.parts):
        message += f"; {nearest.names} lacks {' and '.join(f'{part}.weight' for part in missing)}"
    prefixes = [record.prefix for record in find_ffns(source.tensors)]
    prefixes = [prefix for prefix in prefixes if f"{source.prefix.rstrip('.')}." in prefix] or prefixes
    if len(missing) == len(nearest.parts) and prefixes:
        return message + f"; try prefix={prefixes[0]!r}" + (f" or {len(prefixes) - 1} more" if prefixes[1:] else "")
    return message + f"; understood are {'; '.join(f'{f.names} ({f.models})' for f in FAMILIES)}; any other by names="
