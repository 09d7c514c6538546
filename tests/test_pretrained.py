"""The real layers against their reference outputs, and from_state_dict against every naming it claims."""
import json
from types import SimpleNamespace

import numpy as np
import pytest

import ffn_numpy as F

R = np.random.default_rng(0)
D, H = 6, 10  # d_model, d_ff
LIFT, UP, DOWN = R.normal(size=(D, H)), R.normal(size=(D, H)), R.normal(size=(H, D))  # all (in, out)
B_LIFT, B_UP, B_DOWN = R.normal(size=H), R.normal(size=H), R.normal(size=D)
X = R.normal(size=(4, D))


# ---------------------------------------------------------------- the shipped layers

@pytest.mark.parametrize("name, activation, d_model, d_ff, n_tokens", [
    ("anarcii_enc0", "relu", 128, 512, 122), ("minilm_L2", "gelu", 384, 1536, 46),
    ("smollm2_L11", "silu", 576, 1536, 39),
])
def test_layer_reproduces_the_reference_output(name, activation, d_model, d_ff, n_tokens):
    layer = F.load(name)
    assert (layer.ffn.activation, layer.ffn.d_model, layer.ffn.d_ff) == (activation, d_model, d_ff)
    assert layer.x.shape == layer.y.shape == (n_tokens, d_model)
    assert layer.tokens.shape == layer.sentence_id.shape == (n_tokens,)
    assert {p.dtype for p in layer.ffn.parameters().values()} == {np.dtype(np.float32)}
    y = layer.ffn(layer.x)
    error = np.abs(y - layer.y).max(axis=-1) / np.abs(layer.y).max(axis=-1)  # per token
    assert y.dtype == np.float32 and error.max() <= 1e-4
    assert layer.meta["model"] and "license" in layer.meta and "\n" not in repr(layer)


def test_facts_about_the_layers():
    relu = F.load("anarcii_enc0")
    fires = relu.ffn.trace(relu.x)["activate"] > 0  # (122, 512)
    assert (~fires.any(axis=0)).sum() == 255 and 0.977 < (~fires).mean() < 0.979
    massive = F.load("smollm2_L11")
    trace = massive.ffn.trace(massive.x)
    assert np.abs(trace["gated"][0]).argmax() == 1229 and np.abs(trace.output[0]).argmax() == 507
    assert 22_000 < np.abs(trace.output[0, 507]) < 23_000


@pytest.mark.parametrize("name", ["gpt2", "", None, 3, "anarcii_enc0.npz"])
def test_unknown_layer(name):
    with pytest.raises(ValueError, match="name must be one of anarcii_enc0, minilm_L2, smollm2_L11; got"):
        F.load(name)


def test_q4_1_by_hand():
    block = np.zeros(20, np.uint8)
    block[:2], block[2:4] = np.array([0.5], np.float16).view(np.uint8), np.array([-1.0], np.float16).view(np.uint8)
    block[4], block[19] = 0x2F, 0xA0  # weight 0: q = 15, weight 16: q = 2; weight 15: q = 0, weight 31: q = 10
    w = F.decode_q4_1(block, (4, 8))
    assert w.dtype == np.float32 and w.shape == (4, 8)
    flat = w.ravel().tolist()
    assert [flat[i] for i in (0, 16, 15, 31, 1)] == [6.5, 0.0, -1.0, 4.0, -1.0]


def test_layer_stats_agree_with_the_layers():
    stats = F.layer_stats()
    names = stats["stat_names"].tolist()
    layer = F.load("anarcii_enc0")
    row = dict(zip(names, stats["anarcii_trained_stats"][0]))
    trace = layer.ffn.trace(layer.x)
    assert row["neg_share"] == pytest.approx((trace["lift"] < 0).mean(), abs=1e-3)
    assert row["hid_eq_0"] == pytest.approx((trace["activate"] == 0).mean(), abs=1e-3)
    assert row["pre_std"] == pytest.approx(trace["lift"].std(), rel=1e-2)


# ---------------------------------------------------------------- from_state_dict

PLAIN = {"wi wo": "relu", "fc1 fc2": "relu", "linear1 linear2": "relu",
         "intermediate.dense output.dense": "gelu", "c_fc c_proj": "gelu_tanh"}
GATED = {"gate_proj up_proj down_proj": "silu", "w1 w3 w2": "silu", "wi_0 wi_1 wo": "gelu_tanh"}


