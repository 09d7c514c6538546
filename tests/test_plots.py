"""Figures are tested on their data: bars, lines, rectangles and labels, not pixels."""
import subprocess
import sys
from itertools import combinations

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402
from errors import ACTIVATION_NAMES, REAL, assert_error  # noqa: E402

import ffn_numpy as F  # noqa: E402
from ffn_numpy import plots  # noqa: E402

X = np.random.default_rng(0).normal(size=(7, 8))


@pytest.fixture(autouse=True)
def fresh_figures():
    with matplotlib.rc_context():
        yield
    plt.close("all")


def test_importing_the_package_does_not_import_matplotlib():
    code = "import sys, ffn_numpy; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("draw", [
    lambda ax: plots.shape_ledger({"x": (7, 8)}, ax=ax), lambda ax: plots.activation_curves("relu", ax=ax),
    lambda ax: plots.distribution({"x": X}, ax=ax), lambda ax: plots.gate_heatmap(X, X, X, ax=ax),
])
def test_every_function_draws_into_the_given_axes_and_does_not_show(draw, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("plots must not call plt.show()"))
    ax = plt.figure().add_subplot()
    assert draw(ax) is ax and len(plt.get_fignums()) == 1
    assert draw(None).figure is not ax.figure


def test_ledger_is_to_scale():
    ax = plots.shape_ledger(F.FeedForward.random(8).trace(X), mark=3)
    boxes, marks = ax.patches[::2], ax.patches[1::2]
    assert ax.get_aspect() == 1  # a cell is square
    assert [(b.get_width(), b.get_height()) for b in boxes] == [(8, 7), (32, 7), (32, 7), (8, 7)]
    for box, mark in zip(boxes, marks):  # token 3, counted from the top
        assert mark.get_height() == 1 and mark.get_width() == box.get_width()
        assert mark.get_y() == pytest.approx(box.get_y() + 7 - 1 - 3)
    words = [t.get_text() for t in ax.texts]
    assert words[:6] == ["x", "(7, 8)", "lift", "(7, 32)", "activate", "(7, 32)"]
    for first, second in zip(boxes, boxes[1:]):
        assert first.get_x() + first.get_width() < second.get_x()


def test_gated_ledger_has_two_branches():
    ax = plots.shape_ledger(F.GatedFeedForward.random(8).trace(X))
    x, gate, lift, activate, gated, down = ax.patches
    assert gate.get_x() == lift.get_x() and gate.get_y() > x.get_y() > lift.get_y()
    assert activate.get_y() == gate.get_y() and gated.get_y() == down.get_y() == x.get_y()
    assert [a.get_text() for a in ax.texts].count("") == 6  # arrows


def test_ledger_of_batches_and_single_tokens_and_bad_mark():
    ax = plots.shape_ledger(F.FeedForward.random(8).trace(np.ones((2, 7, 8))))
    assert ax.patches[0].get_height() == 7 and "(2, 7, 8)" in [t.get_text() for t in ax.texts]
    assert plots.shape_ledger(F.FeedForward.random(8).trace(np.ones(8)), mark=0).patches[0].get_height() == 1
    wide = plots.shape_ledger({"x": (39, 576), "lift": (39, 1536)})  # too many columns to count
    assert wide.get_aspect() == "auto" and [p.get_width() for p in wide.patches] == [576, 1536]


def test_ledger_arrows_say_what_is_done():
    plain = plots.shape_ledger(F.FeedForward.random(8).trace(X), highlight="activate")
    words = [t.get_text() for t in plain.texts if t.get_text()]
    assert words[-3:] == ["@ W1 + b1", "act", "@ W2 + b2"]
    assert [t.get_fontweight() for t in plain.texts if t.get_text() in words[-3:]] == ["normal", "bold", "normal"]
    gated = plots.shape_ledger(F.GatedFeedForward.random(8).trace(X))
    words = [t.get_text() for t in gated.texts if t.get_text()]
    assert words[-6:] == ["@ W_gate", "@ W_up", "act", "×", "×", "@ W_down"]


def test_curves_are_the_functions():
    ax = plots.activation_curves(["relu", "silu"], limits=(-2, 2))
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    for name in ("relu", "silu"):
        x, y = lines[name].get_data()
        np.testing.assert_allclose(y, F.ACTIVATIONS[name].function(x))
    assert lines["relu"].get_linestyle() != lines["silu"].get_linestyle()
    slope = plots.activation_curves("gelu", derivative=True).lines[-1]
    np.testing.assert_allclose(slope.get_ydata(), F.ACTIVATIONS["gelu"].derivative(slope.get_xdata()))


