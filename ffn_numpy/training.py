"""Training in float64: two losses, Adam, the loop, two small models and the tasks of lessons 08 and 09."""
import math

import numpy as np

from ._validate import float_array, generator, indices, narrow, number, positive_int, random_generator, short, wide
from .block import TransformerBlock
from .ffn import FeedForward, GatedFeedForward, make_ffn, random_matrix

# ---------------------------------------------------------------- losses: the value, and its gradient

def cross_entropy(logits, targets):
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


def mean_squared_error(y, targets):
    """Mean of (y - target)^2 over all numbers, and its gradient; y and targets have one shape.

    >>> mean_squared_error([[1.0], [3.0]], [[1.0], [1.0]])[0]
    2.0
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
    parameters : dict of name -> ndarray
    betas : (float, float)
        Decay of the mean gradient and of the mean squared gradient, each in [0, 1).
    eps : float

    Notes
    -----
    Source: Kingma and Ba 2015 (arXiv:1412.6980), algorithm 1.
    """

    def __init__(self, parameters, betas=(0.9, 0.99), eps=1e-8):
        try:
            b1, b2 = (number("betas", b, "two numbers in [0, 1)") for b in betas)
        except (TypeError, ValueError):
            raise TypeError(f"betas must be two numbers in [0, 1), got {short(betas)}") from None
        if not (0 <= b1 < 1 and 0 <= b2 < 1):
            raise ValueError(f"betas must be two numbers in [0, 1), got {short(betas)}")
        if not number("eps", eps, "a number that is at least 0") >= 0:
            raise ValueError(f"eps must be a number that is at least 0, got {short(eps)}")
        if not isinstance(parameters, dict) or not all(isinstance(p, np.ndarray) for p in parameters.values()):
            raise TypeError(f"parameters must be a dict of name -> ndarray, got {short(parameters)}")
        self.parameters, self.betas, self.eps, self.t = parameters, (b1, b2), eps, 0
        self.mean = {name: np.zeros_like(p) for name, p in parameters.items()}
        self.square = {name: np.zeros_like(p) for name, p in parameters.items()}

    def step(self, gradients, lr):
        """One update of every parameter; gradients: dict with (at least) the parameters' names."""
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


def learning_rate(step, n_steps, peak, warmup=0, floor=0.0):
    """Linear warm-up to `peak` over `warmup` steps, then a cosine down to floor * peak.

    >>> [round(learning_rate(s, 100, 1.0, warmup=10, floor=0.1), 2) for s in (0, 9, 10, 55, 99)]
    [0.1, 1.0, 1.0, 0.55, 0.1]
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / max(1, n_steps - warmup)
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done)))


def train(model, batch, n_steps, peak, warmup=0, floor=0.05, betas=(0.9, 0.99)):
    """Train `model` in place with Adam; return the loss before every step, (n_steps,).

    Parameters
    ----------
    model : has parameters() and loss(inputs, targets) -> (loss, gradients)
    batch : function of the step -> (inputs, targets)
    n_steps : int
    peak, warmup, floor : the learning rate, as in `learning_rate`
    betas : as in `Adam`
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


def accuracy(model, inputs, targets):
    """Share of inputs whose largest logit is the target's."""
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
    """

    def __init__(self, E, blocks, U):
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
    def random(cls, vocabulary, n_classes, ffn, d_model=24, d_ff=96, n_heads=1, n_layers=1, norm=None, seed=0):
        """The settings of lesson 08: embeddings N(0, 0.5^2), W_q and W_k scaled by 0.1, no biases.

        ffn is a kind in `KINDS`, or None for attention alone.
        """
        rng, d_model = random_generator("seed", seed), positive_int("d_model", d_model)
        vocabulary, n_classes = positive_int("vocabulary", vocabulary), positive_int("n_classes", n_classes)
        E = 0.5 * rng.standard_normal((vocabulary, d_model))              # (vocabulary, d_model)
        blocks = []
        for _ in range(positive_int("n_layers", n_layers)):
            W = rng.standard_normal((4, d_model, d_model)) / np.sqrt(d_model)
            W[:2] *= 0.1
            layer = None if ffn is None else make_ffn(ffn, d_model, d_ff, rng)
            blocks.append(TransformerBlock(*W, layer, n_heads, norm=norm))
        return cls(E, blocks, random_matrix(rng, d_model, n_classes))

    def parameters(self):
        """All parameters, name -> array: "E", "U", "0.W_q", ..."""
        inner = {f"{i}.{name}": p for i, block in enumerate(self.blocks) for name, p in block.parameters().items()}
        return {"E": self.E, "U": self.U} | inner

    def _forward(self, tokens):
        stream, caches = self.E[tokens], []                               # (n, T, d_model)
        for i, block in enumerate(self.blocks):
            stream, cache = block.forward(stream, last_only=i == len(self.blocks) - 1)
            caches.append(cache)
        return stream[:, -1], caches                                      # (n, d_model)

    def __call__(self, tokens):
        """Logits (n, n_classes)."""
        return self._forward(tokens)[0] @ self.U

    def attention_weights(self, tokens):
        """Attention of the last token in the last block, (n, n_heads, T)."""
        return self._forward(tokens)[1][-1].attention.inner.probabilities[..., -1, :]

    def loss(self, tokens, targets):
        """Cross-entropy and the gradients of every parameter."""
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
    """

    def __init__(self, ffn, U, loss=cross_entropy):
        if not isinstance(ffn, (FeedForward, GatedFeedForward)):
            raise TypeError(f"ffn must be a FeedForward or GatedFeedForward, got {short(ffn)}")
        self.ffn, self.U, self._loss = ffn, _readout(U, ffn.d_model), loss

    @classmethod
    def random(cls, kind, d_model, d_ff, n_outputs, seed=0, bias=False, loss=cross_entropy):
        """A random FFN of a kind in `KINDS` and a readout N(0, 1 / d_model)."""
        rng = random_generator("seed", seed)
        n_outputs, ffn = positive_int("n_outputs", n_outputs), make_ffn(kind, d_model, d_ff, rng, bias)
        return cls(ffn, random_matrix(rng, d_model, n_outputs), loss)

    def parameters(self):
        """All parameters, name -> array."""
        return {"U": self.U} | self.ffn.parameters()

    def __call__(self, x):
        """Outputs (n, n_outputs)."""
        return self.ffn(x) @ self.U

    def loss(self, x, targets):
        """The loss and the gradients of every parameter."""
        trace = self.ffn.trace(x)
        value, dout = self._loss(trace.output @ self.U, targets)
        gradients = self.ffn.backward(trace, dout @ self.U.T)
        del gradients["x"]  # the inputs are not trained
        return value, {"U": trace.output.T @ dout} | gradients


# ---------------------------------------------------------------- tasks

def starred_digits(n, rng, modulus=10, n_digits=6):
    """Sequences such as "3* 1 8* 0 5 5 =" with the answer (3 + 8) mod 10.

    Returns tokens (n, n_digits + 1) and targets (n,). Token d is the plain digit d, modulus + d the
    starred digit, 2 * modulus the "=" sign.
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


def random_keys(n, d_model, n_classes, rng):
    """n random keys (n, d_model), each of mean square 1, with random classes (n,) to remember."""
    n, d_model, n_classes = (positive_int(name, value) for name, value in
                             (("n", n), ("d_model", d_model), ("n_classes", n_classes)))
    keys = generator("rng", rng).standard_normal((n, d_model))            # (n, d_model)
    keys /= np.sqrt((keys * keys).mean(axis=1, keepdims=True))
    return keys, rng.integers(0, n_classes, n)
