"""What a model's config.json says about its FFN: the activation, and how a mixture routes.

Each model's own code decides what its config means; the exceptions stand here.
"""
from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ._validate import positive_int, short
from .activations import ACTIVATIONS

# How configs call the activation, and what they mean by it.
CONFIG_KEYS = ("hidden_activation", "hidden_act", "activation_function", "activation", "activation_type",
               "activation_fn", "act_fn", "ff_activation", "mlp_hidden_act", "dense_act_fn", "afn")
# A key that names an activation, of whatever part; those of a head on top of the model are none of an FFN's.
ANY_ACTIVATION = re.compile(r"(?!pool|classifier|summary|projector)\w*?act(ivation)?(_fn|_func|_function|_type)?$")
CONFIG_ACTIVATIONS = {name: name for name in ACTIVATIONS} | {
    "gelu_python": "gelu", "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh", "linear": "identity"}
GATED_ACTIVATIONS = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu", "glu": "sigmoid", "gated-silu": "silu",
                     "gated-relu": "relu", "gated-gelu": "gelu_tanh"}  # T5 means the tanh form by its gated-gelu
PARTS = ("text_config", "vision_config", "audio_config")  # of a config for several models, perhaps empty: defaults
# Kinds of model whose code does not ask the config, or means something else by it.
FIXED_ACTIVATIONS = {"bloom": "gelu_tanh", "esm": "gelu", "qwen": "silu"}
# Settings that change the FFN in a way that neither class can express.
CHANGES_THE_FFN = ("activation_sparsity_pattern", "swiglu_limit", "swiglu_alpha", "gegelu_limit", "mlp_multipliers")
# Kinds of model whose routing is MixtureOfExperts'. Do they renormalise? None: the config says it.
ROUTING = {"mixtral": True, "qwen3_moe": None, "qwen3_vl_moe_text": None, "olmoe": None, "deepseek_v2": False,
           "minimind": None}
ROUTING_KEY = re.compile(r"(router|route|scor|gating|topk|expert).*(func|function|method|scal)|(func|scal)\w*_rout")
# Kinds of model whose c_fc is GPT-2's Conv1D, stored (in, out); others use a Linear under the same name.
CONV1D = ("gpt2", "imagegpt", "openai-gpt", "decision_transformer", "jais")
LINEAR_C_FC = ("starcoder2", "gpt_bigcode", "gpt_neo", "exaone")
# Kinds of model that have no gate beside their up_proj; any other that lacks one has lost it.
UNGATED_UP_PROJ = ("mpt", "nemotron", "arcee", "jais2", "dinov3_vit")


