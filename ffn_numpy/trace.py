"""Trace: every stage's array, its formula and its shape. Printing it is the course's shape table."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from ._validate import short


class Trace(Mapping[str, np.ndarray]):
    """What one forward pass produced, stage by stage, in order.

    A mapping from stage name to array, so `trace["lift"]`, `list(trace)` and `trace.items()` work.
    It is also the cache that `backward(trace, dy)` needs.

    Parameters
    ----------
    title : str
        The first line of the printed table.
    stages : list of (name, source, array, formula)
        `source` is the name of the stage that the array was made from, "" for the input.
    maker : object
        What made the trace: `backward` refuses the trace of another layer.

    Attributes
    ----------
    output : ndarray
        The last stage's array.
    shapes : dict
        Stage name -> shape.

    Raises
    ------
    KeyError
        For an unknown stage; the message lists the stages.

    Notes
    -----
    Arrays are kept as they are, not copied, in whatever shape and dtype they came.

    Examples
    --------
    >>> trace = Trace("double", [("x", "", np.ones((2, 3)), ""), ("y", "x", 2 * np.ones((2, 3)), "2 x")])
    >>> print(trace)
    double
      x  (2, 3)
      y  (2, 3) -> (2, 3)  2 x
    >>> trace["y"].tolist() == trace.output.tolist(), trace.shapes
    (True, {'x': (2, 3), 'y': (2, 3)})
    >>> trace["z"]
    Traceback (most recent call last):
    KeyError: "no stage 'z'; the stages are x, y"
    """

    def __init__(self, title: str, stages: Iterable[tuple[str, str, np.ndarray, str]], maker: object = None) -> None:
        self.title, self.maker = title, maker
        self.stages = list(stages)
        self._arrays = {name: array for name, _, array, _ in self.stages}

    @property
    def output(self) -> np.ndarray:
        """The last stage's array."""
        return self.stages[-1][2]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Stage name -> shape, in order."""
        return {name: array.shape for name, array in self._arrays.items()}

    def __getitem__(self, stage: str) -> np.ndarray:
        try:
            return self._arrays[stage]
        except (KeyError, TypeError):
            raise KeyError(f"no stage {short(stage)}; the stages are {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    __eq__, __hash__ = object.__eq__, object.__hash__  # a Mapping's would compare arrays, which have no truth value

    def __str__(self) -> str:
        rows = [(name, str(self[source].shape) if source else str(array.shape),
                 f"-> {array.shape}" if source else "", formula)
                for name, source, array, formula in self.stages]
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        lines = [f"  {name:<{widths[0]}}  {before:<{widths[1]}} {after:<{widths[2]}}  {formula}".rstrip()
                 for name, before, after, formula in rows]
        return "\n".join([self.title, *lines])

    __repr__ = __str__
