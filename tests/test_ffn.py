"""FeedForward, GatedFeedForward, Trace and dropout: the definition in slow loops, gradients, properties, errors."""
import math
import tracemalloc

import numpy as np
import pytest
from errors import ACTIVATION_NAMES, KIND_NAMES, REAL, assert_error
from finite_differences import assert_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

import ffn_numpy as F
from ffn_numpy._validate import short
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
    for stage, came in (("hidden", "'hidden'"), (["x"], "['x']"), ("x" * 99, "'" + "x" * 56 + "...")):
        assert_error(lambda: trace[stage], KeyError, f"no stage {came}; the stages are {', '.join(stages)}")  # noqa: B023


def test_trace_prints_the_shape_table():
    np.random.seed(42)
    x, W1, b1, W2, b2 = (np.random.randn(*s) for s in ((7, 8), (8, 32), (32,), (32, 8), (8,)))
    assert str(F.FeedForward(W1, b1, W2, b2, "gelu").trace(x)) == """\
FeedForward  act(x W1 + b1) W2 + b2   act = gelu   d_model = 8   d_ff = 32   552 parameters
  x             (7, 8)
  lift          (7, 8)  -> (7, 32)  x @ W1 + b1
  activate      (7, 32) -> (7, 32)  gelu(lift)
  project_down  (7, 32) -> (7, 8)   activate @ W2 + b2"""
    assert str(F.FeedForward(W1, None, W2, None).trace(x[3])) == """\
FeedForward  act(x W1) W2   act = relu   d_model = 8   d_ff = 32   512 parameters
  x             (8,)
  lift          (8,)  -> (32,)  x @ W1
  activate      (32,) -> (32,)  relu(lift)
  project_down  (32,) -> (8,)   activate @ W2"""
    trace = F.FeedForward(W1, b1, W2, b2).trace(x)
    assert repr(trace) == str(trace)
    assert [source for _, source, _, _ in trace.stages] == ["", "x", "lift", "activate"]


def test_gated_trace_prints_the_shape_table():
    trace = F.GatedFeedForward.random(8).trace(np.ones((7, 8)))
    assert [source for _, source, _, _ in trace.stages] == ["", "x", "x", "gate", "activate", "gated"]
    assert str(trace) == """\
GatedFeedForward  (act(x W_gate) * (x W_up)) W_down   act = silu   d_model = 8   d_ff = 21   504 parameters
  x             (7, 8)
  gate          (7, 8)  -> (7, 21)  x @ W_gate
  lift          (7, 8)  -> (7, 21)  x @ W_up
  activate      (7, 21) -> (7, 21)  silu(gate)
  gated         (7, 21) -> (7, 21)  activate * lift
  project_down  (7, 21) -> (7, 8)   gated @ W_down"""
    assert str(F.GatedFeedForward.random(80, activation="gelu", bias=True).trace(np.ones(80))) == """\
GatedFeedForward  (act(x W_gate + b_gate) * (x W_up + b_up)) W_down + b_down   act = gelu   d_model = 80   \
d_ff = 213   51,626 parameters
  x             (80,)
  gate          (80,)  -> (213,)  x @ W_gate + b_gate
  lift          (80,)  -> (213,)  x @ W_up + b_up
  activate      (213,) -> (213,)  gelu(gate)
  gated         (213,) -> (213,)  activate * lift
  project_down  (213,) -> (80,)   gated @ W_down + b_down"""


def test_one_bias_may_be_missing():
    ffn = build(F.GatedFeedForward)
    for name in ("b_gate", "b_up", "b_down"):
        kept = getattr(ffn, name)
        setattr(ffn, name, None)
        lines = str(ffn.trace(np.ones(5))).splitlines()
        assert name not in "".join(lines) and name not in ffn.backward(ffn.trace(np.ones(5)), np.ones(5))
        assert sum("b_" in line for line in lines) == 3  # the title and the two other stages
        setattr(ffn, name, kept)


def test_reprs():
    assert repr(F.FeedForward.random(8)) == (
        "FeedForward(d_model=8, d_ff=32, activation='relu', 552 parameters, float64)")
    assert repr(F.GatedFeedForward.random(40, dtype=np.float16)) == (
        "GatedFeedForward(d_model=40, d_ff=106, activation='silu', 12,720 parameters, float16)")


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


FIT, GATED_FIT = "to fit d_model = 8 and d_ff = 32; got", "to fit d_model = 8 and d_ff = 21; got"
UNKNOWN = f"activation must be one of {ACTIVATION_NAMES}; got"