def read_config(config):
    """config as a dict: {} for None, the content of a config.json for a path."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    if not isinstance(config, (str, os.PathLike)):
        raise TypeError(f"config must be a config.json as a mapping or a path, got {short(config)}")
    try:
        path = Path(config) / "config.json" if Path(config).is_dir() else Path(config)
        return dict(json.loads(path.read_text(encoding="utf-8-sig")))
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"config must be a JSON object, {config} is none") from None


def config_activation(config, gated):
    """What a config says about the activation, or None if it says nothing."""
    for key in CHANGES_THE_FFN:
        value = config.get(key)
        if value not in (None, False, 0) and np.any(np.asarray(value) != 1) and np.any(value):
            raise ValueError(f"config has {key} = {short(value)}, which changes this model's FFN in a way that no "
                             f"layer here can express")
    key, value = _says(config, gated)
    known = None if value is None else _known(key, value, gated)
    parts = [key for key, part in config.items() if isinstance(part, Mapping) and (
        _others(part, known) or (known is None and (key in PARTS or "hidden_size" in part or "d_model" in part)))]
    if parts:
        raise ValueError(f"config is that of several models ({', '.join(parts)}), whose activations differ or stand "
                         f"there alone: pass the part that this FFN belongs to, such as config=config[{parts[0]!r}], "
                         f"or activation=")
    if others := {key: config[key] for key in _others(config, known)}:
        raise ValueError(f"config says several things about activations ({key} = {short(value)}, "
                         f"{', '.join(f'{key} = {other!r}' for key, other in others.items())}): "
                         f"pass activation= for the one that is this FFN's")
    return known


def _known(key, value, gated):
    """The name in ACTIVATIONS for what a config calls the activation."""
    name = str(value).lower()
    if name in GATED_ACTIVATIONS and not gated:
        raise ValueError(f"config says {key} = {short(value)}, a gated FFN, but only the parts of a plain one are "
                         f"there: is the gate in another file?")
    known = CONFIG_ACTIVATIONS.get(name) or GATED_ACTIVATIONS.get(name)
    if known is None:
        raise ValueError(f"config says {key} = {short(value)}, which is none of the activations known: "
                         f"{', '.join(ACTIVATIONS)}")
    return known


def _others(config, known):
    """Keys that name another activation than the known one, for whatever part of the model."""
    if config.get("model_type") in FIXED_ACTIVATIONS or config.get("feed_forward_proj") is not None:
        return []  # there, other keys are not read
    names = {key: str(value).lower() for key, value in config.items()
             if isinstance(value, (str, list)) and isinstance(key, str) and ANY_ACTIVATION.match(key)
             and not (key == "hidden_act" and (config.get("hidden_activation") or config.get("use_swiglu_ffn")
                                               or str(config.get("model_type")).startswith("gemma")))}
    meant = {key: CONFIG_ACTIVATIONS.get(name) or GATED_ACTIVATIONS.get(name) or name for key, name in names.items()}
    if config.get("model_type") == "openai-gpt":
        meant.pop("afn", None)
    return [key for key, name in meant.items()
            if known is None or name not in ACTIVATIONS or ACTIVATIONS[name] is not ACTIVATIONS[known]]


def _says(config, gated):
    """(key, name of the activation) as the model's own code reads its config; (None, None) if it says nothing."""
    model = str(config.get("model_type"))
    if model in FIXED_ACTIVATIONS:
        return "model_type", FIXED_ACTIVATIONS[model]
    if model.startswith("gemma") and "text_config" not in config:
        said = config.get("hidden_activation")
        # Gemma 1's published config says hidden_act gelu, but its weights were trained with the tanh form.
        return "hidden_activation", said or ("gelu_tanh" if config.get("hidden_act") in (None, "gelu")
                                             else config["hidden_act"])
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
    return next(iter(said.items()), (None, None))


def routing(config, n_experts):
    """top_k and renormalize from a config; a ValueError if it does not say, or says what the class does not do."""
    model = config.get("model_type")
    if model is not None and model not in ROUTING:
        raise ValueError(f"config has model_type = {short(model)}, whose routing is not known here; if it is a softmax "
                         f"over all experts and then the top k, pass config={{'num_experts_per_tok': ..., "
                         f"'norm_topk_prob': ...}}")
    top_k = config.get("num_experts_per_tok", config.get("num_experts_per_token"))
    renormalize = ROUTING.get(model)  # where the model's code does not ask its config
    renormalize = config.get("norm_topk_prob") if renormalize is None else renormalize
    missing = [key for key, value in (("num_experts_per_tok", top_k), ("norm_topk_prob", renormalize)) if value is None]
    if missing:
        raise ValueError(f"config must say {' and '.join(missing)} for a mixture of experts, no tensor tells it: pass "
                         f"the model's config.json or config={{'num_experts_per_tok': ..., 'norm_topk_prob': ...}} "
                         f"(Mixtral: 2, True)")
    if not isinstance(renormalize, bool):
        raise TypeError(f"config['norm_topk_prob'] must be True or False, got {short(renormalize)}")
    for key, value in config.items():
        usual = (None, False, 1, "softmax", "greedy")
        if (ROUTING_KEY.search(str(key)) or key == "n_group") and not any(value is u or value == u for u in usual):
            raise ValueError(f"config has {key} = {short(value)}, which MixtureOfExperts does not do")
    for key in ("num_local_experts", "num_experts", "n_routed_experts"):
        if config.get(key, n_experts) != n_experts:
            raise ValueError(f"config has {key} = {short(config[key])}, but the router has {n_experts} experts")
    return positive_int("config['num_experts_per_tok']", top_k), renormalize
