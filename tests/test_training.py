"""Losses, Adam, the schedule, both models and the tasks: definitions, finite differences, small trainings."""
import math

import numpy as np
import pytest
from errors import KIND_NAMES, REAL, assert_error
from finite_differences import assert_gradients

from ffn_numpy import FeedForward, TransformerBlock
from ffn_numpy import training as T
from ffn_numpy.ffn import make_ffn

R = np.random.default_rng(0)


def test_cross_entropy_is_the_definition_and_does_not_overflow():
    logits, targets = R.normal(size=(6, 4)), R.integers(0, 4, 6)
    by_hand = [-math.log(math.exp(row[t]) / sum(math.exp(v) for v in row)) for row, t in zip(logits, targets)]
    loss, gradient = T.cross_entropy(logits, targets)
    assert loss == pytest.approx(sum(by_hand) / 6)
    for i in np.ndindex(6, 4):
        moved = logits.copy()
        moved[i] += 1e-6
        assert gradient[i] == pytest.approx((T.cross_entropy(moved, targets)[0] - loss) / 1e-6, abs=1e-5)
    with np.errstate(all="raise"):
        assert T.cross_entropy([[1000.0, -600.0]], [0])[0] == 0 and T.cross_entropy([[1000.0, 0.0]], [1])[0] == 1000


def test_mean_squared_error():
    y, t = R.normal(size=(5, 2)), R.normal(size=(5, 2))
    loss, gradient = T.mean_squared_error(y, t)
    assert loss == pytest.approx(((y - t) ** 2).mean())
    np.testing.assert_allclose(gradient, 2 * (y - t) / 10)


def test_adam_is_the_papers_algorithm():
    w, adam_w = 1.0, {"w": np.array([1.0])}
    adam, m, v = T.Adam(adam_w, betas=(0.9, 0.999)), 0.0, 0.0
    for t in range(1, 20):
        g = math.sin(t) + 0.1 * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w -= 0.05 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
        adam.step({"w": np.array([g])}, 0.05)
        assert adam_w["w"][0] == pytest.approx(w, rel=1e-12)


def test_schedule():
    rates = [T.learning_rate(s, 100, 2.0, warmup=10, floor=0.1) for s in range(101)]
    assert rates[0] == pytest.approx(0.2) and max(rates) == rates[9] == rates[10] == 2
    assert rates[55] == pytest.approx(1.1) and rates[100] == pytest.approx(0.2)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[:10] == pytest.approx([0.2 * (s + 1) for s in range(10)])
    for s in range(10, 101):
        assert rates[s] == pytest.approx(2 * (0.1 + 0.45 * (1 + math.cos(math.pi * (s - 10) / 90))))
    for n_steps, warmup in ((1, 0), (5, 4), (5, 5)):  # no step, or one, is left for the cosine
        assert T.learning_rate(warmup, n_steps, 2.0, warmup, 0.1) == pytest.approx(2)
        assert T.learning_rate(warmup + 1, n_steps, 2.0, warmup, 0.1) == pytest.approx(0.2)


@pytest.mark.parametrize("options", [
    dict(ffn=None), dict(ffn="relu"), dict(ffn="swiglu", n_heads=2), dict(ffn="linear", norm="rms"),
    dict(ffn="gelu", n_layers=2), dict(ffn=None, n_layers=2, norm="layer"),
], ids=str)
def test_gradients_of_the_token_model(options):
    model = T.TokenModel.random(9, 4, d_model=6, d_ff=12, seed=3, **options)
    tokens, targets = T.starred_digits(5, np.random.default_rng(1), modulus=4)
    value, gradients = model.loss(tokens, targets)
    assert_gradients(model.parameters(), lambda: model.loss(tokens, targets)[0], gradients, at_most=6)
    logits = model(tokens)
    assert logits.shape == (5, 4) and value == pytest.approx(T.cross_entropy(logits, targets)[0])
    np.testing.assert_allclose(model.attention_weights(tokens).sum(axis=-1), 1)


@pytest.mark.parametrize("kind, bias, loss", [("relu", True, T.mean_squared_error), ("swiglu", False, T.cross_entropy)])
def test_gradients_of_the_ffn_model(kind, bias, loss):
    model = T.FFNModel.random(kind, 4, 9, 3, seed=2, bias=bias, loss=loss)
    x, targets = R.normal(size=(6, 4)), R.normal(size=(6, 3)) if loss is T.mean_squared_error else R.integers(0, 3, 6)
    assert_gradients(model.parameters(), lambda: model.loss(x, targets)[0], model.loss(x, targets)[1])


