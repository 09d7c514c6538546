"""Softmax, norms, attention and the block: slow loops, finite differences, properties, errors."""
import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from errors import KIND_NAMES, REAL, assert_error
from finite_differences import assert_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

import ffn_numpy as F

R = np.random.default_rng(0)
D, T = 6, 5
W = R.normal(size=(4, D, D)) / math.sqrt(D)  # W_q, W_k, W_v, W_o
X = R.normal(size=(T, D))


def slow_attention(x, W_q, W_k, W_v, W_o, n_heads, causal):
    """The definition, number by number."""
    n, d = x.shape
    d_head, mixed = d // n_heads, np.zeros((n, d))
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    for head in range(n_heads):
        columns = range(head * d_head, (head + 1) * d_head)
        for t in range(n):
            seen = range(t + 1) if causal else range(n)
            scores = [math.exp(sum(q[t, c] * k[s, c] for c in columns) / math.sqrt(d_head)) for s in seen]
            for c in columns:
                mixed[t, c] = sum(e * v[s, c] for e, s in zip(scores, seen)) / sum(scores)
    return mixed @ W_o


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_heads", [1, 2, 3, 6])
def test_attention_is_the_definition(n_heads, causal):
    batch = R.normal(size=(2, 3, T, D))
    y = F.attention(batch, *W, n_heads=n_heads, causal=causal)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(y[index], slow_attention(batch[index], *W, n_heads, causal), rtol=0, atol=1e-13)


def test_norms_are_the_definition():
    gain, bias = R.normal(size=D), R.normal(size=D)
    for row, ln, rn in zip(X, F.layer_norm(X, gain, bias), F.rms_norm(X, gain)):
        mean = sum(row) / D
        var = sum((v - mean) ** 2 for v in row) / D
        np.testing.assert_allclose(ln, [(v - mean) / math.sqrt(var + 1e-5) * g + b for v, g, b in zip(row, gain, bias)])
        square = sum(v * v for v in row) / D
        np.testing.assert_allclose(rn, [v / math.sqrt(square + 1e-6) * g for v, g in zip(row, gain)])
    np.testing.assert_allclose(F.layer_norm(X + 100, gain, None), F.layer_norm(X, gain, None), atol=1e-9)


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=8))
def test_softmax_sums_to_one_and_ignores_shifts(values):
    p = F.softmax(values)
    assert p.sum() == pytest.approx(1) and (p >= 0).all()
    np.testing.assert_allclose(F.softmax(np.array(values) + 1000), p, atol=1e-12)


def test_softmax_extremes_dtypes_and_axis():
    with np.errstate(all="raise"):
        assert F.softmax([1e308, -1e308, -np.inf]).tolist() == [1, 0, 0]
        assert np.isnan(F.softmax([np.nan, 1.0])).all()
    for dtype in (np.float16, np.float32, np.float64):
        assert F.softmax(X.astype(dtype)).dtype == dtype
        assert F.rms_norm(X.astype(dtype), np.ones(D, dtype)).dtype == dtype
        assert F.layer_norm(X.astype(dtype), np.ones(D, dtype), np.zeros(D, dtype)).dtype == dtype
        assert F.attention(X.astype(dtype), *W.astype(dtype), n_heads=2, causal=True).dtype == dtype
    np.testing.assert_allclose(F.softmax(X, axis=0).sum(axis=0), 1)
    assert F.softmax(np.empty((0, 3))).shape == (0, 3)


BLOCKS = [dict(placement=p, norm=n, ffn=f, causal=c, n_heads=h) for p, n, f, c, h in [
    ("pre", "rms", "swiglu", True, 2), ("pre", "layer", "relu", False, 3), ("post", "layer", "gelu", False, 2),
    ("post", "rms", "silu", True, 1), ("pre", None, "gelu", True, 2), ("post", None, None, False, 6),
    ("pre", "rms", None, True, 3), ("post", "layer", None, False, 1),
]]


def random_block(options):
    block = F.TransformerBlock.random(D, seed=3, **options)
    for p in (block.gain1, block.bias1, block.gain2, block.bias2):
        if p is not None:  # gains and biases that are not 1 and 0
            p += np.random.default_rng(4).normal(size=p.shape) * 0.3
    return block


