"""from_state_dict and find_ffns: every naming in the table against its model's formula, and what must be refused."""
import inspect
import json
import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

import ffn_numpy as F
from ffn_numpy.naming import FAMILIES, MIXTURES

R = np.random.default_rng(0)
D, H = 6, 10  # d_model, d_ff
GATE, UP, DOWN = R.normal(size=(D, H)), R.normal(size=(D, H)), R.normal(size=(H, D))  # (in, out), for x @ W
B_GATE, B_UP, B_DOWN = R.normal(size=H), R.normal(size=H), R.normal(size=D)
LIFT, B_LIFT = GATE, B_GATE
X = R.normal(size=(4, D))


def erf_gelu(h):
    return h * 0.5 * np.vectorize(lambda v: math.erfc(-v / math.sqrt(2)))(h)


ACT = {
    "relu": lambda h: h * (h > 0), "relu2": lambda h: (h * (h > 0)) ** 2, "gelu": erf_gelu,
    "gelu_tanh": lambda h: 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3))),
    "silu": lambda h: h / (1 + np.exp(-h)), "quick_gelu": lambda h: h / (1 + np.exp(-1.702 * h)),
}


def plain(act, b1=0, b2=0):
    return ACT[act](X @ LIFT + b1) @ DOWN + b2


def gated(act, b_gate=0, b_up=0, b_down=0):
    return (ACT[act](X @ GATE + b_gate) * (X @ UP + b_up)) @ DOWN + b_down


GATE_UP, UP_GATE = np.vstack([GATE.T, UP.T]), np.vstack([UP.T, GATE.T])  # (2 d_ff, d_model), as torch stacks outputs

# (names, roles) of a row -> a published prefix, the tensors as that model stores them, the activation to give (None:
# the row knows it), and what the model computes. Written from the models' own code, not from the table.
REFERENCES = {
    ("gate_proj up_proj down_proj", "gate up down"): (
        "model.layers.3.mlp.", {"gate_proj": GATE.T, "up_proj": UP.T, "down_proj": DOWN.T}, None, gated("silu")),
    ("gate_up_proj down_proj", "fused down"): (
        "model.layers.3.mlp.", {"gate_up_proj": GATE_UP, "down_proj": DOWN.T}, None, gated("silu")),
    ("w1 w3 w2", "gate up down"): (
        "layers.3.feed_forward.", {"w1": GATE.T, "w2": DOWN.T, "w3": UP.T}, None, gated("silu")),
    ("w1 w2 w3", "gate up down"): (
        "blocks.3.mlp.", {"w1": GATE.T, "w2": UP.T, "w3": DOWN.T}, None, gated("silu")),
    ("w1 w2 c_proj", "up gate down"): (  # a1 = w1(x), a2 = w2(x), a1 * silu(a2)
        "transformer.h.3.mlp.", {"w1": UP.T, "w2": GATE.T, "c_proj": DOWN.T}, None, gated("silu")),
    ("c_fc c_fc2 c_proj", "up gate down"): (  # Conv1D: c_fc(x) * silu(c_fc2(x))
        "transformer.h.3.mlp.", {"c_fc": UP, "c_fc2": GATE, "c_proj": DOWN, "c_fc.bias": B_UP, "c_fc2.bias": B_GATE,
                                 "c_proj.bias": B_DOWN}, None, gated("silu", B_GATE, B_UP, B_DOWN)),
    ("c_fc_0 c_fc_1 c_proj", "gate up down"): (
        "transformer.h.3.mlp.", {"c_fc_0": GATE.T, "c_fc_1": UP.T, "c_proj": DOWN.T}, None, gated("silu")),
    ("wi_0 wi_1 wo", "gate up down"): (
        "encoder.block.3.layer.1.DenseReluDense.", {"wi_0": GATE.T, "wi_1": UP.T, "wo": DOWN.T}, None,
        gated("gelu_tanh")),
    ("Wi Wo", "fused down"): (  # input, gate = Wi(x).chunk(2); Wo(act(input) * gate)
        "model.layers.3.mlp.", {"Wi": GATE_UP, "Wo": DOWN.T}, None, gated("gelu")),
    ("fc11 fc12 fc2", "up gate down"): (  # y = fc11(x), gate = fc12(x), y * act(gate)
        "encoder.layers.3.mlp.", {"fc11": UP.T, "fc12": GATE.T, "fc2": DOWN.T}, None, gated("silu")),
    ("w12 w3", "fused down"): (
        "blocks.3.mlp.", {"w12": GATE_UP, "w3": DOWN.T, "w12.bias": np.r_[B_GATE, B_UP], "w3.bias": B_DOWN}, None,
        gated("silu", B_GATE, B_UP, B_DOWN)),
    ("weights_in weights_out", "fused down"): (
        "encoder.layer.3.mlp.", {"weights_in": GATE_UP, "weights_out": DOWN.T}, None, gated("silu")),
    ("fc1_g fc1_x fc2", "gate up down"): (
        "blocks.3.mlp.", {"fc1_g": GATE.T, "fc1_x": UP.T, "fc2": DOWN.T, "fc1_g.bias": B_GATE, "fc1_x.bias": B_UP,
                          "fc2.bias": B_DOWN}, None, gated("silu", B_GATE, B_UP, B_DOWN)),
    ("fc1 fc2 fc3", "gate up down"): (
        "trf_blocks.3.ff.", {"fc1": GATE.T, "fc2": UP.T, "fc3": DOWN.T}, None, gated("silu")),
    ("fc1 fc3 fc2", "gate up down"): (
        "blocks.3.mlp.", {"fc1": GATE.T, "fc2": DOWN.T, "fc3": UP.T}, None, gated("silu")),
    ("ff_proj up_proj ff_out", "gate up down"): (
        "model.transformer.blocks.3.", {"ff_proj": GATE.T, "up_proj": UP.T, "ff_out": DOWN.T, "q_proj": np.ones((D, D)),
                                        "attn_out": np.ones((D, D)), "ff_norm": np.ones(D)}, None, gated("silu")),
    ("ff_proj ff_out", "fused down"): (  # x, gate = ff_proj(x).chunk(2); silu(gate) * x
        "model.transformer.blocks.3.", {"ff_proj": UP_GATE, "ff_out": DOWN.T}, None, gated("silu")),
    ("dense_h_to_4h dense_4h_to_h", "fused down"): (
        "transformer.encoder.layers.3.mlp.", {"dense_h_to_4h": GATE_UP, "dense_4h_to_h": DOWN.T}, None, gated("silu")),
    ("net.0.proj net.2", "fused down"): (  # hidden, gate = proj(x).chunk(2); hidden * gelu(gate)
        "transformer_blocks.3.ff.", {"net.0.proj": UP_GATE, "net.2": DOWN.T, "net.0.proj.bias": np.r_[B_UP, B_GATE],
                                     "net.2.bias": B_DOWN}, None, gated("gelu", B_GATE, B_UP, B_DOWN)),
    ("W V W_2", "gate up down"): (
        "ffn.", {"W": GATE.T, "V": UP.T, "W_2": DOWN.T}, "gelu", gated("gelu")),
    ("ffn_gate ffn_up ffn_down", "gate up down"): (
        "blk.3.", {"ffn_gate": GATE.T, "ffn_up": UP.T, "ffn_down": DOWN.T, "ffn_norm": np.ones(D),
                   "attn_q": np.ones((D, D)), "attn_output": np.ones((D, D))}, "silu", gated("silu")),
    ("ffn_up ffn_down", "fused down"): (
        "blk.3.", {"ffn_up": GATE_UP, "ffn_down": DOWN.T}, "silu", gated("silu")),
    ("c_fc c_proj", "lift down"): (  # Conv1D
        "transformer.h.3.mlp.", {"c_fc": LIFT, "c_proj": DOWN, "c_fc.bias": B_LIFT, "c_proj.bias": B_DOWN}, None,
        plain("gelu_tanh", B_LIFT, B_DOWN)),
    ("intermediate.dense output.dense", "lift down"): (
        "bert.encoder.layer.3.", {"intermediate.dense": LIFT.T, "output.dense": DOWN.T,
                                  "intermediate.dense.bias": B_LIFT, "output.dense.bias": B_DOWN,
                                  "attention.output.dense": np.ones((D, D)), "output.LayerNorm": np.ones(D)}, None,
        plain("gelu", B_LIFT, B_DOWN)),
    ("wi wo", "lift down"): (
        "encoder.block.3.layer.1.DenseReluDense.", {"wi": LIFT.T, "wo": DOWN.T}, None, plain("relu")),
    ("fc1 fc2", "lift down"): (
        "model.decoder.layers.3.", {"fc1": LIFT.T, "fc2": DOWN.T, "fc1.bias": B_LIFT, "fc2.bias": B_DOWN,
                                    "self_attn.k_proj": np.ones((D, D)), "final_layer_norm": np.ones(D)}, "quick_gelu",
        plain("quick_gelu", B_LIFT, B_DOWN)),
    ("linear1 linear2", "lift down"): (
        "layers.3.", {"linear1": LIFT.T, "linear2": DOWN.T, "linear1.bias": B_LIFT, "linear2.bias": B_DOWN,
                      "norm2": np.ones(D), "self_attn.out_proj": np.ones((D, D))}, "relu",
        plain("relu", B_LIFT, B_DOWN)),
    ("dense_h_to_4h dense_4h_to_h", "lift down"): (
        "gpt_neox.layers.3.mlp.", {"dense_h_to_4h": LIFT.T, "dense_4h_to_h": DOWN.T}, "gelu", plain("gelu")),
    ("fc_in fc_out", "lift down"): (
        "transformer.h.3.mlp.", {"fc_in": LIFT.T, "fc_out": DOWN.T}, "gelu_new", plain("gelu_tanh")),
    ("up_proj down_proj", "lift down"): (
        "model.layers.3.mlp.", {"up_proj": LIFT.T, "down_proj": DOWN.T}, "relu2", plain("relu2")),
    ("intermediate_dense output_dense", "lift down"): (
        "wav2vec2.encoder.layers.3.feed_forward.", {"intermediate_dense": LIFT.T, "output_dense": DOWN.T}, "gelu",
        plain("gelu")),
    ("linear_fc1 linear_fc2", "lift down"): (
        "visual.blocks.3.mlp.", {"linear_fc1": LIFT.T, "linear_fc2": DOWN.T}, "gelu_tanh", plain("gelu_tanh")),
    ("lin1 lin2", "lift down"): (
        "distilbert.transformer.layer.3.ffn.", {"lin1": LIFT.T, "lin2": DOWN.T}, "gelu", plain("gelu")),
    ("ffn ffn_output", "lift down"): (
        "albert.encoder.albert_layer_groups.0.albert_layers.0.", {
            "ffn": LIFT.T, "ffn_output": DOWN.T, "full_layer_layer_norm": np.ones(D),
            "attention.dense": np.ones((D, D))}, "gelu_new", plain("gelu_tanh")),
    ("ffn_up ffn_down", "lift down"): (
        "blk.3.", {"ffn_up": LIFT.T, "ffn_down": DOWN.T}, "gelu", plain("gelu")),
    ("net.0.proj net.2", "lift down"): (
        "transformer_blocks.3.ff.", {"net.0.proj": LIFT.T, "net.2": DOWN.T}, "gelu", plain("gelu")),
    ("layers.0 layers.2", "lift down"): (
        "trf_blocks.3.ff.", {"layers.0": LIFT.T, "layers.2": DOWN.T}, "gelu_tanh", plain("gelu_tanh")),
    ("0 2", "lift down"): ("mlp.", {"0": LIFT.T, "2": DOWN.T}, "silu", plain("silu")),
    ("0 3", "lift down"): ("mlp.", {"0": LIFT.T, "3": DOWN.T}, "relu", plain("relu")),
}


