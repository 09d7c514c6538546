"""Softmax, norms, attention and the block: slow loops, finite differences, properties, errors."""
import math

import numpy as np
import pytest
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


BAD = [
    (lambda: F.softmax(None), TypeError, "x must hold real numbers"),
    (lambda: F.softmax([1.0], axis=1), ValueError, r"axis must be an axis of x, which has shape \(1,\); got 1"),
    (lambda: F.softmax([1.0], axis="a"), TypeError, "axis must be an integer, got 'a'"),
    (lambda: F.layer_norm(X, np.ones(5), None), ValueError, "x has last dimension 6, but .*d_model = 5"),
    (lambda: F.layer_norm(X, np.ones((1, D)), None), ValueError, r"gain must have shape \(d_model,\)"),
    (lambda: F.layer_norm(X, np.ones(D), np.ones(5)), ValueError, r"bias must have gain's shape \(6,\), got \(5,\)"),
    (lambda: F.rms_norm(X, np.ones(D), eps=-1), ValueError, "eps must be a number that is at least 0, got -1"),
    (lambda: F.rms_norm(X, np.ones(D), eps=None), TypeError, "eps must be a number"),
    (lambda: F.attention(X, *W, n_heads=4), ValueError, "n_heads must divide d_model = 6, got 4"),
    (lambda: F.attention(X, *W, n_heads=0), ValueError, "n_heads must be a positive integer, got 0"),
    (lambda: F.attention(X, *W, n_heads=2.0), TypeError, "n_heads must be a positive integer, got 2.0"),
    (lambda: F.attention(X[0], *W), ValueError, r"x must have shape \(..., T, 6\), got \(6,\)"),
    (lambda: F.attention(X[:, :5], *W), ValueError, "x has last dimension 5"),
    (lambda: F.attention(X, W[0], W[1], W[2, :5], W[3]), ValueError, "W_v must have shape"),
    (lambda: F.attention(X, W[0][:, :5], *W[1:]), ValueError, r"W_q must have shape \(d_model, d_model\)"),
    (lambda: F.TransformerBlock(*W, placement="mid"), ValueError, "placement must be 'pre' or 'post', got 'mid'"),
    (lambda: F.TransformerBlock(*W, norm="batch"), ValueError, "norm must be 'rms', 'layer' or None, got 'batch'"),
    (lambda: F.TransformerBlock(*W, ffn=F.FeedForward.random(8)), ValueError, "ffn must have d_model = 6"),
    (lambda: F.TransformerBlock(*W, gain1=np.ones(5)), ValueError, "gain1 must have shape"),
    (lambda: F.TransformerBlock(*W, bias1=np.ones(6)), ValueError, "bias1 is given, but norm='rms'"),
    (lambda: F.TransformerBlock.random(0), ValueError, "d_model must be a positive integer"),
    (lambda: F.TransformerBlock.random(6)(X[:, :3]), ValueError, "x has last dimension 3"),
    (lambda: F.TransformerBlock.random(6).backward(X, X), TypeError, "trace must be what"),
    (lambda: F.TransformerBlock.random(6).backward(F.TransformerBlock.random(6).trace(X), X), ValueError, "another"),
]


@pytest.mark.parametrize("call, error, says", BAD)
def test_bad_input(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_counts_and_repr():
    block = F.TransformerBlock.random(D, 2, ffn="relu", norm="layer")
    assert block.n_parameters == F.attention_parameters(D, 2) + F.ffn_parameters(D, 4 * D, bias=True) + 4 * D
    assert "\n" not in repr(block) and "n_heads=2" in repr(block)
