"""FeedForward, GatedFeedForward, Trace and dropout: the definition in slow loops, gradients, properties, errors."""
import math
import tracemalloc

import numpy as np
import pytest
from finite_differences import assert_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

import ffn_numpy as F
from ffn_numpy.ffn import KINDS as KINDS_BY_NAME
from ffn_numpy.ffn import make_ffn

NAMES = list(F.ACTIVATIONS)
KINDS = [F.FeedForward, F.GatedFeedForward]


def build(kind, d_model=5, d_ff=7, activation="silu", bias=True, seed=0, dtype=np.float64):
    """A random FFN whose biases, if any, are not zero."""
    ffn = kind.random(d_model, d_ff, activation, bias=bias, seed=seed, dtype=dtype)
    r = np.random.default_rng(seed + 1)
    return kind(**{n: p if n[0] == "W" else r.normal(size=p.shape).astype(dtype) for n, p in ffn.parameters().items()},
                **({} if bias or kind is F.GatedFeedForward else {"b1": None, "b2": None}), activation=activation)


def slow_forward(ffn, token):
    """One token (a list of floats) through the definition, in Python loops."""
    act = lambda v: float(F.ACTIVATIONS[ffn.activation].function(v))  # noqa: E731
    P = {n: p.tolist() for n, p in ffn.parameters().items()}

    def layer(vector, W, b):
        return [sum(v * P[W][i][j] for i, v in enumerate(vector)) + (P[b][j] if b in P else 0)
                for j in range(len(P[W][0]))]
    if isinstance(ffn, F.FeedForward):
        return layer([act(h) for h in layer(token, "W1", "b1")], "W2", "b2")
    gate, up = layer(token, "W_gate", "b_gate"), layer(token, "W_up", "b_up")
    return layer([act(g) * u for g, u in zip(gate, up)], "W_down", "b_down")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", NAMES)
