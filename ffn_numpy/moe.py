"""Mixture of experts: a router sends every token to a few of many FFNs."""
from typing import NamedTuple

import numpy as np

from ._validate import float_array, positive_int, vectors
from .block import softmax, softmax_backward
from .ffn import FeedForward, GatedFeedForward, check_backward
from .trace import Trace


class Route(NamedTuple):
    """Where tokens go: probabilities (..., n_experts), choices and weights (..., top_k)."""

    probabilities: np.ndarray
    choices: np.ndarray
    weights: np.ndarray


class MixtureOfExperts:
    """y = sum over the chosen experts of weight_e expert_e(x), plus the shared expert if there is one.

    The router is softmax(x W_router) over *all* experts; the top_k largest probabilities choose, and
    with `renormalize` the chosen ones are divided by their sum.

    Parameters
    ----------
    W_router : array_like (d_model, n_experts)
    experts : sequence of FeedForward or GatedFeedForward, n_experts of them, all with that d_model
    top_k : int, at most n_experts
    renormalize : bool
        Careful with top_k = 1: the weight is then always 1, and the router gets no gradient.
    shared : FeedForward, GatedFeedForward or None
        An expert that every token goes through, with weight 1.

    Raises
    ------
    ValueError, TypeError
        If a part does not fit (named), when built.

    Notes
    -----
    Sources: Shazeer et al. 2017 (arXiv:1701.06538); Fedus et al. 2021 (arXiv:2101.03961), top-1 and the
    balancing loss; Jiang et al. 2024 (arXiv:2401.04088), Mixtral: top-2, renormalised.

    Examples
    --------
    >>> experts = [FeedForward.random(8, seed=e) for e in range(4)]
    >>> moe = MixtureOfExperts(np.random.default_rng(0).normal(size=(8, 4)), experts)
    >>> moe.route(np.ones((7, 8))).choices.shape
    (7, 2)
    """

    def __init__(self, W_router, experts, top_k=2, renormalize=True, shared=None):
        self.W_router = float_array("W_router", W_router)
        if self.W_router.ndim != 2 or 0 in self.W_router.shape:
            raise ValueError(f"W_router must have shape (d_model, n_experts), got {self.W_router.shape}")
        self.d_model, self.n_experts = self.W_router.shape
        try:
            self.experts = list(experts)
        except TypeError:
            raise TypeError(f"experts must be a sequence of FFNs, got {type(experts).__name__}") from None
        if len(self.experts) != self.n_experts:
            raise ValueError(f"experts must be {self.n_experts} FFNs, one per column of W_router, "
                             f"got {len(self.experts)}")
        self.shared = shared
        for name, ffn in self._ffns():
            if not isinstance(ffn, (FeedForward, GatedFeedForward)):
                raise TypeError(f"{name} must be a FeedForward or GatedFeedForward, got {type(ffn).__name__}")
            if ffn.d_model != self.d_model:
                raise ValueError(f"{name} must have d_model = {self.d_model} like W_router, got {ffn.d_model}")
        self.top_k, self.renormalize = positive_int("top_k", top_k), bool(renormalize)
        if self.top_k > self.n_experts:
            raise ValueError(f"top_k must be at most n_experts = {self.n_experts}, got {top_k}")

    def _ffns(self):
        """Name -> FFN, the shared one last."""
        named = [(f"experts[{e}]", ffn) for e, ffn in enumerate(self.experts)]
        return named + ([] if self.shared is None else [("shared", self.shared)])

    def parameters(self):
        """All parameters, name -> array: "W_router", "experts[0].W1", ..., "shared.W1"."""
        return {"W_router": self.W_router} | {f"{name}.{p}": value for name, ffn in self._ffns()
                                              for p, value in ffn.parameters().items()}

    @property
    def n_parameters(self):
        """How many numbers all parameters hold: what must be in memory."""
        return sum(p.size for p in self.parameters().values())

    @property
    def n_active_parameters(self):
        """How many of them one token meets: router, top_k experts (the largest ones), shared expert."""
        sizes = sorted((ffn.n_parameters for ffn in self.experts), reverse=True)
        shared = 0 if self.shared is None else self.shared.n_parameters
        return self.W_router.size + sum(sizes[:self.top_k]) + shared

    def __repr__(self):
        return (f"MixtureOfExperts(d_model={self.d_model}, n_experts={self.n_experts}, top_k={self.top_k}, "
                f"{self.n_parameters:,} parameters, {self.n_active_parameters:,} active per token)")

    def route(self, x):
        """Probabilities, chosen experts (largest first) and their weights for every token, as a `Route`."""
        x = vectors("x", x, self.d_model, "d_model")
        with np.errstate(all="ignore"):
            probabilities = softmax(x @ self.W_router)                                         # (..., n_experts)
            choices = np.argsort(-probabilities, axis=-1, kind="stable")[..., :self.top_k]     # (..., top_k)
            weights = np.take_along_axis(probabilities, choices, axis=-1)                      # (..., top_k)
            if self.renormalize:
                weights = weights / weights.sum(axis=-1, keepdims=True)
        return Route(probabilities, choices, weights)

    def __call__(self, x):
        """The whole layer, (..., d_model) -> (..., d_model)."""
        return self.trace(x).output

    def trace(self, x):
        """Run the layer on (a copy of) x and keep the route and the output, as a `Trace`."""
        x = np.array(vectors("x", x, self.d_model, "d_model"))         # (..., d_model)
        route = self.route(x)
        rows = x.reshape(-1, self.d_model)                             # (n_tokens, d_model)
        y = np.zeros(rows.shape, np.result_type(x, *self.parameters().values()))
        for e, expert in enumerate(self.experts):
            tokens, slots = np.nonzero(route.choices.reshape(-1, self.top_k) == e)  # who chose e, as which choice
            weights = route.weights.reshape(-1, self.top_k)[tokens, slots]          # (n_chosen,)
            y[tokens] += weights[:, None] * expert(rows[tokens])                    # (n_chosen, d_model)
        if self.shared is not None:
            y += self.shared(rows)
        title = (f"MixtureOfExperts  top {self.top_k} of {self.n_experts}   d_model = {self.d_model}   "
                 f"{self.n_parameters:,} parameters, {self.n_active_parameters:,} active per token")
        return Trace(title, [
            ("x", "", x, ""), ("probabilities", "x", route.probabilities, "softmax(x @ W_router)"),
            ("choices", "probabilities", route.choices, f"the {self.top_k} largest"),
            ("weights", "choices", route.weights, "their probabilities" + ", renormalised" * self.renormalize),
            ("output", "x", y.reshape(x.shape),
             "sum of weight * expert(x)" + " + shared(x)" * (self.shared is not None)),
        ], maker=self)

    def backward(self, trace, dy, dprobabilities=None):
        """Gradients for the input ("x") and every parameter, router included.

        The choice of experts is held fixed. `dprobabilities` (..., n_experts) adds the gradient of a loss
        on the probabilities, such as the balancing loss.
        """
        dy = check_backward(self, trace, dy)
        if dprobabilities is not None:
            dprobabilities = float_array("dprobabilities", dprobabilities)
            if dprobabilities.shape != trace["probabilities"].shape:
                raise ValueError(f"dprobabilities must have shape {trace['probabilities'].shape}, "
                                 f"got {dprobabilities.shape}")
        rows, drows = trace["x"].reshape(-1, self.d_model), dy.reshape(-1, self.d_model)  # (n_tokens, d_model)
        p = trace["probabilities"].reshape(-1, self.n_experts)                            # (n_tokens, n_experts)
        choices = trace["choices"].reshape(-1, self.top_k)                                # (n_tokens, top_k)
        weights = trace["weights"].reshape(-1, self.top_k)                                # (n_tokens, top_k)
        dx, dweights, grads = np.zeros_like(drows), np.zeros_like(weights), {}
        with np.errstate(all="ignore"):
            for e, expert in enumerate(self.experts):
                tokens, slots = np.nonzero(choices == e)
                inner_trace = expert.trace(rows[tokens])
                dweights[tokens, slots] = (drows[tokens] * inner_trace.output).sum(axis=-1)
                inner = expert.backward(inner_trace, weights[tokens, slots][:, None] * drows[tokens])
                dx[tokens] += inner.pop("x")
                grads |= {f"experts[{e}].{name}": g for name, g in inner.items()}
            if self.shared is not None:
                inner = self.shared.backward(self.shared.trace(rows), drows)
                dx += inner.pop("x")
                grads |= {f"shared.{name}": g for name, g in inner.items()}
            if self.renormalize:  # w = c / sum(c): dc = (dw - sum(w dw)) / sum(c)
                chosen = np.take_along_axis(p, choices, axis=-1).sum(axis=-1, keepdims=True)
                dweights = (dweights - (weights * dweights).sum(axis=-1, keepdims=True)) / chosen
            dp = np.zeros_like(p)
            np.put_along_axis(dp, choices, dweights, axis=-1)
            if dprobabilities is not None:
                dp += dprobabilities.reshape(p.shape)
            dlogits = softmax_backward(p, dp)                                             # (n_tokens, n_experts)
            dx += dlogits @ self.W_router.T
        return {"x": dx.reshape(trace["x"].shape), "W_router": rows.T @ dlogits} | grads