def bar_heights(patch):
    """Heights of a step histogram, bin by bin."""
    return patch.get_xy()[1:-1:2, 1]


def test_distribution_shows_zeros_apart_and_sums_to_one():
    h = np.random.default_rng(1).normal(size=(7, 32))
    a = F.relu(h)
    ax = plots.distribution({"lift": h, "activate": a}, bins=20)
    outlines = [p for p in ax.patches if not p.get_fill()]
    zeros = (a == 0).mean()
    assert bar_heights(outlines[0]).sum() == pytest.approx(1)
    assert bar_heights(outlines[1]).sum() == pytest.approx(1 - zeros)
    strip = ax.child_axes[0]
    assert [b.get_height() for b in strip.patches] == pytest.approx([0, zeros])
    assert strip.get_title() == "exactly 0" and f"{100 * zeros:.0f} %" in [t.get_text() for t in strip.texts]
    assert [t.get_text() for t in strip.get_xticklabels()] == ["lift", "activate"]
    assert strip.get_ylim() == ax.get_ylim() and ax.get_ylim()[1] > zeros  # one scale
    assert 0 in outlines[1].get_xy()[:, 0]  # a bin edge: no bar mixes the signs
    assert outlines[0].get_edgecolor() != outlines[1].get_edgecolor()
    assert outlines[0].get_linestyle() != outlines[1].get_linestyle()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["lift", "activate"]


def test_distribution_without_zeros_has_no_strip_and_counts_outliers():
    ax = plots.distribution({"x": np.array([-100.0, 0.5, 100.0])}, limits=(-1, 1), bins=4, log=True)
    assert not ax.child_axes and ax.get_yscale() == "log"
    assert bar_heights(ax.patches[1]) == pytest.approx([1 / 3, 0, 0, 2 / 3], abs=1e-9)


def test_gate_heatmap_holds_the_three_matrices():
    t = F.GatedFeedForward.random(8).trace(X)
    ax = plots.gate_heatmap(t["activate"], t["lift"], t["gated"], mark=3)
    image = ax.images[0].get_array()
    np.testing.assert_array_equal(image[:, :21], t["activate"])
    np.testing.assert_array_equal(image[:, -21:], t["gated"])
    minus = sum(text.get_text() == "\N{MINUS SIGN}" for text in ax.texts)
    assert minus == sum((t[s] < 0).sum() for s in ("activate", "lift", "gated"))
    low, high = ax.images[0].get_clim()
    assert low == -high and len([p for p in ax.patches if p.get_height() == 1]) == 3


DICT = "arrays must be a dict of label -> array, not empty; got"
FINITE, ONE_SHAPE = "arrays['x'] must hold finite values, got shape", "must be matrices of one shape, got"
ORDERED, TWO = "limits must be finite with low < high, got", "limits must be two numbers (low, high), got"
MARK, NOT_EMPTY = "mark must be a token, 0 to 6, got", "shapes must name at least one array that is not empty, got"
CURVES = f"names must be one or more of {ACTIVATION_NAMES}; got"
BOTH = (lambda **k: plots.shape_ledger({"x": (9, 8), "y": (7, 8)}, **k), lambda **k: plots.gate_heatmap(X, X, X, **k))


