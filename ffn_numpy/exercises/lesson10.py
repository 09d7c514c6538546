"""Lesson 10, mixture of experts: top-k, the routed sum, the balancing loss, weights that let a router learn."""
import numpy as np

from ..block import softmax
from ..moe import load_balancing_loss
from . import ROWS, Exercise


def _top_inputs(c):
    return softmax(c.normal(*c.lead, 4 + c.d)), (1, 2, 5)[c.i % 3]              # probabilities, k


def _moe_inputs(c):
    n = 4 + c.d % 3
    matrices = c.normal(n, c.d, c.d)
    experts = [lambda x, M=M: np.maximum(x @ M.astype(x.dtype) + M[0].astype(x.dtype), 0) for M in matrices]
    return c.normal(c.lead[0], c.d), c.normal(c.d, n), experts, 1 + c.i % 3     # x, W_router, experts, k


def _balance_inputs(c):
    n, k = 3 + c.d, 1 + c.i % 2
    scores = c.normal(4 + c.lead[0], n) + np.linspace(1.5, 0, n)
    scores[:, -1] -= 9 * (c.i % 2)                                              # the last expert stays unused
    probabilities = softmax(scores)
    return probabilities, np.argsort(-probabilities, axis=1)[:, :k]


def _order(p, k):
    return np.argsort(-p, axis=-1, kind="stable")[..., :k]


def _top(p, k):
    return np.take_along_axis(p, _order(p, k), axis=-1)


def _to_one(w):
    return w / w.sum(axis=1, keepdims=True)                                     # (T, k) each row sums to 1


def _sum_of_experts(x, weights, chosen, experts):
    return np.stack([sum(w * experts[e](token) for w, e in zip(ws, es))
                     for token, ws, es in zip(x, weights, chosen)])             # (T, d)


def _routed(x, W, experts, k, weigh=_to_one, choose=_order, axis=1):
    p = softmax(x @ W, axis)                                                    # (T, n_experts)
    chosen = choose(p, k)
    return _sum_of_experts(x, weigh(np.take_along_axis(p, chosen, axis=1)), chosen, experts)


def _shares(choices, n):
    return np.bincount(choices.ravel(), minlength=n)                            # (n_experts,) counts


def _switch(p, k):
    top = _top(p, k)
    return top if k == 1 else top / top.sum(axis=-1, keepdims=True)


