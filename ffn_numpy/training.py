"""Training in float64: two losses, Adam, the loop, two small models and the tasks of lessons 08 and 09."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ._validate import (
    float_array,
    generator,
    indices,
    narrow,
    not_negative,
    number,
    positive_int,
    random_generator,
    short,
    wide,
)
from .block import TransformerBlock
from .ffn import FeedForward, GatedFeedForward, make_ffn, random_matrix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal

    from numpy.typing import ArrayLike

    from ._types import Loss, Trainable

# ---------------------------------------------------------------- losses: the value, and its gradient

def cross_entropy(logits: ArrayLike, targets: ArrayLike) -> tuple[float, np.ndarray]:
    """Mean of -log softmax(logits)[target], in nats, and its gradient.

    Parameters
    ----------
    logits : array_like (n, n_classes)
    targets : array_like of int (n,)

    Returns
    -------
    float, ndarray (n, n_classes)

    Raises
    ------
    ValueError, TypeError
        If shapes do not fit, or a target is not the index of a class.

    Notes
    -----
    The gradient is (softmax(logits) - one_hot(targets)) / n. Source: Goodfellow et al. 2016, *Deep Learning*,
    section 6.2.2.3.

    Examples
    --------
    >>> loss, gradient = cross_entropy([[0.0, 0.0]], [1])
    >>> print(f"{loss:.4f}", gradient.tolist())
    0.6931 [[0.5, -0.5]]
    """
    logits = float_array("logits", logits)
    if logits.ndim != 2 or 0 in logits.shape:
        raise ValueError(f"logits must have shape (n, n_classes), both at least 1; got {logits.shape}")
    targets = indices("targets", targets, logits.shape[1])
    if targets.shape != logits.shape[:1]:
        raise ValueError(f"targets must have shape {logits.shape[:1]}, got {targets.shape}")
    rows = np.arange(len(targets))
    with np.errstate(all="ignore"):                                   # exp(-1000) = 0 is right, inf gives NaN
        shifted = wide(logits) - logits.max(axis=1, keepdims=True)    # (n, n_classes)
        log_sum = np.log(np.exp(shifted).sum(axis=1, keepdims=True))  # (n, 1)
        gradient = np.exp(shifted - log_sum)                          # (n, n_classes) the softmax
        loss = float((log_sum[:, 0] - shifted[rows, targets]).mean())
        gradient[rows, targets] -= 1
        return loss, narrow(gradient / len(targets), logits)


def mean_squared_error(y: ArrayLike, targets: ArrayLike) -> tuple[float, np.ndarray]:
    """Mean of (y - target)^2 over all numbers, and its gradient.

    Parameters
    ----------
    y, targets : array_like, any one shape, not empty

    Returns
    -------
    float, ndarray of that shape

    Raises
    ------
    ValueError, TypeError
        If the shapes differ, there are no numbers, or something is not a real number.

    Notes
    -----
    Source: Goodfellow et al. 2016, *Deep Learning*, section 5.1.4.

    Examples
    --------
    >>> loss, gradient = mean_squared_error([[1.0], [3.0]], [[1.0], [1.0]])
    >>> loss, gradient.tolist()
    (2.0, [[0.0], [2.0]])
    """
    y, targets = float_array("y", y), float_array("targets", targets)
    if not y.size:
        raise ValueError(f"y must hold at least one number, got shape {y.shape}")
    if y.shape != targets.shape:
        raise ValueError(f"targets must have y's shape {y.shape}, got {targets.shape}")
    with np.errstate(all="ignore"):
        error = wide(y) - wide(targets)
        return float((error * error).mean()), narrow(2 * error / error.size, y, targets)


# ---------------------------------------------------------------- Adam and the loop

class Adam:
    """Adam with bias correction; changes the parameters in place.

    Parameters
    ----------
    parameters : dict of name -> ndarray of floats
    betas : (float, float)
        Decay of the mean gradient and of the mean squared gradient, each in [0, 1).
    eps : float
        Keeps the step finite where all gradients were 0.

    Raises
    ------
    ValueError, TypeError
        If betas are not two numbers in [0, 1); at a step, if a parameter has no gradient that fits.

    Notes
    -----
    Source: Kingma and Ba 2015 (arXiv:1412.6980), algorithm 1.

    Examples
    --------
    >>> weights = {"w": np.array([1.0, 1.0])}
    >>> Adam(weights).step({"w": np.array([500.0, -0.002])}, lr=0.1)
    >>> weights["w"].round(3).tolist()    # the first step is lr long, whatever the gradient's size
    [0.9, 1.1]
    """

    def __init__(self, parameters: dict[str, np.ndarray], betas: tuple[float, float] = (0.9, 0.99),
                 eps: float = 1e-8) -> None:
        try:
            b1, b2 = (number("betas", b, "two numbers in [0, 1)") for b in betas)
        except (TypeError, ValueError):
            raise TypeError(f"betas must be two numbers in [0, 1), got {short(betas)}") from None
        if not (0 <= b1 < 1 and 0 <= b2 < 1):
            raise ValueError(f"betas must be two numbers in [0, 1), got {short(betas)}")
        not_negative("eps", eps)
        if not isinstance(parameters, dict) or not all(isinstance(p, np.ndarray) for p in parameters.values()):
            raise TypeError(f"parameters must be a dict of name -> ndarray, got {short(parameters)}")
        self.parameters, self.betas, self.eps, self.t = parameters, (b1, b2), eps, 0
        self.mean = {name: np.zeros_like(p) for name, p in parameters.items()}
        self.square = {name: np.zeros_like(p) for name, p in parameters.items()}

    def step(self, gradients: dict[str, np.ndarray], lr: float) -> None:
        """One update of every parameter, in place.

        gradients : dict with (at least) the parameters' names, else a ValueError names those that are missing.
        lr : the learning rate, about the farthest that one step moves a number.
        """
        if not isinstance(gradients, dict):
            raise TypeError(f"gradients must be a dict of name -> array, got {short(gradients)}")
        missing = [name for name in self.parameters if name not in gradients]
        if missing:
            raise ValueError(f"gradients must hold every parameter; missing: {', '.join(missing)}")
        for name, p in self.parameters.items():  # one of another shape could be broadcast, unseen
            if np.shape(gradients[name]) != p.shape:
                raise ValueError(f"gradients[{name!r}] must have the parameter's shape {p.shape}, "
                                 f"got {np.shape(gradients[name])}")
        number("lr", lr, "a number")
        self.t += 1
        b1, b2 = self.betas
        for name, p in self.parameters.items():
            m, v, g = self.mean[name], self.square[name], gradients[name]
            m += (1 - b1) * (g - m)
            v += (1 - b2) * (g * g - v)
            p -= lr * (m / (1 - b1**self.t)) / (np.sqrt(v / (1 - b2**self.t)) + self.eps)


def learning_rate(step: int, n_steps: int, peak: float, warmup: int = 0, floor: float = 0.0) -> float:
    """Linear warm-up to `peak` over `warmup` steps, then a cosine down to floor * peak.

    Parameters
    ----------
    step, n_steps, warmup : int
        step counts from 0 to n_steps - 1.
    peak : float
    floor : float
        A share of peak.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If something is not a number.

    Notes
    -----
    Source: Loshchilov and Hutter 2017 (arXiv:1608.03983), equation 5, without restarts; warm-up as in Goyal et
    al. 2017 (arXiv:1706.02677), section 2.2.

    Examples
    --------
    >>> [round(learning_rate(s, 100, 1.0, warmup=10, floor=0.1), 2) for s in (0, 9, 10, 55, 99)]
    [0.1, 1.0, 1.0, 0.55, 0.1]
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / max(1, n_steps - warmup)
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done)))


