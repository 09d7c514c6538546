"""FeedForward and GatedFeedForward: lift, activate, (gate,) project down. The heart of the course.

Row-vector convention: each token is a row, weights are stored (in, out), a layer is `x @ W + b`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._validate import (
    float_array,
    float_dtype,
    generator,
    narrow,
    number,
    positive_int,
    random_generator,
    short,
    vectors,
    wide,
)
from .activations import ACTIVATIONS
from .sizing import gated_d_ff
from .trace import Trace

if TYPE_CHECKING:
    from typing import ClassVar

    from numpy.typing import ArrayLike, DTypeLike

    from ._types import Parameter


class Layer:
    """What FFNs, blocks and mixtures share: named parameters, checked whenever they are set, and counted.

    A subclass gives `shapes`, parameter name -> names of its sizes, in the order of its constructor. Weight
    matrices begin with W; anything else may be None.
    """

    d_model: int
    shapes: ClassVar[dict[str, tuple[str, ...]]] = {}

    def _set_sizes(self, name, W):
        """Read the sizes (d_model and d_ff, say) off the first weight matrix."""
        sizes, shape = self.shapes[name], float_array(name, W).shape
        if len(shape) != 2 or 0 in shape or len(set(shape)) > len(set(sizes)):
            raise ValueError(f"{name} must have shape ({', '.join(sizes)}), both at least 1; got {shape}")
        for size, n in dict(zip(sizes, shape)).items():
            setattr(self, size, n)

    def __setattr__(self, name, value):
        """Check a parameter, when it is first set and whenever it is replaced; the sizes stay as built."""
        if name in self.__dict__ and any(name in sizes for sizes in self.shapes.values()):
            raise ValueError(f"{name} was {getattr(self, name)} when this layer was built and cannot become "
                             f"{short(value)}: build another layer")
        if name in self.shapes and (value is not None or name.startswith("W")):
            value, expected = float_array(name, value), tuple(getattr(self, size) for size in self.shapes[name])
            if value.shape != expected:
                sizes = dict.fromkeys(size for sizes in self.shapes.values() for size in sizes)
                fit = " and ".join(f"{size} = {getattr(self, size)}" for size in sizes)
                raise ValueError(f"{name} must have shape {expected} to fit {fit}; got {value.shape}")
        super().__setattr__(name, value)

    def _narrow(self, gradients: dict[str, np.ndarray], x: np.ndarray, dy: np.ndarray) -> dict[str, np.ndarray]:
        """Gradients computed in float32 where x or dy is float16, in the dtype of x, dy and the parameters."""
        if "e" not in x.dtype.char + dy.dtype.char:
            return gradients
        inputs = (x, dy, *self.parameters().values())
        return {name: narrow(g, *inputs) for name, g in gradients.items()}

    def parameters(self) -> dict[str, np.ndarray]:
        """The weights and biases that exist, name -> array (the arrays themselves, not copies)."""
        return {name: p for name in self.shapes if (p := getattr(self, name)) is not None}

    @property
    def n_parameters(self) -> int:
        """How many numbers all parameters hold."""
        return sum(p.size for p in self.parameters().values())


class _FFN(Layer):
    """What the two FFNs share: the activation, and how they describe themselves."""

    d_ff: int
    activation: str

    def __setattr__(self, name, value):
        if name == "activation":
            if not isinstance(value, str) or value not in ACTIVATIONS:
                raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}; got {short(value)}")
            value = str(value)
        super().__setattr__(name, value)

    def __repr__(self):
        dtype = np.result_type(*self.parameters().values())
        return (f"{type(self).__name__}(d_model={self.d_model}, d_ff={self.d_ff}, "
                f"activation={self.activation!r}, {self.n_parameters:,} parameters, {dtype})")

    def _title(self):
        return (f"{type(self).__name__}  {self._formula()}   act = {self.activation}   "
                f"d_model = {self.d_model}   d_ff = {self.d_ff}   {self.n_parameters:,} parameters")

    def _bias(self, name):
        """How formulas write a bias: not at all where there is none."""
        return "" if getattr(self, name) is None else f" + {name}"

    def activate(self, h: ArrayLike) -> np.ndarray:
        """act(h), each number alone: shape (..., d_ff) unchanged."""
        return ACTIVATIONS[self.activation].function(vectors("h", h, self.d_ff, "d_ff"))

    def _affine_back(self, W, b, x, dy):
        """Gradients of x @ W + b for the parameters of these names, over all tokens: x^T dy, and the sum of dy."""
        rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])  # (n_tokens, in), (n_tokens, out)
        gradients = {W: rows.T @ drows}                                         # (in, out)
        if getattr(self, b) is not None:
            gradients[b] = drows.sum(axis=0, dtype=np.float64).astype(drows.dtype)  # (out,) many small terms
        return gradients


class FeedForward(_FFN):
    """The plain FFN, y = act(x W1 + b1) W2 + b2, applied to each token alone.

    Parameters
    ----------
    W1 : array_like (d_model, d_ff)
    b1 : array_like (d_ff,) or None
    W2 : array_like (d_ff, d_model)
    b2 : array_like (d_model,) or None
        float16, float32 or float64 (kept as they are, not copied); integers become float64.
    activation : str
        A name in `ACTIVATIONS`.

    Raises
    ------
    ValueError
        If a shape does not fit or the activation is unknown; at a call, if x is not (..., d_model).
    TypeError
        If a weight or x does not hold real numbers.

    Notes
    -----
    Calls keep the dtype; where weights and x differ, NumPy's promotion decides.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.3, equation 2.

    Examples
    --------
    >>> ffn = FeedForward.random(d_model=8, activation="gelu")
    >>> ffn
    FeedForward(d_model=8, d_ff=32, activation='gelu', 552 parameters, float64)
    >>> print(ffn.trace(np.ones((7, 8))))
    FeedForward  act(x W1 + b1) W2 + b2   act = gelu   d_model = 8   d_ff = 32   552 parameters
      x             (7, 8)
      lift          (7, 8)  -> (7, 32)  x @ W1 + b1
      activate      (7, 32) -> (7, 32)  gelu(lift)
      project_down  (7, 32) -> (7, 8)   activate @ W2 + b2
    """

    shapes = {"W1": ("d_model", "d_ff"), "b1": ("d_ff",), "W2": ("d_ff", "d_model"), "b2": ("d_model",)}
    W1: Parameter[np.ndarray]
    b1: Parameter[np.ndarray | None]
    W2: Parameter[np.ndarray]
    b2: Parameter[np.ndarray | None]

    def __init__(self, W1: ArrayLike, b1: ArrayLike | None, W2: ArrayLike, b2: ArrayLike | None,
                 activation: str = "relu") -> None:
        self._set_sizes("W1", W1)
        self.W1, self.b1, self.W2, self.b2 = W1, b1, W2, b2
        self.activation = activation

    @classmethod
    def random(cls, d_model: int, d_ff: int | None = None, activation: str = "relu", bias: bool = True,
               seed: int | np.random.Generator = 0, dtype: DTypeLike = np.float64) -> FeedForward:
        """A random FFN: weights N(0, 1 / fan_in), biases zero (None with `bias=False`).

        Parameters
        ----------
        d_model : int
        d_ff : int or None
            None takes 4 d_model, the habit since Vaswani et al. 2017.
        activation : str
            A name in `ACTIVATIONS`.
        bias : bool
        seed : int or numpy.random.Generator
            Anything that `np.random.default_rng` takes.
        dtype : float16, float32 or float64

        Raises
        ------
        ValueError, TypeError
            For a size that is no positive integer, an unknown activation, a bad seed or dtype (named).

        Notes
        -----
        1 / fan_in keeps the size of the numbers from layer to layer. Source: LeCun et al. 1998, "Efficient
        BackProp", section 4.6.

        Examples
        --------
        >>> ffn = FeedForward.random(8, bias=False, dtype=np.float32)
        >>> ffn.W1.shape, ffn.W1.dtype.name, ffn.b1
        ((8, 32), 'float32', None)
        """
        d_model = positive_int("d_model", d_model)
        d_ff = 4 * d_model if d_ff is None else positive_int("d_ff", d_ff)
        rng, dtype = random_generator("seed", seed), float_dtype("dtype", dtype)
        W1 = random_matrix(rng, d_model, d_ff, dtype)  # (d_model, d_ff)
        W2 = random_matrix(rng, d_ff, d_model, dtype)  # (d_ff, d_model)
        b1 = np.zeros(d_ff, dtype) if bias else None     # (d_ff,)
        b2 = np.zeros(d_model, dtype) if bias else None  # (d_model,)
        return cls(W1, b1, W2, b2, activation)

    def lift(self, x: ArrayLike) -> np.ndarray:
        """x W1 + b1: (..., d_model) -> (..., d_ff)."""
        return _affine(vectors("x", x, self.d_model, "d_model"), self.W1, self.b1)

    def project_down(self, a: ArrayLike) -> np.ndarray:
        """a W2 + b2: (..., d_ff) -> (..., d_model)."""
        return _affine(vectors("a", a, self.d_ff, "d_ff"), self.W2, self.b2)

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The whole FFN, (..., d_model) -> (..., d_model); keeps nothing."""
        return self.project_down(self.activate(self.lift(x)))

    def trace(self, x: ArrayLike) -> Trace:
        """Run the same stages on (a copy of) x and keep every result, as a `Trace`."""
        x = np.array(vectors("x", x, self.d_model, "d_model"))  # (..., d_model)
        h = self.lift(x)                                        # (..., d_ff)
        a = self.activate(h)                                    # (..., d_ff)
        y = self.project_down(a)                                # (..., d_model)
        return Trace(self._title(), [
            ("x", "", x, ""),
            ("lift", "x", h, "x @ W1" + self._bias("b1")),
            ("activate", "lift", a, f"{self.activation}(lift)"),
            ("project_down", "activate", y, "activate @ W2" + self._bias("b2")),
        ], maker=self)

    def backward(self, trace: Trace, dy: ArrayLike) -> dict[str, np.ndarray]:
        """Gradients of a loss, from the trace of a forward pass and the gradient dy at its output.

        Parameters
        ----------
        trace : Trace
            What this FFN's `trace(x)` returned.
        dy : array_like (..., d_model)
            The gradient of the loss at the output: one number for each number of it.

        Returns
        -------
        dict
            "x" and the name of every parameter -> gradient, in the shape of what it belongs to. Those of the
            parameters are sums over all tokens.

        Raises
        ------
        ValueError, TypeError
            If trace is no Trace or another layer's, or dy does not have the output's shape.

        Notes
        -----
        The chain rule, stage by stage from the output back. Source: Rumelhart, Hinton and Williams 1986,
        Nature 323.

        Examples
        --------
        >>> ffn = FeedForward([[2.0]], None, [[3.0]], None)    # y = 3 relu(2 x)
        >>> gradients = ffn.backward(ffn.trace([[1.0]]), [[1.0]])
        >>> {name: float(gradient.item()) for name, gradient in gradients.items()}
        {'x': 6.0, 'W1': 3.0, 'W2': 2.0}
        """
        dy = check_backward(self, trace, dy)                              # (..., d_model)
        with np.errstate(all="ignore"):
            da = wide(dy) @ self.W2.T                                     # (..., d_ff)
            dh = da * ACTIVATIONS[self.activation].derivative(wide(trace["lift"]))  # (..., d_ff)
            gradients = {"x": dh @ self.W1.T}                             # (..., d_model)
            gradients |= self._affine_back("W1", "b1", trace["x"], dh)
            gradients |= self._affine_back("W2", "b2", trace["activate"], wide(dy))
        return self._narrow(gradients, trace["x"], dy)

    def _formula(self):
        return f"act(x W1{self._bias('b1')}) W2{self._bias('b2')}"


