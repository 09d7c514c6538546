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
GRID = [2, 0, 1, 0, 1, 2], [5, 5, 5, 3, 3, 3], [0, 1, 2, 3, 4, -1]  # a, b and a value for each pair, in no order


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
    lambda ax: plots.computed_over_wanted([0, 1], [0, 1], [0, 2], ax=ax),
    lambda ax: plots.value_map(*GRID, limits=(0, 4), ax=ax),
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


# ---------------------------------------------------------------- everything that a figure says, and where it says it

def boxes(ax):
    """Name -> (left, bottom, width, height) of every array of a ledger."""
    names = [t.get_text() for t in ax.texts[:2 * len(ax.patches):2]]
    return dict(zip(names, (p.get_bbox().bounds for p in ax.patches)))


def arrows(ax):
    """((start, end), label, where the label is, its offset in points, its ha and va, the line's width)."""
    texts = [t for t in ax.texts]
    for arrow, label in zip(texts, texts[1:]):
        if arrow.get_text() == "" and arrow.arrow_patch is not None:
            yield ((arrow.xyann, arrow.xy), label.get_text(), label.xy, label.xyann,
                   (label.get_ha(), label.get_va()), arrow.arrow_patch.get_linewidth())


FIVE = ("x", "lift", "activate", "a", "b")
LEDGERS = {
    "plain": (lambda: F.FeedForward.random(8).trace(X), [("x", "lift"), ("lift", "activate"),
                                                         ("activate", "project_down")]),
    "gated": (lambda: F.GatedFeedForward.random(8).trace(X), list(plots.GATED_ARROWS)),
    "wide gated": (lambda: F.GatedFeedForward.random(100).trace(np.ones((9, 100))), list(plots.GATED_ARROWS)),
    "other": (lambda: {name: (i + 1, 60 - 9 * i) for i, name in enumerate(FIVE)}, list(zip(FIVE, FIVE[1:]))),
}


@pytest.mark.parametrize("kind", LEDGERS)
def test_ledger_arrows_join_the_arrays_and_nothing_overlaps(kind):
    shapes, joined = LEDGERS[kind]
    shapes = shapes()
    ax = plots.shape_ledger(shapes)
    sizes, placed = getattr(shapes, "shapes", shapes), boxes(ax)
    assert list(placed) == list(sizes)
    for name, (_, _, width, height) in placed.items():
        assert (height, width) == pytest.approx(sizes[name])
    for t, u, (name, (left, bottom, width, height)) in zip(ax.texts[::2], ax.texts[1::2], placed.items()):
        assert (*t.xy, *u.xy) == pytest.approx((left + width / 2, bottom + height, left + width / 2, bottom))
        assert (t.get_text(), u.get_text(), t.get_va(), u.get_va()) == (name, str(sizes[name]), "bottom", "top")
        assert (t.xyann, u.xyann) == ((0, 3), (0, -3))
    drawn = list(arrows(ax))
    for (source, target), ((start, end), _, label, _, _, _) in zip(joined, drawn):
        (l1, b1, w1, h1), (l2, b2, _, h2) = placed[source], placed[target]
        assert (*start, *end) == pytest.approx((l1 + w1, b1 + h1 / 2, l2, b2 + h2 / 2))  # edge to edge, half height
        assert label == ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2) and end[0] - start[0] > 5
    assert len(drawn) == len(joined)
    for (l1, b1, w1, h1), (l2, b2, w2, h2) in combinations(placed.values(), 2):
        assert l1 + w1 < l2 or l2 + w2 < l1 or b1 + h1 < b2 or b2 + h2 < b1
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    left, right = min(b[0] for b in placed.values()), max(b[0] + b[2] for b in placed.values())
    low, high = min(b[1] for b in placed.values()), max(b[1] + b[3] for b in placed.values())
    assert left - x0 == pytest.approx(x1 - right) and low - y0 == pytest.approx(y1 - high)  # centred, with a margin
    assert 0 < x1 - right < 0.1 * (right - left) and 0 < y1 - high < 0.05 * (x1 - x0) + 0.3 * (high - low)
    rows, countable = max(h for h, _ in sizes.values()), max(w for _, w in sizes.values()) <= 64
    room = y1 - high  # for names and shapes
    assert 0.03 * (x1 - x0) < room < 0.04 * (x1 - x0) if countable else 0.2 * rows < room < 0.3 * rows
    assert not ax.axison


@pytest.mark.parametrize("kind, wider", [("plain", [1, 1, 1]), ("gated", [2, 1, 1, 1.25]),
                                         ("wide gated", [2.7, 1, 1, 1.25]), ("other", [1] * 4)])
