"""float16 is computed in float32 and rounded once: every public function against its float64 result, rounded.

Large, tiny and many numbers: where float16 steps in between would overflow, vanish or saturate.
"""
import copy

import numpy as np
import pytest

import ffn_numpy as F
from ffn_numpy import training as T
from ffn_numpy.ffn import make_ffn
from ffn_numpy.trace import Trace

HALF = np.float16
R = np.random.default_rng(0)
EVERY = np.arange(2**16, dtype=np.uint16).view(HALF)  # all float16 numbers there are, inf and NaN included
D = 16
X = R.normal(size=(2, 9, D)).astype(HALF)
LEVELS = R.integers(-3, 4, (9, D)).astype(HALF)       # small whole numbers: float32 products are exact


def assert_rounded(got, exact):
    """`got` is float16 and is `exact` rounded, give or take one unit in the last place and float32's own rounding."""
    assert got.dtype == HALF
    with np.errstate(all="ignore"):
        wanted = np.asarray(exact, np.float64).astype(HALF)
        finite = np.isfinite(wanted)
        size = np.abs(np.asarray(exact, np.float64)[np.isfinite(exact)]).max(initial=0)
        slack = np.spacing(np.abs(wanted)).astype(float) + 1e-6 * size
        off = np.abs(got.astype(float) - wanted.astype(float)) > slack
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got[~finite], wanted[~finite])
    assert not off[finite].any(), (got[finite & off][:5], wanted[finite & off][:5])


def double(value):
    """Arrays, layers and traces in float64."""
    if isinstance(value, Trace):
        return Trace(value.title, [(n, s, double(a), f) for n, s, a, f in value.stages], double(value.maker))
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind == "f" else value
    layer = copy.copy(value)
    for name in value.shapes:
        if getattr(value, name) is not None:
            setattr(layer, name, double(getattr(value, name)))
    for name in {"ffn", "shared"} & set(vars(value)):
        if getattr(value, name) is not None:
            setattr(layer, name, double(getattr(value, name)))
    if hasattr(value, "experts"):
        layer.experts = map(double, value.experts)
    return layer


def halves(*shape, scale=1.0):
    return (scale * R.normal(size=shape)).astype(HALF)


def square(scale):
    return halves(4, D, D, scale=scale)


ONES, EXACT = np.ones(D, HALF), np.stack([np.rint(3 * R.normal(size=(D, D))) for _ in range(4)]).astype(HALF)
CALLS = {
    **{f"{name}{part}": (f, [EVERY]) for name, activation in F.ACTIVATIONS.items()
       for part, f in (("", activation.function), ("'", activation.derivative))},
    "gelu, tanh": (lambda x: F.gelu(x, "tanh"), [EVERY]),
    "softmax of a vocabulary": (F.softmax, [np.zeros(128_256, HALF)]),
    "softmax of large numbers": (F.softmax, [np.array([65504, 65500, -65504, 65472], HALF)]),
    "softmax of many numbers": (F.softmax, [halves(3, 50_000, scale=4)]),
    "softmax over the first axis": (lambda x: F.softmax(x, 0), [X]),
    "rms_norm of 256": (F.rms_norm, [np.full(8, 256, HALF), np.ones(8, HALF)]),
    "rms_norm of large numbers": (F.rms_norm, [halves(5, D, scale=2e4), halves(D)]),
    "rms_norm of tiny numbers": (F.rms_norm, [halves(5, D, scale=1e-4), halves(D)]),
    "rms_norm of many numbers": (F.rms_norm, [halves(2, 30_000, scale=30), halves(30_000)]),
    "layer_norm of large numbers": (F.layer_norm, [halves(5, D, scale=1e4), halves(D), halves(D)]),
    "layer_norm of tiny numbers": (F.layer_norm, [halves(5, D, scale=1e-4), halves(D), None]),
    "layer_norm of many numbers": (F.layer_norm, [halves(2, 30_000) + HALF(30), *halves(2, 30_000)]),
    "attention": (lambda x, *W: F.attention(x, *W, n_heads=2, causal=True), [X, *square(0.5)]),
    "attention with scores above 65504": (F.attention, [100 * LEVELS, *EXACT]),
    "attention of many tokens": (F.attention, [halves(700, D), *square(0.2)]),
    "load_balancing_loss": (F.load_balancing_loss, [F.softmax(halves(20_000, 8)), R.integers(0, 8, (20_000, 2))]),
    "dropout": (lambda x: F.dropout(x, 0.3, np.random.default_rng(0)), [halves(1000, scale=1e4)]),
    "dropout, nearly all": (lambda x: F.dropout(x, 0.99999, np.random.default_rng(0)), [halves(400_000, scale=0.001)]),
    "cross_entropy": (T.cross_entropy, [halves(7, 5), R.integers(0, 5, 7)]),
    "cross_entropy of large numbers": (T.cross_entropy, [halves(7, 5, scale=2e4), R.integers(0, 5, 7)]),
    "cross_entropy of many classes": (T.cross_entropy, [halves(3, 90_000), R.integers(0, 9, 3)]),
    "cross_entropy of many rows": (T.cross_entropy, [halves(5000, 9), R.integers(0, 9, 5000)]),
    "mean_squared_error of large numbers": (T.mean_squared_error, [halves(9, 4, scale=1e4), halves(9, 4)]),
    "mean_squared_error of many numbers": (T.mean_squared_error, [halves(9000, 9), halves(9000, 9)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name):
    call, inputs = CALLS[name]
    with np.errstate(all="raise"):
        got = call(*inputs)
    exact = call(*[a if a is None else double(a) for a in inputs])
    for ours, theirs in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, exact))):
        if isinstance(ours, float):
            assert ours == pytest.approx(theirs, rel=1e-5)
        else:
            assert_rounded(ours, theirs)
            assert np.isfinite(ours).any()