EXERCISES = {
    "10.1": Exercise(
        1, "top_k(probabilities, k)", _order, _top_inputs, {
            "Those are the k *smallest*: sort -probabilities, or take the last k.":
                lambda p, k: np.argsort(p, axis=-1)[..., :k],
            "The right experts, but the largest should come first.":
                lambda p, k: np.argsort(p, axis=-1)[..., -k:],
            "Those are the probabilities: the *numbers of the experts* are asked for (argsort, not sort).": _top,
            "[::-1] turned the tokens round: the order along the *last* axis was meant, [..., ::-1].": (
                lambda p, k: np.argsort(p, axis=-1)[::-1][..., :k], lambda p, k: np.argsort(p, axis=-1)[::-1][:k]),
            "All experts, sorted: keep only the first k.": lambda p, k: np.argsort(-p, axis=-1),
            "Only the largest: k of them are asked for.": lambda p, k: p.argmax(axis=-1),
            "The first k *tokens* were kept: cut the last axis, [..., :k].": lambda p, k: np.argsort(-p, axis=-1)[:k],
            "Sorted along the tokens (axis=0): each token has its own experts, axis=-1.":
                lambda p, k: np.argsort(-p, axis=0)[..., :k],
        }),
    "10.2": Exercise(
        2, "moe(x, W_router, experts, k)", _routed, _moe_inputs, {
            "The weights of the chosen experts are not renormalised: divide them by their sum, so that they sum to 1.":
                lambda x, W, ex, k: _routed(x, W, ex, k, weigh=np.asarray),
            "Every chosen expert has the same weight 1 / k: weight them by their probabilities.":
                lambda x, W, ex, k: _routed(x, W, ex, k, weigh=lambda w: np.full_like(w, 1 / k)),
            "The chosen experts are added without weights.":
                lambda x, W, ex, k: _routed(x, W, ex, k, weigh=np.ones_like),
            "All experts took part: only the k with the largest probabilities should.":
                lambda x, W, ex, k: _routed(x, W, ex, len(ex)),
            "The k experts with the *smallest* probabilities were taken.":
                lambda x, W, ex, k: _routed(x, W, ex, k, choose=lambda p, k: _order(-p, k)),
            "Only the best expert took part: k of them should.": lambda x, W, ex, k: _routed(x, W, ex, 1),
            "Only the best expert took part, times its probability: k of them should, with weights that sum to 1.":
                lambda x, W, ex, k: _routed(x, W, ex, 1, weigh=np.asarray),
            "Every token goes to the experts of the first token: each token is routed by itself.":
                lambda x, W, ex, k: _routed(x, W, ex, k, choose=lambda p, k: np.repeat(_order(p[:1], k), len(p), 0)),
            "The weight is put on the expert's input: multiply what the expert returns.":
                lambda x, W, ex, k: _weighted_inputs(x, W, ex, k),
            "The weights are those of experts 0 to k - 1: take those of the chosen experts.":
                lambda x, W, ex, k: _first_weights(x, W, ex, k),
            "All tokens share one sum: divide each token's weights by their own sum (axis=1, keepdims=True).":
                lambda x, W, ex, k: _routed(x, W, ex, k, weigh=lambda w: w / w.sum()),
            "The softmax is taken twice.": lambda x, W, ex, k: _routed(x, W, ex, k, weigh=softmax),
            "Experts 0 to k - 1 are used with the chosen weights: experts[e] for the *chosen* e.":
                lambda x, W, ex, k: _first_experts(x, W, ex, k),
            "Only the last chosen expert is left: add its part (+=), do not overwrite (=).": (
                lambda x, W, ex, k: _routed(x, W, ex, k, weigh=lambda w: _to_one(w) * [[0] * (w.shape[1] - 1) + [1]])),
            "The softmax runs over the tokens: each token has its own probabilities (axis=1).":
                lambda x, W, ex, k: _routed(x, W, ex, k, axis=0),
            "Raw scores are used as weights: take the softmax of x @ W_router first.":
                lambda x, W, ex, k: _raw_scores(x, W, ex, k),
            "The weights are exchanged between the chosen experts: largest probability, largest weight.":
                lambda x, W, ex, k: _routed(x, W, ex, k, weigh=lambda w: w[:, ::-1] / w.sum(axis=1, keepdims=True)),
        }, ROWS),
    "10.3": Exercise(
        2, "balancing_loss(probabilities, choices)", load_balancing_loss, _balance_inputs, {
            "The factor n_experts is missing, or divided away again (mean instead of sum): "
            "a balanced router should give 1.":
                lambda p, ch: load_balancing_loss(p, ch) / p.shape[1],
            "f is divided by the number of tokens: divide by the number of *choices* (choices.size), "
            "so that f sums to 1.":
                lambda p, ch: p.shape[1] * (_shares(ch, p.shape[1]) / len(ch) * p.mean(axis=0)).sum(),
            "n_experts was taken from the number of tokens: it is probabilities.shape[1].":
                lambda p, ch: len(p) * load_balancing_loss(p, ch) / p.shape[1],
            "f holds counts, not shares: divide by the number of choices.":
                lambda p, ch: p.shape[1] * (_shares(ch, p.shape[1]) * p.mean(axis=0)).sum(),
            "f is used twice: multiply the shares f by the mean probabilities P.":
                lambda p, ch: p.shape[1] * ((_shares(ch, p.shape[1]) / ch.size) ** 2).sum(),
            "P is used twice: multiply the shares f by the mean probabilities P.":
                lambda p, ch: p.shape[1] * (p.mean(axis=0) ** 2).sum(),
            "Always 1: is P the mean of the whole table? Take it over the tokens only.":
                lambda p, ch: p.shape[1] * (_shares(ch, p.shape[1]) / ch.size * p.mean()).sum(),
            "P is a sum over tokens: it should be the mean.":
                lambda p, ch: p.shape[1] * (_shares(ch, p.shape[1]) / ch.size * p.sum(axis=0)).sum(),
            "f and P are added up without being multiplied.":
                lambda p, ch: p.shape[1] * (_shares(ch, p.shape[1]) / ch.size + p.mean(axis=0)).sum(),
            "The products are averaged: their *sum* times n_experts is asked for.":
                lambda p, ch: (_shares(ch, p.shape[1]) / ch.size * p.mean(axis=0)).mean(),
            "Multiplied by top_k instead of n_experts.":
                lambda p, ch: ch.shape[1] * load_balancing_loss(p, ch) / p.shape[1],
            "One product for each expert: sum them.":
                lambda p, ch: p.shape[1] * _shares(ch, p.shape[1]) / ch.size * p.mean(axis=0),
            "Only the first choice of each token is counted: all top_k count.":
                lambda p, ch: load_balancing_loss(p, ch[:, :1]),
        }, ROWS),
    "10.4": Exercise(
        3, "repaired_weights(probabilities, k)", _switch, _top_inputs, {
            "Still as broken: for k = 1 the weight is the same for every probability. Hint 1 asks what follows.":
                lambda p, k: _top(p, k) / _top(p, k).sum(axis=-1, keepdims=True),
            "k = 1 is right now, but for k > 1 the weights should still sum to 1.": _top,
            "A softmax over probabilities: they are probabilities already; divide by their sum.":
                lambda p, k: _top(p, k) if k == 1 else softmax(_top(p, k)),
            "Every chosen expert has weight 1 / k: the weights should follow the probabilities.":
                lambda p, k: np.full_like(_top(p, k), 1 / k),
            "Divided by k: divide by the sum of the chosen probabilities.":
                lambda p, k: _top(p, k) / k,
            "For k = 1 that is the probability of expert 0: take the largest.":
                lambda p, k: p[..., :1] if k == 1 else _switch(p, k),
            "The smallest probabilities were taken.": lambda p, k: _smallest(p, k),
            "Divided by the largest probability: divide by the sum of the chosen ones.":
                lambda p, k: _top(p, k) if k == 1 else _top(p, k) / _top(p, k)[..., :1],
        }),
}


def _weighted_inputs(x, W, experts, k):
    p = softmax(x @ W)
    weights = _to_one(_top(p, k))                                               # (T, k)
    return np.stack([sum(experts[e](w * token) for w, e in zip(ws, es))
                     for token, ws, es in zip(x, weights, _order(p, k))])       # (T, d)


def _first_weights(x, W, experts, k):
    p = softmax(x @ W)
    return _sum_of_experts(x, _to_one(p[:, :k]), _order(p, k), experts)


def _first_experts(x, W, experts, k):
    p = softmax(x @ W)
    return _sum_of_experts(x, _to_one(_top(p, k)), [range(k)] * len(x), experts)


def _raw_scores(x, W, experts, k):
    scores = x @ W
    return _sum_of_experts(x, _top(scores, k), _order(scores, k), experts)


def _smallest(p, k):
    low = np.sort(p, axis=-1)[..., :k]
    return low if k == 1 else low / low.sum(axis=-1, keepdims=True)