def test_ledger_gaps_have_room_for_what_the_arrows_say(kind, wider):
    placed = boxes(plots.shape_ledger(LEDGERS[kind][0]())).values()
    lefts = sorted({round(left, 6) for left, *_ in placed})
    rights = [max(left + width for left, _, width, _ in placed if round(left, 6) == at) for at in lefts]
    gaps = np.array([left - right for right, left in zip(rights, lefts[1:])])
    widths = [right - left for left, right in zip(lefts, rights)]
    assert gaps == pytest.approx(0.13 * sum(widths) * np.array(wider))


def test_ledger_cells_can_be_counted_where_they_are_drawn():
    for name, size in (("a", (3, 5)), ("b", (1, 64))):
        vertical, horizontal = plots.shape_ledger({name: size}).collections
        segments = [s.tolist() for s in vertical.get_segments()]
        assert segments == [[[c, -size[0] / 2], [c, size[0] / 2]] for c in range(1, size[1])]
        segments = [s.tolist() for s in horizontal.get_segments()]
        assert segments == [[[0, r - size[0] / 2], [size[1], r - size[0] / 2]] for r in range(1, size[0])]
    assert not plots.shape_ledger({"a": (3, 65), "b": (3, 5)}).collections
    ax = plots.shape_ledger({"a": (3, 5)})
    assert (ax.get_aspect(), len(ax.texts)) == (1, 2)


def test_ledger_labels_stand_beside_their_arrows():
    def beside(ax):
        return [(label, offset, aligned) for _, label, _, offset, aligned, _ in arrows(ax)]

    above, below = ("center", "bottom"), ("center", "top")
    assert beside(plots.shape_ledger(F.GatedFeedForward.random(8).trace(X))) == [
        ("@ W_gate", (-6, 5), ("right", "bottom")), ("@ W_up", (-6, -5), ("right", "top")),  # beside the steep ones
        ("act", (0, 5), above), ("×", (0, 5), above), ("×", (0, -5), below), ("@ W_down", (0, 5), above)]
    assert beside(plots.shape_ledger(F.FeedForward.random(8).trace(X))) == [
        (label, (0, 5), above) for label in ("@ W1 + b1", "act", "@ W2 + b2")]
    assert [label for label, _, _ in beside(plots.shape_ledger({"a": (2, 3), "b": (2, 3), "lift": (2, 3)}))] == [
        "", "@ W1 + b1"]


def test_ledger_highlights_the_arrows_of_one_stage():
    for highlight, thick in ((None, []), ("gated", [3, 4]), ("lift", [1]), ("x", [])):
        ax = plots.shape_ledger(F.GatedFeedForward.random(8).trace(X), highlight=highlight)
        widths = [width for *_, width in arrows(ax)]
        assert widths == [4 if i in thick else 1.2 for i in range(6)]


def test_ledger_takes_one_row_and_marks_the_last():
    ax = plots.shape_ledger({"x": (4, 8), "y": (3, 8)}, mark=2)
    assert [p.get_y() for p in ax.patches] == [-2, -1, -1.5, -1.5]
    ax = plots.shape_ledger({"x": (8,)}, mark=0)
    assert [p.get_bbox().bounds for p in ax.patches] == [(0, -0.5, 8, 1)] * 2


def test_curves_say_what_they_are():
    ax = plots.activation_curves(["relu", "gelu"])
    horizontal, vertical, first, second = ax.lines
    assert horizontal.get_ydata() == [0, 0] and vertical.get_xdata() == [0, 0]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["relu", "gelu"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xlim()) == ("input h", "act(h)", (-4, 4))
    assert len(first.get_xdata()) == 801 and first.get_xdata()[[0, 400, 800]].tolist() == [-4, 0, 4]
    assert plots.activation_curves("relu", derivative=True).get_ylabel() == "slope of act at h"
    six = plots.activation_curves(list(F.ACTIVATIONS)[:6], limits=(0, 1))
    assert six.get_xlim() == (0, 1) and len({line.get_color() for line in six.lines[2:7]}) == 5


def test_distribution_says_what_it_is():
    arrays = {"x": [[0.0, 1.0], [2.0, 3.0]], "lift": [0.0, 0.0, 0.0, 1.0], "mine": [-1.0]}
    ax = plots.distribution(arrays, bins=8)
    strip = ax.child_axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xlim()) == ("value", "share per bin", (-1, 3))
    assert ax.get_yscale() == "linear"
    filled, outlined = ax.patches[::2], ax.patches[1::2]
    for bars in (filled, outlined):  # the same bars twice
        assert [bar_heights(p).sum() for p in bars] == pytest.approx([0.75, 0.25, 1])
        assert sorted(set(bars[0].get_xy()[:, 0].tolist())) == np.arange(-1, 3.1, 0.5).tolist()
    assert (strip.get_title(), strip.get_xlim()) == ("exactly 0", (-0.7, 2.7))
    assert strip.get_xticks().tolist() == [0, 1, 2]
    assert [t.get_text() for t in strip.texts] == ["25 %", "75 %", "0 %"]
    assert [round(b.get_x() + b.get_width() / 2, 9) for b in strip.patches] == [0, 1, 2]
    assert not strip.spines["left"].get_visible() and not strip.yaxis.get_tick_params()["labelleft"]
    assert not strip.yaxis.get_tick_params()["left"]
    assert ax.get_ylim() == pytest.approx((0, 1.12 * 1.05))  # matplotlib leaves 5 %, the strip's labels need 12 % more
    colors = [matplotlib.colors.to_hex(p.get_edgecolor()).upper() for p in outlined]
    assert colors[:2] == [plots.STAGE_COLORS["x"], plots.STAGE_COLORS["lift"]] and len(set(colors)) == 3