@pytest.mark.parametrize("options", BLOCKS, ids=lambda o: f"{o['placement']}-{o['norm']}-{o['ffn']}-{o['n_heads']}")
@pytest.mark.parametrize("last_only", [False, True])
def test_every_gradient_of_the_block_is_the_finite_difference(options, last_only):
    block = random_block(options)
    x, r = np.random.default_rng(5).normal(size=(2, T, D)), np.random.default_rng(6)
    dy = r.normal(size=(2, 1 if last_only else T, D))

    def loss():
        return float((block.forward(x, last_only)[0] * dy).sum())
    gradients = block.gradients(block.forward(x, last_only)[1], dy)
    assert_gradients({"x": x, **block.parameters()}, loss, gradients, at_most=8)


@pytest.mark.parametrize("options", BLOCKS, ids=lambda o: f"{o['placement']}-{o['norm']}-{o['ffn']}-{o['n_heads']}")
@pytest.mark.parametrize("last_only", [False, True])
def test_gradients_of_a_batch_are_those_of_its_sequences(options, last_only):
    """Any leading dimensions, none included."""
    block, r = random_block(options), np.random.default_rng(7)
    x, dy = r.normal(size=(2, 3, T, D)), r.normal(size=(2, 3, 1 if last_only else T, D))
    batch = block.gradients(block.forward(x, last_only)[1], dy)
    total = dict.fromkeys(block.parameters(), 0)
    for i in np.ndindex(2, 3):
        y, cache = block.forward(x[i], last_only)
        np.testing.assert_allclose(y, block.forward(x, last_only)[0][i], rtol=0, atol=1e-12)
        gradients = block.gradients(cache, dy[i])
        np.testing.assert_allclose(gradients.pop("x"), batch["x"][i], rtol=0, atol=1e-12)
        total = {name: total[name] + g for name, g in gradients.items()}
    for name, gradient in total.items():
        np.testing.assert_allclose(gradient, batch[name], rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", BLOCKS[:4], ids=str)
def test_block_is_its_formula(options):
    block = random_block(options)
    n, p = options["norm"], block.parameters()

    def norm(which, v):
        return F.rms_norm(v, p[f"gain{which}"]) if n == "rms" else F.layer_norm(v, p[f"gain{which}"], p[f"bias{which}"])

    def attend(v):
        return slow_attention(v, p["W_q"], p["W_k"], p["W_v"], p["W_o"], options["n_heads"], options["causal"])
    if options["placement"] == "pre":
        h = X + attend(norm(1, X))
        y = h + block.ffn(norm(2, h))
    else:
        h = norm(1, X + attend(X))
        y = norm(2, h + block.ffn(h))
    np.testing.assert_allclose(block(X), y, rtol=0, atol=1e-12)
    trace = block.trace(X)
    np.testing.assert_array_equal(trace.output, block(X))
    assert list(trace)[0] == "x" and "attention" in trace and "ffn" in trace
    np.testing.assert_allclose(block.forward(X, last_only=True)[0], y[-1:], rtol=0, atol=1e-12)
    assert set(block.backward(trace, X)) == {"x", *p}


def mixture(shared):
    experts = [F.FeedForward.random(D, 4, "silu", seed=e) for e in range(3)]
    return F.MixtureOfExperts(R.normal(size=(D, 3)), experts, shared=F.GatedFeedForward.random(D) if shared else None)


EVERY_BLOCK = list(product(("rms", "layer", None), ("pre", "post"),
                           ("gelu", "swiglu", mixture(False), mixture(True), None), (1, 2, 6), (False, True)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_block_is_its_formula_in_the_public_functions_to_the_last_bit(dtype):
    for norm, placement, ffn, n_heads, causal in EVERY_BLOCK:
        block = random_block(dict(norm=norm, placement=placement, ffn=ffn, n_heads=n_heads, causal=causal))
        for name in block.shapes:
            if getattr(block, name) is not None:
                setattr(block, name, getattr(block, name).astype(dtype))

        def attend(v, b=block):
            return F.attention(v, b.W_q, b.W_k, b.W_v, b.W_o, b.n_heads, b.causal)

        def normalize(v, gain, bias, norm=norm):
            return v if norm is None else F.rms_norm(v, gain) if norm == "rms" else F.layer_norm(v, gain, bias)
        x = np.stack([X, 3 * X + 1]).astype(dtype)
        norm1, norm2 = (partial(normalize, gain=block.gain1, bias=block.bias1),
                        partial(normalize, gain=block.gain2, bias=block.bias2))
        if placement == "pre":
            y = x + attend(norm1(x))
            y = y if block.ffn is None else y + block.ffn(norm2(y))
        else:
            y = norm1(x + attend(x))
            y = y if block.ffn is None else norm2(y + block.ffn(y))
        trace = block.trace(x)
        for ours in (block(x), trace.output, block.forward(x)[0]):
            np.testing.assert_array_equal(ours, y)
        assert (trace.title.split("   ")[0], block.causal) == (f"TransformerBlock  {placement}-norm ({norm})", causal)


STAGES = {  # placement, norm, ffn -> the whole printed trace after the title, and what each stage is made from
    ("pre", "rms", "gelu"): ("""
  x                (5, 6)
  norm1            (5, 6) -> (5, 6)  rms_norm(x)
  attention        (5, 6) -> (5, 6)  attention(norm1)
  after_attention  (5, 6) -> (5, 6)  x + attention
  norm2            (5, 6) -> (5, 6)  rms_norm(after_attention)
  ffn              (5, 6) -> (5, 6)  ffn(norm2)
  after_ffn        (5, 6) -> (5, 6)  after_attention + ffn""", " x norm1 attention after_attention norm2 ffn"),
    ("post", "layer", "gelu"): ("""
  x                (5, 6)
  attention        (5, 6) -> (5, 6)  attention(x)
  after_attention  (5, 6) -> (5, 6)  x + attention
  norm1            (5, 6) -> (5, 6)  layer_norm(x + attention)
  ffn              (5, 6) -> (5, 6)  ffn(norm1)
  after_ffn        (5, 6) -> (5, 6)  norm1 + ffn
  norm2            (5, 6) -> (5, 6)  layer_norm(norm1 + ffn)""", " x attention after_attention norm1 ffn after_ffn"),
    ("pre", None, "gelu"): ("""
  x                (5, 6)
  attention        (5, 6) -> (5, 6)  attention(x)
  after_attention  (5, 6) -> (5, 6)  x + attention
  ffn              (5, 6) -> (5, 6)  ffn(after_attention)
  after_ffn        (5, 6) -> (5, 6)  after_attention + ffn""", " x attention after_attention ffn"),
    ("post", None, None): ("""
  x                (5, 6)
  attention        (5, 6) -> (5, 6)  attention(x)
  after_attention  (5, 6) -> (5, 6)  x + attention""", " x attention"),
    ("pre", "layer", None): ("""
  x                (5, 6)
  norm1            (5, 6) -> (5, 6)  layer_norm(x)
  attention        (5, 6) -> (5, 6)  attention(norm1)
  after_attention  (5, 6) -> (5, 6)  x + attention""", " x norm1 attention"),
    ("post", "rms", None): ("""
  x                (5, 6)
  attention        (5, 6) -> (5, 6)  attention(x)
  after_attention  (5, 6) -> (5, 6)  x + attention
  norm1            (5, 6) -> (5, 6)  rms_norm(x + attention)""", " x attention after_attention"),
}


@pytest.mark.parametrize("placement, norm, ffn", STAGES)
def test_trace_prints_every_step(placement, norm, ffn):
    block = F.TransformerBlock.random(D, 2, ffn, placement=placement, norm=norm)
    table, sources = STAGES[placement, norm, ffn]
    trace = block.trace(X)
    assert str(trace) == (f"TransformerBlock  {placement}-norm ({norm})   d_model = 6   n_heads = 2   "
                          f"{block.n_parameters:,} parameters{table}")
    assert [source for _, source, _, _ in trace.stages] == sources.split(" ")
    x = X.copy()
    trace = block.trace(x)
    x[:] = 0  # the trace is a record
    np.testing.assert_array_equal(trace["x"], X)


@pytest.mark.parametrize("norm, usual", [("rms", 1e-6), ("layer", 1e-5)])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_eps_of_a_block(norm, usual, placement):
    tiny = 1e-3 * X  # eps matters here
    weights, ffn = np.zeros((4, D, D)), F.FeedForward(np.eye(D), None, np.eye(D), None, "identity")

    def build(**eps):
        return F.TransformerBlock(*weights, ffn, placement=placement, norm=norm, **eps)

    def by_formula(eps):
        def normalize(v):
            return F.rms_norm(v, np.ones(D), eps) if norm == "rms" else F.layer_norm(v, np.ones(D), None, eps)
        if placement == "pre":
            return tiny + normalize(tiny)
        h = normalize(tiny)
        return normalize(h + h)
    assert build().eps == build(eps=None).eps == usual
    np.testing.assert_array_equal(build()(tiny), by_formula(usual))
    for eps in (0, 1e-2, np.float32(0.5)):
        assert type(build(eps=eps).eps) is float
        np.testing.assert_array_equal(build(eps=eps)(tiny), by_formula(eps))
        assert np.abs(build(eps=eps)(tiny) - by_formula(usual)).max() > 1e-8


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_gains_start_at_1_and_biases_at_0(dtype):
    for norm, ffn, names in (("rms", "relu", "gain1 gain2"), ("layer", "relu", "gain1 bias1 gain2 bias2"),
                             ("layer", None, "gain1 bias1"), ("rms", None, "gain1"), (None, "relu", "")):
        block = F.TransformerBlock.random(D, ffn=ffn, norm=norm, dtype=dtype)
        assert [n for n in block.parameters() if n[:4] in ("gain", "bias")] == names.split()
        for name in names.split():
            assert getattr(block, name).dtype == dtype
            assert getattr(block, name).tolist() == [1.0 if name[:4] == "gain" else 0.0] * D


def test_random_block_is_the_pinned_draw():
    r = np.random.default_rng(0)
    weights = [r.normal(size=(D, D)) / math.sqrt(D) for _ in range(4)]
    block = F.TransformerBlock.random(D)
    for name, W_ in zip(("W_q", "W_k", "W_v", "W_o"), weights):
        np.testing.assert_allclose(getattr(block, name), W_, rtol=1e-15)
    np.testing.assert_array_equal(block.ffn.W_gate, F.GatedFeedForward.random(D, seed=r).W_gate)
    for kind, biases in (("relu", 2), ("swiglu", 0)):
        assert sum(name.startswith("ffn.b") for name in F.TransformerBlock.random(D, ffn=kind).parameters()) == biases


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, T - 1))
def test_causal_blocks_do_not_look_ahead(seed, t):
    block = F.TransformerBlock.random(D, 2, causal=True, seed=seed)
    x = np.random.default_rng(seed).normal(size=(T, D))
    changed = x.copy()
    changed[t] += 1
    same = np.isclose(block(changed), block(x), rtol=0, atol=1e-12).all(axis=1)
    assert same[:t].all() and not same[t]
    order = np.random.default_rng(seed).permutation(T)
    full = F.TransformerBlock.random(D, 2, causal=False, seed=seed)
    np.testing.assert_allclose(full(x[order]), full(x)[order], rtol=0, atol=1e-11)


def test_inputs_are_not_modified_and_infinities_do_not_warn():
    block, x = F.TransformerBlock.random(D, 2), X.copy()
    x[0, 0] = np.inf
    before = x.copy()
    with np.errstate(all="raise"):
        block.backward(block.trace(x), np.ones_like(x))
        F.attention(x, *W)
    np.testing.assert_array_equal(x, before)


def block(**options):
    return F.TransformerBlock.random(D, 2, **options)


def set_in(layer, name, value):
    return lambda: setattr(layer, name, value)


EYE, EYE_CUT = np.eye(9), "array([[1., 0., 0., 0., 0., 0., 0., 0., 0.], [0., 1., 0.,..."
NORM, EPS = "norm must be 'rms', 'layer' or None, got", "eps must be a number that is at least 0, got"
AXIS, WHOLE = "axis must be an axis of x, which has shape (1,); got", "must be a positive integer, got"
BUILT = "when the block was built and cannot become"
ANY_FFN = "ffn must be a FeedForward, GatedFeedForward, MixtureOfExperts or None, got"
SIX, RELU_8 = np.ones(6), "FeedForward(d_model=8, d_ff=32, activation='relu', 552 pa..."

BAD = [
    (lambda: F.softmax(None), TypeError, f"x {REAL} None"),
    (lambda: F.softmax(1.0), ValueError, "x must have at least one dimension, got a scalar"),
    (lambda: F.softmax([1.0], axis=1), ValueError, f"{AXIS} 1"),
    (lambda: F.softmax([1.0], axis=-2), ValueError, f"{AXIS} -2"),
    (lambda: F.softmax([1.0], axis=10**70), ValueError, f"{AXIS} 1{'0' * 56}..."),
    (lambda: F.softmax([1.0], axis="a"), TypeError, "axis must be an integer, got 'a'"),
    (lambda: F.softmax([1.0], axis=True), TypeError, "axis must be an integer, got True"),
    (lambda: F.softmax([1.0], axis=None), TypeError, "axis must be an integer, got None"),
    # the norms
    (lambda: F.layer_norm(X, np.ones(5), None), ValueError,
     "x has last dimension 6, but gain has d_model = 5 (x.shape = (5, 6))"),
    (lambda: F.rms_norm(X[:, :4], SIX), ValueError,
     "x has last dimension 4, but gain has d_model = 6 (x.shape = (5, 4))"),
    (lambda: F.layer_norm(1.0, SIX, None), ValueError, "x must have shape (..., 6), got a scalar"),
    (lambda: F.rms_norm(None, SIX), TypeError, f"x {REAL} None"),
    (lambda: F.layer_norm(X, np.ones((1, D)), None), ValueError, "gain must have shape (d_model,), got (1, 6)"),
    (lambda: F.rms_norm(X, 1.0), ValueError, "gain must have shape (d_model,), got ()"),
    (lambda: F.rms_norm(X, None), TypeError, f"gain {REAL} None"),
    (lambda: F.layer_norm(X, SIX, np.ones(5)), ValueError, "bias must have gain's shape (6,), got (5,)"),
    (lambda: F.layer_norm(X, SIX, "b"), TypeError, f"bias {REAL} a str of dtype <U1"),
    (lambda: F.rms_norm(X, SIX, eps=-1), ValueError, f"{EPS} -1"),
    (lambda: F.rms_norm(X, SIX, eps=float("nan")), ValueError, f"{EPS} nan"),
    (lambda: F.rms_norm(X, SIX, eps=-10**70), ValueError, f"{EPS} -1{'0' * 55}..."),
    (lambda: F.rms_norm(X, SIX, eps=None), TypeError, f"{EPS} None"),
    (lambda: F.layer_norm(X, SIX, None, eps=True), TypeError, f"{EPS} True"),
    (lambda: F.layer_norm(X, SIX, None, eps=EYE), TypeError, f"{EPS} {EYE_CUT}"),
    # attention
    (lambda: F.attention(X, *W, n_heads=4), ValueError, "n_heads must divide d_model = 6, got 4"),
    (lambda: F.attention(X, *W, n_heads=0), ValueError, f"n_heads {WHOLE} 0"),
    (lambda: F.attention(X, *W, n_heads=2.0), TypeError, f"n_heads {WHOLE} 2.0"),
    (lambda: F.attention(X, *W, n_heads=10**5000), ValueError,
     "n_heads must divide d_model = 6, got an object of type int"),
    (lambda: F.attention(1.0, *W), ValueError, "x must have shape (..., T, 6), got a scalar"),
    (lambda: F.attention(X[0], *W), ValueError, "x must have shape (..., T, 6), got (6,)"),
    (lambda: F.attention(None, *W), TypeError, f"x {REAL} None"),
    (lambda: F.attention(X[:, :5], *W), ValueError,
     "x has last dimension 5, but W_q has d_model = 6 (x.shape = (5, 5))"),
    (lambda: F.attention(X, W[0], W[1], W[2, :5], W[3]), ValueError,
     "W_v must have shape (6, 6) to fit d_model = 6; got (5, 6)"),
    (lambda: F.attention(X, W[0], None, *W[2:]), TypeError, f"W_k {REAL} None"),
    (lambda: F.attention(X, W[0][:, :5], *W[1:]), ValueError,
     "W_q must have shape (d_model, d_model), both at least 1; got (6, 5)"),
    # the block, when built
    (lambda: F.TransformerBlock(*W, placement="mid"), ValueError, "placement must be 'pre' or 'post', got 'mid'"),
    (lambda: F.TransformerBlock(*W, placement=None), ValueError, "placement must be 'pre' or 'post', got None"),
    (lambda: F.TransformerBlock(*W, placement=np.array(["pre", "post"])), ValueError,
     "placement must be 'pre' or 'post', got array(['pre', 'post'], dtype='<U4')"),
    (lambda: F.TransformerBlock(*W, norm="batch"), ValueError, f"{NORM} 'batch'"),
    (lambda: F.TransformerBlock(*W, norm=["rms"]), ValueError, f"{NORM} ['rms']"),
    (lambda: F.TransformerBlock(*W, norm=EYE), ValueError, f"{NORM} {EYE_CUT}"),
    (lambda: F.TransformerBlock(*W, eps=-1.0), ValueError, f"{EPS} -1.0"),
    (lambda: F.TransformerBlock(*W, eps="1e-5"), TypeError, f"{EPS} '1e-5'"),
    (lambda: F.TransformerBlock(*W, ffn=3), TypeError, f"{ANY_FFN} 3"),
    (lambda: F.TransformerBlock(*W, ffn=block()), TypeError,
     f"{ANY_FFN} TransformerBlock(d_model=6, n_heads=2, causal=False, plac..."),
    (lambda: F.TransformerBlock(*W, ffn=F.FeedForward.random(8)), ValueError,
     f"ffn must have d_model = 6 like the attention weights, got {RELU_8}"),
    (lambda: F.TransformerBlock(*W, gain1=np.ones(5)), ValueError,
     "gain1 must have shape (6,) to fit d_model = 6; got (5,)"),
    (lambda: F.TransformerBlock(*W, gain1="g"), TypeError, f"gain1 {REAL} a str of dtype <U1"),
    (lambda: F.TransformerBlock(*W, bias1=SIX), ValueError, "bias1 is given, but norm='rms' has no biases"),
    (lambda: F.TransformerBlock(*W, bias2=SIX), ValueError, "bias2 is given, but norm='rms' has no biases"),
    (lambda: F.TransformerBlock(*W, gain2=SIX), ValueError, "gain2 is given, but ffn=None has no second norm"),
    (lambda: F.TransformerBlock(*W, norm="layer", bias2=SIX), ValueError,
     "bias2 is given, but ffn=None has no second norm"),
    (lambda: F.TransformerBlock(*W, norm=None, gain1=SIX), ValueError,
     "gain1 is given, but norm=None has no gains and biases"),
    (lambda: F.TransformerBlock.random(0), ValueError, f"d_model {WHOLE} 0"),
    (lambda: F.TransformerBlock.random(8, n_heads=3), ValueError, "n_heads must divide d_model = 8, got 3"),
    (lambda: F.TransformerBlock.random(8, ffn="mlp"), ValueError, f"kind must be one of {KIND_NAMES}; got 'mlp'"),
    (lambda: F.TransformerBlock.random(8, seed=-1), ValueError,
     "seed must be a non-negative integer or a numpy.random.Generator, got -1"),
    (lambda: F.TransformerBlock.random(8, dtype=int), TypeError,
     "dtype must be float16, float32 or float64, got <class 'int'>"),
    # the block, when something is replaced
    (set_in(block(), "norm", "layer"), ValueError, f"norm was 'rms' {BUILT} 'layer': build another block"),
    (set_in(block(), "norm", None), ValueError, f"norm was 'rms' {BUILT} None: build another block"),
    (set_in(block(norm=None), "norm", "rms"), ValueError, f"norm was None {BUILT} 'rms': build another block"),
    (set_in(block(), "norm", EYE), ValueError, f"{NORM} {EYE_CUT}"),
    (set_in(block(), "placement", "mid"), ValueError, "placement must be 'pre' or 'post', got 'mid'"),
    (set_in(block(), "eps", -1), ValueError, f"{EPS} -1"),
    (set_in(block(), "n_heads", 4), ValueError, "n_heads must divide d_model = 6, got 4"),
    (set_in(block(), "n_heads", True), TypeError, f"n_heads {WHOLE} True"),
    (set_in(block(), "d_model", 7), ValueError,
     "d_model was 6 when this layer was built and cannot become 7: build another layer"),
    (set_in(block(), "W_q", np.ones((6, 5))), ValueError, "W_q must have shape (6, 6) to fit d_model = 6; got (6, 5)"),
    (set_in(block(), "W_q", None), TypeError, f"W_q {REAL} None"),
    (set_in(block(), "ffn", F.FeedForward.random(8)), ValueError,
     f"ffn must have d_model = 6 like the attention weights, got {RELU_8}"),
    (set_in(block(), "ffn", "relu"), TypeError, f"{ANY_FFN} 'relu'"),
    (set_in(block(), "ffn", None), ValueError, "ffn was GatedFeedForward(d_model=6, d_ff=16, activation='silu', 2... "
     f"{BUILT} None: build another block"),
    (set_in(block(ffn=None), "ffn", F.FeedForward.random(6)), ValueError,
     f"ffn was None {BUILT} FeedForward(d_model=6, d_ff=24, activation='relu', 318 pa...: build another block"),
    (set_in(block(), "gain1", np.ones((1, 6))), ValueError,
     "gain1 must have shape (6,) to fit d_model = 6; got (1, 6)"),
    (set_in(block(), "gain2", None), ValueError,
     f"gain2 was array([1., 1., 1., 1., 1., 1.]) {BUILT} None: build another block"),
    (set_in(block(norm="layer"), "bias1", None), ValueError,
     f"bias1 was array([0., 0., 0., 0., 0., 0.]) {BUILT} None: build another block"),
    *[(set_in(block(ffn=None), name, SIX), ValueError,
       f"{name} was None {BUILT} array([1., 1., 1., 1., 1., 1.]): build another block")
      for name in ("bias1", "gain2", "bias2")],
    # the block, when called
    (lambda: block()(X[:, :3]), ValueError,
     "x has last dimension 3, but this block was built for d_model = 6 (x.shape = (5, 3))"),
    (lambda: block().trace(X[:, :3]), ValueError,
     "x has last dimension 3, but this block was built for d_model = 6 (x.shape = (5, 3))"),
    (lambda: block()(X[0]), ValueError, "x must have shape (..., T, 6), got (6,)"),
    (lambda: block().trace(2.0), ValueError, "x must have shape (..., T, 6), got a scalar"),
    (lambda: block()(None), TypeError, f"x {REAL} None"),
    (lambda: block().backward(X, X), TypeError, "trace must be what trace(x) returned, got ndarray"),
    (lambda: block().backward(block(ffn="gelu").trace(X), X), ValueError,
     "trace was made by another layer, TransformerBlock(d_model=6, n_heads=2, causal=False, plac...; it must be a "
     "trace of this one, TransformerBlock(d_model=6, n_heads=2, causal=False, plac..."),
    (lambda: block().backward(F.FeedForward.random(6).trace(X), X), ValueError,
     "trace was made by another layer, FeedForward(d_model=6, d_ff=24, activation='relu', 318 pa...; it must be a "
     "trace of this one, TransformerBlock(d_model=6, n_heads=2, causal=False, plac..."),
    (lambda: (b := block()).backward(b.trace(X), X[0]), ValueError, "dy must have the output's shape (5, 6), got (6,)"),
    (lambda: (b := block()).backward(b.trace(X), "dy"), TypeError, f"dy {REAL} a str of dtype <U2"),
]


@pytest.mark.parametrize("call, error, says", BAD)
def test_bad_input(call, error, says):
    assert_error(call, error, says)


def test_what_may_be_replaced():
    b, x = block(norm="layer"), np.ones((2, D))
    b.ffn, b.placement, b.n_heads, b.norm = F.FeedForward.random(D, 5), "post", 3, "layer"
    b.gain1, b.bias1, b.W_q = [2.0] * D, [1] * D, W[0].tolist()
    b.eps = None
    assert b.eps == 1e-5 and b.gain1.dtype == b.bias1.dtype == np.float64
    again = F.TransformerBlock(W[0], b.W_k, b.W_v, b.W_o, b.ffn, 3, False, "post", "layer", [2.0] * D, [1.0] * D)
    np.testing.assert_array_equal(b(x), again(x))
    b.eps = 3
    assert b.eps == 3.0 and (b(x) != again(x)).any()


def test_counts_and_repr():
    block = F.TransformerBlock.random(D, 2, ffn="relu", norm="layer")
    assert block.n_parameters == F.attention_parameters(D, 2) + F.ffn_parameters(D, 4 * D, bias=True) + 4 * D
    assert repr(block) == ("TransformerBlock(d_model=6, n_heads=2, causal=False, placement='pre', norm='layer', "
                           "ffn=FeedForward(d_model=6, d_ff=24, activation='relu', 318 parameters, float64), "
                           "486 parameters)")
    wide = F.TransformerBlock.random(20, ffn=None, norm=None, placement="post", causal=1)
    assert repr(wide) == ("TransformerBlock(d_model=20, n_heads=1, causal=True, placement='post', norm=None, ffn=None, "
                          "1,600 parameters)")
