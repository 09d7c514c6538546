"""Mixture of experts: slow loops, finite differences for every parameter, the balancing loss, errors."""
import numpy as np
import pytest
from errors import REAL, assert_error
from finite_differences import assert_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

import ffn_numpy as F

D, E = 5, 4
X = np.random.default_rng(0).normal(size=(2, 3, D))


def build(top_k=2, renormalize=True, shared=False, gated=False, seed=0, dtype=np.float64):
    kind = F.GatedFeedForward if gated else F.FeedForward
    experts = [kind.random(D, 6, "silu", seed=seed + e, bias=True, dtype=dtype) for e in range(E)]
    W = np.random.default_rng(seed).normal(size=(D, E)).astype(dtype)
    always = kind.random(D, 7, seed=9, dtype=dtype) if shared else None
    return F.MixtureOfExperts(W, experts, top_k, renormalize, always)


def slow(moe, token):
    """One token, the definition step by step."""
    scores = [sum(token[i] * moe.W_router[i, e] for i in range(D)) for e in range(E)]
    p = np.exp(scores) / sum(np.exp(scores))
    chosen = sorted(range(E), key=lambda e: -p[e])[:moe.top_k]
    total = sum(p[e] for e in chosen) if moe.renormalize else 1
    y = sum(p[e] / total * moe.experts[e](token) for e in chosen)
    return y if moe.shared is None else y + moe.shared(token)


OPTIONS = [(1, False, False, False), (2, True, True, False), (2, False, False, True), (3, True, False, False),
           (4, False, True, True), (1, True, True, False)]


@pytest.mark.parametrize("top_k, renormalize, shared, gated", OPTIONS)
def test_forward_is_the_definition_for_every_token(top_k, renormalize, shared, gated):
    moe = build(top_k, renormalize, shared, gated)
    y, route = moe(X), moe.route(X)
    assert route.choices.shape == route.weights.shape == (2, 3, top_k)
    np.testing.assert_allclose(route.probabilities.sum(axis=-1), 1)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(y[index], slow(moe, X[index]), rtol=0, atol=1e-13)
        np.testing.assert_allclose(moe(X[index]), y[index], rtol=0, atol=1e-13)  # a single token
    if renormalize:
        np.testing.assert_allclose(route.weights.sum(axis=-1), 1)


@pytest.mark.parametrize("top_k, renormalize, shared, gated", OPTIONS)
def test_every_gradient_is_the_finite_difference(top_k, renormalize, shared, gated):
    moe, x = build(top_k, renormalize, shared, gated), X.copy()
    r = np.random.default_rng(1)
    dy, dp = r.normal(size=x.shape), r.normal(size=(2, 3, E))

    def loss():
        return float((moe(x) * dy).sum() + (moe.route(x).probabilities * dp).sum())
    assert_gradients({"x": x, **moe.parameters()}, loss, moe.backward(moe.trace(x), dy, dp), at_most=12)


