"""The real layers against their reference outputs, and layers that are saved and loaded."""
import json

import numpy as np
import pytest

import ffn_numpy as F
from ffn_numpy.pretrained import DATA

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


def test_what_a_hook_captured_is_reproduced():
    with np.load(DATA / "apple_tree.npz") as f:
        x, y, tokens = f["x"], f["y"], f["tokens"]
    assert tokens.tolist() == ["Far", " away", " there", " is", " an", " apple", " tree"]
    error = np.abs(F.load("smollm2_L11").ffn(x) - y).max(axis=-1) / np.abs(y).max(axis=-1)  # per token
    assert x.shape == y.shape == (7, 576) and error.max() <= 1e-4


def test_facts_about_the_layers():
    relu = F.load("anarcii_enc0")
    fires = relu.ffn.trace(relu.x)["activate"] > 0  # (122, 512)
    assert (~fires.any(axis=0)).sum() == 255 and 0.977 < (~fires).mean() < 0.979
    massive = F.load("smollm2_L11")
    trace = massive.ffn.trace(massive.x)
    assert np.abs(trace["gated"][0]).argmax() == 1229 and np.abs(trace.output[0]).argmax() == 507
    assert 22_000 < np.abs(trace.output[0, 507]) < 23_000


@pytest.mark.parametrize("name", ["gpt2", "", None, 3, "anarcii_enc0.npz", ["minilm_L2"], np.arange(3)])
def test_unknown_layer(name):
    with pytest.raises(ValueError) as error:
        F.load(name)
    assert str(error.value) == ("name must be one of anarcii_enc0, minilm_L2, smollm2_L11, or the path of a file that "
                                f"RealLayer.save wrote; got {name!r}")


def test_layer_stats_agree_with_the_layers():
    stats = F.layer_stats()
    names = stats["stat_names"].tolist()
    layer = F.load("anarcii_enc0")
    row = dict(zip(names, stats["anarcii_trained_stats"][0]))
    trace = layer.ffn.trace(layer.x)
    assert row["neg_share"] == pytest.approx((trace["lift"] < 0).mean(), abs=1e-3)
    assert row["hid_eq_0"] == pytest.approx((trace["activate"] == 0).mean(), abs=1e-3)
    assert row["pre_std"] == pytest.approx(trace["lift"].std(), rel=1e-2)


# ---------------------------------------------------------------- layers of one's own

X = np.random.default_rng(0).normal(size=(4, 6))
TOKENS = ["Far", "away", "there", "is"]


def layer(cls=F.FeedForward, dtype=np.float32, **options):
    ffn, x = cls.random(6, 10, "silu", bias=True, dtype=dtype), X.astype(dtype)
    return F.RealLayer(ffn, x, ffn(x), TOKENS, [0, 0, 1, 1], {"model": "mine", "layer": 3}, **options)