def test_every_public_function_that_computes_is_tested():
    computes = {"attention", "dropout", "gelu", "identity", "layer_norm", "load_balancing_loss", "quick_gelu", "relu",
                "relu2", "rms_norm", "sigmoid", "silu", "softmax", "ACTIVATIONS"}
    tested_below = {"FeedForward", "GatedFeedForward", "TransformerBlock", "MixtureOfExperts"}
    counts = {"attention_flops", "attention_parameters", "ffn_flops", "ffn_parameters", "gated_d_ff", "llama_d_ff",
              "minimind_d_ff", "round_up"}
    reads = {"RealLayer", "layer_stats", "load", "from_state_dict", "find_ffns", "decode_q4_1", "read_safetensors",
             "read_gguf"}
    holds = {"Activation", "FFNRecord", "Route", "TensorFile", "Trace"}
    assert set(F.__all__) <= computes | tested_below | counts | reads | holds
    assert computes - {"ACTIVATIONS"} <= {name.partition(" ")[0].strip(",") for name in CALLS}


FFNS = [(kind, scale) for kind in ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "linear", "swiglu", "geglu")
        for scale in (1, 1e-3, 5)]


def half_ffn(kind, scale):
    ffn = make_ffn(kind, D, 4 * D, bias=True, dtype=HALF)
    for name in ffn.shapes:
        setattr(ffn, name, halves(*getattr(ffn, name).shape, scale=scale * (0.3 if name[0] == "W" else 1)))
    return ffn


@pytest.mark.parametrize("kind, scale", FFNS)
def test_every_stage_of_an_ffn_is_rounded_once(kind, scale):
    """Each stage against the same stage in float64, from the float16 array that it was given."""
    ffn = half_ffn(kind, scale)
    exact, x = double(ffn), (X * HALF(scale)).astype(HALF)
    with np.errstate(all="raise"):
        trace = ffn.trace(x)
    before = {name: trace[source].astype(float) for name, source, _, _ in trace.stages if source}
    for name, source in before.items():
        wanted = exact.gated(source, double(trace["lift"])) if name == "gated" else getattr(exact, name)(source)
        assert_rounded(trace[name], wanted)
    np.testing.assert_array_equal(ffn(x), trace.output)


def test_the_bias_is_added_before_rounding():
    ffn = F.FeedForward([[HALF(300)]], [HALF(-60_000)], [[1.0]], None, "identity")
    ffn.W2 = ffn.W2.astype(HALF)
    assert ffn(np.array([300], HALF)).tolist() == [30_000]  # 300 * 300 alone is more than float16 holds