def train(model: Trainable, batch: Callable[[int], tuple[np.ndarray, np.ndarray]], n_steps: int, peak: float,
          warmup: int = 0, floor: float = 0.05, betas: tuple[float, float] = (0.9, 0.99)) -> np.ndarray:
    """Train `model` in place with Adam; return the loss before every step, (n_steps,).

    Parameters
    ----------
    model : TokenModel, FFNModel or your own
        Has parameters() -> dict of name -> ndarray, the arrays themselves, and loss(inputs, targets) -> (loss,
        gradients), a dict with the same names.
    batch : function of the step -> (inputs, targets)
    n_steps : int
    peak, warmup, floor : the learning rate, as in `learning_rate`
    betas : as in `Adam`

    Returns
    -------
    float64 (n_steps,)
        In the loss's unit: nats for `cross_entropy`.

    Raises
    ------
    ValueError, TypeError
        If n_steps is not a positive integer, betas are not two numbers in [0, 1), a parameter has no gradient,
        model or batch is not what it has to be, or the model's loss refuses what batch gives.

    Notes
    -----
    Source: Kingma and Ba 2015 (arXiv:1412.6980), algorithm 1, in mini-batches.

    Examples
    --------
    >>> keys, classes = random_keys(20, 8, 4, np.random.default_rng(0))    # (20, 8), (20,)
    >>> model = FFNModel.random("relu", d_model=8, d_ff=32, n_outputs=4)
    >>> losses = train(model, lambda step: (keys, classes), n_steps=100, peak=0.02)
    >>> print(f"{losses[0]:.1f} -> {losses[-1]:.1f} nats, accuracy {accuracy(model, keys, classes):.2f}")
    1.8 -> 0.0 nats, accuracy 1.00
    """
    n_steps = positive_int("n_steps", n_steps)
    if not callable(getattr(model, "parameters", None)) or not callable(getattr(model, "loss", None)):
        raise TypeError(f"model must have parameters() and loss(inputs, targets), got {short(model)}")
    if not callable(batch):
        raise TypeError(f"batch must be a function of the step -> (inputs, targets), got {short(batch)}")
    for name, value in (("peak", peak), ("warmup", warmup), ("floor", floor)):
        number(name, value, "a number")
    half = [name for name, p in model.parameters().items() if p.dtype.char == "e"]
    if half:
        raise TypeError(f"model must have float32 or float64 parameters to train: float16 loses small updates; "
                        f"got float16 in {', '.join(half[:6])}{', ...' * (len(half) > 6)}")
    adam = Adam(model.parameters(), betas)
    losses = np.empty(n_steps)
    for step in range(n_steps):
        losses[step], gradients = model.loss(*batch(step))
        adam.step(gradients, learning_rate(step, n_steps, peak, warmup, floor))
    return losses


