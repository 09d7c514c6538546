"""The exercises of the course: what each asks for, and the mistakes that its check recognises.

One file per lesson, `lesson01.py`, `lesson02.py` and so on: the files that are here are the lessons there are. Each
holds `EXERCISES`, a dict from a number such as "1.2" to an `Exercise`. `ffn_numpy.check` runs them; nothing here
looks at a student's answer.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import numpy as np

from .._validate import short

LESSONS = {str(int(m.name[6:])): m.name for m in iter_modules(__path__) if re.fullmatch(r"lesson\d\d", m.name)}
ANY = ((5,), (2, 3), (), (4,), (6,), (3, 1, 2))   # leading dimensions: sentence, batch, one token, ...
ROWS = ((5,), (3,), (7,), (4,), (1,), (6,))       # always (n_tokens, d)


class Case(NamedTuple):
    """One random trial: x has shape (*lead, d); f is d_ff. In trial 3, all sizes are 4, mostly: any axis fits."""

    i: int
    lead: tuple[int, ...]
    d: int
    f: int
    dtype: type
    rng: np.random.Generator

    def normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """Random numbers of that shape."""
        return scale * self.rng.normal(size=shape)

    def x(self, scale: float = 1.0) -> np.ndarray:
        """Tokens of shape (*lead, d)."""
        return self.normal(*self.lead, self.d, scale=scale)


@dataclass(frozen=True)
class Exercise:
    """What an exercise asks for.

    Attributes
    ----------
    stars : 1 (fill a line), 2 (write the function) or 3 (find and fix the bug)
    call : how the check calls the answer, for messages: "lift(x, W1, b1)"
    right : the function that is asked for
    inputs : Case -> the arguments of one call, in float64; floating arrays are then cast to the case's dtype
    mistakes : message -> a function that makes this mistake, or a tuple of such functions
    leads : six leading shapes to try
    returns : names of the results, if there are several
    may_change_inputs : True where an answer has to call a layer that changes its input
    float64_only : True where float32 would be lost in rounding
    elementwise : True where each number of the result belongs to one number of the input
    no_overflow : True where no step may overflow: an answer that turns the warning off (np.errstate) is refused
    """

    stars: int
    call: str
    right: Callable
    inputs: Callable[[Case], tuple]
    mistakes: Mapping[str, Callable | tuple[Callable, ...]]
    leads: tuple[tuple[int, ...], ...] = ANY
    returns: tuple[str, ...] = ()
    may_change_inputs: bool = False
    float64_only: bool = False
    elementwise: bool = False
    no_overflow: bool = False

    def known(self) -> Iterator[tuple[str, Callable]]:
        """Every known mistake as (message, function)."""
        for message, functions in self.mistakes.items():
            for function in functions if isinstance(functions, tuple) else (functions,):
                yield message, function

    def cases(self, seed: int) -> Iterator[Case]:
        """Six random trials: four in float64 (the fourth with 4 tokens and d = f = 4), two in float32."""
        rng = np.random.default_rng(seed)
        for i, lead in enumerate(self.leads):
            d = 4 if i == 3 else int(rng.integers(3, 7))                        # the fourth: 4 tokens, d = f = 4
            f = 4 if i == 3 else d + int(rng.integers(2, 8))
            yield Case(i, lead, d, f, np.float64 if i < 4 else np.float32, rng)


def numbers() -> list[str]:
    """All exercise numbers in the order of the course: ["1.1", "1.2", ...].

    >>> numbers()[:3]
    ['1.1', '1.2', '1.3']
    """
    return [number for lesson in LESSONS for number in _lesson(lesson)]


def find(number: str) -> Exercise:
    """The `Exercise` with this number, or a ValueError that lists the numbers there are.

    >>> find("2.1").call
    'quiet(x)'
    """
    lesson = number.partition(".")[0] if isinstance(number, str) else ""
    if lesson in LESSONS and number in _lesson(lesson):
        return _lesson(lesson)[number]
    known = _lesson(lesson) if lesson in LESSONS else numbers()
    raise ValueError(f"exercise must be one of {', '.join(map(repr, known))}; got {short(number)}")


def _lesson(lesson: str) -> dict[str, Exercise]:
    return import_module(f".{LESSONS[lesson]}", __name__).EXERCISES