class GatedFeedForward(_FFN):
    """The gated FFN, y = (act(x W_gate) * (x W_up)) W_down: SwiGLU and its family.

    The activation names the family member: silu = SwiGLU, gelu = GEGLU, relu = ReGLU,
    sigmoid = GLU, identity = bilinear. The *gate* branch is the activated one.

    Parameters
    ----------
    W_gate, W_up : array_like (d_model, d_ff)
    W_down : array_like (d_ff, d_model)
    b_gate, b_up : array_like (d_ff,) or None
    b_down : array_like (d_model,) or None
        float16, float32 or float64 (kept as they are, not copied); integers become float64.
    activation : str
        A name in `ACTIVATIONS`.

    Raises
    ------
    ValueError, TypeError
        As `FeedForward` does.

    Notes
    -----
    Source: Shazeer 2020 (arXiv:2002.05202), equations 5 and 6; his W, V, W2 are W_gate, W_up, W_down.

    Examples
    --------
    >>> swiglu = GatedFeedForward.random(d_model=8)
    >>> print(swiglu.trace(np.ones((7, 8))))
    GatedFeedForward  (act(x W_gate) * (x W_up)) W_down   act = silu   d_model = 8   d_ff = 21   504 parameters
      x             (7, 8)
      gate          (7, 8)  -> (7, 21)  x @ W_gate
      lift          (7, 8)  -> (7, 21)  x @ W_up
      activate      (7, 21) -> (7, 21)  silu(gate)
      gated         (7, 21) -> (7, 21)  activate * lift
      project_down  (7, 21) -> (7, 8)   gated @ W_down
    """

    shapes = {"W_gate": ("d_model", "d_ff"), "W_up": ("d_model", "d_ff"), "W_down": ("d_ff", "d_model"),
              "b_gate": ("d_ff",), "b_up": ("d_ff",), "b_down": ("d_model",)}
    W_gate: Parameter[np.ndarray]
    W_up: Parameter[np.ndarray]
    W_down: Parameter[np.ndarray]
    b_gate: Parameter[np.ndarray | None]
    b_up: Parameter[np.ndarray | None]
    b_down: Parameter[np.ndarray | None]

    def __init__(self, W_gate: ArrayLike, W_up: ArrayLike, W_down: ArrayLike, b_gate: ArrayLike | None = None,
                 b_up: ArrayLike | None = None, b_down: ArrayLike | None = None, activation: str = "silu") -> None:
        self._set_sizes("W_gate", W_gate)
        self.W_gate, self.W_up, self.W_down = W_gate, W_up, W_down
        self.b_gate, self.b_up, self.b_down = b_gate, b_up, b_down
        self.activation = activation

    @classmethod
    def random(cls, d_model: int, d_ff: int | None = None, activation: str = "silu", bias: bool = False,
               seed: int | np.random.Generator = 0, dtype: DTypeLike = np.float64) -> GatedFeedForward:
        """A random gated FFN: weights N(0, 1 / fan_in), biases None (zero with `bias=True`).

        d_ff None takes `gated_d_ff(d_model)`: about as many parameters as a plain FFN with 4 d_model. All other
        arguments, errors and the source as in `FeedForward.random`.

        Examples
        --------
        >>> GatedFeedForward.random(768).d_ff
        2048
        """
        d_model = positive_int("d_model", d_model)
        d_ff = gated_d_ff(d_model) if d_ff is None else positive_int("d_ff", d_ff)
        rng, dtype = random_generator("seed", seed), float_dtype("dtype", dtype)
        W_gate = random_matrix(rng, d_model, d_ff, dtype)  # (d_model, d_ff)
        W_up = random_matrix(rng, d_model, d_ff, dtype)    # (d_model, d_ff)
        W_down = random_matrix(rng, d_ff, d_model, dtype)  # (d_ff, d_model)
        b_gate, b_up, b_down = (np.zeros(n, dtype) if bias else None for n in (d_ff, d_ff, d_model))
        return cls(W_gate, W_up, W_down, b_gate, b_up, b_down, activation)

    def gate(self, x: ArrayLike) -> np.ndarray:
        """x W_gate + b_gate: (..., d_model) -> (..., d_ff)."""
        return _affine(vectors("x", x, self.d_model, "d_model"), self.W_gate, self.b_gate)

    def lift(self, x: ArrayLike) -> np.ndarray:
        """x W_up + b_up: (..., d_model) -> (..., d_ff)."""
        return _affine(vectors("x", x, self.d_model, "d_model"), self.W_up, self.b_up)

    def gated(self, a: ArrayLike, u: ArrayLike) -> np.ndarray:
        """a * u, number by number: (..., d_ff) and (..., d_ff) -> (..., d_ff)."""
        a, u = vectors("a", a, self.d_ff, "d_ff"), vectors("u", u, self.d_ff, "d_ff")
        if a.shape != u.shape:
            raise ValueError(f"a and u must have the same shape, got {a.shape} and {u.shape}")
        with np.errstate(all="ignore"):
            return a * u

    def project_down(self, a: ArrayLike) -> np.ndarray:
        """a W_down + b_down: (..., d_ff) -> (..., d_model)."""
        return _affine(vectors("a", a, self.d_ff, "d_ff"), self.W_down, self.b_down)

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The whole FFN, (..., d_model) -> (..., d_model); keeps nothing."""
        return self.project_down(self.gated(self.activate(self.gate(x)), self.lift(x)))

    def trace(self, x: ArrayLike) -> Trace:
        """Run the same stages on (a copy of) x and keep every result, as a `Trace`."""
        x = np.array(vectors("x", x, self.d_model, "d_model"))  # (..., d_model)
        g = self.gate(x)                                        # (..., d_ff)
        u = self.lift(x)                                        # (..., d_ff)
        a = self.activate(g)                                    # (..., d_ff)
        p = self.gated(a, u)                                    # (..., d_ff)
        y = self.project_down(p)                                # (..., d_model)
        return Trace(self._title(), [
            ("x", "", x, ""),
            ("gate", "x", g, "x @ W_gate" + self._bias("b_gate")),
            ("lift", "x", u, "x @ W_up" + self._bias("b_up")),
            ("activate", "gate", a, f"{self.activation}(gate)"),
            ("gated", "activate", p, "activate * lift"),
            ("project_down", "gated", y, "gated @ W_down" + self._bias("b_down")),
        ], maker=self)

    def backward(self, trace: Trace, dy: ArrayLike) -> dict[str, np.ndarray]:
        """Gradients of a loss: arguments, result, errors and source as in `FeedForward.backward`."""
        dy = check_backward(self, trace, dy)                     # (..., d_model)
        with np.errstate(all="ignore"):
            dp = wide(dy) @ self.W_down.T                        # (..., d_ff)
            du = dp * trace["activate"]                          # (..., d_ff)
            slope = ACTIVATIONS[self.activation].derivative(wide(trace["gate"]))  # (..., d_ff)
            dg = dp * trace["lift"] * slope                      # (..., d_ff)
            gradients = {"x": dg @ self.W_gate.T + du @ self.W_up.T}  # (..., d_model)
            gradients |= self._affine_back("W_gate", "b_gate", trace["x"], dg)
            gradients |= self._affine_back("W_up", "b_up", trace["x"], du)
            gradients |= self._affine_back("W_down", "b_down", trace["gated"], wide(dy))
        return self._narrow(gradients, trace["x"], dy)

    def _formula(self):
        gate, up, down = (self._bias(name) for name in ("b_gate", "b_up", "b_down"))
        return f"(act(x W_gate{gate}) * (x W_up{up})) W_down{down}"


# Kinds of FFN by name: class and activation. The gated ones are called as in Shazeer 2020.
KINDS: dict[str, tuple[type[FeedForward | GatedFeedForward], str]] = {
    "linear": (FeedForward, "identity"), "relu": (FeedForward, "relu"), "gelu": (FeedForward, "gelu"),
    "silu": (FeedForward, "silu"), "glu": (GatedFeedForward, "sigmoid"), "bilinear": (GatedFeedForward, "identity"),
    "reglu": (GatedFeedForward, "relu"), "geglu": (GatedFeedForward, "gelu"), "swiglu": (GatedFeedForward, "silu"),
}


def make_ffn(kind: str, d_model: int, d_ff: int | None = None, seed: int | np.random.Generator = 0,
             bias: bool | None = False, dtype: DTypeLike = np.float64) -> FeedForward | GatedFeedForward:
    """A random FFN of a kind in `KINDS`, or a plain one with any activation in `ACTIVATIONS`.

    Parameters
    ----------
    kind : str
    d_model : int
    d_ff : int or None
        The width of a plain FFN. Gated kinds get 2/3 of it, which is about equal parameters. None takes
        each class's own usual width.
    seed, dtype : as in `FeedForward.random`
    bias : bool or None
        None does as each class's `random` does: plain FFNs have biases, gated ones none.

    Raises
    ------
    ValueError, TypeError
        For an unknown kind (the known ones are listed) or a bad size, seed or dtype (named).

    Notes
    -----
    Weights as in `FeedForward.random`. Source of the gated kinds and of the 2/3: Shazeer 2020 (arXiv:2002.05202),
    equations 5 and 6, section 2.

    Examples
    --------
    >>> make_ffn("relu", 12, 48).n_parameters, make_ffn("swiglu", 12, 48).n_parameters
    (1152, 1152)
    """
    if not isinstance(kind, str) or kind not in KINDS | ACTIVATIONS:
        raise ValueError(f"kind must be one of {', '.join(KINDS | ACTIVATIONS)}; got {short(kind)}")
    cls, activation = KINDS.get(kind, (FeedForward, kind))
    if d_ff is not None and cls is GatedFeedForward:
        d_ff = (2 * positive_int("d_ff", d_ff) + 1) // 3  # rounded, in whole numbers
    bias = cls is FeedForward if bias is None else bias
    return cls.random(d_model, d_ff, activation, bias, seed, dtype)


def dropout(x: ArrayLike, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Inverted dropout: each number is zeroed with probability `rate`, the others grow by 1 / (1 - rate).

    Parameters
    ----------
    x : array_like, any shape
    rate : float
        A probability, 0 <= rate < 1; 0 returns x itself.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, same shape and dtype as x; its expected value is x.

    Raises
    ------
    ValueError, TypeError
        If x does not hold real numbers, rate is not a number in [0, 1), or rng is not a Generator.

    Notes
    -----
    Source: Srivastava et al. 2014, Journal of Machine Learning Research 15.

    Examples
    --------
    >>> dropout(np.ones(8), 0.5, np.random.default_rng(0)).tolist()
    [2.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]
    """
    x = float_array("x", x)
    if not 0 <= number("rate", rate, "a number with 0 <= rate < 1") < 1:
        raise ValueError(f"rate must be a number with 0 <= rate < 1, got {short(rate)}")
    generator("rng", rng)
    if rate == 0:
        return x
    keep = rng.random(x.shape) >= rate
    with np.errstate(all="ignore"):
        return narrow(np.where(keep, wide(x) / (1 - rate), 0), x)


