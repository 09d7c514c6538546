"""Losses, Adam, the schedule, both models and the tasks: definitions, finite differences, small trainings."""
import math

import numpy as np
import pytest
from finite_differences import assert_gradients

from ffn_numpy import TransformerBlock
from ffn_numpy import training as T

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


def test_zero_blocks_model_is_embedding_and_readout():
    model = T.TokenModel(np.eye(3), [TransformerBlock(*np.zeros((4, 3, 3)), norm=None)], np.eye(3))
    np.testing.assert_allclose(model(np.array([[0, 1, 2]])), [[0, 0, 1]])


@pytest.mark.parametrize("call, error, says", [
    (lambda: T.cross_entropy(np.ones(3), [0]), ValueError, r"logits must have shape \(n, n_classes\)"),
    (lambda: T.cross_entropy(np.ones((2, 3)), [0]), ValueError, r"targets must have shape \(2,\), got \(1,\)"),
    (lambda: T.cross_entropy(np.ones((1, 3)), [3]), ValueError, r"targets must be in 0..2, got 3..3"),
    (lambda: T.cross_entropy(np.ones((1, 3)), [0.5]), TypeError, "targets must be integers"),
    (lambda: T.mean_squared_error([1.0], [1.0, 2.0]), ValueError, "targets must have y's shape"),
    (lambda: T.Adam({}, betas=(0.9, 1.0)), ValueError, "betas must be two numbers"),
    (lambda: T.Adam({"w": np.ones(1)}).step({}, 0.1), ValueError, "gradients must hold every parameter; missing: w"),
    (lambda: T.train(None, None, 0, 0.1), ValueError, "n_steps must be a positive integer"),
])
def test_bad_input(call, error, says):
    with pytest.raises(error, match=says):
        call()