def test_forward_is_the_definition_for_every_token(kind, bias, activation):
    ffn = build(kind, activation=activation, bias=bias)
    x = np.random.default_rng(3).normal(size=(2, 3, 5))
    y = ffn(x)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(y[index], slow_forward(ffn, x[index].tolist()), rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", NAMES)
def test_every_gradient_is_the_finite_difference(kind, bias, activation):
    ffn = build(kind, activation=activation, bias=bias)
    r = np.random.default_rng(5)
    x, dy = r.normal(size=(2, 3, 5)), r.normal(size=(2, 3, 5))
    gradients = ffn.backward(ffn.trace(x), dy)
    assert_gradients({"x": x, **ffn.parameters()}, lambda: (ffn(x) * dy).sum(), gradients, e=1e-6, rel=1e-6, abs=2e-8)


@pytest.mark.parametrize("kind, stages", [
    (F.FeedForward, ["x", "lift", "activate", "project_down"]),
    (F.GatedFeedForward, ["x", "gate", "lift", "activate", "gated", "project_down"]),
])
def test_trace_keeps_every_stage(kind, stages):
    ffn = build(kind, d_model=8, d_ff=32)
    x = np.random.default_rng(0).normal(size=(7, 8))
    trace = ffn.trace(x)
    assert list(trace) == stages == list(trace.shapes) and len(trace) == len(stages)
    assert trace.shapes == {s: (7, 8) if s in ("x", "project_down") else (7, 32) for s in stages}
    assert trace.output is trace["project_down"]
    np.testing.assert_array_equal(trace.output, ffn(x))
    np.testing.assert_array_equal(trace["lift"], ffn.lift(x))
    x[0, 0] = 1e9  # the trace is a record: what the caller does to x later does not change it
    assert trace["x"][0, 0] != 1e9
    with pytest.raises(KeyError, match="'hidden'.*" + ", ".join(stages)):
        trace["hidden"]


def test_trace_prints_the_shape_table():
    np.random.seed(42)
    x, W1, b1, W2, b2 = (np.random.randn(*s) for s in ((7, 8), (8, 32), (32,), (32, 8), (8,)))
    assert str(F.FeedForward(W1, b1, W2, b2, "gelu").trace(x)) == """\
FeedForward  act(x W1 + b1) W2 + b2   act = gelu   d_model = 8   d_ff = 32   552 parameters
  x             (7, 8)
  lift          (7, 8)  -> (7, 32)  x @ W1 + b1
  activate      (7, 32) -> (7, 32)  gelu(lift)
  project_down  (7, 32) -> (7, 8)   activate @ W2 + b2"""
    without = str(F.FeedForward(W1, None, W2, None).trace(x[3]))
    assert "act(x W1) W2 " in without and "x @ W1\n" in without and "b1" not in without
    assert "\n  x             (8,)\n  lift          (8,)  -> (32,)  x @ W1" in without
    assert repr(F.FeedForward(W1, b1, W2, b2).trace(x)).startswith("FeedForward ")


def test_gated_random_is_the_pinned_draw():
    r = np.random.default_rng(0)
    W_gate, W_up = r.normal(size=(8, 21)) / math.sqrt(8), r.normal(size=(8, 21)) / math.sqrt(8)
    W_down = r.normal(size=(21, 8)) / math.sqrt(21)
    ffn = F.GatedFeedForward.random(8)
    for name, W in (("W_gate", W_gate), ("W_up", W_up), ("W_down", W_down)):
        np.testing.assert_allclose(getattr(ffn, name), W, rtol=1e-15)


@pytest.mark.parametrize("kind, d_ff, n", [(F.FeedForward, 32, 552), (F.GatedFeedForward, 21, 504)])
def test_random_defaults(kind, d_ff, n):
    ffn = kind.random(8)
    assert (ffn.d_model, ffn.d_ff, ffn.n_parameters) == (8, d_ff, n)
    assert ffn.n_parameters == F.ffn_parameters(8, d_ff, gated=d_ff == 21, bias=d_ff == 32)
    assert kind.random(8, bias=True).n_parameters == F.ffn_parameters(8, d_ff, gated=d_ff == 21, bias=True)
    assert all(not p.any() for name, p in kind.random(8, bias=True).parameters().items() if name[0] == "b")
    assert "\n" not in repr(ffn) and f"{n} parameters" in repr(ffn)
    wide = kind.random(400, 900, seed=3, dtype=np.float32)
    for name, p in wide.parameters().items():
        if name[0] == "W":
            assert p.dtype == np.float32 and p.std() * math.sqrt(p.shape[0]) == pytest.approx(1, abs=0.01)
    np.testing.assert_array_equal(kind.random(8, seed=1)(np.ones(8)), kind.random(8, seed=1)(np.ones(8)))
    assert not np.allclose(kind.random(8, seed=1)(np.ones(8)), kind.random(8, seed=2)(np.ones(8)))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KINDS), st.sampled_from(NAMES), st.booleans(), st.integers(0, 2**31),
       st.sampled_from([(), (1,), (4,), (2, 3), (2, 1, 3), (0,), (2, 0, 3)]))