@pytest.mark.parametrize("change, error, says", [
    ({"W1": np.ones(8)}, ValueError, "W1 must have shape (d_model, d_ff), both at least 1; got (8,)"),
    ({"W1": np.ones((0, 4))}, ValueError, "W1 must have shape (d_model, d_ff), both at least 1; got (0, 4)"),
    ({"W1": np.ones((8, 8, 8))}, ValueError, "W1 must have shape (d_model, d_ff), both at least 1; got (8, 8, 8)"),
    ({"W1": None}, TypeError, f"W1 {REAL} None"),
    ({"W1": W1 + 1j}, TypeError, f"W1 {REAL} a ndarray of dtype complex128"),
    ({"b1": np.ones(8)}, ValueError, f"b1 must have shape (32,) {FIT} (8,)"),
    ({"b1": np.ones((1, 32))}, ValueError, f"b1 must have shape (32,) {FIT} (1, 32)"),
    ({"W2": W1}, ValueError, f"W2 must have shape (32, 8) {FIT} (8, 32)"),
    ({"W2": None}, TypeError, f"W2 {REAL} None"), ({"W2": "W"}, TypeError, f"W2 {REAL} a str of dtype <U1"),
    ({"b2": B1}, ValueError, f"b2 must have shape (8,) {FIT} (32,)"),
    ({"b2": [[1], [1, 2]]}, ValueError,
     "b2 must be an array of numbers, but its rows have different lengths (a ragged list)"),
    ({"activation": "tanhh"}, ValueError, f"{UNKNOWN} 'tanhh'"), ({"activation": None}, ValueError, f"{UNKNOWN} None"),
    ({"activation": ["relu"]}, ValueError, f"{UNKNOWN} ['relu']"),
    ({"activation": {}}, ValueError, f"{UNKNOWN} {{}}"),
    ({"activation": "r" * 99}, ValueError, f"{UNKNOWN} '{'r' * 56}..."),
])
def test_plain_weights_are_checked_when_built(change, error, says):
    assert_error(lambda: F.FeedForward(**{"W1": W1, "b1": B1, "W2": W2, "b2": B2, **change}), error, says)


@pytest.mark.parametrize("change, error, says", [
    ({"W_gate": np.ones(8)}, ValueError, "W_gate must have shape (d_model, d_ff), both at least 1; got (8,)"),
    ({"W_up": np.ones((8, 22))}, ValueError, f"W_up must have shape (8, 21) {GATED_FIT} (8, 22)"),
    ({"W_up": None}, TypeError, f"W_up {REAL} None"),
    ({"W_down": G}, ValueError, f"W_down must have shape (21, 8) {GATED_FIT} (8, 21)"),
    ({"b_gate": B2}, ValueError, f"b_gate must have shape (21,) {GATED_FIT} (8,)"),
    ({"b_up": 1.0}, ValueError, f"b_up must have shape (21,) {GATED_FIT} ()"),
    ({"b_down": G}, ValueError, f"b_down must have shape (8,) {GATED_FIT} (8, 21)"),
    ({"activation": "swiglu"}, ValueError, f"{UNKNOWN} 'swiglu'"),
])
def test_gated_weights_are_checked_when_built(change, error, says):
    assert_error(lambda: F.GatedFeedForward(**{"W_gate": G, "W_up": G, "W_down": D, **change}), error, says)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("x, error, says", [
    (np.ones((7, 16)), ValueError,
     "x has last dimension 16, but this FFN was built for d_model = 8 (x.shape = (7, 16))"),
    ([], ValueError, "x has last dimension 0, but this FFN was built for d_model = 8 (x.shape = (0,))"),
    (3.0, ValueError, "x must have shape (..., 8), got a scalar"),
    (None, TypeError, f"x {REAL} None"), ("token", TypeError, f"x {REAL} a str of dtype <U5"),
    (np.ones(8, complex), TypeError, f"x {REAL} a ndarray of dtype complex128"),
    (np.array([None] * 8), TypeError, f"x {REAL} a ndarray of dtype object"),
    ([[1] * 8, [1]], ValueError, "x must be an array of numbers, but its rows have different lengths (a ragged list)"),
])
def test_bad_x(kind, x, error, says):
    ffn = kind.random(8)
    for call in (ffn, ffn.lift, ffn.trace, *([ffn.gate] if kind is F.GatedFeedForward else [])):
        assert_error(lambda call=call: call(x), error, says)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_hidden_arrays(kind):
    ffn, narrow, wide = kind.random(8, 32), np.ones((7, 8)), np.ones((7, 32))
    built = "has last dimension 8, but this FFN was built for d_ff = 32"
    assert_error(lambda: ffn.activate(narrow), ValueError, f"h {built} (h.shape = (7, 8))")
    assert_error(lambda: ffn.project_down(narrow), ValueError, f"a {built} (a.shape = (7, 8))")
    if kind is F.GatedFeedForward:
        assert_error(lambda: ffn.gated(narrow, wide), ValueError, f"a {built} (a.shape = (7, 8))")
        assert_error(lambda: ffn.gated(wide, narrow), ValueError, f"u {built} (u.shape = (7, 8))")
        assert_error(lambda: ffn.gated(wide, wide[:1]), ValueError,
                     "a and u must have the same shape, got (7, 32) and (1, 32)")