def test_distribution_draws_the_strip_when_it_is_told_to():
    assert not plots.distribution({"x": [1.0, 0.0]}, zeros=False).child_axes
    assert [t.get_text() for t in plots.distribution({"x": [1.0]}, zeros=True).child_axes[0].texts] == ["0 %"]
    assert not plots.distribution({"x": [1.0]}).child_axes


def test_strip_beside_a_logarithmic_axis_is_linear():
    """Bars on a logarithm would make 50 % nearly as tall as 100 %; and the histogram keeps its own range."""
    arrays = {"a": np.array([0.0, 0.0, 0.0, 1.0]), "b": np.array([0.0, 1.0, 2.0, 3.0])}
    ax, alone = (plots.distribution(arrays, log=True, zeros=zeros) for zeros in (True, False))
    (strip,) = ax.child_axes
    assert strip.get_yscale() == "linear" and strip.get_ylim() == (0, 1.12)
    assert [b.get_height() for b in strip.patches] == [0.75, 0.25]
    assert ax.get_yscale() == "log" and ax.get_ylim() == alone.get_ylim()


@pytest.mark.parametrize("values, limits, bins, edges", [
    ([1.0, 3.0], None, 2, [1, 2, 3]), ([-1.5, 2.5], None, 4, [-2, -1, 0, 1, 2, 3]),  # widened: one edge is 0
    ([5.0], None, 4, [5.0, 5.25]), ([0.0], None, 2, [0, 0.5]), ([9.0], (-1, 1), 4, [-1, -0.5, 0, 0.5, 1]),
])
def test_bin_edges(values, limits, bins, edges):
    ax = plots.distribution({"x": values, "y": values[:1]}, limits=limits, bins=bins, zeros=False)
    assert np.unique(ax.patches[0].get_xy()[:, 0]) == pytest.approx(edges)
    assert bar_heights(ax.patches[0]).sum() == pytest.approx(np.mean(np.array(values) != 0))


def test_distribution_colours():
    def colour(label, **options):
        return matplotlib.colors.to_hex(plots.distribution({label: X}, **options).patches[1].get_edgecolor())
    assert colour("random") == plots.RANDOM_COLOR and colour("twin", colors={"twin": "#123456"}) == "#123456"
    assert colour("x", colors={"x": "#123456"}) == "#123456" and colour("twin") == "#0072b2"


@pytest.mark.parametrize("dots", [False, True])
def test_computed_lies_over_wanted(dots):
    ax = plots.computed_over_wanted([0, 1, 2], [0, 1, 5], [0, 1, 2], dots=dots)
    wanted, computed = ax.lines
    assert wanted.get_xydata().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert computed.get_xydata().tolist() == [[0, 0], [1, 1], [2, 5]]
    assert (computed.get_linestyle() == "None") == (wanted.get_linestyle() == "None") == dots
    size = "get_markersize" if dots else "get_linewidth"
    assert getattr(wanted, size)() > 1.5 * getattr(computed, size)()  # what lies below stays to be seen
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["wanted", "yours"]
    assert computed.get_color() == plots.STAGE_COLORS["project_down"]


def test_value_map_puts_each_value_at_its_place():
    ax = plots.value_map(*GRID, limits=(-1, 4))
    (image,) = ax.images
    assert image.get_array().tolist() == [[3, 4, -1], [1, 2, 0]]  # rows: b = 3, 5; columns: a = 0, 1, 2
    assert image.origin == "lower" and list(image.get_extent()) == [-0.5, 2.5, 2, 6]  # a and b in the middle
    assert image.get_cmap().name == "PuOr" and image.get_clim() == (-4, 4)  # 0 is white
    grey = plots.value_map(*GRID, limits=(0, 4), bar=False)
    assert grey.images[0].get_cmap().name == "Greys" and grey.images[0].get_clim() == (0, 4)
    assert (len(ax.figure.axes), len(grey.figure.axes)) == (2, 1)