@pytest.mark.parametrize("call, error, says", [
    (lambda: plots.distribution({}), TypeError, f"{DICT} {{}}"),
    (lambda: plots.distribution([1.0]), TypeError, f"{DICT} [1.0]"),
    (lambda: plots.distribution({"x": []}), ValueError, f"{FINITE} (0,) with 0 NaN or inf"),
    (lambda: plots.distribution({"x": [[1, np.nan, np.inf]]}), ValueError, f"{FINITE} (1, 3) with 2 NaN or inf"),
    (lambda: plots.distribution({"y": X, "x": "abc"}), TypeError, f"arrays['x'] {REAL} a str of dtype <U3"),
    (lambda: plots.distribution({"x": X}, bins=0), ValueError, "bins must be a positive integer, got 0"),
    (lambda: plots.distribution({"x": X}, bins=2.5), TypeError, "bins must be a positive integer, got 2.5"),
    (lambda: plots.distribution({"x": X}, limits=(1, 1)), ValueError, f"{ORDERED} (1, 1)"),
    (lambda: plots.distribution({"x": X}, limits=(0, np.inf)), ValueError, f"{ORDERED} (0, inf)"),
    (lambda: plots.distribution({"x": X}, limits=3), ValueError, f"{TWO} 3"),
    (lambda: plots.distribution({"x": X}, limits=(1, 2, 3)), ValueError, f"{TWO} (1, 2, 3)"),
    (lambda: plots.distribution({"x": X}, limits="ab"), ValueError, f"{TWO} 'ab'"),
    (lambda: plots.gate_heatmap(X, X, X[:3]), ValueError,
     f"gate, value and product {ONE_SHAPE} [(7, 8), (7, 8), (3, 8)]"),
    (lambda: plots.gate_heatmap(X[0], X[0], X[0]), ValueError,
     f"gate, value and product {ONE_SHAPE} [(8,), (8,), (8,)]"),
    (lambda: plots.gate_heatmap(X, None, X), TypeError, f"value {REAL} None"),
    (lambda: plots.gate_heatmap(X, X, X * np.nan), ValueError,
     "gate, value and product must hold finite numbers, got shape (7, 8)"),
    (lambda: plots.gate_heatmap(*[X[:, :0]] * 3), ValueError,
     "gate, value and product must hold finite numbers, got shape (7, 0)"),
    *[(lambda draw=draw, mark=mark: draw(mark=mark), ValueError, f"{MARK} {mark!r}")
      for draw in BOTH for mark in (7, -1, 1.5, True, "3")],
    (lambda: plots.shape_ledger({"x": (7, 8)}, highlight="y"), ValueError, "highlight must be one of x; got 'y'"),
    (lambda: plots.shape_ledger({}), ValueError, f"{NOT_EMPTY} {{}}"),
    (lambda: plots.shape_ledger({"x": ()}), ValueError, f"{NOT_EMPTY} {{'x': ()}}"),
    (lambda: plots.shape_ledger({"x": (7, 8), "y": (0, 8)}), ValueError, f"{NOT_EMPTY} {{'x': (7, 8), 'y': (0, 8)}}"),
    (lambda: plots.shape_ledger(None), TypeError, "shapes must be a Trace or a dict of stage name -> shape, got None"),
    (lambda: plots.activation_curves(["relu", "tanh"]), ValueError, f"{CURVES} ['relu', 'tanh']"),
    (lambda: plots.activation_curves([]), ValueError, f"{CURVES} []"),
    (lambda: plots.activation_curves(None), ValueError, f"{CURVES} None"),
    (lambda: plots.activation_curves([["relu"]]), ValueError, f"{CURVES} [['relu']]"),
    (lambda: plots.activation_curves("relu", limits=(2, -2)), ValueError, f"{ORDERED} (2, -2)"),
])
def test_bad_arguments(call, error, says):
    assert_error(call, error, says)
    assert not plt.get_fignums()  # no empty figure stays behind


def test_many_labels_share_the_colours():
    ax = plots.distribution({f"a{i}": X for i in range(8)})
    assert len(ax.get_legend().get_texts()) == 8


def linear_rgb(color):
    rgb = np.array([int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB (D65) of linear RGB: equal distances look about equally different."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = to_xyz @ np.clip(rgb, 0, 1) / to_xyz.sum(axis=1)
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira and Fernandes 2009, severity 1: what protanopes, deuteranopes and tritanopes see (linear RGB).
COLOUR_BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("kind", COLOUR_BLIND)
def test_stage_colors_can_be_told_apart_by_colour_blind_readers(kind):
    """2.3 is a just noticeable difference; every pair of stages keeps at least 15."""
    seen = [lab(COLOUR_BLIND[kind] @ linear_rgb(color)) for color in plots.STAGE_COLORS.values()]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


def test_curves_differ_in_dashes_too():
    assert len(set(plots.LINE_STYLES)) == len(plots.LINE_STYLES) >= len(plots.CURVE_COLORS)


def test_stage_colors_can_be_told_apart_in_grey():
    """The pairs that share axes differ in luminance (WCAG relative luminance), not only in hue."""
    grey = {name: np.array([0.2126, 0.7152, 0.0722]) @ linear_rgb(color) for name, color in plots.STAGE_COLORS.items()}
    for a, b in (("lift", "activate"), ("x", "lift"), ("x", "project_down"), ("lift", "gated"), ("gate", "lift"),
                 ("gate", "activate")):
        lighter, darker = max(grey[a], grey[b]), min(grey[a], grey[b])
        assert (lighter + 0.05) / (darker + 0.05) > 1.2, (a, b)


def test_course_style_is_set():
    plots.use_course_style()
    assert plt.rcParams["figure.dpi"] == 100 and not plt.rcParams["axes.spines.top"]