def gradients(layer, trace, dy):
    with np.errstate(all="raise"):
        return layer.backward(trace, dy)


def assert_gradients_rounded(layer, got, exact):
    assert list(got) == list(exact) and set(got) == {"x", *layer.parameters()}
    for name, gradient in got.items():
        assert_rounded(gradient, exact[name])


@pytest.mark.parametrize("kind, scale", FFNS)
def test_gradients_of_an_ffn(kind, scale):
    ffn = half_ffn(kind, scale)
    trace, dy = ffn.trace((X * HALF(scale)).astype(HALF)), halves(*X.shape)
    exact = double(trace)
    assert_gradients_rounded(ffn, gradients(ffn, trace, dy), exact.maker.backward(exact, double(dy)))


def test_gradients_of_an_ffn_over_many_tokens():
    ffn, x = half_ffn("gelu", 1), halves(5000, D)
    trace, dy = ffn.trace(x), np.full_like(x, 0.01)
    exact = double(trace)
    assert_gradients_rounded(ffn, gradients(ffn, trace, dy), exact.maker.backward(exact, double(dy)))


def mixture(shared=None, top_k=2, renormalize=True, scale=1.0):
    experts = [half_ffn("relu", 1) for _ in range(4)]
    return F.MixtureOfExperts(halves(D, 4, scale=scale), experts, top_k, renormalize, shared)


LAYERS = {
    "a mixture": (mixture(), X), "a mixture with a shared expert": (mixture(half_ffn("swiglu", 0.5), 1, False), X),
    "a mixture with router logits above 65504": (mixture(scale=90), HALF(300) * X),
    "a mixture of tiny numbers": (mixture(), X / HALF(500)), "a mixture for many tokens": (mixture(), halves(900, D)),
    **{f"a block, {placement} {norm} {kind}": (
        F.TransformerBlock(*square(0.4), ffn, 2, True, placement, norm), X)
       for placement in ("pre", "post") for norm in ("rms", "layer")
       for kind, ffn in (("relu", half_ffn("relu", 0.5)), ("swiglu", half_ffn("swiglu", 0.5)),
                         ("mixture", mixture()), ("none", None))},
    "a block of large numbers": (F.TransformerBlock(*square(0.4), half_ffn("gelu", 1), 2), HALF(3000) * X),
    "a block of tiny numbers": (
        F.TransformerBlock(*square(0.4), half_ffn("gelu", 0.5), 2, norm="layer"), X / HALF(3000)),
    "a block with scores above 65504": (F.TransformerBlock(*EXACT, norm=None), 100 * LEVELS),
}


@pytest.mark.parametrize("name", LAYERS)
def test_blocks_and_mixtures(name):
    layer, x = LAYERS[name]
    exact, dy = double(layer), halves(*x.shape, scale=0.1)
    with np.errstate(all="raise"):
        y, trace = layer(x), layer.trace(x)
    exact_trace = exact.trace(double(x))
    assert_rounded(y, exact(double(x)))
    np.testing.assert_array_equal(y, trace.output)
    for stage, array in trace.items():
        if stage == "choices":
            np.testing.assert_array_equal(array, exact_trace[stage])
        else:
            assert_rounded(array, exact_trace[stage])
    if isinstance(layer, F.MixtureOfExperts):
        for ours, theirs in zip(layer.route(x), exact.route(double(x))):
            np.testing.assert_array_equal(ours, theirs) if ours.dtype.kind == "i" else assert_rounded(ours, theirs)
    assert_gradients_rounded(layer, gradients(layer, trace, dy), exact.backward(exact_trace, double(dy)))


def test_float16_beside_wider_numbers_is_promoted_as_numpy_does():
    for kind in ("relu", "swiglu"):
        ffn = half_ffn(kind, 0.3)
        for layer in (ffn, F.TransformerBlock(*square(0.4), ffn), F.MixtureOfExperts(halves(D, 2), [ffn, ffn])):
            for other in (np.float32, np.float64):
                trace = layer.trace(X.astype(other))
                assert trace.output.dtype == other
                assert {g.dtype for g in layer.backward(trace, X).values()} == {np.dtype(other)}
                assert layer.backward(layer.trace(X), X.astype(other))["x"].dtype == other
