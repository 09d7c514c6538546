"""Lesson 08, what the FFN adds: perplexity, the star no head reads, a loss that cannot overflow, an adder."""
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


def _two_stars(c):
    n, heads, T = c.lead[0], c.d, c.d + 2
    if c.i == 3:                                                                # all 4: any axis fits
        heads = T = 4
    weights = softmax(c.normal(n, heads, T, scale=2))                           # (n, heads, T)
    return weights, c.normal(n, T).argsort(axis=1).argsort(axis=1) < 2          # two stars in each row


def _means(c):
    sums = c.rng.permutation(28).astype(float)                                  # three digits: 0 to 27
    sums[:14] -= (c.i in (1, 4)) * c.rng.random(14) * (sums[:14] > 0)           # between whole sums, too
    extra = np.array([9.5, 19.25]) if c.i in (1, 4) else np.array([10.0, 20.0])
    sums = np.concatenate([sums, extra])
    return ((sums.reshape(2, 15) if c.i in (1, 5) else np.array(25.0) if c.i == 2 else sums) / 3,)


def _at_targets(p, t):
    return p[np.arange(len(t)), t]                                              # (n,)


def _nats(p, t, reduce=np.mean):
    return reduce(-np.log(_at_targets(p, t)))


def _lesser(best, stars):
    return np.where(stars, best, np.inf).min(axis=1)                            # (n, T) -> (n,)


def _from_scores(scores, t, reduce=np.mean):
    shifted = scores - scores.max(axis=1, keepdims=True)
    return reduce(np.log(np.exp(shifted).sum(axis=1)) - _at_targets(shifted, t))


def _sawtooth(mean, factor=3, bias=(0, 9, 10, 19, 20), down=(1, -10, 10, -10, 10), act=relu):
    return act(factor * np.asarray(mean)[..., None] - np.array(bias)) @ np.array(down)


