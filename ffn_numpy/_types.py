"""What only type checkers and editors read: the package never imports this module when it runs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

Kept = TypeVar("Kept", np.ndarray, "np.ndarray | None")


class Parameter(Protocol[Kept]):
    """A weight or bias of a `Layer`: set to anything like an array (or None where it may be), kept as a float array."""

    def __get__(self, layer: object, owner: type | None = None) -> Kept: ...
    def __set__(self, layer: object, value: ArrayLike | Kept) -> None: ...


class Trainable(Protocol):
    """What `training.train` needs of a model."""

    def parameters(self) -> dict[str, np.ndarray]: ...
    def loss(self, inputs: np.ndarray, targets: np.ndarray, /) -> tuple[float, dict[str, np.ndarray]]: ...


Loss = Callable[[ArrayLike, ArrayLike], tuple[float, np.ndarray]]
