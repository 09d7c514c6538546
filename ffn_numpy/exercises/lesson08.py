"""Lesson 08, what the FFN adds: cross-entropy, accuracy, a loss that cannot overflow, XOR with two units."""
import numpy as np

from ..activations import relu
from ..block import softmax
from . import ROWS, Exercise


def _guess_inputs(c):
    n, k = c.lead[0], 4 + c.d
    return softmax(c.normal(n, k)), c.rng.integers(k, size=n)                   # probabilities, targets


def _score_inputs(c):
    if c.i == 3:                                                                # square: any axis fits
        return np.array([[0.1, 0.9, 0.2], [0.8, 0.3, 0.7], [0.5, 0.4, 0.6]]), np.array([0, 1, 2])
    n, k = 4 + c.lead[0], 3
    return c.normal(n, k), np.concatenate([[0, 1, 2], c.rng.integers(k, size=n - 3)])  # scores, targets


def _large_inputs(c):
    scores, targets = _score_inputs(c)
    scores[0, 0] -= 2000                                                        # a target with a loss near 2000
    return np.concatenate([scores, 1000 + scores, -1000 + scores]), np.concatenate([targets] * 3)


def _bits(c):
    table = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[c.rng.permutation(4)]
    return (table.reshape(2, 2, 2) if c.i in (1, 5) else np.array([1, 1]) if c.i == 2 else table,)


def _at_targets(p, t):
    return p[np.arange(len(t)), t]                                              # (n,)


def _accuracy(scores, t):
    return float((scores.argmax(axis=1) == t).mean())


def _from_scores(scores, t, reduce=np.mean):
    shifted = scores - scores.max(axis=1, keepdims=True)
    return reduce(np.log(np.exp(shifted).sum(axis=1)) - _at_targets(shifted, t))


def _two_units(x, bias=(0, -1), down=(1, -2), act=relu, out=0.0):
    return act(x @ np.ones((2, 2)) + np.array(bias)) @ np.array(down) + out     # floats or whole numbers: both pass