@pytest.mark.parametrize("cls", [F.FeedForward, F.GatedFeedForward])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["mine.npz", "mine", "mine.layer"])
def test_a_saved_layer_comes_back_to_the_last_bit(cls, dtype, name, tmp_path):
    ours = layer(cls, dtype)
    ours.save(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [name]  # nothing half done lies about
    for path in (tmp_path / name, str(tmp_path / name)):
        again = F.load(path)
        assert type(again.ffn) is cls and again.ffn.activation == "silu" and again.meta == ours.meta
        assert list(again.ffn.parameters()) == list(ours.ffn.parameters())
        for a, b in [(p, again.ffn.parameters()[n]) for n, p in ours.ffn.parameters().items()] + [
                (getattr(ours, n), getattr(again, n)) for n in ("x", "y", "tokens", "sentence_id")]:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        assert repr(again) == repr(ours)


def test_biases_that_are_not_there_stay_away(tmp_path):
    ffn = F.FeedForward.random(6, 10, bias=False)
    F.RealLayer(ffn, X, ffn(X), TOKENS).save(tmp_path / "mine")
    again = F.load(tmp_path / "mine")
    assert list(again.ffn.parameters()) == ["W1", "W2"] and again.sentence_id.tolist() == [0] * 4 and again.meta == {}
    assert repr(again).startswith("RealLayer('', layer ?, x (4, 6), FeedForward(")


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path):
    good = layer()
    good.save(tmp_path / "mine")
    before = (tmp_path / "mine").read_bytes()
    bad = F.RealLayer(good.ffn, good.x, good.y, TOKENS, meta={"model": object()})
    with pytest.raises(TypeError, match="^meta must hold what JSON can: Object of type object is not JSON"):
        bad.save(tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == before and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(FileNotFoundError):
        good.save(tmp_path / "missing" / "mine")


def test_files_that_save_did_not_write(tmp_path):
    path = tmp_path / "f"
    layer().save(path)
    with np.load(path) as f:
        whole = {name: f[name] for name in f.files}
    text = path.read_bytes()
    changed = {"kind": "Linear", "activation": "tanh", "W1": np.ones((6, 9)), "b1": np.ones(3), "meta": "[", "x": None}
    contents = [b"", b"text", text[:len(text) // 2], text[:-30]]
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"f is not a file that RealLayer.save wrote: "):
            F.load(path)
    for name, value in changed.items():
        np.savez(tmp_path / "g.npz", **{**whole, name: np.array(value)})
        with pytest.raises((ValueError, TypeError), match="g.npz is not a file that RealLayer.save wrote: "):
            F.load(tmp_path / "g.npz")
    for name in ("W1", "tokens", "kind"):
        np.savez(tmp_path / "g.npz", **{n: v for n, v in whole.items() if n != name})
        with pytest.raises(ValueError, match="g.npz is not a file that RealLayer.save wrote: "):
            F.load(tmp_path / "g.npz")
    np.savez(tmp_path / "g.npz", **whole, W3=np.ones(3))
    with pytest.raises(ValueError, match="not a file that RealLayer.save wrote: .*unexpected keyword"):
        F.load(tmp_path / "g.npz")


@pytest.mark.parametrize("change, error, says", [
    (dict(ffn=F.MixtureOfExperts(np.ones((6, 1)), [F.FeedForward.random(6)], 1)), TypeError,
     "ffn must be a FeedForward or GatedFeedForward, got MixtureOfExperts(d_model=6, n_experts=1, top_k=1, 324 par..."),
    (dict(x=X[0]), ValueError, "x must have shape (n_tokens, 6), got (6,)"),
    (dict(x=X[:, :5]), ValueError, "x must have shape (n_tokens, 6), got (4, 5)"),
    (dict(y=X[:3]), ValueError, "y must have x's shape (4, 6), got (3, 6)"),
    (dict(y="y"), TypeError,
     "y must hold real numbers (float16, float32, float64 or integers), got a str of dtype <U1"),
    (dict(tokens=TOKENS[:3]), ValueError, "tokens must be 4 strings, one per row of x; got ['Far', 'away', 'there']"),
    (dict(tokens=[1, 2, 3, 4]), ValueError, "tokens must be 4 strings, one per row of x; got [1, 2, 3, 4]"),
    (dict(sentence_id=[0, 1]), ValueError, "sentence_id must be 4 integers, one per row of x; got [0, 1]"),
    (dict(sentence_id=[0.5] * 4), ValueError,
     "sentence_id must be 4 integers, one per row of x; got [0.5, 0.5, 0.5, 0.5]"),
    (dict(meta=[1]), TypeError, "meta must be a dict, got [1]"),
])
def test_parts_that_do_not_fit(change, error, says):
    ffn = F.FeedForward.random(6)
    with pytest.raises(error) as caught:
        F.RealLayer(**{"ffn": ffn, "x": X, "y": ffn(X), "tokens": TOKENS, **change})
    assert str(caught.value) == says


def test_the_shipped_layers_can_be_saved(tmp_path):
    shipped = F.load("anarcii_enc0")
    shipped.save(tmp_path / "copy.npz")
    again = F.load(tmp_path / "copy.npz")
    np.testing.assert_array_equal(again.ffn(again.x), shipped.ffn(shipped.x))
    assert json.dumps(again.meta) == json.dumps(shipped.meta)