def test_tasks():
    tokens, targets = T.starred_digits(500, np.random.default_rng(0))
    assert tokens.shape == (500, 7) and (tokens[:, -1] == 20).all()
    for row, target in zip(tokens, targets):
        starred = [t - 10 for t in row if 10 <= t < 20]
        assert len(starred) == 2 and sum(starred) % 10 == target
    keys, answers = T.random_keys(50, 12, 16, np.random.default_rng(0))
    np.testing.assert_allclose((keys**2).mean(axis=1), 1)
    assert set(answers) <= set(range(16))


def test_training_is_reproducible_and_learns():
    def run():
        keys, answers = T.random_keys(64, 12, 4, np.random.default_rng(1))
        model = T.FFNModel.random("gelu", 12, 24, 4, seed=0)
        losses = T.train(model, lambda step: (keys, answers), 150, peak=2e-2, warmup=10)
        return losses, T.accuracy(model, keys, answers)
    losses, recall = run()
    assert losses.shape == (150,) and losses[-1] < 0.1 * losses[0] and recall > 0.95
    np.testing.assert_array_equal(run()[0], losses)


def test_random_models_are_the_pinned_draws():
    r = np.random.default_rng(3)
    E, W = 0.5 * r.normal(size=(9, 6)), r.normal(size=(4, 6, 6)) / math.sqrt(6)
    ffn = make_ffn("swiglu", 6, 12, r)
    model = T.TokenModel.random(9, 4, "swiglu", d_model=6, d_ff=12, n_heads=2, norm="rms", seed=3)
    for ours, theirs in ((model.E, E), (model.blocks[0].W_q, 0.1 * W[0]), (model.blocks[0].W_k, 0.1 * W[1]),
                         (model.blocks[0].W_v, W[2]), (model.blocks[0].W_o, W[3]),
                         (model.blocks[0].ffn.W_down, ffn.W_down), (model.U, r.normal(size=(6, 4)) / math.sqrt(6))):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    block = model.blocks[0]
    assert (block.n_heads, block.norm, block.causal, block.placement) == (2, "rms", False, "pre")
    assert len(T.TokenModel.random(9, 4, None, n_layers=3).blocks) == 3
    assert not any(".b" in name for name in T.TokenModel.random(9, 4, "relu").parameters())
    r = np.random.default_rng(3)
    ffn = make_ffn("relu", 6, 12, r, bias=True)
    model = T.FFNModel.random("relu", 6, 12, 4, seed=3, bias=True)
    np.testing.assert_array_equal(model.ffn.W2, ffn.W2)
    np.testing.assert_allclose(model.U, r.normal(size=(6, 4)) / math.sqrt(6), rtol=1e-14)
    assert list(model.parameters()) == ["U", "W1", "b1", "W2", "b2"] and model._loss is T.cross_entropy


def test_accuracy_is_the_share_of_right_answers():
    logits = np.array([[0.1, 0.9, 0], [5, -1, 4], [0, 0, 1], [3, 2, 1]])
    assert T.accuracy(lambda x: x, logits, np.array([1, 0, 0, 1])) == 0.5
    assert T.accuracy(lambda x: x, logits, np.array([1, 0, 2, 1])) == 0.75


def test_tasks_in_other_sizes():
    tokens, targets = T.starred_digits(300, np.random.default_rng(1), modulus=4, n_digits=3)
    assert tokens.shape == (300, 4) and (tokens[:, -1] == 8).all() and set(targets) == set(range(4))
    assert set(tokens[:, :-1].ravel()) == set(range(8))
    assert all(sum(t - 4 for t in row if 4 <= t < 8) % 4 == target for row, target in zip(tokens, targets))
    assert ((tokens[:, :-1] >= 4).sum(axis=1) == 2).all()
    keys, answers = T.random_keys(4000, 5, 3, np.random.default_rng(1))
    assert keys.shape == (4000, 5) and set(answers) == {0, 1, 2} and abs(keys.mean()) < 0.03


def test_zero_blocks_model_is_embedding_and_readout():
    model = T.TokenModel(np.eye(3), [TransformerBlock(*np.zeros((4, 3, 3)), norm=None)], np.eye(3))
    np.testing.assert_allclose(model(np.array([[0, 1, 2]])), [[0, 0, 1]])


def adam(**arguments):
    return lambda: T.Adam({"w": np.ones(2)}, **arguments)


def step(gradients, lr=0.1):
    return lambda: T.Adam({"w": np.ones(2), "b": np.ones(())}).step(gradients, lr)


def train(model=None, batch=abs, n_steps=1, peak=0.1, **arguments):
    return lambda: T.train(model or T.FFNModel.random("relu", 4, 4, 2), batch, n_steps, peak, **arguments)


def half_model(n):
    """A model with n parameters in float16."""
    class Model(T.FFNModel):
        def parameters(self):
            return super().parameters() | {f"p{i}": np.ones(1, np.float16) for i in range(n)}
    return Model.random("relu", 4, 4, 2)