EXERCISES = {
    "8.1": Exercise(
        1, "nats(probabilities, targets)", lambda p, t: -np.log(_at_targets(p, t)).mean(), _guess_inputs, {
            "The minus is missing: log of a probability is negative, a loss is positive.":
                lambda p, t: np.log(_at_targets(p, t)).mean(),
            "That is in bits (log2): nats use the natural logarithm, np.log.":
                lambda p, t: -np.log2(_at_targets(p, t)).mean(),
            "log10 instead of the natural logarithm np.log.": lambda p, t: -np.log10(_at_targets(p, t)).mean(),
            "The sum over examples: the mean is asked for.": lambda p, t: -np.log(_at_targets(p, t)).sum(),
            "One number for each example: the mean over them is asked for.": lambda p, t: -np.log(_at_targets(p, t)),
            "The logarithm of the mean: take the logarithm of each probability first, then the mean.":
                lambda p, t: -np.log(_at_targets(p, t).mean()),
            "The mean over all numbers of the table: only the probability of each example's target counts.":
                lambda p, t: -np.log(p).mean(),
            "The loss of the largest probability: take that of the target, right or not.":
                lambda p, t: -np.log(p.max(axis=1)).mean(),
            "Divided by the number of classes too: the mean runs over examples only.":
                lambda p, t: -np.log(_at_targets(p, t)).sum() / p.size,
            "The mean probability: its logarithm is missing.": lambda p, t: _at_targets(p, t).mean(),
            "p[:, targets] takes every target's column for every example: row i belongs to target i alone.":
                lambda p, t: -np.log(p[:, t]).mean(),
        }, ROWS),
    "8.2": Exercise(
        2, "accuracy(scores, targets)", _accuracy, _score_inputs, {
            "The largest score of each *column* was taken (axis=0): each row is an example, axis=1.":
                lambda s, t: float((s.argmax(axis=0) == t).mean()),
            "argmax without an axis looks at the whole table: each row is an example, axis=1.":
                lambda s, t: float((s.argmax() == t).mean()),
            "A target with less than half of the probability can still be the largest: argmax decides.":
                lambda s, t: float((_at_targets(softmax(s), t) > 0.5).mean()),
            "That is the share of wrong answers.": lambda s, t: 1 - _accuracy(s, t),
            "The number of right answers: divide by how many there are.": lambda s, t: round(_accuracy(s, t) * len(t)),
            "In percent: a share lies between 0 and 1.": lambda s, t: 100 * _accuracy(s, t),
            "The smallest score was taken (argmin).": lambda s, t: _accuracy(-s, t),
            "One True or False for each example: their mean is asked for.": lambda s, t: s.argmax(axis=1) == t,
            "Divided by the number of classes, not of examples.":
                lambda s, t: _accuracy(s, t) * len(t) / s.shape[1],
            "Always 0: the scores themselves are compared with the targets (argmax gives the answer's number), or // "
            "or int() cuts the share off.":
                lambda s, t: float((s.max(axis=1) == t).mean()),
            "The sign was taken for the answer: the target's score need not be positive, only the largest.":
                lambda s, t: float((_at_targets(s, t) > 0).mean()),
        }, ROWS),
    "8.3": Exercise(
        2, "loss_from_scores(scores, targets)", _from_scores, _large_inputs, {
            "np.exp overflows, and the result is NaN: can the scores be made smaller without changing p? (Hint 1)":
                lambda s, t: -np.log(_at_targets(np.exp(s) / np.exp(s).sum(axis=1, keepdims=True), t)).mean(),
            "The result is inf: something became 0 or inf before its logarithm. Stay with the scores, "
            "shifted by each row's own largest.":
                lambda s, t: -np.log(_at_targets(softmax(s), t)).mean(),
            "A small number inside the logarithm caps the loss: stay with the scores, log(sum) - score.": tuple(
                lambda s, t, e=e: -np.log(_at_targets(softmax(s), t) + e).mean() for e in (1e-12, 1e-10, 1e-9, 1e-8)),
            "Clipped scores give another loss: shift each row instead.": tuple(
                lambda s, t, c=c: _from_scores(np.clip(s, -c, c), t) for c in (50, 80, 100, 500, 700)),
            "One sum for the whole table: each row has its own (axis=1).":
                lambda s, t: (lambda z: np.log(np.exp(z).sum()) - _at_targets(z, t).mean())(
                    s - s.max(axis=1, keepdims=True)),
            "log(0): rows far below the number that you subtract vanish. Each row needs its own largest score.":
                lambda s, t: (np.log(np.exp(s - s.max()).sum(axis=1)) - _at_targets(s - s.max(), t)).mean(),
            "The largest score was subtracted for exp, but not from the target's score.":
                lambda s, t: (_from_scores(s, t, np.asarray) - s.max(axis=1)).mean(),
            "scores[:, targets] takes every target's column for every example: row i belongs to target i alone.":
                lambda s, t: (lambda z: (np.log(np.exp(z).sum(axis=1))[:, None] - z[:, t]).mean())(
                    s - s.max(axis=1, keepdims=True)),
            "The sign is the wrong way round: log(sum(exp(scores))) minus the target's score.":
                lambda s, t: -_from_scores(s, t),
            "The sum over examples: the mean is asked for.": lambda s, t: _from_scores(s, t, np.sum),
            "One number for each example: the mean over them is asked "
            "for.": lambda s, t: _from_scores(s, t, np.asarray),
            "In bits: nats use the natural logarithm.": lambda s, t: _from_scores(s, t) / np.log(2),
            "The normalising part, log(sum(exp(scores))), is missing.": lambda s, t: -_at_targets(s, t).mean(),
            "The loss of the largest score: take that of the target, right or not.":
                lambda s, t: _from_scores(s, s.argmax(axis=1)),
        }, ROWS),
    "8.4": Exercise(
        3, "repaired_xor(x)", _two_units, _bits, {
            "Still as broken: it gives 0, -1, -1, -2. Hint 1 suggests a table.": lambda x: _two_units(x, bias=(0, 0)),
            "For 1, 1 the answer is 1 instead of 0 (that is OR): the second unit must take 2 away there.":
                lambda x: x.max(axis=-1),
            "The two units cancel each other: always 0.": lambda x: 0 * x.sum(axis=-1),
            "That is AND.": lambda x: x.min(axis=-1),
            "That is the opposite of XOR: 1 where both are equal.": lambda x: 1 - _two_units(x),
            "That is the sum of both bits: the second unit has to take 2 away when both are 1.":
                lambda x: x.sum(axis=-1),
            "Without relu the units only add up: the answers lie on a plane, and XOR does not.":
                lambda x: _two_units(x, act=np.asarray),
            "The sign of the second unit is wrong: for 1, 1 it must take away, not add.":
                lambda x: _two_units(x, down=(1, 2)),
            "The bias of the second unit has the wrong sign: it should speak only if both bits are 1.":
                lambda x: _two_units(x, bias=(0, 1)),
            "For 1, 1 the answer is -1: which unit needs a bias, and how large? (Hint 2)": (
                lambda x: _two_units(x, bias=(-1, -1)), lambda x: _two_units(x, bias=(0, -0.5))),
            "The bias went to the first unit: it belongs to the second.": lambda x: _two_units(x, bias=(-1, 0)),
        }),
}