def test_gate_heatmap_says_what_it_is():
    gate = np.array([[1.0, -0.25, 0.5], [-4.0, 0.125, 2.0]])
    value = np.array([[0.5, 1.0, -1.0], [0.5, 1.0, 0.25]])
    ax = plots.gate_heatmap(gate, value, gate * value, mark=1)
    image, nothing = ax.images[0].get_array(), np.full((2, 2), np.nan)
    np.testing.assert_array_equal(image, np.hstack([gate, nothing, value, nothing, gate * value]))
    assert ax.images[0].get_clim() == (-4, 4)
    said = [(t.get_text(), t.get_position()) for t in ax.texts]
    minus = "\N{MINUS SIGN}"
    assert said[:-5] == [(minus, (x, y)) for y, x in ((0, 1), (0, 7), (0, 11), (0, 12), (1, 0), (1, 10))]
    assert said[-5:-2] == [("act(gate)", (1, -0.7)), ("lift", (6, -0.7)), ("gated = act(gate) × lift", (11, -0.7))]
    assert said[-2:] == [("×", (3.5, 0.5)), ("=", (8.5, 0.5))]  # in the middle of the gaps
    assert [t.get_color() for t in ax.texts[:6]] == ["black"] * 4 + ["white", "black"]  # white on the darkest cell
    assert [p.get_bbox().bounds for p in ax.patches] == [(x - 0.5, 0.5, 3, 1) for x in (0, 5, 10)]
    assert ax.get_xticks().tolist() == [0, 2, 5, 7, 10, 12] and ax.get_yticks().tolist() == [0, 1]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "2"] * 3
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hidden unit", "token")
    assert ax.figure.axes[1].get_ylabel() == "number" and not any(s.get_visible() for s in ax.spines.values())
    wide = plots.gate_heatmap(*[np.ones((1, 32))] * 3)
    assert wide.images[0].get_array().shape == (1, 3 * 32 + 2 * 4) and not wide.patches
    assert [t.get_text() for t in wide.get_xticklabels()][:6] == ["0", "7", "14", "21", "28", "31"]


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
    (lambda: plots.computed_over_wanted([0, 1], [0], [0, 1]), ValueError,
     "x, computed and wanted must be arrays (n,) of one shape, got [(2,), (1,), (2,)]"),
    (lambda: plots.computed_over_wanted([], [], []), ValueError,
     "x, computed and wanted must hold finite numbers, got shape (0,)"),
    (lambda: plots.computed_over_wanted(X, X, X), ValueError,
     "x, computed and wanted must be arrays (n,) of one shape, got [(7, 8), (7, 8), (7, 8)]"),
    (lambda: plots.value_map([0, 1], [0, 1], [0, np.nan], limits=(0, 1)), ValueError,
     "a, b and values must hold finite numbers, got shape (2,)"),
    (lambda: plots.value_map([0, 1], [0, 1], [0, 1], limits=(0, 1)), ValueError,
     "a and b must hold every pair of a grid once, got 2 pairs of 2 different a and 2 different b"),
    (lambda: plots.value_map([0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 2, 3], limits=(0, 1)), ValueError,
     "a and b must hold every pair of a grid once, got 4 pairs of 2 different a and 2 different b"),
    (lambda: plots.value_map(*GRID, limits=(1, 1)), ValueError, f"{ORDERED} (1, 1)"),
    (lambda: plots.gate_heatmap(X, X, X[:3]), ValueError,
     f"gate, value and product {ONE_SHAPE} [(7, 8), (7, 8), (3, 8)]"),
    (lambda: plots.gate_heatmap(X[0], X[0], X[0]), ValueError,
     f"gate, value and product {ONE_SHAPE} [(8,), (8,), (8,)]"),
    (lambda: plots.gate_heatmap(None, X, X), TypeError, f"gate {REAL} None"),
    (lambda: plots.gate_heatmap(X, None, X), TypeError, f"value {REAL} None"),
    (lambda: plots.gate_heatmap(X, X, None), TypeError, f"product {REAL} None"),
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
    rc = plt.rcParams
    assert rc["figure.dpi"] == 100 and rc["figure.figsize"] == [8, 3.4] and rc["figure.constrained_layout.use"]
    assert not (rc["axes.spines.top"] or rc["axes.spines.right"] or rc["legend.frameon"])
    assert rc["font.size"] == 11 and rc["axes.titlesize"] == 12 and rc["axes.titlelocation"] == "left"
    assert rc["lines.linewidth"] == 2 and rc["image.cmap"] == "PuOr"
    assert plots.shape_ledger({"x": (7, 8)}).figure.get_size_inches().tolist() == [10, 1.9]
    assert plots.activation_curves("relu").figure.get_size_inches().tolist() == [8, 3.4]