@pytest.mark.parametrize("top_k, renormalize, shared, gated", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dispatch_is_the_slow_one_to_the_last_bit(top_k, renormalize, shared, gated, dtype):
    """The tokens of each expert gathered by a loop, the experts in order, then the shared one."""
    moe, x = build(top_k, renormalize, shared, gated, dtype=dtype), X.reshape(-1, D).astype(dtype)
    p = F.softmax(x @ moe.W_router)
    choices = np.array([sorted(range(E), key=lambda e: -row[e])[:top_k] for row in p])
    weights = np.take_along_axis(p, choices, -1)
    weights = weights / weights.sum(axis=-1, keepdims=True) if renormalize else weights
    y = np.zeros_like(x)
    for e, expert in enumerate(moe.experts):
        mine = [t for t in range(len(x)) if e in choices[t]]
        for t, written in zip(mine, expert(x[mine])):
            y[t] += weights[t, choices[t].tolist().index(e)] * written
    if shared:
        y += moe.shared(x)
    trace = moe.trace(X.astype(dtype))
    for ours in (moe(x), trace.output.reshape(-1, D), moe(x.reshape(3, 2, D)).reshape(-1, D)):
        np.testing.assert_array_equal(ours, y)
    for ours in (moe.route(x), [trace[name].reshape(len(x), -1) for name in ("probabilities", "choices", "weights")]):
        for got, wanted in zip(ours, (p, choices, weights)):
            np.testing.assert_array_equal(got, wanted)


def test_ties_go_to_the_first_expert():
    moe = F.MixtureOfExperts(np.zeros((D, E)), [F.FeedForward.random(D, seed=e) for e in range(E)], 3)
    assert moe.route(X).choices.tolist() == [[[0, 1, 2]] * 3] * 2


def test_one_token_and_no_token():
    for options in OPTIONS:
        moe = build(*options)
        route, trace = moe.route(X[0, 0]), moe.trace(X[0, 0])
        top_k = options[0]
        assert [a.shape for a in route] == [(E,), (top_k,), (top_k,)] and trace.output.shape == (D,)
        gradients, batch = moe.backward(trace, X[0, 1]), moe.backward(moe.trace(X[0, :1]), X[0, 1:2])
        assert gradients["x"].shape == (D,)
        for name, gradient in batch.items():
            np.testing.assert_array_equal(gradients[name].reshape(gradient.shape), gradient)
        nothing = moe.trace(X[:, :0])
        assert nothing.output.shape == (2, 0, D) and nothing["choices"].shape == (2, 0, top_k)
        assert all(not g.any() for g in moe.backward(nothing, X[:, :0]).values())


TRACES = [((2, True, False), """\
MixtureOfExperts  top 2 of 4   d_model = 5   304 parameters, 162 active per token
  x              (2, 3, 5)
  probabilities  (2, 3, 5) -> (2, 3, 4)  softmax(x @ W_router)
  choices        (2, 3, 4) -> (2, 3, 2)  the 2 largest
  weights        (2, 3, 2) -> (2, 3, 2)  their probabilities, renormalised
  output         (2, 3, 5) -> (2, 3, 5)  sum of weight * expert(x)"""), ((1, False, True), """\
MixtureOfExperts  top 1 of 4   d_model = 5   386 parameters, 173 active per token
  x              (2, 3, 5)
  probabilities  (2, 3, 5) -> (2, 3, 4)  softmax(x @ W_router)
  choices        (2, 3, 4) -> (2, 3, 1)  the 1 largest
  weights        (2, 3, 1) -> (2, 3, 1)  their probabilities
  output         (2, 3, 5) -> (2, 3, 5)  sum of weight * expert(x) + shared(x)""")]


@pytest.mark.parametrize("options, table", TRACES)
def test_trace_prints_every_stage(options, table):
    x = X.copy()
    trace = build(*options).trace(x)
    x[:] = 0  # the trace is a record
    assert str(trace) == table
    assert [source for _, source, _, _ in trace.stages] == ["", "x", "probabilities", "choices", "x"]
    np.testing.assert_array_equal(trace["x"], X)


def test_top_1_renormalised_router_gets_exactly_no_gradient():
    for renormalize, dead in ((True, True), (False, False)):
        moe = build(1, renormalize)
        gradient = moe.backward(moe.trace(X), np.ones_like(X))["W_router"]
        assert (not gradient.any()) is dead


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([(0,), (4,), (2, 0, 3), (1, 2, 2)]), st.sampled_from(OPTIONS))
def test_tokens_are_independent_and_inputs_kept(seed, lead, options):
    moe, x = build(*options, seed=seed), np.random.default_rng(seed).normal(size=(*lead, D))
    before = x.copy()
    y = moe(x)
    assert y.shape == x.shape
    flat, out = x.reshape(-1, D), y.reshape(-1, D)
    order = np.random.default_rng(seed).permutation(len(flat))
    np.testing.assert_allclose(moe(flat[order]), out[order], rtol=0, atol=1e-12)
    assert moe.backward(moe.trace(x), y)["x"].shape == x.shape
    np.testing.assert_array_equal(x, before)


def test_dtype_counts_and_repr():
    assert build(dtype=np.float32)(X.astype(np.float32)).dtype == np.float32
    moe = build(2, shared=True)
    expert, shared = moe.experts[0].n_parameters, moe.shared.n_parameters
    assert moe.n_parameters == D * E + E * expert + shared
    assert moe.n_active_parameters == D * E + 2 * expert + shared
    assert repr(moe) == "MixtureOfExperts(d_model=5, n_experts=4, top_k=2, 386 parameters, 244 active per token)"
    sizes = F.MixtureOfExperts(np.ones((100, 2)), [F.FeedForward.random(100, n) for n in (5, 20)], 1)
    assert repr(sizes) == ("MixtureOfExperts(d_model=100, n_experts=2, top_k=1, 5,425 parameters, "
                           "4,320 active per token)")


