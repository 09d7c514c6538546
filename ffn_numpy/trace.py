"""Trace: every stage's array, its formula and its shape. Printing it is the course's shape table."""
from collections.abc import Mapping

from ._validate import short


class Trace(Mapping):
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
        What made the trace: `backward` refuses the trace of another FFN.

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

    Examples
    --------
    >>> import numpy as np
    >>> print(Trace("double", [("x", "", np.ones((2, 3)), ""), ("y", "x", 2 * np.ones((2, 3)), "2 x")]))
    double
      x  (2, 3)
      y  (2, 3) -> (2, 3)  2 x
    """

    def __init__(self, title, stages, maker=None):
        self.title, self.maker = title, maker
        self.stages = list(stages)
        self._arrays = {name: array for name, _, array, _ in self.stages}

    @property
    def output(self):
        return self.stages[-1][2]

    @property
    def shapes(self):
        return {name: array.shape for name, array in self._arrays.items()}

    def __getitem__(self, stage):
        try:
            return self._arrays[stage]
        except (KeyError, TypeError):
            raise KeyError(f"no stage {short(stage)}; the stages are {', '.join(self)}") from None

    def __iter__(self):
        return iter(self._arrays)

    def __len__(self):
        return len(self._arrays)

    __eq__, __hash__ = object.__eq__, object.__hash__  # a Mapping's would compare arrays, which have no truth value

    def __str__(self):
        rows = [(name, str(self[source].shape) if source else str(array.shape),
                 f"-> {array.shape}" if source else "", formula)
                for name, source, array, formula in self.stages]
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        lines = [f"  {name:<{widths[0]}}  {before:<{widths[1]}} {after:<{widths[2]}}  {formula}".rstrip()
                 for name, before, after, formula in rows]
        return "\n".join([self.title, *lines])

    __repr__ = __str__