WHOLE, SEED = "must be a positive integer, got", "seed must be a non-negative integer or a numpy.random.Generator, got"
DTYPE = "dtype must be float16, float32 or float64, got"
HUGE, HUGE_CUT = np.eye(9), "array([[1., 0., 0., 0., 0., 0., 0., 0., 0.], [0., 1., 0.,..."
BAD_SIZES = [
    ({"d_model": 0}, ValueError, f"d_model {WHOLE} 0"), ({"d_model": 8.5}, TypeError, f"d_model {WHOLE} 8.5"),
    ({"d_model": 8.0}, TypeError, f"d_model {WHOLE} 8.0"), ({"d_model": True}, TypeError, f"d_model {WHOLE} True"),
    ({"d_model": "8"}, TypeError, f"d_model {WHOLE} '8'"), ({"d_model": None}, TypeError, f"d_model {WHOLE} None"),
    ({"d_model": HUGE}, TypeError, f"d_model {WHOLE} {HUGE_CUT}"),
    ({"d_model": -10**5000}, ValueError, f"d_model {WHOLE} an object of type int"),
    ({"d_ff": -1}, ValueError, f"d_ff {WHOLE} -1"), ({"d_ff": 0}, ValueError, f"d_ff {WHOLE} 0"),
    ({"d_ff": 2.0}, TypeError, f"d_ff {WHOLE} 2.0"),
    ({"seed": -1}, ValueError, f"{SEED} -1"), ({"seed": "a"}, TypeError, f"{SEED} 'a'"),
    ({"dtype": int}, TypeError, f"{DTYPE} <class 'int'>"), ({"dtype": "float8"}, TypeError, f"{DTYPE} 'float8'"),
    ({"dtype": None}, TypeError, f"{DTYPE} None"), ({"dtype": np.longdouble}, TypeError,
                                                    f"{DTYPE} {np.longdouble!r}"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arguments, error, says", [
    *BAD_SIZES, ({"activation": "silly"}, ValueError, f"{UNKNOWN} 'silly'")])
def test_bad_random(kind, arguments, error, says):
    assert_error(lambda: kind.random(**{"d_model": 8, **arguments}), error, says)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_backward(kind):
    ffn, x = kind.random(8), np.ones((7, 8))
    trace, fits = ffn.trace(x), "dy must have the output's shape (7, 8), got"
    assert_error(lambda: ffn.backward(trace, np.ones((7, 9))), ValueError, f"{fits} (7, 9)")
    assert_error(lambda: ffn.backward(trace, x[:1]), ValueError, f"{fits} (1, 8)")
    assert_error(lambda: ffn.backward(trace, 1.0), ValueError, f"{fits} ()")
    assert_error(lambda: ffn.backward(trace, None), TypeError, f"dy {REAL} None")
    assert_error(lambda: ffn.backward(x, x), TypeError, "trace must be what trace(x) returned, got ndarray")
    for other in (kind.random(8, 5), kind.random(8, seed=1), KINDS[kind is KINDS[0]].random(8)):
        assert_error(lambda other=other: ffn.backward(other.trace(x), x), ValueError,
                     f"trace was made by another layer, {repr(other)[:57]}...; it must be a trace of this one, "
                     f"{repr(ffn)[:57]}...")


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_checked_when_replaced_too(kind):
    ffn = kind.random(8, 32, bias=True)
    first, bias = list(ffn.shapes)[0], [n for n in ffn.shapes if n.startswith("b")][0]
    for name, value, error, says in (
            (first, np.ones((8, 16)), ValueError, f"{first} must have shape (8, 32) {FIT} (8, 16)"),
            (first, None, TypeError, f"{first} {REAL} None"),
            (bias, np.ones((2, 32)), ValueError, f"{bias} must have shape (32,) {FIT} (2, 32)"),
            ("activation", "nope", ValueError, f"{UNKNOWN} 'nope'"),
            ("d_model", 9, ValueError, "d_model was 8 when this layer was built and cannot become 9: "
                                       "build another layer"),
            ("d_ff", HUGE, ValueError, f"d_ff was 32 when this layer was built and cannot become {HUGE_CUT}: "
                                       f"build another layer")):
        assert_error(lambda name=name, value=value: setattr(ffn, name, value), error, says)
    setattr(ffn, bias, [0.5] * 32)  # a list becomes an array
    setattr(ffn, first, np.zeros((8, 32)))
    ffn.activation = "relu"
    assert ffn(np.ones(8)).shape == (8,) and "relu" in repr(ffn)
    setattr(ffn, bias, None)
    assert bias not in ffn.parameters() and ffn(np.ones(8)).shape == (8,)


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
    (Grumpy(), "x must be an array of numbers, got a Grumpy that NumPy cannot read: 'call detach() first'"),
    (np.ma.masked_array(np.ones(8), [1] + [0] * 7),
     "x must be a plain array, got a masked one: its mask would be lost; fill it first"),
])
def test_foreign_arrays(x, says):
    for call in (F.FeedForward.random(8), F.relu):
        assert_error(lambda call=call: call(x), TypeError, says)