def test_a_mixture_is_an_ffn_for_the_block():
    block = F.TransformerBlock.random(D, ffn=build())
    x = X[0]
    np.testing.assert_allclose(block(x), block.trace(x).output)
    assert "ffn.W_router" in block.backward(block.trace(x), x)


def test_balancing_loss():
    even = np.full((8, 4), 0.25)
    assert F.load_balancing_loss(even, np.arange(8)[:, None] % 4) == pytest.approx(1)
    one = np.zeros((8, 4))
    one[:, 2] = 1
    assert F.load_balancing_loss(one, np.full((8, 1), 2)) == pytest.approx(4)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50).reshape(5, 10, 3)
    choices = np.argsort(-p, axis=-1)[..., :2]
    f = [np.mean(choices == e) for e in range(3)]
    by_hand = 3 * sum(f[e] * p[..., e].mean() for e in range(3))
    assert sum(f) == pytest.approx(1) and F.load_balancing_loss(p, choices) == pytest.approx(by_hand)


FFNS = [F.FeedForward.random(D) for _ in range(E)]
W = np.ones((D, E))


def set_in(name, value, **options):
    return lambda: setattr(build(**options), name, value)


EIGHT, EIGHT_TEXT = F.FeedForward.random(8), "FeedForward(d_model=8, d_ff=32, activation='relu', 552 pa..."
ONE, FOUR = "must be a FeedForward or GatedFeedForward, got", "experts must be 4 FFNs, one per column of W_router, got"
BUILT_FOR, WHOLE = "but this mixture was built for d_model = 5", "top_k must be a positive integer, got"
ROUTER = "W_router must have shape (d_model, n_experts), both at least 1; got"
CHOICES = "choices must have shape (..., top_k) with the leading dimensions of probabilities"