def load_balancing_loss(probabilities, choices):
    """n_experts * sum over experts of f_e P_e: 1 when balanced, n_experts when one expert takes all.

    Parameters
    ----------
    probabilities : array_like (..., n_experts)
    choices : array_like of int (..., top_k)

    Returns
    -------
    float
        f_e is the share of all choices that went to expert e, P_e the mean probability of expert e.

    Raises
    ------
    ValueError, TypeError
        If shapes do not fit, or a choice is not the index of an expert.

    Notes
    -----
    Source: Fedus et al. 2021 (arXiv:2101.03961), equations 4 to 6.

    Examples
    --------
    >>> load_balancing_loss([[0.5, 0.5], [0.5, 0.5]], [[0], [1]])
    1.0
    """
    probabilities, choices = float_array("probabilities", probabilities), np.asarray(choices)
    if choices.dtype.kind not in "iu":
        raise TypeError(f"choices must be integers, got {choices.dtype}")
    if probabilities.ndim < 1 or choices.ndim != probabilities.ndim or choices.shape[:-1] != probabilities.shape[:-1]:
        raise ValueError(f"choices must have shape (..., top_k) with the leading dimensions of probabilities "
                         f"{probabilities.shape}, got {choices.shape}")
    n_experts = probabilities.shape[-1]
    if choices.size == 0:
        raise ValueError(f"choices must hold at least one choice, got shape {choices.shape}")
    if choices.min() < 0 or choices.max() >= n_experts:
        raise ValueError(f"choices must be in 0..{n_experts - 1}, got {choices.min()}..{choices.max()}")
    f = np.bincount(choices.ravel(), minlength=n_experts) / choices.size     # (n_experts,)
    P = probabilities.reshape(-1, n_experts).mean(axis=0)                    # (n_experts,)
    return float(n_experts * (f * P).sum())