def state(names, weights, biases=()):
    """Tensors under these names: weights transposed to torch's (out, in)."""
    tensors = {f"{n}.weight": w.T for n, w in zip(names.split(), weights)}
    return tensors | {f"{n}.bias": b for n, b in zip(names.split(), biases)}


@pytest.mark.parametrize("names", PLAIN)
@pytest.mark.parametrize("biases", [(), (B_LIFT,), (B_LIFT, B_DOWN)])
def test_plain_families(names, biases):
    layout = "out_in" if names == "c_fc c_proj" and not biases else None
    ffn = F.from_state_dict(state(names, (LIFT, DOWN), biases), layout=layout)
    b1, b2 = (*biases, None, None)[:2]
    assert isinstance(ffn, F.FeedForward) and ffn.activation == PLAIN[names]
    np.testing.assert_array_equal(ffn(X), F.FeedForward(LIFT, b1, DOWN, b2, PLAIN[names])(X))


@pytest.mark.parametrize("names", GATED)
@pytest.mark.parametrize("biases", [(), (B_LIFT, B_UP, B_DOWN)])
def test_gated_families(names, biases):
    ffn = F.from_state_dict(state(names, (LIFT, UP, DOWN), biases))
    assert isinstance(ffn, F.GatedFeedForward) and ffn.activation == GATED[names]
    np.testing.assert_allclose(ffn(X), F.GatedFeedForward(LIFT, UP, DOWN, *biases, activation=GATED[names])(X))


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("layout", [None, "in_out"])
def test_fused_gate_comes_first(biases, layout):
    tensors = {"gate_up_proj.weight": np.concatenate([LIFT, UP], axis=1).T, "down_proj.weight": DOWN.T}
    if layout == "in_out":
        tensors = {name: w.T for name, w in tensors.items()}
    if biases:
        tensors |= {"gate_up_proj.bias": np.concatenate([B_LIFT, B_UP]), "down_proj.bias": B_DOWN}
    ffn = F.from_state_dict(tensors, layout=layout)
    expected = F.GatedFeedForward(LIFT, UP, DOWN, *((B_LIFT, B_UP, B_DOWN) if biases else ()))
    np.testing.assert_array_equal(ffn(X), expected(X))


def test_gpt2_conv1d_and_nanogpt_linear_are_told_apart_by_the_bias():
    expected = F.FeedForward(LIFT, B_LIFT, DOWN, B_DOWN, "gelu_tanh")(X)
    linear = state("c_fc c_proj", (LIFT, DOWN), (B_LIFT, B_DOWN))
    conv1d = {n: v.T for n, v in linear.items()}
    np.testing.assert_array_equal(F.from_state_dict(linear)(X), expected)
    np.testing.assert_array_equal(F.from_state_dict(conv1d)(X), expected)
    for tensors, layout in ((linear, "out_in"), (conv1d, "in_out")):
        del tensors["c_fc.bias"]
        with pytest.raises(ValueError, match="there is no bias; pass layout='in_out'.*or layout='out_in'"):
            F.from_state_dict(tensors)
        assert F.from_state_dict(tensors, layout=layout).d_ff == H
    square = {"c_fc.weight": np.eye(4), "c_fc.bias": np.ones(4), "c_proj.weight": np.eye(4)}
    with pytest.raises(ValueError, match=r"nothing decides.*its bias has shape \(4,\)"):
        F.from_state_dict(square)


@pytest.mark.parametrize("prefix", ["model.layers.3.mlp.", "model.layers.3.mlp"])
def test_prefix_is_stripped_and_neighbours_are_ignored(prefix):
    tensors = {f"model.layers.{i}.mlp.{n}": v + i for i in (3, 33, 4)
               for n, v in state("gate_proj up_proj down_proj", (LIFT, UP, DOWN)).items()}
    tensors |= {"model.layers.3.mlp.norm.weight": np.ones(D), "model.norm.weight": np.ones(D)}
    np.testing.assert_array_equal(F.from_state_dict(tensors, prefix).W_gate, LIFT + 3)
    with pytest.raises(ValueError, match="no FFN recognised.*try prefix='model.layers.3.mlp.' or 2 more like it$"):
        F.from_state_dict(tensors)
    with pytest.raises(ValueError, match="none starts with prefix 'model.layers.9.mlp'"):
        F.from_state_dict(tensors, "model.layers.9.mlp")