@pytest.mark.parametrize("call, error, says", [
    (lambda: F.MixtureOfExperts(np.ones(D), FFNS), ValueError, f"{ROUTER} (5,)"),
    (lambda: F.MixtureOfExperts(np.ones((D, 0)), []), ValueError, f"{ROUTER} (5, 0)"),
    (lambda: F.MixtureOfExperts(None, FFNS), TypeError, f"W_router {REAL} None"),
    (lambda: F.MixtureOfExperts(W, FFNS[:3]), ValueError, f"{FOUR} 3"),
    (lambda: F.MixtureOfExperts(W, 3), TypeError, "experts must be a sequence of FFNs, got 3"),
    (lambda: F.MixtureOfExperts(W, [*FFNS[:3], "x"]), TypeError, f"experts[3] {ONE} 'x'"),
    (lambda: F.MixtureOfExperts(W, [build()] * 4), TypeError,
     f"experts[0] {ONE} MixtureOfExperts(d_model=5, n_experts=4, top_k=2, 304 par..."),
    (lambda: F.MixtureOfExperts(W, [*FFNS[:3], EIGHT]), ValueError,
     f"experts[3] must have d_model = 5 like W_router, got {EIGHT_TEXT}"),
    (lambda: F.MixtureOfExperts(W, FFNS, shared=3), TypeError, f"shared {ONE} 3"),
    (lambda: F.MixtureOfExperts(W, FFNS, shared=EIGHT), ValueError,
     f"shared must have d_model = 5 like W_router, got {EIGHT_TEXT}"),
    (lambda: F.MixtureOfExperts(W, FFNS, top_k=5), ValueError, "top_k must be at most n_experts = 4, got 5"),
    (lambda: F.MixtureOfExperts(W, FFNS, top_k=10**70), ValueError,
     f"top_k must be at most n_experts = 4, got 1{'0' * 56}..."),
    (lambda: F.MixtureOfExperts(W, FFNS, top_k=0), ValueError, f"{WHOLE} 0"),
    (lambda: F.MixtureOfExperts(W, FFNS, top_k=1.5), TypeError, f"{WHOLE} 1.5"),
    (lambda: F.MixtureOfExperts(W, FFNS, top_k=True), TypeError, f"{WHOLE} True"),
    # replaced
    (set_in("W_router", np.ones((5, 3))), ValueError,
     "W_router must have shape (5, 4) to fit d_model = 5 and n_experts = 4; got (5, 3)"),
    (set_in("W_router", None), TypeError, f"W_router {REAL} None"),
    (set_in("experts", FFNS[:3]), ValueError, f"{FOUR} 3"),
    (set_in("experts", None), TypeError, "experts must be a sequence of FFNs, got None"),
    (set_in("experts", [*FFNS[:3], EIGHT]), ValueError,
     f"experts[3] must have d_model = 5 like W_router, got {EIGHT_TEXT}"),
    (set_in("shared", "x"), TypeError, f"shared {ONE} 'x'"),
    (set_in("shared", EIGHT, shared=True), ValueError,
     f"shared must have d_model = 5 like W_router, got {EIGHT_TEXT}"),
    (set_in("top_k", 5), ValueError, "top_k must be at most n_experts = 4, got 5"),
    (set_in("top_k", None), TypeError, f"{WHOLE} None"),
    (set_in("n_experts", 3), ValueError,
     "n_experts was 4 when this layer was built and cannot become 3: build another layer"),
    # called
    *[(lambda method=method, x=x: getattr(build(), method)(x), error, says) for method in ("__call__", "route", "trace")
      for x, error, says in (
          (np.ones(4), ValueError, f"x has last dimension 4, {BUILT_FOR} (x.shape = (4,))"),
          (np.ones((2, 6)), ValueError, f"x has last dimension 6, {BUILT_FOR} (x.shape = (2, 6))"),
          (1.0, ValueError, "x must have shape (..., 5), got a scalar"), (None, TypeError, f"x {REAL} None"))],
    (lambda: build().backward(X, X), TypeError, "trace must be what trace(x) returned, got ndarray"),
    (lambda: build(1).backward(build(2).trace(X), X), ValueError,
     "trace was made by another layer, MixtureOfExperts(d_model=5, n_experts=4, top_k=2, 304 par...; it must be a "
     "trace of this one, MixtureOfExperts(d_model=5, n_experts=4, top_k=1, 304 par..."),
    (lambda: (m := build()).backward(m.trace(X), X[0]), ValueError,
     "dy must have the output's shape (2, 3, 5), got (3, 5)"),
    (lambda: (m := build()).backward(m.trace(X), X, X), ValueError,
     "dprobabilities must have shape (2, 3, 4), got (2, 3, 5)"),
    (lambda: (m := build()).backward(m.trace(X), X, "p"), TypeError, f"dprobabilities {REAL} a str of dtype <U1"),
    # the balancing loss
    (lambda: F.load_balancing_loss(None, [[1]]), TypeError, f"probabilities {REAL} None"),
    (lambda: F.load_balancing_loss(0.5, 0), ValueError, "probabilities must have shape (..., n_experts), got ()"),
    (lambda: F.load_balancing_loss(W[:, :0], [[0]] * 5), ValueError,
     "probabilities must have shape (..., n_experts), got (5, 0)"),
    (lambda: F.load_balancing_loss(W, np.ones((D, 1))), TypeError,
     "choices must be integers, got a ndarray of dtype float64"),
    (lambda: F.load_balancing_loss(W, None), TypeError, "choices must be integers, got None"),
    (lambda: F.load_balancing_loss(W, [[1], [1, 2]]), TypeError, "choices must be integers, got [[1], [1, 2]]"),
    (lambda: F.load_balancing_loss(W, [[True]] * 5), TypeError, "choices must be integers, got a list of dtype bool"),
    (lambda: F.load_balancing_loss(W, np.ones((4, 1), int)), ValueError, f"{CHOICES} (5, 4), got (4, 1)"),
    (lambda: F.load_balancing_loss(W, np.ones(5, int)), ValueError, f"{CHOICES} (5, 4), got (5,)"),
    (lambda: F.load_balancing_loss(W[0], 1), ValueError, f"{CHOICES} (4,), got ()"),
    (lambda: F.load_balancing_loss(W, np.full((D, 1), 4)), ValueError, "choices must be in 0..3, got 4..4"),
    (lambda: F.load_balancing_loss(W, [[-1], [0], [1], [2], [3]]), ValueError, "choices must be in 0..3, got -1..3"),
    (lambda: F.load_balancing_loss(W[:0], np.ones((0, 1), int)), ValueError,
     "choices must hold at least one choice, got shape (0, 1)"),
])
def test_bad_input(call, error, says):
    assert_error(call, error, says)


def test_what_may_be_replaced():
    moe = build(2, shared=True)
    moe.top_k, moe.experts, moe.W_router, moe.renormalize = 3, list(FFNS), W.tolist(), False
    assert moe.experts == tuple(FFNS) and moe.W_router.dtype == np.float64
    np.testing.assert_array_equal(moe(X), F.MixtureOfExperts(W, FFNS, 3, False, moe.shared)(X))
    moe.shared = None
    np.testing.assert_array_equal(moe(X), F.MixtureOfExperts(W, FFNS, 3, False)(X))