def test_tokens_are_independent(kind, activation, bias, seed, lead):
    ffn = build(kind, activation=activation, bias=bias, seed=seed)
    x = np.random.default_rng(seed).normal(size=(*lead, 5))
    y = ffn(x)
    assert y.shape == x.shape and y.dtype == np.float64
    flat, flat_y = x.reshape(-1, 5), y.reshape(-1, 5)
    for token, out in zip(flat, flat_y):  # each token alone
        np.testing.assert_allclose(ffn(token), out, rtol=0, atol=1e-12)
    order = np.random.default_rng(seed).permutation(len(flat))
    np.testing.assert_allclose(ffn(flat[order]), flat_y[order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ffn(x.tolist() if x.size else x), y, rtol=0, atol=1e-12)  # nested lists
    gradients = ffn.backward(ffn.trace(x), np.ones_like(x))
    assert gradients["x"].shape == x.shape


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 2**31))
def test_shuffling_hidden_units_consistently_changes_nothing(kind, seed):
    ffn = build(kind, seed=seed)
    order = np.random.default_rng(seed).permutation(ffn.d_ff)
    shuffled = {n: p[order] if n in ("W2", "W_down", "b1", "b_gate", "b_up") else p if n in ("b2", "b_down")
                else p[:, order] for n, p in ffn.parameters().items()}
    x = np.random.default_rng(seed).normal(size=(4, 5))
    np.testing.assert_allclose(kind(**shuffled, activation="silu")(x), ffn(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_dtype_is_kept_and_mixing_promotes_as_numpy_does(kind):
    for dtype in (np.float16, np.float32, np.float64):
        ffn = build(kind, dtype=dtype)
        trace = ffn.trace(np.ones((3, 5), dtype))
        assert {array.dtype for array in trace.values()} == {np.dtype(dtype)}
        assert {g.dtype for g in ffn.backward(trace, trace.output).values()} == {np.dtype(dtype)}
        assert ffn(np.ones((3, 5), int)).dtype == np.float64
        for other in (np.float16, np.float32, np.float64):
            assert ffn(np.ones((3, 5), other)).dtype == np.result_type(dtype, other)
    parameters = build(kind, dtype=np.float32).parameters()
    parameters[list(parameters)[3] if kind is F.GatedFeedForward else "b1"] = np.ones(7, np.float64)
    assert kind(**parameters, activation="relu")(np.ones(5, np.float32)).dtype == np.float64


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_not_modified_and_infinities_do_not_warn(kind):
    ffn = build(kind)
    kept = {n: p.copy() for n, p in ffn.parameters().items()}
    x = np.array([[np.inf, -np.inf, np.nan, 1e308, -1e308], [1, 2, 3, 4, 5]], float)
    before = x.copy()
    with np.errstate(all="raise"):
        trace = ffn.trace(x)
        ffn.backward(trace, np.ones_like(x))
    assert np.isnan(trace.output[0]).all() and np.isfinite(trace.output[1]).all()
    np.testing.assert_array_equal(x, before)
    for name, p in ffn.parameters().items():
        np.testing.assert_array_equal(p, kept[name])


@pytest.mark.parametrize("kind, activation", [(k, a) for k in KINDS for a in ("relu", "gelu", "gelu_tanh", "silu")])
def test_peak_memory(kind, activation):
    ffn = kind.random(64, 1024, activation, dtype=np.float32)
    x = np.ones((2048, 64), np.float32)
    ffn(x)
    tracemalloc.start()
    y = ffn(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    hidden = 4 * 2048 * 1024
    assert peak < x.nbytes + y.nbytes + 4 * hidden


# ---------------------------------------------------------------- gated facts

def test_glu_family_is_one_class():
    r = np.random.default_rng(0)
    x = r.normal(size=(7, 8))
    ffn = F.GatedFeedForward.random(8, activation="identity")
    np.testing.assert_allclose(ffn(2 * x), 4 * ffn(x), rtol=1e-12)  # bilinear: quadratic
    g, u = x @ ffn.W_gate, x @ ffn.W_up
    for name, act in {"sigmoid": lambda v: 1 / (1 + np.exp(-v)), "relu": lambda v: np.maximum(v, 0),
                      "silu": lambda v: v / (1 + np.exp(-v))}.items():
        same = F.GatedFeedForward(ffn.W_gate, ffn.W_up, ffn.W_down, activation=name)
        np.testing.assert_allclose(same(x), (act(g) * u) @ ffn.W_down, rtol=0, atol=1e-13)
    swapped = F.GatedFeedForward(ffn.W_up, ffn.W_gate, ffn.W_down)
    assert not np.allclose(swapped(x), F.GatedFeedForward(ffn.W_gate, ffn.W_up, ffn.W_down)(x))


# ---------------------------------------------------------------- bad input

W1, B1, W2, B2 = np.ones((8, 32)), np.ones(32), np.ones((32, 8)), np.ones(8)
G, D = np.ones((8, 21)), np.ones((21, 8))


@pytest.mark.parametrize("change, error, says", [
    ({"W1": np.ones(8)}, ValueError, r"W1 must have shape \(d_model, d_ff\).*got \(8,\)"),
    ({"W1": np.ones((0, 4))}, ValueError, r"W1 .*at least 1; got \(0, 4\)"),
    ({"W1": None}, TypeError, "W1 must hold real numbers.*got None"),
    ({"W1": W1 + 1j}, TypeError, "W1 must hold real numbers.*complex128"),
    ({"b1": np.ones(8)}, ValueError, r"b1 must have shape \(32,\).*d_ff = 32; got \(8,\)"),
    ({"b1": np.ones((1, 32))}, ValueError, r"b1 must have shape \(32,\).*got \(1, 32\)"),
    ({"W2": W1}, ValueError, r"W2 must have shape \(32, 8\).*got \(8, 32\)"),
    ({"W2": None}, TypeError, "W2 must hold"), ({"W2": "W"}, TypeError, "W2 must hold"),
    ({"b2": B1}, ValueError, r"b2 must have shape \(8,\)"),
    ({"b2": [[1], [1, 2]]}, ValueError, "b2 must be an array of numbers.*different lengths"),
    ({"activation": "tanhh"}, ValueError, "activation must be one of relu, gelu.*swish.*got 'tanhh'"),
    ({"activation": None}, ValueError, "activation must be one of relu.*got None"),
    ({"activation": F.relu}, ValueError, "activation must be one of relu"),
    ({"activation": ["relu"]}, ValueError, "activation must be one of relu"),
])
def test_plain_weights_are_checked_when_built(change, error, says):
    with pytest.raises(error, match=says):
        F.FeedForward(**{"W1": W1, "b1": B1, "W2": W2, "b2": B2, **change})


@pytest.mark.parametrize("change, error, says", [
    ({"W_gate": np.ones(8)}, ValueError, r"W_gate must have shape \(d_model, d_ff\)"),
    ({"W_up": np.ones((8, 22))}, ValueError, r"W_up must have shape \(8, 21\).*got \(8, 22\)"),
    ({"W_up": None}, TypeError, "W_up must hold"),
    ({"W_down": G}, ValueError, r"W_down must have shape \(21, 8\).*got \(8, 21\)"),
    ({"b_gate": B2}, ValueError, r"b_gate must have shape \(21,\)"),
    ({"b_up": 1.0}, ValueError, r"b_up must have shape \(21,\).*got \(\)"),
    ({"b_down": G}, ValueError, r"b_down must have shape \(8,\)"),
    ({"activation": "swiglu"}, ValueError, "activation must be one of .*got 'swiglu'"),
])
def test_gated_weights_are_checked_when_built(change, error, says):
    with pytest.raises(error, match=says):
        F.GatedFeedForward(**{"W_gate": G, "W_up": G, "W_down": D, **change})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("x, error, says", [
    (np.ones((7, 16)), ValueError,
     r"^x has last dimension 16, but this FFN was built for d_model = 8 \(x.shape = \(7, 16\)\)$"),
    ([], ValueError, "^x has last dimension 0"), (3.0, ValueError, r"^x must have shape \(..., 8\), got a scalar"),
    (None, TypeError, "^x must hold real numbers"), ("token", TypeError, "^x must hold"),
    (np.ones(8, complex), TypeError, "^x must hold.*complex128"), (np.array([None] * 8), TypeError, "^x must hold"),
    ([[1] * 8, [1]], ValueError, "^x must be an array of numbers.*different lengths"),
])
def test_bad_x(kind, x, error, says):
    ffn = kind.random(8)
    for call in (ffn, ffn.lift, ffn.trace, *([ffn.gate] if kind is F.GatedFeedForward else [])):
        with pytest.raises(error, match=says):
            call(x)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_hidden_arrays(kind):
    ffn = kind.random(8, 32)
    with pytest.raises(ValueError, match="^h has last dimension 8, .*d_ff = 32"):
        ffn.activate(np.ones((7, 8)))
    with pytest.raises(ValueError, match="^a has last dimension 8, .*d_ff = 32"):
        ffn.project_down(np.ones((7, 8)))
    if kind is F.GatedFeedForward:
        with pytest.raises(ValueError, match=r"same shape, got \(7, 32\) and \(1, 32\)"):
            ffn.gated(np.ones((7, 32)), np.ones((1, 32)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arguments, error, says", [
    ({"d_model": 0}, ValueError, "d_model must be a positive integer, got 0"),
    ({"d_model": 8.5}, TypeError, "d_model must be a positive integer, got 8.5"),
    ({"d_model": 8.0}, TypeError, "d_model"), ({"d_model": True}, TypeError, "d_model"),
    ({"d_model": "8"}, TypeError, "d_model"), ({"d_model": None}, TypeError, "d_model"),
    ({"d_model": 8, "d_ff": -1}, ValueError, "d_ff must be a positive integer, got -1"),
    ({"d_model": 8, "d_ff": 2.0}, TypeError, "d_ff"),
    ({"d_model": 8, "activation": "silly"}, ValueError, "activation must be one of"),
    ({"d_model": 8, "seed": -1}, ValueError, "seed must be"), ({"d_model": 8, "seed": "a"}, TypeError, "seed must be"),
    ({"d_model": 8, "dtype": int}, TypeError, "dtype must be float16, float32 or float64"),
    ({"d_model": 8, "dtype": "float8"}, TypeError, "dtype must be"),
    ({"d_model": 8, "dtype": None}, TypeError, "dtype must be"),
])
def test_bad_random(kind, arguments, error, says):
    with pytest.raises(error, match=says):
        kind.random(**arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_backward(kind):
    ffn = kind.random(8)
    trace = ffn.trace(np.ones((7, 8)))
    with pytest.raises(ValueError, match=r"dy must have the output's shape \(7, 8\), got \(7, 9\)"):
        ffn.backward(trace, np.ones((7, 9)))
    with pytest.raises(ValueError, match="dy must have the output's shape"):
        ffn.backward(trace, 1.0)
    with pytest.raises(TypeError, match="dy must hold"):
        ffn.backward(trace, None)
    with pytest.raises(TypeError, match="trace must be what trace\\(x\\) returned, got ndarray"):
        ffn.backward(np.ones((7, 8)), np.ones((7, 8)))
    for other in (kind.random(8, 5), kind.random(8, seed=1), KINDS[kind is KINDS[0]].random(8)):
        with pytest.raises(ValueError, match="trace was made by another layer: "):
            ffn.backward(other.trace(np.ones((7, 8))), np.ones((7, 8)))


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_checked_when_replaced_too(kind):
    ffn = kind.random(8, 32, bias=True)
    first, bias = list(ffn.shapes)[0], [n for n in ffn.shapes if n.startswith("b")][0]
    with pytest.raises(ValueError, match=rf"{first} must have shape \(8, 32\).*got \(8, 16\)"):
        setattr(ffn, first, np.ones((8, 16)))
    with pytest.raises(ValueError, match=rf"{bias} must have shape \(32,\).*got \(2, 32\)"):
        setattr(ffn, bias, np.ones((2, 32)))
    with pytest.raises(ValueError, match="activation must be one of relu.*got 'nope'"):
        ffn.activation = "nope"
    setattr(ffn, bias, [0.5] * 32)  # a list becomes an array
    setattr(ffn, first, np.zeros((8, 32)))
    ffn.activation = "relu"
    assert ffn(np.ones(8)).shape == (8,) and "relu" in repr(ffn)


def test_bias_gradient_does_not_saturate_in_float16():
    ffn, ones = F.FeedForward.random(8, 8, dtype=np.float16), np.ones((5000, 8), np.float16)
    gradient = ffn.backward(ffn.trace(ones), ones)["b2"]
    assert gradient.dtype == np.float16 and (gradient == 5000).all()


def test_float16_raises_no_floating_point_flag():
    with np.errstate(all="raise"):
        ffn = F.GatedFeedForward.random(64, dtype=np.float16)
        ffn(np.full((3, 64), 1e-4, np.float16))
        for activation in F.ACTIVATIONS.values():
            for f in activation:
                f(np.array([-20, -9, 1e-4, -1e-7], np.float16))


def test_float16_peak_memory():
    ffn, x = F.FeedForward.random(64, 1024, "gelu", dtype=np.float16), np.ones((2048, 64), np.float16)
    ffn(x)
    tracemalloc.start()
    y = ffn(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes + y.nbytes + 4 * 2 * 2048 * 1024


def test_traces_can_be_compared_hashed_and_pickled():
    import copy
    import pickle
    ffn = F.FeedForward.random(8)
    trace = ffn.trace(np.ones(8))
    assert trace == trace and trace != ffn.trace(np.ones(8)) and hash(trace)
    pair = pickle.loads(pickle.dumps((ffn, trace)))
    assert set(pair[0].backward(pair[1], np.ones(8))) == {"x", "W1", "b1", "W2", "b2"}
    assert copy.deepcopy(ffn)(np.ones(8)).shape == (8,)


class Grumpy:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("call detach() first")


@pytest.mark.parametrize("x, says", [
    (Grumpy(), "x must be an array of numbers, got a Grumpy that NumPy cannot read: 'call detach"),
    (np.ma.masked_array(np.ones(8), [1] + [0] * 7), "x must be a plain array, got a masked one"),
])
def test_foreign_arrays(x, says):
    for call in (F.FeedForward.random(8), F.relu):
        with pytest.raises(TypeError, match=says):
            call(x)


def test_messages_stay_short():
    for call in (lambda: F.FeedForward.random(np.eye(9)), lambda: F.round_up(-10**5000, 8),
                 lambda: F.FeedForward.random(8, activation=np.eye(9)), lambda: F.gelu(1, np.eye(9)),
                 lambda: F.dropout(np.ones(3), np.eye(9), np.random.default_rng(0))):
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        assert len(str(caught.value)) < 320 and "\n" not in str(caught.value)


# ---------------------------------------------------------------- dropout

def test_dropout_keeps_the_mean_and_the_dtype():
    x = np.full((1000, 1000), 3.0, np.float32)
    y = F.dropout(x, 0.25, np.random.default_rng(0))
    assert y.dtype == np.float32 and set(np.unique(y).tolist()) == {0.0, 4.0}
    assert (y == 0).mean() == pytest.approx(0.25, abs=0.002) and y.mean() == pytest.approx(3, abs=0.01)
    assert (x == 3).all()
    assert F.dropout(x, 0, np.random.default_rng(0)) is x
    assert F.dropout(np.array([np.inf, 1.0]), 0.99, np.random.default_rng(1)).tolist() == [0, 0]


@pytest.mark.parametrize("rate, error", [(1, ValueError), (-0.1, ValueError), (float("nan"), ValueError),
                                         ("0.1", TypeError), (None, TypeError), (True, TypeError)])
def test_bad_rate(rate, error):
    with pytest.raises(error, match="rate must be a number with 0 <= rate < 1, got"):
        F.dropout(np.ones(3), rate, np.random.default_rng(0))


def test_bad_dropout_x_and_rng():
    with pytest.raises(TypeError, match="x must hold"):
        F.dropout(None, 0.1, np.random.default_rng(0))
    with pytest.raises(TypeError, match="rng must be a numpy.random.Generator.*got int"):
        F.dropout(np.ones(3), 0.1, 0)


# ---------------------------------------------------------------- kinds by name

@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_kinds_have_equal_parameters(kind):
    ffn = make_ffn(kind, 12, 48)
    assert ffn.n_parameters == 1152 and make_ffn(kind, 12, 48, seed=1)(np.ones(12)).shape == (12,)


@pytest.mark.parametrize("kind, cls, activation, d_ff, biased", [
    ("geglu", F.GatedFeedForward, "gelu", 21, False), ("relu", F.FeedForward, "relu", 32, True),
    ("gelu_tanh", F.FeedForward, "gelu_tanh", 32, True), ("linear", F.FeedForward, "identity", 32, True),
])
def test_a_kind_in_its_class_s_usual_width(kind, cls, activation, d_ff, biased):
    ffn = make_ffn(kind, 8, bias=None, dtype=np.float32)
    assert type(ffn) is cls and ffn.activation == activation and ffn.d_ff == d_ff
    assert any(name.startswith("b") for name in ffn.parameters()) is biased
    assert {p.dtype for p in ffn.parameters().values()} == {np.dtype(np.float32)}
    assert all(not name.startswith("b") for name in make_ffn(kind, 8).parameters())


def test_unknown_kinds():
    for bad in ("tanh", "", None, 3, ["relu"], {}):
        with pytest.raises(ValueError) as error:
            make_ffn(bad, 4, 8)
        assert str(error.value) == (
            "kind must be one of linear, relu, gelu, silu, glu, bilinear, reglu, geglu, swiglu, gelu_tanh, quick_gelu, "
            f"sigmoid, identity, swish, gelu_new, gelu_pytorch_tanh; got {bad!r}")
    for kind in ("relu", "swiglu"):
        with pytest.raises(ValueError, match="^d_ff must be a positive integer, got 0$"):
            make_ffn(kind, 4, 0)
