"""Mixture of experts: a router sends every token to a few of many FFNs."""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._validate import float_array, indices, narrow, positive_int, short, vectors, wide
from .block import softmax, softmax_backward
from .ffn import FeedForward, GatedFeedForward, Layer, check_backward
from .trace import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ._types import Parameter


class Route(NamedTuple):
    """Where tokens go: probabilities (..., n_experts), choices (int) and weights (..., top_k), largest first."""

    probabilities: np.ndarray
    choices: np.ndarray
    weights: np.ndarray


class MixtureOfExperts(Layer):
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

    shapes = {"W_router": ("d_model", "n_experts")}
    n_experts: int
    W_router: Parameter[np.ndarray]
    experts: Sequence[FeedForward | GatedFeedForward]
    top_k: int
    renormalize: bool
    shared: FeedForward | GatedFeedForward | None

    def __init__(self, W_router: ArrayLike, experts: Sequence[FeedForward | GatedFeedForward], top_k: int = 2,
                 renormalize: bool = True, shared: FeedForward | GatedFeedForward | None = None) -> None:
        self._set_sizes("W_router", W_router)
        self.W_router, self.experts, self.shared = W_router, experts, shared
        self.top_k, self.renormalize = top_k, bool(renormalize)

    def __setattr__(self, name, value):
        """Check experts and top_k as `Layer` checks parameters: when first set and whenever replaced."""
        if name == "experts":
            try:
                value = tuple(value)
            except TypeError:
                raise TypeError(f"experts must be a sequence of FFNs, got {short(value)}") from None
            if len(value) != self.n_experts:
                raise ValueError(f"experts must be {self.n_experts} FFNs, one per column of W_router, "
                                 f"got {len(value)}")
            for e, expert in enumerate(value):
                self._check_ffn(f"experts[{e}]", expert)
        elif name == "shared" and value is not None:
            self._check_ffn("shared", value)
        elif name == "top_k":
            value = positive_int("top_k", value)
            if value > self.n_experts:
                raise ValueError(f"top_k must be at most n_experts = {self.n_experts}, got {short(value)}")
        super().__setattr__(name, value)

    def _check_ffn(self, name, ffn):
        if not isinstance(ffn, (FeedForward, GatedFeedForward)):
            raise TypeError(f"{name} must be a FeedForward or GatedFeedForward, got {short(ffn)}")
        if ffn.d_model != self.d_model:
            raise ValueError(f"{name} must have d_model = {self.d_model} like W_router, got {short(ffn)}")

    def _ffns(self):
        """Name -> FFN, the shared one last."""
        named = {f"experts[{e}]": ffn for e, ffn in enumerate(self.experts)}
        return named | ({} if self.shared is None else {"shared": self.shared})

    def parameters(self) -> dict[str, np.ndarray]:
        """All parameters, name -> array: "W_router", "experts[0].W1", ..., "shared.W1"."""
        return super().parameters() | {f"{name}.{p}": value for name, ffn in self._ffns().items()
                                       for p, value in ffn.parameters().items()}

    @property
    def n_active_parameters(self) -> int:
        """How many parameters one token meets: router, top_k experts (the largest ones), shared expert."""
        sizes = sorted((ffn.n_parameters for ffn in self.experts), reverse=True)
        shared = 0 if self.shared is None else self.shared.n_parameters
        return self.W_router.size + sum(sizes[:self.top_k]) + shared

    def __repr__(self):
        return (f"MixtureOfExperts(d_model={self.d_model}, n_experts={self.n_experts}, top_k={self.top_k}, "
                f"{self.n_parameters:,} parameters, {self.n_active_parameters:,} active per token)")

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The whole layer, (..., d_model) -> (..., d_model)."""
        return self.trace(x).output

    def route(self, x: ArrayLike) -> Route:
        """Probabilities, chosen experts (largest first) and their weights for every token, as a `Route`."""
        x = vectors("x", x, self.d_model, "d_model", "this mixture was built for")
        route = self._route(wide(x))
        return Route(narrow(route.probabilities, x, self.W_router), route.choices,
                     narrow(route.weights, x, self.W_router))

    def trace(self, x: ArrayLike) -> Trace:
        """Run the layer on (a copy of) x and keep the route and the output, as a `Trace`."""
        x = np.array(vectors("x", x, self.d_model, "d_model", "this mixture was built for"))  # (..., d_model)
        route = self._route(wide(x))
        rows, *flat = (a.reshape(-1, a.shape[-1]) for a in (wide(x), *route))                 # (n_tokens, ...) each
        y = narrow(self._mix(rows, Route(*flat)), x, *self.parameters().values()).reshape(x.shape)
        p, weights = (narrow(a, x, self.W_router) for a in (route.probabilities, route.weights))
        title = (f"MixtureOfExperts  top {self.top_k} of {self.n_experts}   d_model = {self.d_model}   "
                 f"{self.n_parameters:,} parameters, {self.n_active_parameters:,} active per token")
        return Trace(title, [
            ("x", "", x, ""), ("probabilities", "x", p, "softmax(x @ W_router)"),
            ("choices", "probabilities", route.choices, f"the {self.top_k} largest"),
            ("weights", "choices", weights, "their probabilities" + ", renormalised" * self.renormalize),
            ("output", "x", y, "sum of weight * expert(x)" + " + shared(x)" * (self.shared is not None)),
        ], maker=self)

    def backward(self, trace: Trace, dy: ArrayLike, dprobabilities: ArrayLike | None = None) -> dict[str, np.ndarray]:
        """Gradients for the input ("x") and every parameter, router included.

        The choice of experts is held fixed. `dprobabilities` (..., n_experts) adds the gradient of a loss
        on the probabilities, such as the balancing loss. Other arguments, result and errors as in
        `FeedForward.backward`.
        """
        dy = check_backward(self, trace, dy)
        if dprobabilities is not None:
            dprobabilities = float_array("dprobabilities", dprobabilities)
            if dprobabilities.shape != trace["probabilities"].shape:
                raise ValueError(f"dprobabilities must have shape {trace['probabilities'].shape}, "
                                 f"got {dprobabilities.shape}")
        x, p, choices, weights = (trace[name].reshape(-1, trace[name].shape[-1])
                                  for name in ("x", "probabilities", "choices", "weights"))
        rows, drows = wide(x), wide(dy.reshape(x.shape))
        half = x.dtype.char == "e"
        route = self._route(rows) if half else Route(p, choices, weights)  # again: the trace has 3 digits of it
        with np.errstate(all="ignore"):
            dx, dweights, grads = self._mix_back(rows, route, drows)
            dx_router, dW = self._route_back(rows, route, dweights, dprobabilities)
            grads = {"x": (dx + dx_router).reshape(trace["x"].shape), "W_router": dW} | grads
        return self._narrow(grads, x, dy)

    # Each step forward, and under it its way back; x is (n_tokens, d_model) here.

    def _route(self, x):
        with np.errstate(all="ignore"):
            p = softmax(x @ self.W_router)                                         # (..., n_experts)
            choices = np.argsort(-p, axis=-1, kind="stable")[..., :self.top_k]     # (..., top_k)
            weights = np.take_along_axis(p, choices, axis=-1)                      # (..., top_k)
            if self.renormalize:
                weights = weights / weights.sum(axis=-1, keepdims=True)
        return Route(p, choices, weights)

    def _route_back(self, x, route, dweights, dprobabilities):
        """Gradients at x and W_router."""
        p, choices, weights = route
        if self.renormalize:  # w = c / sum(c): dc = (dw - sum(w dw)) / sum(c)
            chosen = np.take_along_axis(p, choices, axis=-1).sum(axis=-1, keepdims=True)
            dweights = (dweights - (weights * dweights).sum(axis=-1, keepdims=True)) / chosen
        dp = np.zeros_like(p)                                                      # (n_tokens, n_experts)
        np.put_along_axis(dp, choices, dweights, axis=-1)
        if dprobabilities is not None:
            dp += dprobabilities.reshape(p.shape)
        dlogits = softmax_backward(p, dp)                                          # (n_tokens, n_experts)
        return dlogits @ self.W_router.T, x.T @ dlogits

    def _mix(self, x, route):
        y = np.zeros(x.shape, np.result_type(x, *self.parameters().values()))      # (n_tokens, d_model)
        with np.errstate(all="ignore"):
            for e, expert in enumerate(self.experts):
                tokens, slots = np.nonzero(route.choices == e)  # who chose e, as which choice
                y[tokens] += route.weights[tokens, slots][:, None] * expert(x[tokens])  # (n_chosen, d_model)
            if self.shared is not None:
                y += self.shared(x)
        return y

    def _mix_back(self, x, route, dy):
        """Gradients at x, at the weights and at the experts' parameters (by name)."""
        dx, dweights, grads = np.zeros_like(dy), np.zeros_like(route.weights), {}
        for e, expert in enumerate(self.experts):
            tokens, slots = np.nonzero(route.choices == e)
            trace = expert.trace(x[tokens])
            dweights[tokens, slots] = (dy[tokens] * trace.output).sum(axis=-1)
            inner = expert.backward(trace, route.weights[tokens, slots][:, None] * dy[tokens])
            dx[tokens] += inner.pop("x")
            grads |= {f"experts[{e}].{name}": g for name, g in inner.items()}
        if self.shared is not None:
            inner = self.shared.backward(self.shared.trace(x), dy)
            dx += inner.pop("x")
            grads |= {f"shared.{name}": g for name, g in inner.items()}
        return dx, dweights, grads


def load_balancing_loss(probabilities: ArrayLike, choices: ArrayLike) -> float:
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
    probabilities = float_array("probabilities", probabilities)
    n_experts = probabilities.shape[-1] if probabilities.ndim else 0
    if n_experts == 0:
        raise ValueError(f"probabilities must have shape (..., n_experts), got {probabilities.shape}")
    choices = indices("choices", choices, n_experts)
    if choices.ndim != probabilities.ndim or choices.shape[:-1] != probabilities.shape[:-1]:
        raise ValueError(f"choices must have shape (..., top_k) with the leading dimensions of probabilities "
                         f"{probabilities.shape}, got {choices.shape}")
    if choices.size == 0:
        raise ValueError(f"choices must hold at least one choice, got shape {choices.shape}")
    f = np.bincount(choices.ravel(), minlength=n_experts) / choices.size     # (n_experts,)
    P = probabilities.reshape(-1, n_experts).mean(axis=0, dtype=np.float64)  # (n_experts,)
    return float(n_experts * (f * P).sum())
