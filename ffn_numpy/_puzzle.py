"""What a weight puzzle is, and when an answer computes what it wants. The table is `exercises.puzzles`."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .ffn import FeedForward, GatedFeedForward

INF = float("inf")
CAP = 1000.0     # the largest weight: with a bias of 1e6, one ReLU unit is x itself on every domain that is looked at
N_HIDDEN = 2000  # random inputs, where there are too many to try all

Layers = Sequence[FeedForward | GatedFeedForward]
Function = Callable[[np.ndarray], np.ndarray]


class Line(NamedTuple):
    """Every real number from low up, in the first feature; the others are 0. `folds`: where what is wanted bends."""

    folds: tuple[float, ...] = ()
    low: float = -INF


class Rows(NamedTuple):
    """All the inputs there are, (n, d_model)."""

    x: np.ndarray


class Box(NamedTuple):
    """Inputs from -size to size in the first `free` features, the others 0. `fine`: as many small ones as large."""

    size: float
    free: int = 1
    fine: bool = False


@dataclass(frozen=True)
class Puzzle:
    """One puzzle: the FFN, or the layers in a row, that computes `wanted`.

    Attributes
    ----------
    call : the name of the answer in the notebook
    par : the fewest units known; proved : whether fewer are impossible
    features : the name of each of the d_model numbers
    wanted : (n, d_model) -> (n, d_model), ffn(x), or x + ffn(x) if `residual`
    inputs : Line, Rows or Box, the x that count
    gated, activation : GatedFeedForward or FeedForward, and its activation
    without : biases that must not be there
    deep : whether several layers in a row are allowed
    slips : message -> what a usual slip computes, (n, d_model) -> (n, d_model), or a tuple of such functions
    """

    call: str
    title: str
    par: int
    features: tuple[str, ...]
    wanted: Function
    inputs: Line | Rows | Box
    proved: bool = True
    gated: bool = False
    activation: str = "relu"
    without: tuple[str, ...] = ()
    residual: bool = False
    deep: bool = False
    tolerance: float = 1e-9
    slips: Mapping[str, Function | tuple[Function, ...]] = field(default_factory=dict)

    def run(self, layers: Layers, x: np.ndarray, residual: bool | None = None) -> np.ndarray:
        """What the layers compute one after the other, each ffn(x) or x + ffn(x): (n, d_model)."""
        for ffn in layers:
            x = ffn(x) + (x if (self.residual if residual is None else residual) else 0)
        return x

    def right(self, got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """For each number, whether it is what is wanted; rounding grows with the numbers."""
        return np.abs(got - wanted) <= self.tolerance * np.maximum(1, np.abs(wanted))

    def solved_by(self, layers: Layers, residual: bool | None = None) -> bool:
        """Do the layers compute what is wanted? On a line by a proof: right at 0, and the right slope everywhere."""
        x = self.points(layers)                                                 # (n, d_model)
        right = bool(self.right(self.run(layers, x, residual), self.wanted(x)).all())
        if right and isinstance(self.inputs, Line):
            _, got, wanted = self.slopes(layers, residual)                      # (n_pieces, d_model) each
            return bool((np.abs(got - wanted) <= self.tolerance).all())
        return right

    def points(self, layers: Layers) -> np.ndarray:
        """The inputs that are looked at, (n, d_model): all if they are few, or every fold of a line, or hidden ones."""
        inputs, d_model = self.inputs, len(self.features)
        if isinstance(inputs, Rows):
            return inputs.x
        if isinstance(inputs, Line):
            near = [t for t in (*self._folds(layers), *inputs.folds) if abs(t) <= CAP]
            return on_line(_knots([*near, 0], inputs.low), d_model)
        rng = np.random.default_rng(0)
        x = rng.uniform(-inputs.size, inputs.size, size=(N_HIDDEN, d_model))
        if inputs.fine:
            x *= 10 ** rng.uniform(-4, 0, size=(N_HIDDEN, 1))
        x[0], x[:, inputs.free:] = 0, 0
        return x

    def slopes(self, layers: Layers, residual: bool | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """On a line: the folds, (n,), and the slopes of the pieces, computed and wanted, (n + 1, d_model) each."""
        inputs, d_model = self.inputs, len(self.features)
        assert isinstance(inputs, Line)
        folds = np.unique([t for t in (*self._folds(layers, residual), *inputs.folds) if t > inputs.low])   # (n,)
        middle = _middles(folds, inputs.low)                                    # (n + 1,)
        x, got = on_line(middle, d_model), on_line(np.ones(len(middle)), d_model)
        for ffn in layers:                                                      # the chain rule, for ReLU
            change = (got @ ffn.W1 * (ffn.lift(x) > 0)) @ ffn.W2                # (n + 1, d_model)
            got = change + got if (self.residual if residual is None else residual) else change
            x = self.run([ffn], x, residual)
        edges = on_line(_knots(inputs.folds, inputs.low), d_model)
        steps = np.diff(self.wanted(edges), axis=0) / np.diff(edges[:, :1], axis=0)
        return folds, got, steps[np.clip(np.searchsorted(edges[:, 0], middle) - 1, 0, len(steps) - 1)]

    def _folds(self, layers, residual=None):
        """Where the layers may bend, for ReLU on a line: in each layer, where a unit's lift crosses 0.

        Between two knots every lift is a straight line, so two of its values tell where it crosses.
        """
        found: list[float] = []
        for i, ffn in enumerate(layers):
            t = _knots(found)                                                   # (n,)
            h = ffn.lift(self.run(layers[:i], on_line(t, ffn.d_model), residual))        # (n, d_ff)
            slope = np.diff(h, axis=0) / np.diff(t)[:, None]                    # (n - 1, d_ff)
            with np.errstate(divide="ignore", invalid="ignore"):
                crossing = t[:-1, None] - h[:-1] / slope                        # (n - 1, d_ff)
            low, high = np.array([-INF, *t[1:-1]]), np.array([*t[1:-1], INF])
            inside = np.isfinite(crossing) & (low[:, None] <= crossing) & (crossing <= high[:, None])
            found = [*found, *crossing[inside]]
        return found


@dataclass(frozen=True)
class Impossible:
    """A puzzle that no FFN of a family solves. The answer is a witness: inputs x_i and coefficients c_i.

    sum_i c_i f(x_i) is 0 for every f of the family, and is not 0 for the target.

    Attributes
    ----------
    size : how many numbers one input has
    target : (n, size) -> (n,)
    member : a random generator -> (a few words on f, f: (n, size) -> (n,))
    bits : whether an input holds zeros and ones only
    """

    call: str
    title: str
    size: int
    target: Function
    member: Callable[[np.random.Generator], tuple[str, Function]]
    bits: bool = False


def on_line(t: np.ndarray, d_model: int) -> np.ndarray:
    """The numbers t as the first of d_model features, the others 0: (n, d_model)."""
    return np.column_stack([t, np.zeros((len(t), d_model - 1))])


def _knots(folds, low=-INF):
    """The folds above low and two points beyond each end, at a distance of their own size."""
    inside = np.unique([k for k in folds if k > low])
    first, last = (inside[0], inside[-1]) if len(inside) else (max(low, 0.0), max(low, 0.0))
    step, more = 1 + abs(first), 1 + abs(last)
    left = [first - 2 * step, first - step] if low == -INF else [low, (low + first) / 2]
    return np.unique([*left, *inside, last + more, last + 2 * more])


def _middles(folds, low):
    """A point inside each piece between low, the folds and infinity."""
    if not len(folds):
        return np.array([max(low, 0.0) + 1])
    first = folds[0] - 1 - abs(folds[0]) if low == -INF else (low + folds[0]) / 2
    return np.array([first, *((folds[1:] + folds[:-1]) / 2), folds[-1] + 1 + abs(folds[-1])])


def rebuilt(ffn: FeedForward | GatedFeedForward, **changed: np.ndarray | None) -> FeedForward | GatedFeedForward:
    """The same FFN in float64, with some parameters replaced."""
    parameters = {name: p.astype(np.float64) for name, p in ffn.parameters().items()} | changed
    kind = GatedFeedForward if isinstance(ffn, GatedFeedForward) else FeedForward
    return kind(**{name: parameters.get(name) for name in ffn.shapes}, activation=ffn.activation)