def accuracy(model: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray, targets: np.ndarray) -> float:
    """Share of inputs whose largest logit is the target's.

    Parameters
    ----------
    model : function of inputs -> logits (n, n_classes)
    inputs : ndarray (n, ...)
        Whatever the model takes; its errors are the model's.
    targets : ndarray of int (n,)

    Returns
    -------
    float
        0 to 1.

    Examples
    --------
    >>> accuracy(lambda logits: logits, np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    0.5
    """
    return float((model(inputs).argmax(axis=-1) == targets).mean())


# ---------------------------------------------------------------- two models

def _readout(U, d_model):
    U = float_array("U", U)
    if U.ndim != 2 or len(U) != d_model:
        raise ValueError(f"U must have shape (d_model, n_outputs) with d_model = {d_model}, got {U.shape}")
    return U


class TokenModel:
    """Embedding, blocks, and a linear readout of the last token: (n, T) tokens -> (n, n_classes) logits.

    Parameters
    ----------
    E : array_like (vocabulary, d_model)
    blocks : list of TransformerBlock
    U : array_like (d_model, n_classes)
        Tokens are whole numbers, rows of E.

    Raises
    ------
    TypeError, ValueError
        If E, U or a block is not what it has to be.

    Notes
    -----
    Source: a small model of this course's own, after Vaswani et al. 2017 (arXiv:1706.03762).

    Examples
    --------
    >>> model = TokenModel.random(vocabulary=21, n_classes=10, ffn="relu")
    >>> tokens, targets = starred_digits(5, np.random.default_rng(0))    # (5, 7), (5,)
    >>> model(tokens).shape, model.attention_weights(tokens).shape
    ((5, 10), (5, 1, 7))
    """

    E: np.ndarray
    blocks: list[TransformerBlock]
    U: np.ndarray

    def __init__(self, E: ArrayLike, blocks: Iterable[TransformerBlock], U: ArrayLike) -> None:
        self.E, self.blocks = float_array("E", E), list(blocks)
        if self.E.ndim != 2:
            raise ValueError(f"E must have shape (vocabulary, d_model), got {self.E.shape}")
        if not self.blocks or not all(isinstance(block, TransformerBlock) for block in self.blocks):
            raise TypeError(f"blocks must be a list of at least one TransformerBlock, got {short(self.blocks)}")
        for i, block in enumerate(self.blocks):
            if block.d_model != self.E.shape[1]:
                raise ValueError(f"blocks[{i}] must have d_model = {self.E.shape[1]} like E, got {short(block)}")
        self.U = _readout(U, self.E.shape[1])

    @classmethod
    def random(cls, vocabulary: int, n_classes: int, ffn: str | None, d_model: int = 24, d_ff: int = 96,
               n_heads: int = 1, n_layers: int = 1, norm: Literal["rms", "layer"] | None = None,
               seed: int | np.random.Generator = 0) -> TokenModel:
        """The settings of lesson 08: embeddings N(0, 0.5^2), W_q and W_k scaled by 0.1, no biases.

        ffn is a kind in `ffn.KINDS`, with d_ff as in `ffn.make_ffn`, or None for attention alone; seed is an int or
        a numpy.random.Generator.

        Raises
        ------
        ValueError, TypeError
            For a bad size, kind, norm or seed.

        Notes
        -----
        Source: settings of this course's own.
        """
        rng, d_model = random_generator("seed", seed), positive_int("d_model", d_model)
        vocabulary, n_classes = positive_int("vocabulary", vocabulary), positive_int("n_classes", n_classes)
        E = 0.5 * rng.standard_normal((vocabulary, d_model))              # (vocabulary, d_model)
        blocks = []
        for _ in range(positive_int("n_layers", n_layers)):
            W = rng.standard_normal((4, d_model, d_model)) / np.sqrt(d_model)
            W[:2] *= 0.1
            layer = None if ffn is None else make_ffn(ffn, d_model, d_ff, rng)
            blocks.append(TransformerBlock(W[0], W[1], W[2], W[3], layer, n_heads, norm=norm))
        return cls(E, blocks, random_matrix(rng, d_model, n_classes))

    def parameters(self) -> dict[str, np.ndarray]:
        """All parameters, name -> array: "E", "U", "0.W_q", ..."""
        inner = {f"{i}.{name}": p for i, block in enumerate(self.blocks) for name, p in block.parameters().items()}
        return {"E": self.E, "U": self.U} | inner

    def _forward(self, tokens):
        stream, caches = self.E[tokens], []                               # (n, T, d_model)
        for i, block in enumerate(self.blocks):
            stream, cache = block.forward(stream, last_only=i == len(self.blocks) - 1)
            caches.append(cache)
        return stream[:, -1], caches                                      # (n, d_model)

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """Logits (n, n_classes) for tokens (n, T)."""
        return self._forward(tokens)[0] @ self.U

    def attention_weights(self, tokens: np.ndarray) -> np.ndarray:
        """Attention of the last token in the last block, (n, n_heads, T), for tokens (n, T)."""
        return self._forward(tokens)[1][-1].attention.inner.probabilities[..., -1, :]

    def loss(self, tokens: np.ndarray, targets: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
        """Cross-entropy in nats, and the gradients of every parameter; errors as in `cross_entropy`."""
        last, caches = self._forward(tokens)
        value, dlogits = cross_entropy(last @ self.U, targets)
        gradients = {"U": last.T @ dlogits}
        d = (dlogits @ self.U.T)[:, None]                                 # (n, 1, d_model)
        for i in reversed(range(len(self.blocks))):
            inner = self.blocks[i].gradients(caches[i], d)
            d = inner.pop("x")                                            # (n, T, d_model)
            gradients |= {f"{i}.{name}": g for name, g in inner.items()}
        one_hot = np.zeros((tokens.size, len(self.E)))                    # a matrix product sums by token faster
        one_hot[np.arange(tokens.size), tokens.ravel()] = 1               # than np.add.at
        gradients["E"] = one_hot.T @ d.reshape(tokens.size, -1)
        return value, gradients


class FFNModel:
    """One FFN and a linear readout: vectors (n, d_model) -> (n, n_outputs). No attention, no residual.

    Parameters
    ----------
    ffn : FeedForward or GatedFeedForward
    U : array_like (d_model, n_outputs)
    loss : cross_entropy or mean_squared_error
        Or your own function of (outputs, targets) -> (loss, gradient at the outputs).

    Raises
    ------
    TypeError, ValueError
        If ffn or U is not what it has to be; at a call, as the FFN does.

    Notes
    -----
    Source: a small model of this course's own.

    Examples
    --------
    >>> model = FFNModel.random("swiglu", d_model=8, d_ff=32, n_outputs=4)
    >>> model(np.ones((7, 8))).shape, list(model.parameters())
    ((7, 4), ['U', 'W_gate', 'W_up', 'W_down'])
    """

    ffn: FeedForward | GatedFeedForward
    U: np.ndarray

    def __init__(self, ffn: FeedForward | GatedFeedForward, U: ArrayLike, loss: Loss = cross_entropy) -> None:
        if not isinstance(ffn, (FeedForward, GatedFeedForward)):
            raise TypeError(f"ffn must be a FeedForward or GatedFeedForward, got {short(ffn)}")
        self.ffn, self.U, self._loss = ffn, _readout(U, ffn.d_model), loss

    @classmethod
    def random(cls, kind: str, d_model: int, d_ff: int, n_outputs: int, seed: int | np.random.Generator = 0,
               bias: bool = False, loss: Loss = cross_entropy) -> FFNModel:
        """A random FFN of a kind in `ffn.KINDS` and a readout N(0, 1 / d_model).

        d_ff as in `ffn.make_ffn`; seed is an int or a numpy.random.Generator.

        Raises
        ------
        ValueError, TypeError
            For a bad size, kind or seed.

        Notes
        -----
        Source of the weights as in `FeedForward.random`.
        """
        rng = random_generator("seed", seed)
        n_outputs, ffn = positive_int("n_outputs", n_outputs), make_ffn(kind, d_model, d_ff, rng, bias)
        return cls(ffn, random_matrix(rng, d_model, n_outputs), loss)

    def parameters(self) -> dict[str, np.ndarray]:
        """All parameters, name -> array (not copied): "U" and the FFN's."""
        return {"U": self.U} | self.ffn.parameters()

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Outputs (n, n_outputs) for x (n, d_model)."""
        return self.ffn(x) @ self.U

    def loss(self, x: np.ndarray, targets: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
        """The loss and the gradients of every parameter; errors are those of the loss and of the FFN."""
        trace = self.ffn.trace(x)
        value, dout = self._loss(trace.output @ self.U, targets)
        gradients = self.ffn.backward(trace, dout @ self.U.T)
        del gradients["x"]  # the inputs are not trained
        return value, {"U": trace.output.T @ dout} | gradients


# ---------------------------------------------------------------- tasks

def starred_digits(n: int, rng: np.random.Generator, modulus: int = 10,
                   n_digits: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Sequences such as "3* 1 8* 0 5 5 =" with the answer (3 + 8) mod 10.

    Parameters
    ----------
    n : int
        How many.
    rng : numpy.random.Generator
    modulus, n_digits : int
        Digits are 0 to modulus - 1; two of n_digits are starred.

    Returns
    -------
    tokens, int (n, n_digits + 1)
        Token d is the plain digit d, modulus + d the starred digit, 2 * modulus the "=" sign.
    targets, int (n,)

    Raises
    ------
    ValueError, TypeError
        For a size that makes no sense, or an rng that is no Generator.

    Notes
    -----
    Source: a task of this course's own (lesson 08).

    Examples
    --------
    >>> tokens, targets = starred_digits(1, np.random.default_rng(0))
    >>> tokens.tolist(), targets.tolist()    # 8* 6 5 2 3 0* =
    ([[18, 6, 5, 2, 3, 10, 20]], [8])
    """
    n, modulus, n_digits = (positive_int(name, value) for name, value in
                            (("n", n), ("modulus", modulus), ("n_digits", n_digits)))
    if n_digits < 2:
        raise ValueError(f"n_digits must be at least 2, for two starred digits; got {n_digits}")
    digits = generator("rng", rng).integers(0, modulus, (n, n_digits))                      # (n, n_digits)
    starred = rng.random((n, n_digits)).argsort(axis=1)[:, :2]            # (n, 2) two different places
    targets = np.take_along_axis(digits, starred, axis=1).sum(axis=1) % modulus
    tokens = digits.copy()
    np.put_along_axis(tokens, starred, np.take_along_axis(digits, starred, axis=1) + modulus, axis=1)
    return np.hstack([tokens, np.full((n, 1), 2 * modulus)]), targets


def random_keys(n: int, d_model: int, n_classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """n random keys (n, d_model), each of mean square 1, with random classes (n,) to remember.

    Parameters
    ----------
    n, d_model, n_classes : int
    rng : numpy.random.Generator

    Returns
    -------
    keys, float64 (n, d_model)
    classes, int (n,)
        0 to n_classes - 1.

    Raises
    ------
    ValueError, TypeError
        For a size that makes no sense, or an rng that is no Generator.

    Notes
    -----
    Source: a task of this course's own (lesson 09).

    Examples
    --------
    >>> keys, classes = random_keys(20, 8, 4, np.random.default_rng(0))
    >>> keys.shape, classes.shape, np.allclose((keys**2).mean(axis=1), 1)
    ((20, 8), (20,), True)
    """
    n, d_model, n_classes = (positive_int(name, value) for name, value in
                             (("n", n), ("d_model", d_model), ("n_classes", n_classes)))
    keys = generator("rng", rng).standard_normal((n, d_model))            # (n, d_model)
    keys /= np.sqrt((keys * keys).mean(axis=1, keepdims=True))
    return keys, rng.integers(0, n_classes, n)
