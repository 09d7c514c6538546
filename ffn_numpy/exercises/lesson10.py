"""Lesson 10, mixture of experts: dropped rows, the routed sum, the balancing loss, a batch sorted by expert."""
import numpy as np

from ..block import softmax
from ..moe import load_balancing_loss
from . import ROWS, Exercise


def _queue_inputs(c):
    n, k, T = 5 + c.d % 2, (2, 3, 1)[c.i % 3], 9 + c.lead[0]
    scores = c.normal(T, n) + np.linspace(1.5, -1.5, n)                         # the first experts are popular
    return np.argsort(-scores, axis=1)[:, :k], max(2, T * k // n)               # choices, capacity


def _dispatch_inputs(c):
    x, W, experts, k = _moe_inputs(c)
    p = softmax(x @ W)
    return x, _order(p, k), _top(p, k), experts                                 # x, choices, weights, experts


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


def _over(choices, capacity):
    return np.maximum(np.bincount(choices.ravel()) - capacity, 0)               # (n_experts,) rows too many


def _losers(choices, capacity):
    """How many tokens lose a row, first come, first served."""
    places, losers = np.bincount(choices.ravel()) * 0, 0
    for row in choices:
        places[row] += 1
        losers += (places[row] > capacity).any()
    return losers


def _sorted(x, choices, weights, experts, weigh=lambda w, order: w.ravel()[order], whose=lambda order, T, k: order // k,
            add=np.add.at, before=False):
    """A mixture whose rows are sorted by expert, in pieces that can be done wrongly."""
    T, k = choices.shape
    order = np.argsort(choices.ravel(), kind="stable")                          # (T k,)
    tokens, w = whose(order, T, k), weigh(weights, order)[:, None]              # (T k,), (T k, 1)
    rows = np.split(x[tokens] * w if before else x[tokens],
                    np.cumsum(np.bincount(choices.ravel(), minlength=len(experts)))[:-1])
    out = np.concatenate([expert(block) for expert, block in zip(experts, rows)])   # (T k, d)
    y = np.zeros_like(x)
    add(y, tokens, out if before else (w * out).astype(x.dtype))
    return y


def _add_once(y, tokens, parts):
    y[tokens] += parts                                                          # a token's last row only


EXERCISES = {
    "10.1": Exercise(
        1, "dropped_rows(choices, capacity)", lambda ch, c: int(_over(ch, c).sum()), _queue_inputs, {
            "That is how many rows are *kept*: the others are asked for.": lambda ch, c: ch.size - _over(ch, c).sum(),
            "That is how many experts have too many rows: count the rows that are too many.":
                lambda ch, c: (_over(ch, c) > 0).sum(),
            "One number for each expert: add them up.": _over,
            "Free places of one expert were set off against the queue of another: a difference below 0 counts as 0.":
                lambda ch, c: (np.bincount(ch.ravel()) - c).sum(),
            "Free places were counted as dropped rows: a difference below 0 counts as 0.":
                lambda ch, c: np.abs(np.bincount(ch.ravel()) - c).sum(),
            "Only the busiest expert was looked at: every expert can have too many rows.":
                lambda ch, c: np.bincount(ch.ravel()).max() - c,
            "All rows of the overfull experts were counted: the first `capacity` of them are served.":
                lambda ch, c: np.bincount(ch.ravel())[np.bincount(ch.ravel()) > c].sum(),
            "Only the first choices were counted: each of a token's k choices takes a place.":
                lambda ch, c: _over(ch[:, :1], c).sum(),
            "One row too many for each overfull expert: `capacity` rows are served, not capacity - 1.":
                lambda ch, c: _over(ch, c - 1).sum(),
            "That is a share of all rows: their number is asked for.": lambda ch, c: _over(ch, c).sum() / ch.size,
            "That is how many *tokens* lose something: a token can lose more than one row.": _losers,
        }, ROWS),
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
        3, "repaired_dispatch(x, choices, weights, experts)", _sorted, _dispatch_inputs, {
            "Still as broken: rows and weights do not belong together, and rows get lost. Hint 1 asks how to see it.":
                lambda *a: _sorted(*a, weigh=lambda w, order: w.ravel(), add=_add_once),
            "The weights are sorted now; but y[tokens] += writes each token only once, its other rows are lost.":
                lambda *a: _sorted(*a, add=_add_once),
            "All rows arrive now; but the weights still stand in the order of the tokens, the rows in that of the "
            "experts.": lambda *a: _sorted(*a, weigh=lambda w, order: w.ravel()),
            "The weights are sorted backwards: row number i of the sorted ones is order[i] of the old ones.":
                lambda *a: _sorted(*a, weigh=lambda w, order: w.ravel()[np.argsort(order)]),
            "Every row got the weight of its token's first choice: each choice has its own.":
                lambda x, ch, w, ex: _sorted(x, ch, np.repeat(w[:, :1], w.shape[1], axis=1), ex),
            "The weights were sorted by size: they go with the rows, weights.ravel()[order].":
                lambda *a: _sorted(*a, weigh=lambda w, order: np.sort(w.ravel())),
            "The rows are added without weights.": lambda *a: _sorted(*a, weigh=lambda w, order: 0 * w.ravel() + 1),
            "The weight is put on the expert's input: multiply what the expert returns.":
                lambda *a: _sorted(*a, before=True),
            "order % T is the wrong token: row number i of choices.ravel() belongs to token i // k.":
                lambda *a: _sorted(*a, whose=lambda order, T, k: order % T),
            "Only the first choice of each token arrives: all k should.":
                lambda x, ch, w, ex: _sorted(x, ch[:, :1], w[:, :1], ex),
            "Only the last choice of each token arrives: add the others, too.":
                lambda x, ch, w, ex: _sorted(x, ch[:, -1:], w[:, -1:], ex),
            "The weights were renormalised: they are to be used as they come.":
                lambda x, ch, w, ex: _sorted(x, ch, _to_one(w), ex),
            "x is added: there is no residual connection here.": lambda x, ch, w, ex: x + _sorted(x, ch, w, ex),
        }, ROWS),
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