def test_whole_bert_layer_under_one_prefix():
    tensors = {f"encoder.layer.2.{n}": v for n, v in
               state("intermediate.dense output.dense", (LIFT, DOWN), (B_LIFT, B_DOWN)).items()}
    tensors["encoder.layer.2.attention.output.dense.weight"] = np.eye(D)
    assert F.from_state_dict(tensors, "encoder.layer.2").n_parameters == 2 * D * H + D + H


def test_activation_can_be_given():
    tensors = state("gate_proj up_proj down_proj", (LIFT, UP, DOWN))
    assert F.from_state_dict(tensors, activation="gelu_tanh").activation == "gelu_tanh"
    with pytest.raises(ValueError, match="activation must be one of"):
        F.from_state_dict(tensors, activation="swigloo")


@pytest.mark.parametrize("tensors, says", [
    (state("gate_proj up_proj", (LIFT, UP)), "found gate_proj.weight.*lacks down_proj.weight.*understood are"),
    (state("up_proj down_proj", (LIFT, DOWN)), "lacks gate_proj.weight"),
    (state("fc1", (LIFT,)), "lacks fc2.weight"),
    ({"encoder": LIFT, 3: UP}, "found encoder; understood are"), ({}, "found no names; understood are"),
    (state("gate_proj up_proj down_proj", (LIFT, UP, DOWN)) | state("fc1 fc2", (LIFT, DOWN)), "fit more than one FFN"),
    ({"fc1": LIFT, "fc2": DOWN}, "with .weight"),
])
def test_missing_unknown_or_ambiguous_parts(tensors, says):
    with pytest.raises(ValueError, match=says):
        F.from_state_dict(tensors)


@pytest.mark.parametrize("tensors, says", [
    (state("fc1 fc2", (LIFT.T, DOWN.T), (B_LIFT,)), "fc1.bias has 10 numbers.*is layout='in_out' meant"),
    (state("gate_proj up_proj down_proj", (LIFT, UP[:, :9], DOWN)), r"up_proj.weight does not fit down_proj.weight"),
    ({"gate_up_proj.weight": LIFT.T, "down_proj.weight": DOWN.T}, r"expected \(6, 20\)"),
    (state("fc1 fc2", (LIFT[0], DOWN)), r"fc1.weight must have 2 dimensions, got shape \(10,\)"),
    (state("fc1 fc2", (LIFT, DOWN), (np.ones((H, 1)),)), r"fc1.bias must have 1 dimension, got shape \(10, 1\)"),
])
def test_tensors_that_do_not_fit(tensors, says):
    with pytest.raises(ValueError, match=says):
        F.from_state_dict(tensors)


def test_bad_arguments():
    with pytest.raises(TypeError, match="tensors must be a mapping.*such as read_safetensors gives, got"):
        F.from_state_dict([LIFT])
    with pytest.raises(TypeError, match="prefix must be a string, got 3"):
        F.from_state_dict({}, prefix=3)
    with pytest.raises(ValueError, match="layout must be None, 'out_in' or 'in_out', got 'io'"):
        F.from_state_dict({}, layout="io")
    for bad in (LIFT.astype(np.uint16), LIFT.astype(np.uint8), LIFT + 1j, LIFT.astype(object), None):
        with pytest.raises(TypeError, match="fc1.weight must hold float16, float32, float64 or bfloat16"):
            F.from_state_dict({"fc1.weight": bad, "fc2.weight": DOWN.T})


def test_dtypes_are_kept_and_lists_work():
    for dtype in (np.float16, np.float32):
        ffn = F.from_state_dict({n: v.astype(dtype) for n, v in state("fc1 fc2", (LIFT, DOWN)).items()})
        assert ffn(X.astype(dtype)).dtype == dtype
    assert F.from_state_dict({n: v.tolist() for n, v in state("fc1 fc2", (LIFT, DOWN)).items()}).d_model == D


# ---------------------------------------------------------------- bfloat16 and safetensors