BLOCK, RNG = TransformerBlock.random(6), np.random.default_rng(0)
TARGETS, LOGITS = "targets must be integers, got", "logits must have shape (n, n_classes), both at least 1; got"
BETAS, EPS = "betas must be two numbers in [0, 1), got", "eps must be a number that is at least 0, got"
WHOLE, MODEL = "must be a positive integer, got", "model must have parameters() and loss(inputs, targets), got"
HALF = "model must have float32 or float64 parameters to train: float16 loses small updates; got float16 in"
READOUT = "U must have shape (d_model, n_outputs) with d_model = 6, got"
PARAMETERS = "parameters must be a dict of name -> ndarray, got"
GENERATOR = "rng must be a numpy.random.Generator such as np.random.default_rng(0), got int"


@pytest.mark.parametrize("call, error, says", [
    (lambda: T.cross_entropy(None, [0]), TypeError, f"logits {REAL} None"),
    (lambda: T.cross_entropy(np.ones(3), [0]), ValueError, f"{LOGITS} (3,)"),
    (lambda: T.cross_entropy(np.ones((0, 3)), []), ValueError, f"{LOGITS} (0, 3)"),
    (lambda: T.cross_entropy(np.ones((2, 3)), [0]), ValueError, "targets must have shape (2,), got (1,)"),
    (lambda: T.cross_entropy(np.ones((2, 3)), [[0], [1]]), ValueError, "targets must have shape (2,), got (2, 1)"),
    (lambda: T.cross_entropy(np.ones((1, 3)), [3]), ValueError, "targets must be in 0..2, got 3..3"),
    (lambda: T.cross_entropy(np.ones((2, 3)), [-1, 0]), ValueError, "targets must be in 0..2, got -1..0"),
    (lambda: T.cross_entropy(np.ones((1, 3)), [0.5]), TypeError, f"{TARGETS} a list of dtype float64"),
    (lambda: T.cross_entropy(np.ones((1, 3)), None), TypeError, f"{TARGETS} None"),
    (lambda: T.cross_entropy(np.ones((1, 3)), [[1], [1, 2]]), TypeError, f"{TARGETS} [[1], [1, 2]]"),
    (lambda: T.mean_squared_error([1.0], [1.0, 2.0]), ValueError, "targets must have y's shape (1,), got (2,)"),
    (lambda: T.mean_squared_error([], []), ValueError, "y must hold at least one number, got shape (0,)"),
    (lambda: T.mean_squared_error(None, 1), TypeError, f"y {REAL} None"),
    (lambda: T.mean_squared_error(1, "t"), TypeError, f"targets {REAL} a str of dtype <U1"),
    # Adam
    (adam(betas=0.9), TypeError, f"{BETAS} 0.9"), (adam(betas=None), TypeError, f"{BETAS} None"),
    (adam(betas=(0.9,)), TypeError, f"{BETAS} (0.9,)"), (adam(betas="ab"), TypeError, f"{BETAS} 'ab'"),
    (adam(betas=(0.8, 0.9, 0.95)), TypeError, f"{BETAS} (0.8, 0.9, 0.95)"),
    (adam(betas=np.eye(9)), TypeError, f"{BETAS} {' '.join(repr(np.eye(9)).split())[:57]}..."),
    (adam(betas=(0.9, 1.0)), ValueError, f"{BETAS} (0.9, 1.0)"),
    (adam(betas=(1, 0.9)), ValueError, f"{BETAS} (1, 0.9)"),
    (adam(betas=(-0.1, 0.9)), ValueError, f"{BETAS} (-0.1, 0.9)"),
    (adam(betas=(0.9, float("nan"))), ValueError, f"{BETAS} (0.9, nan)"),
    (adam(eps=-1e-8), ValueError, f"{EPS} -1e-08"), (adam(eps=None), TypeError, f"{EPS} None"),
    (lambda: T.Adam(None), TypeError, f"{PARAMETERS} None"),
    (lambda: T.Adam({"w": [1.0]}), TypeError, f"{PARAMETERS} {{'w': [1.0]}}"),
    (lambda: T.Adam({"w": "long" * 99}), TypeError, f"{PARAMETERS} {{'w': '{'long' * 12}lo..."),
    (step(None), TypeError, "gradients must be a dict of name -> array, got None"),
    (step({}), ValueError, "gradients must hold every parameter; missing: w, b"),
    (step({"w": np.ones(2)}), ValueError, "gradients must hold every parameter; missing: b"),
    (step({"w": np.ones(1), "b": 0.0}), ValueError, "gradients['w'] must have the parameter's shape (2,), got (1,)"),
    (step({"w": np.ones(2), "b": 0.0}, None), TypeError, "lr must be a number, got None"),
    # train
    (train(n_steps=0), ValueError, f"n_steps {WHOLE} 0"), (train(n_steps=1.0), TypeError, f"n_steps {WHOLE} 1.0"),
    (train(model="m"), TypeError, f"{MODEL} 'm'"),
    (train(model=BLOCK), TypeError, f"{MODEL} TransformerBlock(d_model=6, n_heads=1, causal=False, plac..."),
    (train(batch=3), TypeError, "batch must be a function of the step -> (inputs, targets), got 3"),
    (train(peak=None), TypeError, "peak must be a number, got None"),
    (train(warmup="1"), TypeError, "warmup must be a number, got '1'"),
    (train(floor=True), TypeError, "floor must be a number, got True"),
    (train(betas=0.9), TypeError, f"{BETAS} 0.9"),
    (train(model=T.FFNModel(FeedForward.random(4, dtype=np.float16), np.ones((4, 2)))), TypeError,
     f"{HALF} W1, b1, W2, b2"),
    (train(model=half_model(6)), TypeError, f"{HALF} p0, p1, p2, p3, p4, p5"),
    (train(model=half_model(7)), TypeError, f"{HALF} p0, p1, p2, p3, p4, p5, ..."),
    # the models
    (lambda: T.TokenModel(None, [BLOCK], np.eye(6)), TypeError, f"E {REAL} None"),
    (lambda: T.TokenModel(np.ones(6), [BLOCK], np.eye(6)), ValueError,
     "E must have shape (vocabulary, d_model), got (6,)"),
    (lambda: T.TokenModel(np.eye(6), [], np.eye(6)), TypeError,
     "blocks must be a list of at least one TransformerBlock, got []"),
    (lambda: T.TokenModel(np.eye(6), ["b"], np.eye(6)), TypeError,
     "blocks must be a list of at least one TransformerBlock, got ['b']"),
    (lambda: T.TokenModel(np.eye(3), [BLOCK], np.eye(3)), ValueError,
     "blocks[0] must have d_model = 3 like E, got TransformerBlock(d_model=6, n_heads=1, causal=False, plac..."),
    (lambda: T.TokenModel(np.eye(6), [BLOCK], np.eye(5)), ValueError, f"{READOUT} (5, 5)"),
    (lambda: T.TokenModel(np.eye(6), [BLOCK], np.ones(6)), ValueError, f"{READOUT} (6,)"),
    (lambda: T.TokenModel(np.eye(6), [BLOCK], "U"), TypeError, f"U {REAL} a str of dtype <U1"),
    *[(lambda name=name: T.TokenModel.random(**{"vocabulary": 9, "n_classes": 4, "ffn": "relu", name: 0}), ValueError,
       f"{name} {WHOLE} 0") for name in ("vocabulary", "n_classes", "d_model", "d_ff", "n_heads", "n_layers")],
    (lambda: T.TokenModel.random(9, 4, "tanh"), ValueError, f"kind must be one of {KIND_NAMES}; got 'tanh'"),
    (lambda: T.TokenModel.random(9, 4, None, d_model=8.5), TypeError, f"d_model {WHOLE} 8.5"),
    (lambda: T.TokenModel.random(9, 4, None, seed="s"), TypeError,
     "seed must be a non-negative integer or a numpy.random.Generator, got 's'"),
    (lambda: T.FFNModel(BLOCK, np.eye(6)), TypeError, "ffn must be a FeedForward or GatedFeedForward, got "
     "TransformerBlock(d_model=6, n_heads=1, causal=False, plac..."),
    (lambda: T.FFNModel(FeedForward.random(6), np.eye(5)), ValueError, f"{READOUT} (5, 5)"),
    (lambda: T.FFNModel.random("relu", 4, 4, 0), ValueError, f"n_outputs {WHOLE} 0"),
    (lambda: T.FFNModel.random("relu", 4, 4, 2, seed=-1), ValueError,
     "seed must be a non-negative integer or a numpy.random.Generator, got -1"),
    # the tasks
    (lambda: T.starred_digits(5, 0), TypeError, GENERATOR),
    (lambda: T.starred_digits(0, RNG), ValueError, f"n {WHOLE} 0"),
    (lambda: T.starred_digits(5, RNG, modulus=2.5), TypeError, f"modulus {WHOLE} 2.5"),
    (lambda: T.starred_digits(5, RNG, n_digits=1), ValueError,
     "n_digits must be at least 2, for two starred digits; got 1"),
    (lambda: T.random_keys(5, 4, 3, 0), TypeError, GENERATOR),
    *[(lambda name=name: T.random_keys(**{"n": 5, "d_model": 4, "n_classes": 3, "rng": RNG, name: -1}), ValueError,
       f"{name} {WHOLE} -1") for name in ("n", "d_model", "n_classes")],
])
def test_bad_input(call, error, says):
    assert_error(call, error, says)