EXERCISES = {
    "8.1": Exercise(
        1, "equally_likely(probabilities, targets)", lambda p, t: np.exp(_nats(p, t)), _guess_inputs, {
            "That is the mean loss in nats. If k equally likely answers cost log k nats, what is k?": _nats,
            "That is the loss in bits; the number of answers is asked for.": lambda p, t: _nats(p, t) / np.log(2),
            "The minus is missing: below 1, no number of answers. A loss is positive.":
                lambda p, t: np.exp(-_nats(p, t)),
            "2 to the power of nats: nats belong to e (np.exp), 2 belongs to bits.": lambda p, t: 2 ** _nats(p, t),
            "e to the power of bits: log2 belongs to 2, the natural logarithm to np.exp.":
                lambda p, t: np.exp(_nats(p, t) / np.log(2)),
            "10 to the power of nats: nats belong to e (np.exp).": lambda p, t: 10 ** _nats(p, t),
            "The mean of 1 / p: average the losses first, then turn the mean loss into a number of answers.":
                lambda p, t: (1 / _at_targets(p, t)).mean(),
            "1 / the mean probability: take the logarithm of each probability first, then the mean.":
                lambda p, t: 1 / _at_targets(p, t).mean(),
            "The sum over examples stands in the exponent: it is the mean loss that counts.":
                lambda p, t: np.exp(_nats(p, t, np.sum)),
            "One number for each example: take the mean of the losses before np.exp.":
                lambda p, t: np.exp(_nats(p, t, np.asarray)),
            "The mean over all numbers of the table: only the probability of each example's target counts.":
                lambda p, t: np.exp(-np.log(p).mean()),
            "The largest probability was taken: take that of the target, right or not.":
                lambda p, t: np.exp(-np.log(p.max(axis=1)).mean()),
            "p[:, targets] takes every target's column for every example: row i belongs to target i alone.":
                lambda p, t: np.exp(-np.log(p[:, t]).mean()),
            "Every probability was weighed with itself (an entropy): only the target's counts, with weight 1.":
                lambda p, t: np.exp(-(p * np.log(p)).sum(axis=1).mean()),
        }, ROWS),
    "8.2": Exercise(
        2, "lesser_star(weights, stars)", lambda w, s: _lesser(w.max(axis=1), s), _two_stars, {
            "The average over heads: a star that one head reads and another does not seems half read. "
            "Take the head that reads it most.": lambda w, s: _lesser(w.mean(axis=1), s),
            "The sum over heads: it can exceed 1. Take the head that reads the star most.":
                lambda w, s: _lesser(w.sum(axis=1), s),
            "Tokens first, then heads: that asks one head to read both stars. Heads come first.":
                lambda w, s: np.where(s[:, None], w, np.inf).min(axis=2).max(axis=1),
            "That is the greater star: of the two numbers the smaller one is asked for.":
                lambda w, s: np.where(s, w.max(axis=1), 0).max(axis=1),
            "Both stars added up: a sum cannot tell one star read from both.":
                lambda w, s: (w.max(axis=1) * s).sum(axis=1),
            "The mean of both stars: it cannot tell one star read from both.":
                lambda w, s: (w.max(axis=1) * s).sum(axis=1) / 2,
            "Always 0: tokens without a star became 0, and 0 is the smallest. Put something large there.":
                lambda w, s: (w.max(axis=1) * s).min(axis=1),
            "The smallest of all tokens: only the two starred ones count.": lambda w, s: w.max(axis=1).min(axis=1),
            "For each star the head that reads it *least* was taken: take the one that reads it most.":
                lambda w, s: _lesser(w.min(axis=1), s),
            "The stars are exchanged with the others: that is the least-read token without a star.":
                lambda w, s: _lesser(w.max(axis=1), ~s),
            "Both stars of each sequence came back, (n, 2): the smaller one is asked for.":
                lambda w, s: w.max(axis=1)[s].reshape(-1, 2),
            "One number for all sequences: one for each is asked for.": (
                lambda w, s: _lesser(w.max(axis=1), s).min(), lambda w, s: _lesser(w.max(axis=1), s).mean()),
        }, ROWS),
    "8.3": Exercise(
        2, "loss_from_scores(scores, targets)", _from_scores, _large_inputs, {
            "The result is NaN: large scores became inf on the way. Can they be smaller without changing p? Hint 1":
                lambda s, t: -np.log(_at_targets(np.exp(s) / np.exp(s).sum(axis=1, keepdims=True), t)).mean(),
            "The result is inf: something became 0 or inf before its logarithm. Shift each row by its largest score, "
            "and take the logarithm of the sum only: log(sum(exp)) - score.":
                lambda s, t: -np.log(_at_targets(softmax(s), t)).mean(),
            "A small number inside the logarithm caps the loss: stay with the scores, log(sum) - score.": tuple(
                lambda s, t, e=e: -np.log(_at_targets(softmax(s), t) + e).mean() for e in (1e-12, 1e-10, 1e-9, 1e-8)),
            "Clipped scores give another loss: shift each row instead.": tuple(
                lambda s, t, c=c: _from_scores(np.clip(s, -c, c), t) for c in (50, 80, 100, 500, 700)),
            "One sum for the whole table: each row has its own (axis=1).":
                lambda s, t: (lambda z: np.log(np.exp(z).sum()) - _at_targets(z, t).mean())(
                    s - s.max(axis=1, keepdims=True)),
            "log(0): the sum of a row became 0. Rows far below the number that is subtracted vanish.":
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
        3, "repaired_adder(mean)", _sawtooth, _means, {
            "Still as broken: compare what it gives with what is wanted, sum by sum. Hint 1 says where.":
                lambda m: _sawtooth(m, 2, (0, 10, 11), (1, -10, 10)),
            "The first carry is right, but twice the mean is the sum of two digits: here there are three.":
                lambda m: _sawtooth(m, 2),                                      # with or without the second carry
            "The mean was taken for the sum.": lambda m: _sawtooth(m, 1),
            "Right up to the sum 19; from 20 on the answer is 10 too large: a second carry is missing.":
                lambda m: _sawtooth(m, 3, (0, 9, 10), (1, -10, 10)),
            "The factor is right now. The carry still comes one too late, and there is only one.":
                lambda m: _sawtooth(m, 3, (0, 10, 11), (1, -10, 10)),
            "Both carries come one too late: for the sum 10 the answer is 10. When must the carry be complete?":
                lambda m: _sawtooth(m, 3, (0, 10, 11, 20, 21)),
            "The second carry comes one too late: for the sum 20 the answer is 10.":
                lambda m: _sawtooth(m, 3, (0, 9, 10, 20, 21)),
            "The second carry never stops: it needs a unit that starts at 20, as the first one has at 10.":
                lambda m: _sawtooth(m, 3, (0, 9, 10, 19), (1, -10, 10, -10)),
            "The second carry takes away 20: the first 10 are gone already, take another 10.":
                lambda m: _sawtooth(m, down=(1, -10, 10, -20, 20)),
            "Right at whole sums, but it jumps: a network of ReLU units falls in a straight line from 9 to 10.": (
                lambda m: 3 * m - 10 * (3 * m >= 10 - 1e-9) - 10 * (3 * m >= 20 - 1e-9),
                lambda m: (3 * m) % 10, lambda m: np.round(3 * m) % 10, lambda m: np.mod(np.rint(3 * m), 10),
                lambda m: (3 * m + 1e-9) % 10),
            "Without ReLU the units only add up to a straight line: no carry.": lambda m: _sawtooth(m, act=np.asarray),
            "The signs of the carries are the wrong way round: take away from 9 on, stop at 10.":
                lambda m: _sawtooth(m, down=(1, 10, -10, 10, -10)),
        }, float64_only=True),
}