def full_names(prefix, tensors):
    """Names as in a checkpoint: with the prefix, and ".weight" where the name does not say ".bias"."""
    return {f"{prefix}{name}{'' if name.endswith('.bias') else '.weight'}": array for name, array in tensors.items()}


def test_every_family_has_a_reference_and_stands_in_the_docstring():
    assert [(f.names, f.roles) for f in FAMILIES] == list(dict.fromkeys((f.names, f.roles) for f in FAMILIES))
    assert {(f.names, f.roles) for f in FAMILIES} == set(REFERENCES)
    text = " ".join(inspect.getdoc(F.from_state_dict).split())
    for family in FAMILIES:
        usual = family.activation
        assert f"`{family.names}`" in text, family.names
        if isinstance(usual, str):  # `names` [activation], perhaps with another naming between
            assert any(f"[{usual}]" in part[:45] for part in text.split(f"`{family.names}`")[1:]), family.names


@pytest.mark.parametrize("names, roles", REFERENCES, ids=lambda v: v.replace(" ", "-"))
def test_a_family_opens_as_its_model_computes(names, roles):
    prefix, tensors, activation, expected = REFERENCES[names, roles]
    tensors = full_names(prefix, tensors)
    elsewhere = full_names("elsewhere.", {"x": np.ones(3)})
    ffn = F.from_state_dict(tensors | elsewhere, prefix, activation)
    np.testing.assert_allclose(ffn(X), expected, rtol=1e-12, atol=1e-12)
    (family,) = [f for f in FAMILIES if (f.names, f.roles) == (names, roles)]
    if not isinstance(family.activation, str):
        with pytest.raises(ValueError, match="^activation must be given") as error:
            F.from_state_dict(tensors, prefix)
        assert all(name in str(error.value) for name in family.activation)
    (record,) = F.find_ffns(tensors | elsewhere)
    assert record == F.FFNRecord(prefix, family.models, D, H, "lift" not in roles.split(), 0)
    for lost in tensors:  # without one of its tensors it must be refused, or be the other family that has these names
        rest = {name: array for name, array in tensors.items() if name != lost}
        if lost.removeprefix(prefix).split(".weight")[0] in names.split() or lost.endswith(".bias"):
            with pytest.raises(ValueError):
                ffn = F.from_state_dict(rest, prefix, activation or "silu")
                assert lost.endswith("c_fc2.weight"), ffn  # Jais without its gate: told by the leftover bias alone
        else:
            np.testing.assert_allclose(F.from_state_dict(rest, prefix, activation)(X), expected, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- mixtures

E, K = 3, 2
ROUTER = R.normal(size=(D, E))  # (d_model, n_experts)
EXPERTS = [(R.normal(size=(D, H)), R.normal(size=(D, H)), R.normal(size=(H, D))) for _ in range(E)]
SHARED = (R.normal(size=(D, 7)), R.normal(size=(D, 7)), R.normal(size=(7, D)))


def swiglu(x, gate, up, down):
    return (ACT["silu"](x @ gate) * (x @ up)) @ down


def mixture(renormalize, shared=False):
    """Token by token, as the models' papers say it."""
    rows = []
    for x in X:
        p = np.exp(x @ ROUTER) / np.exp(x @ ROUTER).sum()
        chosen = sorted(range(E), key=lambda e: -p[e])[:K]
        total = sum(p[e] for e in chosen) if renormalize else 1
        y = sum(p[e] / total * swiglu(x, *EXPERTS[e]) for e in chosen)
        rows.append(y + swiglu(x, *SHARED) if shared else y)
    return np.array(rows)


def experts(*names, prefix="experts.{}."):
    return {prefix.format(e) + name: W.T for e, weights in enumerate(EXPERTS) for name, W in zip(names, weights)}


SHARED_EXPERT = dict(zip(("shared_expert.gate_proj", "shared_expert.up_proj", "shared_expert.down_proj"),
                         (W.T for W in SHARED)))
STACK = [np.stack([weights[i].T for weights in EXPERTS]) for i in range(3)]  # (n_experts, out, in) of gate, up, down
MIXTRAL = {"gate": ROUTER.T} | experts("w1", "w3", "w2")
QWEN = {"gate": ROUTER.T} | experts("gate_proj", "up_proj", "down_proj")
GGUF = {"ffn_gate_inp": ROUTER.T, **dict(zip(("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"), STACK))}
MIXTURE_REFERENCES = {
    MIXTURES[0].models: ("model.layers.3.block_sparse_moe.", MIXTRAL,
                         {"model_type": "mixtral", "num_experts_per_tok": K, "hidden_act": "silu"}, mixture(True)),
    MIXTURES[1].models: ("model.layers.3.mlp.", {"gate": ROUTER.T, "experts.gate_up_proj": np.hstack(STACK[:2]),
                                                 "experts.down_proj": STACK[2]},
                         {"num_experts_per_tok": K, "norm_topk_prob": False}, mixture(False)),
    MIXTURES[2].models: ("blk.3.", GGUF | {"ffn_norm": np.ones(D), "attn_q": np.ones((D, D))},
                         {"num_experts_per_tok": K, "norm_topk_prob": True, "hidden_act": "silu"}, mixture(True)),
}


@pytest.mark.parametrize("models", [m.models for m in MIXTURES])
def test_a_mixture_opens_as_its_model_computes(models):
    prefix, tensors, config, expected = MIXTURE_REFERENCES[models]
    tensors = full_names(prefix, tensors)
    bare = {name.removesuffix(".weight") if "experts." in name and array.ndim == 3 else name: array
            for name, array in tensors.items()}  # transformers 5 stacks parameters, not modules
    moe = F.from_state_dict(bare, prefix, config=config)
    assert isinstance(moe, F.MixtureOfExperts)
    np.testing.assert_allclose(moe(X), expected, rtol=1e-11, atol=1e-11)
    assert F.find_ffns(bare) == [F.FFNRecord(prefix, models, D, H, True, E)]


def test_a_shared_expert_is_added():
    config = {"model_type": "deepseek_v2", "num_experts_per_tok": K, "norm_topk_prob": False, "n_routed_experts": E,
              "scoring_func": "softmax", "topk_method": "greedy", "routed_scaling_factor": 1.0, "hidden_act": "silu"}
    for name in ("shared_expert.", "shared_experts."):
        tensors = full_names("m.", QWEN | {n.replace("shared_expert.", name): W for n, W in SHARED_EXPERT.items()})
        np.testing.assert_allclose(F.from_state_dict(tensors, "m", config=config)(X), mixture(False, shared=True),
                                   rtol=1e-11, atol=1e-11)
        assert [r.n_experts for r in F.find_ffns(tensors) if r.prefix == "m."] == [E]
    gguf = GGUF | dict(zip(("ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"), (W.T for W in SHARED)))
    np.testing.assert_allclose(F.from_state_dict(full_names("", gguf), config=config)(X), mixture(False, shared=True),
                               rtol=1e-11, atol=1e-11)


GOOD = {"num_experts_per_tok": K, "norm_topk_prob": True}


@pytest.mark.parametrize("extra, config, says", [
    ({}, None, "config must say num_experts_per_tok and norm_topk_prob for a mixture of experts, no tensor tells it: "
     "pass the model's config.json or config={'num_experts_per_tok': ..., 'norm_topk_prob': ...} (Mixtral: 2, True)"),
    ({}, {"num_experts_per_tok": 2}, "config must say norm_topk_prob for a mixture of experts, no tensor tells it: "
     "pass the model's config.json or config={'num_experts_per_tok': ..., 'norm_topk_prob': ...} (Mixtral: 2, True)"),
    ({}, GOOD | {"norm_topk_prob": "false"}, "config['norm_topk_prob'] must be True or False, got 'false'"),
    ({}, GOOD | {"n_shared_experts": 2}, "config says that there is a shared expert, but none is under prefix 'm.': is "
     "it in another file?"),
    ({}, GOOD | {"model_type": "qwen2_moe"}, "config has model_type = 'qwen2_moe', whose routing is not known here; if "
     "it is a softmax over all experts and then the top k, pass config={'num_experts_per_tok': ..., "
     "'norm_topk_prob': ...}"),
    *[({}, GOOD | {key: value}, f"config has {key} = {value!r}, which MixtureOfExperts does not do")
      for key, value in (("score_function", "sigmoid"), ("router_score_func", "sigmoid"), ("route_scale", 2.5),
                         ("moe_router_topk_scaling_factor", 2.0), ("topk_method", "noaux_tc"))],
    *[({name: np.ones(E)}, GOOD, f"m.{name}.weight (3,) is not understood as a part of this mixture (Mixtral, "
       "Qwen3-MoE, OLMoE, DeepSeek-V2)") for name in ("router_norm", "gate.weight_norm", "experts.per_expert_scale",
                                                       "experts.act_fn.alpha")],
    (SHARED_EXPERT | {name.replace("shared_expert", "shared_experts"): W for name, W in SHARED_EXPERT.items()}, GOOD,
     "m.shared_experts.gate_proj.weight (7, 6) is not understood as a part of this mixture (Mixtral, Qwen3-MoE, OLMoE, "
     "DeepSeek-V2)"),
    ({"gate.bias": np.ones(E)}, GOOD, "m.gate.bias is a router bias, which MixtureOfExperts does not have"),
    ({"gate.e_score_correction_bias": np.ones(E)}, GOOD, "m.gate.e_score_correction_bias.weight is a bias that "
     "corrects the choice of experts (sigmoid routing), which MixtureOfExperts does not have"),
    ({"shared_expert_gate": np.ones((1, D)), **SHARED_EXPERT}, GOOD, "m.shared_expert_gate.weight is a gate of the "
     "shared expert, which MixtureOfExperts does not have"),
    ({"expert_bias": np.ones(E)}, GOOD, "m.expert_bias.weight (3,) is not understood as a part of this mixture "
     "(Mixtral, Qwen3-MoE, OLMoE, DeepSeek-V2)"),
    ({"experts.3.gate_proj": GATE.T}, GOOD, "m. has a router for 3 experts, but 4 are there (0, 1, 2, 3): are some in "
     "another file?"),
    ({}, {"model_type": "phimoe", **GOOD}, "config has model_type = 'phimoe', whose routing is not known here; if it "
     "is a softmax over all experts and then the top k, pass config={'num_experts_per_tok': ..., "
     "'norm_topk_prob': ...}"),
    ({}, {"scoring_func": "sigmoid", **GOOD}, "config has scoring_func = 'sigmoid', which MixtureOfExperts does not "
     "do"),
    ({}, {"n_group": 8, **GOOD}, "config has n_group = 8, which MixtureOfExperts does not do"),
    ({}, {"routed_scaling_factor": 2.5, **GOOD}, "config has routed_scaling_factor = 2.5, which MixtureOfExperts does "
     "not do"),
    ({}, {"num_experts": 64, **GOOD}, "config has num_experts = 64, but the router has 3 experts"),
    ({}, {"num_experts_per_tok": 9, "norm_topk_prob": True}, "top_k must be at most n_experts = 3, got 9"),
    ({}, {"num_experts_per_tok": 2.0, "norm_topk_prob": True}, "config['num_experts_per_tok'] must be a positive "
     "integer, got 2.0"),
])
def test_mixtures_that_route_in_another_way_are_refused(extra, config, says):
    with pytest.raises((ValueError, TypeError)) as error:
        F.from_state_dict(full_names("m.", QWEN | extra), "m", config=config)
    assert str(error.value) == says


def test_mixtures_with_parts_missing_or_the_other_way_round_are_refused():
    without = {name: W for name, W in QWEN.items() if name != "gate"}
    with pytest.raises(ValueError, match="^m.experts.0.gate_proj.weight looks like a part of a mixture of experts"):
        F.from_state_dict(full_names("m.", without), "m", config=GOOD)
    lost = {name: W for name, W in QWEN.items() if not name.startswith("experts.1.")}
    with pytest.raises(ValueError, match=r"2 are there \(0, 2\): are some in another file"):
        F.from_state_dict(full_names("m.", lost), "m", config=GOOD)
    half = {name: W for name, W in QWEN.items() if name != "experts.1.up_proj"}
    with pytest.raises(ValueError, match="no FFN recognised.*lacks up_proj.weight"):
        F.from_state_dict(full_names("m.", half), "m", config=GOOD)
    gpt_oss = {"router": ROUTER.T, "router.bias": np.ones(E), "experts.gate_up_proj": np.ones((E, D, 2 * H)),
               "experts.gate_up_proj_bias": np.ones((E, 2 * H)), "experts.down_proj": np.ones((E, H, D))}
    with pytest.raises(ValueError, match="^m.router.bias is a router bias"):
        F.from_state_dict(full_names("m.", gpt_oss), "m", config=GOOD)
    llama4 = {n: W for n, W in gpt_oss.items() if "bias" not in n}
    with pytest.raises(ValueError, match="^m.router.weight is a router that this package does not know"):
        F.from_state_dict(full_names("m.", llama4), "m", config=GOOD)
    # Qwen3-VL-MoE publishes its stacks as (n_experts, in, out)
    stack = {"gate": ROUTER.T, "experts.gate_up_proj": np.hstack(STACK[:2]).swapaxes(1, 2),
             "experts.down_proj": STACK[2].swapaxes(1, 2)}
    with pytest.raises(ValueError, match=r"they fit with layout='in_out'$"):
        F.from_state_dict(full_names("m.", stack), "m", config=GOOD)
    np.testing.assert_allclose(F.from_state_dict(full_names("m.", stack), "m", config=GOOD, layout="in_out")(X),
                               mixture(True), rtol=1e-11)
    turned = {name: W.T if "experts" in name else W for name, W in QWEN.items()}
    with pytest.raises(ValueError, match="read as d_model = 10, d_ff = 6; is layout='in_out' meant"):
        F.from_state_dict(full_names("m.", turned), "m", config=GOOD)
    dense = full_names("m.", QWEN | {"gate_proj": GATE.T, "up_proj": UP.T, "down_proj": DOWN.T})  # Arctic
    with pytest.raises(ValueError, match="m.gate_proj.weight .* is not understood as a part of this mixture"):
        F.from_state_dict(dense, "m", config=GOOD)
    one = F.from_state_dict(full_names("m.", QWEN), "m.experts.2")  # an expert alone is an FFN
    np.testing.assert_allclose(one(X), swiglu(X, *EXPERTS[2]), rtol=1e-12)


# ---------------------------------------------------------------- never another layer: the table, and its kind

LLAMA = {"gate_proj": GATE.T, "up_proj": UP.T, "down_proj": DOWN.T}


def opened(tensors, prefix="m.", **options):
    return F.from_state_dict(full_names(prefix, tensors), prefix, **options)


def refused(says, tensors, **options):
    with pytest.raises(ValueError) as error:
        opened(tensors, **options)
    assert str(error.value) == says


def test_a_norm_inside_the_ffn_is_refused():
    for name in ("norm", "ffn_sub_norm", "ffn_layernorm", "attention_like_norm"):
        refused(f"m.{name}.weight (10,) has d_ff = 10 on an axis, so it may be a part of this FFN (a norm or a scale "
                f"inside it?) that the FFN of OPT, ViT, Whisper, Phi, CLIP does not have; if it is none, leave it out "
                f"of tensors or take a longer prefix",
                {"fc1": LIFT.T, name: np.ones(H), "fc2": DOWN.T}, activation="gelu")
    refused("m.ffn_ln.weight (10,) has d_ff = 10 on an axis, so it may be a part of this FFN (a norm or a scale inside "
            "it?) that the FFN of xformers, EVA without its inner norm does not have; if it is none, leave it out of "
            "tensors or take a longer prefix", {"w1": GATE.T, "w2": UP.T, "ffn_ln": np.ones(H), "w3": DOWN.T})


def test_anything_that_is_not_understood_is_refused():
    for extra, shape in (("act_fn.alpha_p", (1,)), ("fc1_scale", ()), ("smooth", (D,)), ("adapter.0", (D, 3))):
        refused(f"m.{extra}.weight {shape} is not understood: if it is no part of this FFN, leave it out of tensors or "
                f"take a longer prefix", {"up_proj": LIFT.T, "down_proj": DOWN.T, extra: np.ones(shape)},
                activation="relu2")
    for extra in ("fc1.weight_scale", "fc1.SCB", "fc1.lora_A.weight", "fc2.qzeros"):
        tensors = {"m.fc1.weight": LIFT.T, "m.fc2.weight": DOWN.T, f"m.{extra}": DOWN}
        with pytest.raises(ValueError) as error:
            F.from_state_dict(tensors, "m", "gelu")
        assert str(error.value) == (f"m.{extra} is neither a weight nor a bias: quantised or adapted layers (scales, "
                                    f"LoRA) must be merged into plain weights first")


def test_a_lost_gate_or_bias_is_noticed():
    lost = ("gate_proj.weight, which Llama, Mistral, Qwen, Gemma have beside up_proj and down_proj, is not under "
            "prefix 'm.': is it in another file? If there is none, name the parts with names=")
    for activation in ("silu", "swish", "gelu_tanh", "gelu_pytorch_tanh", "relu"):
        refused(lost, {"up_proj": UP.T, "down_proj": DOWN.T}, activation=activation)
    for config in ({"model_type": "bitnet", "hidden_act": "relu2"}, {"model_type": "llama", "hidden_act": "swish"},
                   {"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh"}):
        refused(lost, {"up_proj": UP.T, "down_proj": DOWN.T}, config=config)
    tensors = full_names("l.0.", LLAMA) | full_names("l.1.", {"up_proj": UP.T, "down_proj": DOWN.T})
    with pytest.raises(ValueError, match="^gate_proj.weight, which .* is not under prefix 'l.1.'"):
        F.from_state_dict(tensors, "l.1", "gelu")  # other layers of this model have a gate
    config = {"model_type": "nemotron", "hidden_act": "relu2"}
    nemotron = opened({"up_proj": LIFT.T, "down_proj": DOWN.T}, config=config)
    np.testing.assert_allclose(nemotron(X), plain("relu2"), rtol=1e-12)
    refused("config has mlp_bias = True, but these tensors say otherwise: are some in another file?", LLAMA,
            config={"hidden_act": "silu", "mlp_bias": True})
    refused("config says activation_function = 'swiglu', a gated FFN, but only the parts of a plain one are there: is "
            "the gate in another file?", {"c_fc": LIFT, "c_proj": DOWN, "c_fc.bias": B_LIFT, "c_proj.bias": B_DOWN},
            config={"model_type": "jais", "activation_function": "swiglu"})
    refused("m.fc1.bias is there, but fc2.bias is not: is it in another file? If there is none, name the parts with "
            "names=", {"fc1": LIFT.T, "fc2": DOWN.T, "fc1.bias": B_LIFT}, activation="gelu")
    ffn = opened({"fc1": LIFT.T, "fc2": DOWN.T, "fc1.bias": B_LIFT}, activation="gelu",
                 names={"lift": "fc1", "down": "fc2"})
    np.testing.assert_allclose(ffn(X), plain("gelu", B_LIFT), rtol=1e-12)


def test_square_weights_do_not_tell_their_layout():
    W = R.normal(size=(3, 4, 4))
    tensors = {"gate_proj": W[0], "up_proj": W[1], "down_proj": W[2]}
    refused("nothing decides whether m.gate_proj.weight (4, 4) is stored (out, in) or (in, out): there is no bias; "
            "pass layout='out_in' (PyTorch's Linear) or layout='in_out' (GPT-2's Conv1D)", tensors)
    x = R.normal(size=(3, 4))
    np.testing.assert_allclose(opened(tensors, layout="out_in")(x), swiglu(x, W[0].T, W[1].T, W[2].T))
    np.testing.assert_allclose(opened(tensors, layout="in_out")(x), swiglu(x, *W))
    for names in ("w1 w2 w3", "fc1 fc2 fc3"):  # square: not even which is the way down
        with pytest.raises(ValueError):
            opened(dict(zip(names.split(), W)))
    refused("nothing decides whether m.c_fc.weight (4, 4) is stored (out, in) or (in, out): c_fc.bias fits both; pass "
            "layout='out_in' (PyTorch's Linear) or layout='in_out' (GPT-2's Conv1D)",
            {"c_fc": W[0], "c_fc.bias": np.ones(4), "c_proj": W[1], "c_proj.bias": np.ones(4)})


def test_hints_are_only_given_when_they_would_work():
    refused("m.fc1.bias has 10 numbers, but fc1.weight has 6 outputs (read as out_in); they fit with layout='in_out'",
            {"fc1": LIFT, "fc2": DOWN, "fc1.bias": B_LIFT, "fc2.bias": B_DOWN}, activation="gelu")
    refused("m.gate_proj.weight does not fit down_proj.weight: in -> out is (6, 10), expected (6, 9) (read as out_in)",
            LLAMA | {"down_proj": DOWN.T[:, :9]})
    refused("m.fc1.weight does not fit fc2.weight: in -> out is (6, 20), expected (6, 10) (read as out_in); it is "
            "twice as wide: are gate and up fused in it? Then pass names={'fused': 'fc1.weight', 'down': 'fc2.weight'} "
            "and fused=", {"fc1": GATE_UP, "fc2": DOWN.T}, activation="silu")
    fused = {"fused": "fc1.weight", "down": "fc2.weight"}
    for order, weight in (("gate_up", GATE_UP), ("up_gate", UP_GATE)):  # the hint does work
        ffn = opened({"fc1": weight, "fc2": DOWN.T}, names=fused, fused=order, activation="silu")
        np.testing.assert_allclose(ffn(X), gated("silu"), rtol=1e-12)
    refused("m.gate_proj.weight does not fit down_proj.weight: in -> out is (6, 10), expected (10, 6) (read as "
            "out_in); by its shape up_proj.weight is the way down here. Which of the others is the gate no shape "
            "tells: look into the model's code and pass names=",
            {"gate_proj": GATE.T, "down_proj": UP.T, "up_proj": DOWN.T})


def test_every_order_of_a_fused_matrix():
    interleaved = np.empty((2 * H, D))
    interleaved[::2], interleaved[1::2] = GATE.T, UP.T
    for order, weight, bias in (("gate_up", GATE_UP, np.r_[B_GATE, B_UP]), ("up_gate", UP_GATE, np.r_[B_UP, B_GATE]),
                                ("interleaved", interleaved, np.ravel([B_GATE, B_UP], order="F"))):
        tensors = {"gate_up_proj": weight, "gate_up_proj.bias": bias, "down_proj": DOWN.T, "down_proj.bias": B_DOWN}
        expected = gated("silu", B_GATE, B_UP, B_DOWN)
        np.testing.assert_allclose(opened(tensors, fused=order)(X), expected, rtol=1e-12)
        turned = {name: array.T for name, array in tensors.items()}
        np.testing.assert_allclose(opened(turned, fused=order, layout="in_out")(X), expected, rtol=1e-12)
    np.testing.assert_allclose(opened({"gate_up_proj": GATE_UP, "down_proj": DOWN.T})(X), gated("silu"), rtol=1e-12)
    refused("fused = 'gate_up' is given, but no part of this FFN is fused", LLAMA, fused="gate_up")
    refused("fused = 'up_gate' is given, but no part of this FFN is fused", {"fc1": LIFT.T, "fc2": DOWN.T},
            fused="up_gate", activation="relu")
    refused("fused must be given with names: 'gate_up', 'up_gate' or 'interleaved'; neither shapes nor values tell it",
            {"fc1": GATE_UP, "fc2": DOWN.T}, names={"fused": "fc1", "down": "fc2"}, activation="silu")


def test_names_for_any_other_naming():
    tensors = {"m.A": GATE, "m.B": UP, "m.C": DOWN, "m.bA": B_GATE, "m.bB": B_UP, "m.bC": B_DOWN}
    names = {"gate": "A", "up": "B", "down": "C", "gate_bias": "bA", "up_bias": "bB", "down_bias": "bC"}
    ffn = F.from_state_dict(tensors, "m", "silu", names=names)  # the biases decide the layout
    np.testing.assert_allclose(ffn(X), gated("silu", B_GATE, B_UP, B_DOWN), rtol=1e-12)
    bare = {name: array for name, array in tensors.items() if name[2] != "b"}
    three = {"gate": "A", "up": "B", "down": "C"}
    np.testing.assert_allclose(F.from_state_dict(bare, "m", "silu", "in_out", three)(X), gated("silu"), rtol=1e-12)
    swapped = {"gate": "B", "up": "A", "down": "C"}
    assert np.abs(F.from_state_dict(bare, "m", "silu", "in_out", swapped)(X) - gated("silu")).max() > 0.1
    for error, says, options in [
        (ValueError, "nothing decides whether m.A (6, 10) is stored (out, in) or (in, out): there is no bias; pass "
         "layout='out_in' (PyTorch's Linear) or layout='in_out' (GPT-2's Conv1D)",
         dict(activation="silu", names=three)),
        (ValueError, "activation must be given, A and B and C do not tell it (names= says nothing about it); the "
         "model's config.json does: pass config=", dict(layout="in_out", names=three)),
        (ValueError, "names must have the roles lift and down, or gate, up and down, or fused and down, and their "
         "..._bias; got 'gate', 'down'", dict(names={"gate": "A", "down": "C"})),
        (ValueError, "names must have the roles lift and down, or gate, up and down, or fused and down, and their "
         "..._bias; got 'lift', 'down', 'gate_bias'", dict(names={"lift": "A", "down": "C", "gate_bias": "bA"})),
        (ValueError, "names must name tensors under prefix 'm.', got 'Z'; there is A, B, C",
         dict(names={"lift": "Z", "down": "C"})),
        (ValueError, "names must name tensors under prefix 'm.', got 'bZ'; there is A, B, C",
         dict(names={"lift": "A", "down": "C", "lift_bias": "bZ"})),
        (ValueError, "names must give each role a tensor of its own, got {'gate': 'A', 'up': 'A', 'down': 'C'}",
         dict(names={"gate": "A", "up": "A", "down": "C"})),
        (TypeError, "names must be a mapping of role to name, got ['A', 'C']", dict(names=["A", "C"])),
        (TypeError, "names must be a mapping of role to name, got {'lift': 3}", dict(names={"lift": 3})),
    ]:
        with pytest.raises(error) as caught:
            F.from_state_dict(bare, "m", **options)
        assert str(caught.value) == says
    with pytest.raises(ValueError, match="^m.bC .* is not understood"):  # a bias that names= forgot is no neighbour
        F.from_state_dict(bare | {"m.bC": B_DOWN}, "m", "silu", "in_out", three)


# ---------------------------------------------------------------- the activation, and what configs say

@pytest.mark.parametrize("config, tensors, activation", [
    ({"hidden_act": "gelu"}, "plain", "gelu"), ({"hidden_act": "gelu_new"}, "plain", "gelu_tanh"),
    ({"activation_function": "relu"}, "plain", "relu"), ({"activation": "gelu"}, "plain", "gelu"),
    ({"hidden_act": "quick_gelu"}, "plain", "quick_gelu"), ({"hidden_act": "relu2"}, "plain", "relu2"),
    ({"hidden_act": "gelu_fast"}, "plain", "gelu_tanh"), ({"hidden_act": "gelu_pytorch_tanh"}, "plain", "gelu_tanh"),
    ({"model_type": "openai-gpt", "afn": "gelu"}, "plain", "gelu_tanh"),
    ({"model_type": "bloom"}, "plain", "gelu_tanh"), ({"model_type": "mpt"}, "plain", "gelu"),
    ({"model_type": "mpt", "ffn_config": {"ffn_act_fn": {"name": "quick_gelu"}}}, "plain", "quick_gelu"),
    ({"model_type": "esm", "hidden_act": "relu"}, "plain", "gelu"),
    ({"gelu_activation": True}, "plain", "gelu"), ({"gelu_activation": False}, "plain", "relu"),
    ({"feed_forward_proj": "relu", "dense_act_fn": "relu"}, "plain", "relu"),
    ({"feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu"}, "gated", "gelu_tanh"),
    ({"feed_forward_proj": "gated-silu"}, "gated", "silu"),
    ({"hidden_act": "silu"}, "gated", "silu"), ({"hidden_act": "swish"}, "gated", "silu"),
    ({"activation_function": "swiglu"}, "gated", "silu"),
    ({"model_type": "gemma", "hidden_act": "gelu", "hidden_activation": None}, "gated", "gelu_tanh"),
    ({"model_type": "gemma", "hidden_act": "gelu_pytorch_tanh"}, "gated", "gelu_tanh"),
    ({"model_type": "gemma2", "hidden_act": "silu", "hidden_activation": "gelu_pytorch_tanh"}, "gated", "gelu_tanh"),
    ({"model_type": "gemma3_text"}, "gated", "gelu_tanh"),
    ({"model_type": "dinov2", "hidden_act": "gelu", "use_swiglu_ffn": True}, "gated", "silu"),
    ({"model_type": "dinov2", "hidden_act": "gelu", "use_swiglu_ffn": False}, "plain", "gelu"),
    ({"hidden_act": "gelu", "pooler_act": "tanh"}, "plain", "gelu"),
    ({"hidden_act": "gelu", "hidden_size": D}, "plain", "gelu"), ({"hidden_size": D}, "gated", "silu"),
])
def test_the_config_tells_the_activation(config, tensors, activation, tmp_path):
    tensors = LLAMA if tensors == "gated" else {"fc1": LIFT.T, "fc2": DOWN.T}
    (tmp_path / "config.json").write_text(json.dumps(config))
    expected = (gated if tensors is LLAMA else plain)(activation)
    for given in (config, tmp_path / "config.json", str(tmp_path / "config.json")):
        ffn = opened(tensors, config=given)
        np.testing.assert_allclose(ffn(X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("config, says", [
    ({"hidden_act": "xielu"}, "config says hidden_act = 'xielu', which is none of the activations known: "
     + ", ".join(F.ACTIVATIONS)),
    ({"hidden_act": "silu", "activation_function": "gelu"}, "config says several things about activations (hidden_act "
     "= 'silu', activation_function = 'gelu'): pass activation= for the one that is this FFN's"),
    ({"hidden_act": "silu", "encoder_hidden_act": "relu"}, "config says several things about activations (hidden_act = "
     "'silu', encoder_hidden_act = 'relu'): pass activation= for the one that is this FFN's"),
    ({"hidden_act": ["gelu"]}, "config says hidden_act = ['gelu'], which is none of the activations known: "
     + ", ".join(F.ACTIVATIONS)),
    *[(config, "config is that of several models (" + ", ".join(key for key, v in config.items() if type(v) is dict) +
       "), whose activations differ or stand there alone: pass the part that this FFN belongs to, such as "
       f"config=config[{next(key for key, v in config.items() if type(v) is dict)!r}], or activation=")
      for config in ({"hidden_act": "silu", "decoder": {"hidden_act": "gelu"}},
                     {"encoder": {"hidden_activation": "gelu_pytorch_tanh"}}, {"vlm_config": {"hidden_size": 6}},
                     {"text_config": {}, "vision_config": {}}, {"model_type": "gemma3", "text_config": {}})],
    ({"hidden_act": "silu", "hidden_size": 7}, "config has hidden_size = 7, but these tensors have d_model = 6: is it "
     "another model's, or is layout= needed?"),
    ({"hidden_activation": "gelu_pytorch_tanh", "activation_sparsity_pattern": [0.95, 0.0]},
     "config has activation_sparsity_pattern = [0.95, 0.0], which changes this model's FFN in a way that no layer here "
     "can express"),
])
def test_configs_that_mean_something_else_are_refused(config, says):
    refused(says, LLAMA, config=config)


def test_a_norm_of_the_module_itself_is_no_neighbour():
    for prefix in ("l.mlp.", "blocks.3.ffn.", "l.feed_forward."):
        with pytest.raises(ValueError, match=r"norm.weight \(6,\) is not understood"):
            F.from_state_dict(full_names(prefix, LLAMA | {"norm": np.ones(D)}), prefix)
    beit = {"intermediate.dense": LIFT.T, "output.dense": DOWN.T, "lambda_1": np.ones(D), "layernorm_after": np.ones(D)}
    np.testing.assert_allclose(F.from_state_dict(full_names("encoder.layer.3.", beit), "encoder.layer.3")(X),
                               plain("gelu"), rtol=1e-12)


def test_a_caller_who_knows_the_activation_needs_no_clear_config():
    for config in ({"text_config": {}}, {"hidden_act": "silu", "encoder_hidden_act": "relu"}):
        assert opened(LLAMA, activation="silu", config=config).activation == "silu"


def test_phi_4_s_audio_part_must_be_told_its_order():
    tensors = {"gate_up_proj": UP_GATE, "down_proj": DOWN.T}
    says = ("fused must be given for m.gate_up_proj.weight: the audio part of Phi-4-multimodal stacks [up; gate] under "
            "the name that others use for [gate; up]")
    config = {"model_type": "phi4_multimodal_audio", "hidden_act": "silu"}
    refused(says, tensors, config=config)
    np.testing.assert_allclose(opened(tensors, config=config, fused="up_gate")(X), gated("silu"), rtol=1e-12)


def test_the_kind_of_model_decides_the_layout_of_c_fc_without_biases():
    for kind, stored in (("gpt2", (LIFT, DOWN)), ("starcoder2", (LIFT.T, DOWN.T))):
        ffn = opened(dict(zip(("c_fc", "c_proj"), stored)), config={"model_type": kind, "hidden_act": "gelu_new"})
        np.testing.assert_allclose(ffn(X), plain("gelu_tanh"), rtol=1e-12)


def test_masked_arrays_and_packed_integers_are_refused():
    with pytest.raises(TypeError, match="^m.gate_proj.weight must be a plain array, got a masked one"):
        opened(LLAMA | {"gate_proj": np.ma.array(GATE.T, mask=GATE.T > 0)})
    for bad in (GATE.T.astype(np.int32), np.zeros((H, D), [("a", "u1"), ("b", "u1")])):
        with pytest.raises(TypeError, match="^m.gate_proj.weight must hold float16, float32, float64 or bfloat16"):
            opened(LLAMA | {"gate_proj": bad})


def test_find_ffns_is_fast_on_a_large_model():
    names = ("gate_proj", "up_proj", "down_proj")
    tensors = {f"model.layers.{i}.mlp.{n}.weight": Unreadable(*((8, 21) if n == "down_proj" else (21, 8)))
               for i in range(5000) for n in names}
    start = time.perf_counter()
    assert len(F.find_ffns(tensors)) == 5000 and time.perf_counter() - start < 10  # it took a minute


def test_config_and_activation_must_agree():
    config = {"hidden_act": "silu"}
    assert opened(LLAMA, activation="swish", config=config).activation == "swish"
    refused("activation = 'gelu' is given, but the config says silu", LLAMA, activation="gelu", config=config)
    assert opened(LLAMA, activation="gelu_tanh").activation == "gelu_tanh"
    with pytest.raises(ValueError) as error:
        opened(LLAMA, activation="swigloo")
    assert str(error.value) == f"activation must be one of {', '.join(F.ACTIVATIONS)}; got 'swigloo'"


# ---------------------------------------------------------------- prefixes, missing parts, bad arguments

@pytest.mark.parametrize("prefix", ["model.layers.3.mlp.", "model.layers.3.mlp"])
def test_prefix_is_stripped_and_neighbours_are_ignored(prefix):
    tensors = {}
    for i in (3, 33, 4):
        tensors |= full_names(f"model.layers.{i}.mlp.", {name: W + i for name, W in LLAMA.items()})
    tensors |= {"model.layers.3.post_attention_layernorm.weight": np.ones(D), "model.norm.weight": np.ones(D)}
    np.testing.assert_array_equal(F.from_state_dict(tensors, prefix).W_gate, GATE + 3)
    with pytest.raises(ValueError, match="no FFN recognised.*try prefix='model.layers.3.mlp.' or 2 more$"):
        F.from_state_dict(tensors)
    with pytest.raises(ValueError, match="none starts with prefix 'model.layers.9.mlp.'"):
        F.from_state_dict(tensors, "model.layers.9.mlp")
    with pytest.raises(ValueError, match="try prefix='model.layers.33.mlp.'$"):
        F.from_state_dict(tensors, "model.layers.33")


@pytest.mark.parametrize("tensors, says", [
    ({"gate_proj": GATE.T, "up_proj": UP.T}, "found gate_proj.weight, up_proj.weight.*lacks down_proj.weight"),
    ({"fc1": LIFT.T}, "lacks fc2.weight"), ({}, "found no names; understood are"),
    (LLAMA | {"fc1": LIFT.T, "fc2": DOWN.T}, "fit more than one FFN"),
])
def test_missing_or_ambiguous_parts(tensors, says):
    with pytest.raises(ValueError, match=says):
        F.from_state_dict(full_names("", tensors))
    with pytest.raises(ValueError, match="found encoder; understood are"):
        F.from_state_dict({"encoder": LIFT, 3: UP})


@pytest.mark.parametrize("error, says, options", [
    (TypeError, "tensors must be a mapping of names to arrays, such as read_safetensors gives, got [1]",
     dict(tensors=[1])),
    (TypeError, "prefix must be a string, got 3", dict(prefix=3)),
    (ValueError, "layout must be None, 'out_in' or 'in_out', got 'io'", dict(layout="io")),
    (ValueError, "layout must be None, 'out_in' or 'in_out', got array([1])", dict(layout=np.array([1]))),
    (ValueError, "fused must be None, 'gate_up', 'up_gate' or 'interleaved', got 'halves'", dict(fused="halves")),
    (TypeError, "config must be a config.json as a mapping or a path, got 3", dict(config=3)),
])
def test_bad_arguments(error, says, options):
    with pytest.raises(error) as caught:
        F.from_state_dict(**{"tensors": {}, **options})
    assert str(caught.value) == says


def test_a_config_that_is_no_json_object(tmp_path):
    for text in ("[1]", "no json", "3"):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError) as error:
            opened(LLAMA, config=tmp_path / "config.json")
        assert str(error.value) == f"config must be a JSON object, {tmp_path / 'config.json'} is none"


@pytest.mark.parametrize("bad, says", [
    (LIFT.T.astype(np.uint16), "got uint16"), (LIFT.T.astype(np.uint8), "got uint8"), (LIFT.T + 1j, "got complex128"),
    (LIFT.T.astype(np.int8), "got int8"), (LIFT.T.astype(object), "got object"), (None, "got object"),
])
def test_tensors_that_hold_no_floats(bad, says):
    with pytest.raises(TypeError, match=f"^fc1.weight must hold float16, float32, float64 or bfloat16 numbers, {says}"):
        F.from_state_dict({"fc1.weight": bad, "fc2.weight": DOWN.T}, activation="relu")


def test_tensors_of_other_dimensions():
    with pytest.raises(ValueError, match=r"^fc1.weight must have 2 dimensions, got shape \(10,\)$"):
        F.from_state_dict({"fc1.weight": LIFT[0], "fc2.weight": DOWN.T}, activation="relu")
    with pytest.raises(ValueError, match=r"^m.fc1.bias must have 1 dimension, got shape \(10, 1\)$"):
        opened({"fc1": LIFT.T, "fc2": DOWN.T, "fc1.bias": np.ones((H, 1)), "fc2.bias": B_DOWN}, activation="relu")


def test_dtypes_are_kept_and_lists_and_integers_work():
    for dtype in (np.float16, np.float32):
        ffn = opened({name: W.astype(dtype) for name, W in LLAMA.items()})
        assert ffn(X.astype(dtype)).dtype == dtype
    tensors = full_names("m.", {name: W.tolist() for name, W in LLAMA.items()})
    assert F.from_state_dict(tensors, "m").d_model == D and F.find_ffns(tensors)[0].d_ff == H
    assert opened({name: np.ones(W.shape, int) for name, W in LLAMA.items()}).d_ff == H


def test_bfloat16_arrays_without_a_name_for_the_dtype():
    bits = {name: (W.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for name, W in LLAMA.items()}
    ffn = opened({name: b.view("V2") for name, b in bits.items()})
    assert ffn.W_gate.dtype == np.float32
    by_hand = [np.frombuffer(bytes([0, 0, b & 255, b >> 8]), "<f4")[0] for b in bits["gate_proj"].ravel().tolist()]
    np.testing.assert_array_equal(ffn.W_gate, np.reshape(by_hand, (H, D)).T)


def test_pytorch_tensors_that_numpy_refuses():
    class Tensor:  # what torch does: NumPy may not take it while it tracks gradients or is bfloat16
        def __init__(self, array, dtype="torch.float32", free=False):
            self.array, self.dtype, self.free, self.shape = array, dtype, free, array.shape

        def detach(self):
            return Tensor(self.array, self.dtype, free=True)

        def cpu(self):
            return self

        def float(self):
            return Tensor(self.array, free=self.free)

        def __array__(self, dtype=None, copy=None):
            if not self.free or "bfloat16" in self.dtype:
                raise TypeError("Got unsupported ScalarType BFloat16")
            return self.array

    for dtype in ("torch.float32", "torch.bfloat16"):
        tensors = full_names("m.", {name: Tensor(W, dtype) for name, W in LLAMA.items()})
        np.testing.assert_array_equal(F.from_state_dict(tensors, "m").W_gate, GATE)
    broken = SimpleNamespace(__array__=None, shape=(2, 2))
    with pytest.raises(TypeError, match="^fc1.weight must be"):
        F.from_state_dict({"fc1.weight": broken, "fc2.weight": DOWN.T}, activation="relu")


# ---------------------------------------------------------------- find_ffns

class Unreadable:
    """A tensor whose shape may be looked at, and nothing else."""

    def __init__(self, *shape):
        self.shape = shape

    def __array__(self, dtype=None, copy=None):
        pytest.fail("find_ffns must not read weights")


def test_find_ffns_lists_a_whole_model_in_its_order_without_reading():
    tensors = {"embed.weight": Unreadable(100, 8), "norm.weight": Unreadable(8)}
    for i in range(12):
        tensors[f"layers.{i}.attn.q_proj.weight"] = Unreadable(8, 8)
        if i % 2:
            tensors[f"layers.{i}.moe.gate.weight"] = Unreadable(4, 8)
            for e in range(4):
                tensors |= {f"layers.{i}.moe.experts.{e}.w{k}.weight": Unreadable(*s)
                            for k, s in ((1, (5, 8)), (2, (8, 5)), (3, (5, 8)))}
        else:
            tensors |= {f"layers.{i}.mlp.{name}.weight": Unreadable(*s) for name, s in (
                ("gate_proj", (21, 8)), ("up_proj", (21, 8)), ("down_proj", (8, 21)))}
    found = F.find_ffns(tensors)
    assert [r.prefix for r in found] == [f"layers.{i}.{'moe' if i % 2 else 'mlp'}." for i in range(12)]
    assert [r[2:] for r in found] == [(8, 21, True, 0), (8, 5, True, 4)] * 6
    assert F.find_ffns({}) == [] and F.find_ffns({"a.fc1.weight": Unreadable(3), "a.fc2.weight": Unreadable(3)}) == []
    with pytest.raises(TypeError, match="^tensors must be a mapping of names to arrays, got 3$"):
        F.find_ffns(3)


def test_find_ffns_reads_gpt2_both_ways():
    for shapes in (((8, 32), (32,), (32, 8), (8,)), ((32, 8), (32,), (8, 32), (8,))):
        names = ("c_fc.weight", "c_fc.bias", "c_proj.weight", "c_proj.bias")
        (record,) = F.find_ffns({f"h.0.mlp.{n}": Unreadable(*s) for n, s in zip(names, shapes)})
        assert (record.d_model, record.d_ff) == (8, 32)
    (record,) = F.find_ffns({"c_fc.weight": Unreadable(8, 32), "c_proj.weight": Unreadable(32, 8)})
    assert (record.prefix, record.d_model, record.d_ff) == ("", 8, 32)
