"""Activations against their definitions (`math`, finite differences), limits, dtypes and bad input."""
import math
import warnings

import numpy as np
import pytest
from errors import REAL, assert_error
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ffn_numpy as F

NAMES = list(F.ACTIVATIONS)


def by_definition(name, v):
    """The activation of one Python float, written from the paper's formula with `math` alone."""
    sigma = lambda u: 1 / (1 + math.exp(-u)) if u > -700 else 0.0  # noqa: E731
    return {
        "relu": lambda: max(0.0, v),
        "relu2": lambda: max(0.0, v) ** 2,
        "gelu": lambda: v * 0.5 * math.erfc(-v / math.sqrt(2)),
        "gelu_tanh": lambda: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
        "quick_gelu": lambda: v * sigma(1.702 * v),
        "silu": lambda: v * sigma(v),
        "sigmoid": lambda: sigma(v),
        "identity": lambda: v,
    }[{"swish": "silu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}.get(name, name)]()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-14), (np.float32, 1e-6), (np.float16, 1e-3)])
def test_value_is_the_definition(name, dtype, tolerance):
    x = np.linspace(-30, 30, 4001).astype(dtype)
    expected = np.array([by_definition(name, v) for v in x.tolist()])
    y = F.ACTIVATIONS[name].function(x)
    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(float), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_exact_gelu_has_relative_accuracy_in_the_left_tail(dtype, tolerance):
    x = np.linspace(-8, 8, 20_001).astype(dtype)
    x = x[x != 0]
    expected = np.array([by_definition("gelu", v) for v in x.tolist()])
    assert (np.abs(F.gelu(x) - expected) / np.abs(expected)).max() < tolerance


def test_exact_gelu_far_tail_down_to_the_smallest_floats():
    x = np.linspace(-37.5, -8, 500)
    expected = np.array([by_definition("gelu", v) for v in x.tolist()])
    np.testing.assert_allclose(F.gelu(x), expected, rtol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_derivative_is_the_limit_of_differences(name):
    x = np.linspace(-9, 9, 2000)  # 0, where ReLU has no derivative, is not among them
    e = 1e-3  # fifth-order differences: error about e^4 = 1e-12 for smooth functions
    f, df = F.ACTIVATIONS[name]
    if name == "relu":
        e = 1e-4
    central = (8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / (12 * e)
    np.testing.assert_allclose(df(x), central, rtol=0, atol=1e-10)
    d32 = df(x.astype(np.float32))
    assert d32.dtype == np.float32
    np.testing.assert_allclose(d32, df(x.astype(np.float32).astype(float)), rtol=0, atol=1e-5)


def test_relu_derivative_at_zero_is_zero():
    assert F.ACTIVATIONS["relu"].derivative(np.array([0.0, -0.0])).tolist() == [0, 0]


def test_relu2_at_the_limits():
    for dtype in (np.float16, np.float32, np.float64):
        x = np.array([-np.inf, np.inf, np.nan, np.finfo(dtype).max], dtype)
        with np.errstate(all="raise"):
            y, dy = F.relu2(x), F.ACTIVATIONS["relu2"].derivative(x)
        np.testing.assert_array_equal(y, [0, np.inf, np.nan, np.inf])
        np.testing.assert_array_equal(dy, [0, np.inf, np.nan, np.inf])


LIMITS = {  # at -inf and +inf: the function, then the derivative
    "relu": (0, np.inf, 0, 1), "gelu": (0, np.inf, 0, 1), "gelu_tanh": (0, np.inf, 0, 1),
    "quick_gelu": (0, np.inf, 0, 1), "silu": (0, np.inf, 0, 1), "sigmoid": (0, 1, 0, 0),
    "identity": (-np.inf, np.inf, 1, 1),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_limits_nan_and_no_floating_point_flag(name, dtype):
    huge = np.finfo(dtype).max
    x = np.array([-np.inf, np.inf, np.nan, -huge, huge], dtype)
    with np.errstate(all="raise"):  # not even a flag that the user asked to see
        y, dy = F.ACTIVATIONS[name].function(x), F.ACTIVATIONS[name].derivative(x)
    low, high, dlow, dhigh = LIMITS[name]
    assert y[0] == low and y[1] == high and np.isnan(y[2])
    assert dy[0] == dlow and dy[1] == dhigh and np.isnan(dy[2])
    assert y[3] == (-huge if name == "identity" else 0) and y[4] == (1 if name == "sigmoid" else huge)
    assert dy[3] == dlow and dy[4] == dhigh


@given(hnp.arrays(st.sampled_from([np.float16, np.float32, np.float64]), hnp.array_shapes(min_dims=0, max_side=5),
                  elements=st.floats(width=16)), st.sampled_from(NAMES))
def test_shape_dtype_and_input_kept(x, name):
    before = x.copy()
    for f in F.ACTIVATIONS[name]:
        y = f(x)
        assert y.shape == x.shape and y.dtype == x.dtype and not np.shares_memory(y, x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", NAMES)
def test_large_and_strided_arrays_equal_their_pieces(name):
    x = np.random.default_rng(0).normal(size=(300, 401)).astype(np.float32).T[::2]  # several blocks
    y = F.ACTIVATIONS[name].function(x)
    for i in (0, 77, 200):
        np.testing.assert_allclose(y[i], F.ACTIVATIONS[name].function(x[i].copy()), rtol=1e-6, atol=1e-30)


def test_integers_lists_scalars_and_empty():
    assert F.relu([[1, -2], [3, -4]]).tolist() == [[1, 0], [3, 0]]
    assert F.silu(np.arange(3)).dtype == np.float64 and F.relu(True) == 1.0
    assert F.gelu(1.0) == pytest.approx(by_definition("gelu", 1.0), rel=1e-14)
    assert F.sigmoid(np.empty((0, 8), np.float32)).shape == (0, 8)


@given(st.floats(-30, 30))
def test_identities(v):
    assert F.gelu(v) - F.gelu(-v) == pytest.approx(v, abs=1e-13)
    assert F.silu(v) - F.silu(-v) == pytest.approx(v, abs=1e-13)
    assert F.sigmoid(v) + F.sigmoid(-v) == pytest.approx(1, abs=1e-15)
    assert F.silu(v) == pytest.approx(0.5 * v * (1 + math.tanh(v / 2)), abs=1e-13)
    assert abs(F.gelu(v) - F.gelu(v, approximate="tanh")) < 4.8e-4
    assert abs(F.gelu(v) - F.quick_gelu(v)) < 0.0204


def test_minima():
    x = np.linspace(-3, 0, 300_001)
    for f, low, where in ((F.gelu, -0.170, -0.752), (F.silu, -0.278, -1.278)):
        y = f(x)
        assert y.min() == pytest.approx(low, abs=5e-4) and x[y.argmin()] == pytest.approx(where, abs=5e-4)


@pytest.mark.parametrize("bad, error, says", [
    (None, TypeError, f"x {REAL} None"), ("abc", TypeError, f"x {REAL} a str of dtype <U3"),
    (1j, TypeError, f"x {REAL} a complex of dtype complex128"),
    ({"a": 1}, TypeError, f"x {REAL} a dict of dtype object"),
    (np.array([1, None]), TypeError, f"x {REAL} a ndarray of dtype object"),
    ([[1, 2], [3]], ValueError, "x must be an array of numbers, but its rows have different lengths (a ragged list)"),
    (np.array(["2020"], "M8[Y]"), TypeError, f"x {REAL} a ndarray of dtype datetime64[Y]"),
    (np.ones(2, np.longdouble), TypeError, f"x {REAL} a ndarray of dtype {np.dtype(np.longdouble)}"),
])
@pytest.mark.parametrize("name", LIMITS)
def test_bad_input_is_named(name, bad, error, says):
    for f in F.ACTIVATIONS[name]:
        assert_error(lambda f=f: f(bad), error, says)


@pytest.mark.parametrize("approximate, came", [
    ("exact", "'exact'"), (None, "None"), (1, "1"), (True, "True"), (["tanh"], "['tanh']"), (b"tanh", "b'tanh'"),
    (np.array("tanh"), "array('tanh', dtype='<U4')"),
    (np.array(["none", "tanh"]), "array(['none', 'tanh'], dtype='<U4')"), ("n" * 99, "'" + "n" * 56 + "..."),
])
def test_unknown_approximate(approximate, came):
    assert_error(lambda: F.gelu(1.0, approximate=approximate), ValueError,
                 f"approximate must be 'none' or 'tanh', got {came}")


def test_approximate_chooses_the_formula():
    x = np.linspace(-5, 5, 101)
    np.testing.assert_array_equal(F.gelu(x), F.gelu(x, "none"))
    np.testing.assert_array_equal(F.gelu(x), F.ACTIVATIONS["gelu"].function(x))
    np.testing.assert_array_equal(F.gelu(x, np.str_("tanh")), F.ACTIVATIONS["gelu_tanh"].function(x))
    assert (F.gelu(x) != F.gelu(x, "tanh")).any()


def test_names_and_aliases():
    design = ("relu", "relu2", "gelu", "gelu_tanh", "quick_gelu", "silu", "sigmoid", "identity")
    assert {*design, "swish", "gelu_new", "gelu_pytorch_tanh"} <= set(F.ACTIVATIONS)
    assert F.ACTIVATIONS["swish"] is F.ACTIVATIONS["silu"]
    assert F.ACTIVATIONS["gelu_new"] is F.ACTIVATIONS["gelu_pytorch_tanh"] is F.ACTIVATIONS["gelu_tanh"]
    for name in LIMITS:  # what help() shows
        function, derivative = F.ACTIVATIONS[name]
        assert function.__name__ == name and derivative.__name__ == f"{name}_derivative"
        assert derivative.__doc__ == f"Derivative of `{name}`, elementwise, same shape and dtype as x."


def test_running_example_counts():
    np.random.seed(42)
    x, W1, b1 = np.random.randn(7, 8), np.random.randn(8, 32), np.random.randn(32)
    h = x @ W1 + b1  # (7, 32)
    assert (h < 0).sum() == 100 and (F.relu(h) == 0).sum() == 100
    for f in (F.gelu, F.silu):
        assert (f(h) < 0).sum() == 100 and not (f(h) == 0).any()
    assert (F.gelu(h, approximate="tanh") < 0).sum() == 96


def test_warnings_would_be_seen():
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn"):
        warnings.simplefilter("always")
        for activation in F.ACTIVATIONS.values():
            for f in activation:
                f(np.array([1e300, -1e300, -800.0, 1e-320]))
    assert not seen