class Silent:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize("value, text", [
    (HUGE, HUGE_CUT), ("a" * 58, "'" + "a" * 58 + "'"), ("a" * 59, "'" + "a" * 56 + "..."),
    ("two\nlines", r"'two\nlines'"), (Silent(), "an object of type Silent"),
    pytest.param(10**5000, "an object of type int", id="a huge int"),
])
def test_what_came_is_cut_to_one_short_line(value, text):
    assert short(value) == text


# ---------------------------------------------------------------- dropout

def test_dropout_keeps_the_mean_and_the_dtype():
    x = np.full((1000, 1000), 3.0, np.float32)
    y = F.dropout(x, 0.25, np.random.default_rng(0))
    assert y.dtype == np.float32 and set(np.unique(y).tolist()) == {0.0, 4.0}
    assert (y == 0).mean() == pytest.approx(0.25, abs=0.002) and y.mean() == pytest.approx(3, abs=0.01)
    assert (x == 3).all()
    assert F.dropout(x, 0, np.random.default_rng(0)) is x
    assert F.dropout(np.array([np.inf, 1.0]), 0.99, np.random.default_rng(1)).tolist() == [0, 0]


@pytest.mark.parametrize("rate, error, came", [
    (1, ValueError, "1"), (-0.1, ValueError, "-0.1"), (float("nan"), ValueError, "nan"),
    (10**70, ValueError, "1" + "0" * 56 + "..."), ("0.1", TypeError, "'0.1'"), (None, TypeError, "None"),
    (True, TypeError, "True"), (HUGE, TypeError, HUGE_CUT),
])
def test_bad_rate(rate, error, came):
    assert_error(lambda: F.dropout(np.ones(3), rate, np.random.default_rng(0)), error,
                 f"rate must be a number with 0 <= rate < 1, got {came}")


def test_bad_dropout_x_and_rng():
    assert_error(lambda: F.dropout(None, 0.1, np.random.default_rng(0)), TypeError, f"x {REAL} None")
    for rate in (0, 0.1):
        assert_error(lambda rate=rate: F.dropout(np.ones(3), rate, 0), TypeError,
                     "rng must be a numpy.random.Generator such as np.random.default_rng(0), got int")


# ---------------------------------------------------------------- kinds by name

@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_kinds_have_equal_parameters(kind):
    ffn = make_ffn(kind, 12, 48)
    assert ffn.n_parameters == 1152 and make_ffn(kind, 12, 48, seed=1)(np.ones(12)).shape == (12,)


def test_kinds_are_what_their_names_say():
    assert KINDS_BY_NAME == {
        "linear": (F.FeedForward, "identity"), "relu": (F.FeedForward, "relu"), "gelu": (F.FeedForward, "gelu"),
        "silu": (F.FeedForward, "silu"), "glu": (F.GatedFeedForward, "sigmoid"),
        "bilinear": (F.GatedFeedForward, "identity"), "reglu": (F.GatedFeedForward, "relu"),
        "geglu": (F.GatedFeedForward, "gelu"), "swiglu": (F.GatedFeedForward, "silu")}


def test_gated_kinds_get_two_thirds_of_the_width_rounded():
    for d_ff in range(1, 40):
        assert make_ffn("swiglu", 4, d_ff).d_ff == round(2 * d_ff / 3) and make_ffn("relu", 4, d_ff).d_ff == d_ff


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


@pytest.mark.parametrize("kind, came", [
    ("tanh", "'tanh'"), ("", "''"), (None, "None"), (3, "3"), (["relu"], "['relu']"), ({}, "{}"),
    (HUGE, HUGE_CUT), ("k" * 99, "'" + "k" * 56 + "..."),
])
def test_unknown_kinds(kind, came):
    assert_error(lambda: make_ffn(kind, 4, 8), ValueError, f"kind must be one of {KIND_NAMES}; got {came}")


@pytest.mark.parametrize("kind", ["relu", "swiglu"])
@pytest.mark.parametrize("arguments, error, says", BAD_SIZES)
def test_bad_make_ffn(kind, arguments, error, says):
    assert_error(lambda: make_ffn(kind, **{"d_model": 8, **arguments}), error, says)