def to_bfloat16(a):
    """float32 -> the uint16 bits of bfloat16, by truncation."""
    return (np.ascontiguousarray(a, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def from_bits(bits):
    return np.array([np.frombuffer(bytes([0, 0, b & 255, b >> 8]), "<f4")[0] for b in bits.ravel().tolist()],
                    np.float32).reshape(bits.shape)


def test_bfloat16_arrays_without_a_name_for_the_dtype():
    bits = {n: to_bfloat16(v) for n, v in state("fc1 fc2", (LIFT, DOWN)).items()}
    ffn = F.from_state_dict({n: b.view("V2") for n, b in bits.items()})
    assert ffn.W1.dtype == np.float32
    np.testing.assert_array_equal(ffn.W1, from_bits(bits["fc1.weight"]).T)


def test_pytorch_tensors_that_numpy_refuses():
    class Tensor:  # what torch does: NumPy may not take it while it tracks gradients or is bfloat16
        def __init__(self, array, dtype="torch.float32", free=False):
            self.array, self.dtype, self.free = array, dtype, free

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
        tensors = {n: Tensor(v, dtype) for n, v in state("fc1 fc2", (LIFT, DOWN)).items()}
        np.testing.assert_array_equal(F.from_state_dict(tensors).W1, LIFT)
    broken = SimpleNamespace(__array__=None)
    with pytest.raises(TypeError, match="fc1.weight"):
        F.from_state_dict({"fc1.weight": broken, "fc2.weight": DOWN.T})


def write_safetensors(path, tensors):
    """The format written by hand: length, JSON header, numbers."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, array) in tensors.items():
        raw = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_bfloat16_safetensors_file_opens(tmp_path):
    bits = {f"model.layers.0.mlp.{n}": to_bfloat16(v)
            for n, v in state("gate_proj up_proj down_proj", (LIFT, UP, DOWN)).items()}
    write_safetensors(tmp_path / "m.safetensors", {"lm_head.weight": ("F8_E4M3", np.ones((3, 3), np.uint8)),
                                                   **{n: ("BF16", b) for n, b in bits.items()}})
    tensors = F.read_safetensors(tmp_path / "m.safetensors", "model.layers.0.mlp.")
    assert set(tensors) == set(bits)
    for name, b in bits.items():
        np.testing.assert_array_equal(tensors[name], from_bits(b))
    ffn = F.from_state_dict(tensors, "model.layers.0.mlp")
    np.testing.assert_allclose(ffn.W_up, UP, rtol=2**-7)
    with pytest.raises(ValueError, match="lm_head.weight in .* is stored as 'F8_E4M3'"):
        F.read_safetensors(tmp_path / "m.safetensors")


def test_prefix_that_no_tensor_has(tmp_path):
    tensors = {f"model.layers.{i}.mlp.{n}": ("F32", v.astype(np.float32)) for i in range(3)
               for n, v in state("fc1 fc2", (LIFT, DOWN)).items()}
    write_safetensors(tmp_path / "f", tensors)
    for prefix, says in (("layers.1.mlp.", "there is model.layers.1.mlp., ..."),
                         ("no", "model.layers.0.mlp.fc1.weight, model")):
        with pytest.raises(ValueError, match=f"prefix must be the start of a name in .* got '{prefix}'.*{says}"):
            F.read_safetensors(tmp_path / "f", prefix)


def test_read_safetensors_equals_the_library(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    tensors = {"a": LIFT, "b.weight": UP.astype(np.float32), "c": DOWN.astype(np.float16), "i": np.arange(3),
               "empty": np.empty((0, 3), np.float32), "scalar": np.array(2.0), "u": np.arange(5, dtype=np.uint8)}
    library.save_file(tensors, tmp_path / "m.safetensors", metadata={"format": "np"})
    ours = F.read_safetensors(str(tmp_path / "m.safetensors"))
    assert set(ours) == set(tensors)
    for name, expected in library.load_file(tmp_path / "m.safetensors").items():
        assert ours[name].dtype == expected.dtype
        np.testing.assert_array_equal(ours[name], expected)


@pytest.mark.parametrize("content, says", [
    (b"", "not a whole"), (b"PK\x03\x04 some zip file....", "not a whole"),
    ((4).to_bytes(8, "little") + b"oops", "header is no JSON object"),
    ((4).to_bytes(8, "little") + b"null", "header is no JSON object"),
    ((3).to_bytes(8, "little") + b"[1]", "header is no JSON object"),
    ((90_000).to_bytes(8, "little") + b"[" * 90_000, "header is no JSON object"),
])
def test_files_that_are_not_safetensors(tmp_path, content, says):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match=says):
        F.read_safetensors(tmp_path / "f")


def test_file_that_is_cut_off(tmp_path):
    write_safetensors(tmp_path / "f", {"a": ("F32", np.ones(100, np.float32))})
    (tmp_path / "f").write_bytes((tmp_path / "f").read_bytes()[:-40])
    with pytest.raises(ValueError, match="^a in .* ends at byte 400 of 360: the file is cut off"):
        F.read_safetensors(tmp_path / "f")
    with pytest.raises(FileNotFoundError):
        F.read_safetensors(tmp_path / "missing")
    for path in (1, True, None):  # a number is a file descriptor to `open`
        with pytest.raises(TypeError, match="path"):
            F.read_safetensors(path)
    with pytest.raises(TypeError, match="prefix must be a string, got 3"):
        F.read_safetensors(tmp_path / "f", prefix=3)


GOOD_ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


@pytest.mark.parametrize("entry, says", [
    (None, "broken header entry"), ([1], "broken header entry"), ({}, "broken header entry"),
    ({"shape": [-1, 3]}, "broken"), ({"shape": None}, "broken"), ({"shape": [2.0, 3]}, "broken"),
    ({"data_offsets": [-24, 0]}, "broken"), ({"data_offsets": [24, 0]}, "broken"), ({"data_offsets": [0]}, "broken"),
    ({"data_offsets": ["0", "24"]}, "broken"), ({"dtype": ["F32"]}, "broken"),
    ({"data_offsets": [0, 20]}, r"has 20 bytes, which do not fit shape \(2, 3\) of F32"),
    ({"dtype": "F16"}, "has 24 bytes, which do not fit"), ({"dtype": "F8_E5M2"}, "is stored as 'F8_E5M2'"),
])
def test_header_entries_are_not_trusted(tmp_path, entry, says):
    entry = GOOD_ENTRY | entry if isinstance(entry, dict) and entry else entry
    text = json.dumps({"a.weight": entry}).encode()
    (tmp_path / "f").write_bytes(len(text).to_bytes(8, "little") + text + bytes(24))
    with pytest.raises(ValueError, match=f"^a.weight in .*{says}"):
        F.read_safetensors(tmp_path / "f")


@pytest.mark.parametrize("blocks, shape, error, says", [
    ([0] * 20, (1, 32), TypeError, "blocks must be a uint8 array"), (None, (1, 32), TypeError, "blocks must be"),
    (np.zeros(20, np.int8), (1, 32), TypeError, "blocks must be"),
    (np.zeros((1, 20), np.uint8), (1, 32), TypeError, "blocks must be"),
    (np.zeros(20, np.uint8), (1, 64), ValueError, r"that is 32 weights for 20 bytes; got \(1, 64\)"),
    (np.zeros(19, np.uint8), (1, 32), ValueError, "shape must be"),
    *[(np.zeros(20, np.uint8), shape, ValueError, "shape must be") for shape in (-1, None, (-1, -32), (32,))],
])
def test_bad_q4_1(blocks, shape, error, says):
    with pytest.raises(error, match=says):
        F.decode_q4_1(blocks, shape)


def test_quantised_or_adapted_layers_are_refused():
    for extra in ("fc1.weight_scale", "fc1.SCB", "fc1.lora_A.weight", "fc2.qzeros"):
        tensors = state("fc1 fc2", (LIFT, DOWN)) | {extra: DOWN}
        with pytest.raises(ValueError, match=f"mlp.{extra} is neither a weight nor a bias"):
            F.from_state_dict({f"mlp.{name}": value for name, value in tensors.items()}, "mlp")
    with pytest.raises(TypeError, match="got int8: dequantise it first"):
        F.from_state_dict({"fc1.weight": LIFT.T.astype(np.int8), "fc2.weight": DOWN.T})
    assert F.from_state_dict({"fc1.weight": np.ones((10, 6), int), "fc2.weight": DOWN.T}).d_ff == 10


def test_prefix_hint_is_near_what_was_typed():
    tensors = {f"model.layers.{i}.mlp.{n}": v for i in range(12) for n, v in state("fc1 fc2", (LIFT, DOWN)).items()}
    with pytest.raises(ValueError, match="try prefix='model.layers.7.mlp.'$"):
        F.from_state_dict(tensors, "model.layers.7")