def check_backward(layer: Layer, trace: Trace, dy: ArrayLike) -> np.ndarray:
    """dy as an array, once the trace is known to be of this layer and dy to fit its output."""
    if not isinstance(trace, Trace):
        raise TypeError(f"trace must be what trace(x) returned, got {type(trace).__name__}")
    if trace.maker is not layer:
        raise ValueError(f"trace was made by another layer, {short(trace.maker)}; it must be a trace of this one, "
                         f"{short(layer)}")
    dy = float_array("dy", dy)
    if dy.shape != trace.output.shape:
        raise ValueError(f"dy must have the output's shape {trace.output.shape}, got {dy.shape}")
    return dy


def _affine(x, W, b):
    """x @ W + b, rounded once to float16 where that is due; quiet about inf and NaN in x."""
    with np.errstate(all="ignore"):
        y = wide(x) @ W  # (..., out)
        if b is not None:
            y = np.add(y, b, out=y if np.can_cast(b.dtype, y.dtype) else None)  # in place, if no digit is lost
    return narrow(y, x, W, *([] if b is None else [b])) if x.dtype.char == "e" else y


def random_matrix(rng: np.random.Generator, fan_in: int, fan_out: int, dtype: DTypeLike = np.float64) -> np.ndarray:
    """N(0, 1 / fan_in) weights, (fan_in, fan_out)."""
    with np.errstate(all="ignore"):  # float16 may underflow
        return (rng.standard_normal((fan_in, fan_out)) / np.sqrt(fan_in)).astype(dtype)
