"""What a model's config.json says about its FFN: the activation, and how a mixture routes.

Each model's own code decides what its config means; the exceptions stand here.
"""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ._validate import positive_int, short
from .activations import ACTIVATIONS

# How configs call the activation, and what they mean by it.
CONFIG_KEYS = ("hidden_activation", "hidden_act", "activation_function", "activation", "activation_type",
               "dense_act_fn", "afn")
CONFIG_ACTIVATIONS = {name: name for name in ACTIVATIONS} | {
    "gelu_python": "gelu", "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh", "linear": "identity"}
GATED_ACTIVATIONS = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu", "glu": "sigmoid", "gated-silu": "silu",
                     "gated-relu": "relu", "gated-gelu": "gelu_tanh"}  # T5 means the tanh form by its gated-gelu
# Kinds of model whose code does not ask the config, or means something else by it.
FIXED_ACTIVATIONS = {"bloom": "gelu_tanh", "esm": "gelu", "qwen": "silu"}
# Settings that change the FFN in a way that neither class can express.
CHANGES_THE_FFN = ("activation_sparsity_pattern", "swiglu_limit", "swiglu_alpha", "gegelu_limit", "mlp_multipliers")
# Kinds of model whose routing is MixtureOfExperts', and whether they renormalise if the config does not say.
ROUTING = {"mixtral": True, "qwen2_moe": False, "qwen3_moe": False, "olmoe": False, "deepseek_v2": False,
           "minimind": True}


def read_config(config):
    """config as a dict: {} for None, the content of a config.json for a path."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    if not isinstance(config, (str, os.PathLike)):
        raise TypeError(f"config must be a config.json as a mapping or a path, got {short(config)}")
    try:
        return dict(json.loads(Path(config).read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"config must be a JSON object, {config} is none") from None


def config_activation(config, gated):
    """What a config says about the activation, or None if it says nothing."""
    for key in CHANGES_THE_FFN:
        if np.any(config.get(key) or 0):
            raise ValueError(f"config has {key} = {short(config[key])}, which changes this model's FFN in a way that "
                             f"no layer here can express")
    key, value = _says(config, gated)
    if value is None:
        parts = [key for key in ("text_config", "vision_config", "audio_config") if key in config]
        if parts:
            raise ValueError(f"config is that of several models ({', '.join(parts)}): pass the part that the FFN "
                             f"belongs to, such as config=config[{parts[0]!r}]")
        return None
    name = str(value).lower()
    if name in GATED_ACTIVATIONS and not gated:
        raise ValueError(f"config says {key} = {short(value)}, a gated FFN, but only the parts of a plain one are "
                         f"there: is the gate in another file?")
    known = CONFIG_ACTIVATIONS.get(name) or GATED_ACTIVATIONS.get(name)
    if known is None:
        raise ValueError(f"config says {key} = {short(value)}, which is none of the activations known: "
                         f"{', '.join(ACTIVATIONS)}")
    return known


def _says(config, gated):
    """(key, name of the activation) as the model's own code reads its config; (None, None) if it says nothing."""
    model = str(config.get("model_type"))
    if model in FIXED_ACTIVATIONS:
        return "model_type", FIXED_ACTIVATIONS[model]
    if model.startswith("gemma") and "text_config" not in config:
        said = config.get("hidden_activation") or config.get("hidden_act")
        # Gemma 1's published config says gelu, but its weights were trained with the tanh form.
        return "hidden_activation", "gelu_tanh" if said in (None, "gelu") else said
    if config.get("use_swiglu_ffn") and gated:
        return "use_swiglu_ffn", "silu"  # DINOv2: its hidden_act is for the plain FFN
    if "gelu_activation" in config:  # XLM
        return "gelu_activation", "gelu" if config["gelu_activation"] else "relu"
    if config.get("feed_forward_proj") is not None:  # T5 makes its dense_act_fn from it
        return "feed_forward_proj", config["feed_forward_proj"]
    if model == "mpt":
        return "ffn_config", ((config.get("ffn_config") or {}).get("ffn_act_fn") or {}).get("name", "gelu")
    said = {key: config[key] for key in CONFIG_KEYS if config.get(key) is not None}
    if model == "openai-gpt" and said.get("afn") == "gelu":
        return "afn", "gelu_tanh"  # its own table of names
    if len(set(said.values())) > 1:
        raise ValueError(f"config says two things about the activation: "
                         f"{', '.join(f'{key} = {value!r}' for key, value in said.items())}; pass activation= alone")
    return next(iter(said.items()), (None, None))


def routing(config, n_experts):
    """top_k and renormalize from a config; a ValueError if it does not say, or says what the class does not do."""
    model = config.get("model_type")
    if model is not None and model not in ROUTING:
        raise ValueError(f"config has model_type = {short(model)}, whose routing is not known here; if it is a softmax "
                         f"over all experts and then the top k, pass config={{'num_experts_per_tok': ..., "
                         f"'norm_topk_prob': ...}}")
    top_k = config.get("num_experts_per_tok", config.get("num_experts_per_token"))
    renormalize = config.get("norm_topk_prob", ROUTING.get(model))
    if top_k is None or renormalize is None:
        raise ValueError("config must be given for a mixture of experts, no tensor tells how many experts a token "
                         "takes: pass the model's config.json or config={'num_experts_per_tok': ..., "
                         "'norm_topk_prob': ...} (Mixtral: 2, True)")
    for key, usual in (("scoring_func", "softmax"), ("n_group", 1), ("topk_method", "greedy"),
                       ("routed_scaling_factor", 1.0)):
        if config.get(key, usual) not in (usual, None):
            raise ValueError(f"config has {key} = {short(config[key])}, which MixtureOfExperts does not do")
    for key in ("num_local_experts", "num_experts", "n_routed_experts"):
        if config.get(key, n_experts) != n_experts:
            raise ValueError(f"config has {key} = {short(config[key])}, but the router has {n_experts} experts")
    return positive_int("config['num_experts_per_tok']", top_k), bool(renormalize)
