"""The course's figures, in one style. The only module that imports matplotlib.

Every function draws into `ax` (or a new one), returns the Axes and never calls `plt.show()`.
Colours are Okabe and Ito's colour-blind-safe palette and greys; one stage has one colour everywhere.
"""
from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from ._validate import float_array, positive_int, short
from .activations import ACTIVATIONS
from .trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

STAGE_COLORS = {
    "x": "#4D4D4D", "lift": "#0072B2", "gate": "#CC79A7", "activate": "#E69F00",
    "gated": "#D55E00", "project_down": "#009E73",
}
RANDOM_COLOR = "#999999"  # the random twin of a trained layer
CURVE_COLORS = ("#000000", "#56B4E9", "#8C510A", "#666666", "#B2ABD2")  # activations are no stages
SPARE_COLORS = ("#0072B2", "#E69F00", "#CC79A7", "#009E73", "#D55E00")  # of labels that are no stages
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def use_course_style() -> None:
    """Set matplotlib's defaults to the course's style: readable on a projector, no ink without meaning.

    For the whole session, in inches, points and dots per inch.

    Examples
    --------
    >>> with plt.rc_context():    # only here; a notebook calls the function alone
    ...     use_course_style()
    ...     print(plt.rcParams["figure.figsize"], plt.rcParams["image.cmap"])
    [8.0, 3.4] PuOr
    """
    plt.rcParams.update({
        "figure.figsize": (8, 3.4), "figure.dpi": 100, "figure.constrained_layout.use": True,
        "font.size": 11, "axes.titlesize": 12, "axes.titlelocation": "left",
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
        "lines.linewidth": 2, "image.cmap": "PuOr",
    })


def _axes(ax: Axes | None, figsize: tuple[float, float] | None = None) -> Axes:
    return plt.subplots(figsize=figsize)[1] if ax is None else ax


def _limits(limits):
    """(low, high) as floats, or an error that names `limits`."""
    try:
        low, high = (float(v) for v in limits)
    except (TypeError, ValueError):
        raise ValueError(f"limits must be two numbers (low, high), got {short(limits)}") from None
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"limits must be finite with low < high, got {short(limits)}")
    return low, high


def _check_mark(mark, n_rows):
    """mark as a row index, or an error that names it."""
    if isinstance(mark, bool) or not isinstance(mark, (int, np.integer)) or not 0 <= mark < n_rows:
        raise ValueError(f"mark must be a token, 0 to {n_rows - 1}, got {short(mark)}")


# How the ledger draws the two FFNs: where each stage stands (column, lane), and what its arrows say.
CHAIN_LABELS = {"lift": "@ W1 + b1", "activate": "act", "project_down": "@ W2 + b2"}
GATED_PLACES = {"x": (0, 0), "gate": (1, 1), "lift": (1, -1), "activate": (2, 1), "gated": (3, 0),
                "project_down": (4, 0)}
GATED_ARROWS = {("x", "gate"): "@ W_gate", ("x", "lift"): "@ W_up", ("gate", "activate"): "act",
                ("activate", "gated"): "×", ("lift", "gated"): "×", ("gated", "project_down"): "@ W_down"}


def shape_ledger(shapes: Trace | Mapping[str, tuple[int, ...]], ax: Axes | None = None, mark: int | None = None,
                 highlight: str | None = None) -> Axes:
    """Draw the arrays of a forward pass to scale: one row per token, one column per number.

    Small arrays are drawn with their cells, square and countable. Arrays with more than 64 columns have
    widths to scale among each other and one common height.

    Parameters
    ----------
    shapes : Trace or dict
        Stage name -> shape, in order. Leading batch dimensions are written, not drawn. The stages of a
        gated FFN are drawn as two branches, any others as a chain.
    ax : Axes or None
        None makes a new figure, here and in every function below.
    mark : int or None
        A token (row) to outline in every array.
    highlight : str or None
        A stage whose incoming arrows are drawn thick.

    Returns
    -------
    Axes, with one Rectangle per array (and one per outlined row)

    Raises
    ------
    TypeError, ValueError
        If shapes is no Trace or dict of shapes, mark not a row of every array, or highlight no stage.

    Examples
    --------
    >>> ax = shape_ledger({"x": (7, 8), "lift": (7, 32), "project_down": (7, 8)}, highlight="lift")
    >>> [(array.get_height(), array.get_width()) for array in ax.patches]    # tokens, numbers
    [(7, 8), (7, 32), (7, 8)]
    >>> [text.get_text() for text in ax.texts if "@" in text.get_text()]     # what the arrows say
    ['@ W1 + b1', '@ W2 + b2']
    >>> plt.close(ax.figure)
    """
    shapes, sizes = _ledger_arguments(shapes, mark, highlight)
    if set(sizes) == set(GATED_PLACES):
        places, arrows = GATED_PLACES, GATED_ARROWS
    else:
        places = {name: (i, 0) for i, name in enumerate(sizes)}
        arrows = {(a, b): CHAIN_LABELS.get(b, "") for a, b in zip(sizes, list(sizes)[1:])}
    two_lanes = any(lane for _, lane in places.values())
    countable = max(columns for _, columns in sizes.values()) <= 64
    ax = _axes(ax, (10, 3.6 if two_lanes else 1.9))

    widths = [max(sizes[n][1] for n in sizes if places[n][0] == c) for c in range(max(places.values())[0] + 1)]
    tallest, gap = max(rows for rows, _ in sizes.values()), 0.13 * sum(widths)
    gaps = [0, *[gap] * (len(widths) - 1)]
    if two_lanes:
        gaps[-1] *= 1.25
        gaps[1] *= 2 if countable else 2.7  # room for what the two steep arrows say
    lane_height = 0.95 * tallest + 0.02 * sum(widths) if countable else 0.85 * tallest
    corners = {name: (sum(widths[:column]) + sum(gaps[:column + 1]), lane * lane_height - sizes[name][0] / 2)
               for name, (column, lane) in places.items()}  # left, bottom
    for name in sizes:
        _draw_array(ax, name, str(shapes[name]), corners[name], sizes[name], countable, mark)
    for (source, target), label in arrows.items():
        start, end = ((corners[name][0] + at_end * sizes[name][1], corners[name][1] + sizes[name][0] / 2)
                      for name, at_end in ((source, True), (target, False)))
        _draw_arrow(ax, label, start, end, from_x=source == "x", two_lanes=two_lanes, bold=target == highlight)
    half, total = tallest / 2 + (lane_height if two_lanes else 0), sum(widths) + sum(gaps)
    margin = 0.035 * total if countable else 0.25 * tallest
    ax.set(xlim=(-gap / 3, total + gap / 3), ylim=(-half - margin, half + margin))
    if countable:
        ax.set_aspect("equal")
    ax.axis("off")
    return ax


def _ledger_arguments(shapes, mark, highlight):
    """The shapes as a dict, and the (rows, columns) that are drawn of each, once the arguments are checked."""
    if not isinstance(shapes, (Trace, dict)):
        raise TypeError(f"shapes must be a Trace or a dict of stage name -> shape, got {short(shapes)}")
    shapes = shapes.shapes if isinstance(shapes, Trace) else shapes
    sizes = {name: (1, *shape)[-2:] for name, shape in shapes.items() if len(shape)}  # one token is one row
    if not sizes or len(sizes) < len(shapes) or not all(n > 0 for size in sizes.values() for n in size):
        raise ValueError(f"shapes must name at least one array that is not empty, got {short(dict(shapes))}")
    if mark is not None:
        _check_mark(mark, min(rows for rows, _ in sizes.values()))
    if highlight is not None and highlight not in sizes:
        raise ValueError(f"highlight must be one of {', '.join(sizes)}; got {short(highlight)}")
    return shapes, sizes


def _draw_array(ax, name, shape, corner, size, countable, mark):
    (left, bottom), (rows, columns) = corner, size
    ax.add_patch(Rectangle((left, bottom), columns, rows, facecolor=STAGE_COLORS.get(name, RANDOM_COLOR),
                           edgecolor="black", alpha=0.75))
    if countable:
        ax.vlines(left + np.arange(1, columns), bottom, bottom + rows, color="white", linewidth=0.5)
        ax.hlines(bottom + np.arange(1, rows), left, left + columns, color="white", linewidth=0.5)
    if mark is not None:
        ax.add_patch(Rectangle((left, bottom + rows - 1 - mark), columns, 1, facecolor="none",
                               edgecolor="black", linewidth=2))
    ax.annotate(name, (left + columns / 2, bottom + rows), (0, 3), textcoords="offset points", ha="center",
                va="bottom")
    ax.annotate(shape, (left + columns / 2, bottom), (0, -3), textcoords="offset points", ha="center", va="top")


def _draw_arrow(ax, label, start, end, from_x, two_lanes, bold):
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "linewidth": 4 if bold else 1.2,
                                            "color": "black", "shrinkA": 3, "shrinkB": 3})
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    below = start[1] < end[1] if two_lanes and not from_x else start[1] > end[1]
    sloped = start[1] != end[1] and from_x  # beside a steep arrow, not on it
    ax.annotate(label, middle, (-6 if sloped else 0, -5 if below else 5), textcoords="offset points",
                ha="right" if sloped else "center", va="top" if below else "bottom", fontsize=10,
                fontweight="bold" if bold else "normal")


def activation_curves(names: str | list[str] | tuple[str, ...], ax: Axes | None = None, derivative: bool = False,
                      limits: tuple[float, float] = (-4, 4)) -> Axes:
    """Draw activation functions (or their derivatives) by name, each line with its own dash pattern.

    Parameters
    ----------
    names : str, list or tuple of str
        Names in `ACTIVATIONS`.
    derivative : bool
        Draw the slopes instead.
    limits : (low, high)
        The range of the input.

    Returns
    -------
    Axes, with one line per name after the two axes through 0

    Raises
    ------
    ValueError
        If a name is unknown (the known ones are listed) or there is none, or limits are not finite, low < high.

    Examples
    --------
    >>> ax = activation_curves(["relu", "gelu"], limits=(-3, 3))
    >>> for line in ax.get_lines()[2:]:
    ...     print(f"{line.get_label()} is at least {line.get_ydata().min():.2f}")
    relu is at least 0.00
    gelu is at least -0.17
    >>> plt.close(ax.figure)
    """
    names = [names] if isinstance(names, str) else names
    known = isinstance(names, (list, tuple)) and all(isinstance(n, str) and n in ACTIVATIONS for n in names)
    if not known or not names:
        raise ValueError(f"names must be one or more of {', '.join(ACTIVATIONS)}; got {short(names)}")
    limits, ax = _limits(limits), _axes(ax)
    ax.axhline(0, color="#BBBBBB", linewidth=1)
    ax.axvline(0, color="#BBBBBB", linewidth=1)
    x = np.linspace(*limits, 801)  # (801,)
    for i, name in enumerate(names):
        y = getattr(ACTIVATIONS[name], "derivative" if derivative else "function")(x)  # (801,)
        ax.plot(x, y, label=name, color=CURVE_COLORS[i % 5], linestyle=LINE_STYLES[i % 5])
    ax.set(xlabel="input h", ylabel="slope of act at h" if derivative else "act(h)", xlim=limits)
    ax.legend()
    return ax


def distribution(arrays: Mapping[str, ArrayLike], ax: Axes | None = None, bins: int = 50,
                 limits: tuple[float, float] | None = None, colors: dict[str, str] | None = None, log: bool = False,
                 zeros: bool | None = None) -> Axes:
    """Histograms of several arrays on the same bins, with the exact zeros in a strip of their own.

    Parameters
    ----------
    arrays : dict
        Label -> array. A label that is a stage's name takes the stage's colour.
    bins : int
    limits : (low, high) or None
        None spans all values. Widened so that a bin edge is 0. What lies outside is counted in the
        outermost bins.
    colors : dict or None
        Label -> colour, where the label is no stage.
    log : bool
        Logarithmic share axis, for heavy tails.
    zeros : bool or None
        Draw the strip of exact zeros; None draws it where there are any.

    Returns
    -------
    Axes
        The histogram: height is the share of *all* values, so bars and zeros sum to 1. Where an array
        holds exact zeros, `ax.child_axes[0]` is the strip with their shares, on the same scale
        (with `log`, on one from 0 to 1).

    Raises
    ------
    TypeError, ValueError
        If arrays is no dict or empty, an array has no values or holds NaN or inf, or bins or limits make
        no sense.

    Examples
    --------
    >>> h = np.array([[-1.0, 2.0], [-0.5, 3.0]])
    >>> ax = distribution({"lift": h, "activate": np.maximum(h, 0)}, bins=10)
    >>> for bar in ax.child_axes[0].patches:
    ...     print(f"{bar.get_height():.0%} are exactly 0")
    0% are exactly 0
    50% are exactly 0
    >>> plt.close(ax.figure)
    """
    if not isinstance(arrays, dict) or not arrays:
        raise TypeError(f"arrays must be a dict of label -> array, not empty; got {short(arrays)}")
    flat = {label: float_array(f"arrays[{label!r}]", a).ravel().astype(np.float64) for label, a in arrays.items()}
    for label, a in flat.items():
        if not a.size or not np.isfinite(a).all():
            raise ValueError(f"arrays[{label!r}] must hold finite values, got shape {np.shape(arrays[label])} with "
                             f"{np.size(a) - np.isfinite(a).sum()} NaN or inf")
    edges = _edges(flat.values(), positive_int("bins", bins), limits)
    low, high = edges[0], edges[-1]
    palette = STAGE_COLORS | {"random": RANDOM_COLOR} | (colors or {})
    taken = {palette.get(label) for label in flat}
    spare = cycle([color for color in SPARE_COLORS if color not in taken] or SPARE_COLORS)
    chosen = {label: palette.get(label) or next(spare) for label in flat}

    ax = _axes(ax)
    for i, (label, a) in enumerate(flat.items()):
        values = np.clip(a[a != 0], low, high)
        ax.hist(values, edges, weights=np.full(values.size, 1 / a.size), histtype="stepfilled", alpha=0.3,
                color=chosen[label])
        ax.hist(values, edges, weights=np.full(values.size, 1 / a.size), histtype="step", linewidth=2,
                color=chosen[label], linestyle=LINE_STYLES[i % 5], label=label)
    ax.set(xlabel="value", ylabel="share per bin", xlim=(low, high))
    if log:
        ax.set_yscale("log")
    ax.legend()
    share = {label: float((a == 0).mean()) for label, a in flat.items()}
    if any(share.values()) if zeros is None else zeros:
        _zero_strip(ax, share, chosen)
    return ax


def _edges(arrays, bins, limits):
    """The edges of about `bins` bins over all values, or over limits; one edge is 0: no bar mixes the signs."""
    low, high = (min(a.min() for a in arrays), max(a.max() for a in arrays)) if limits is None else _limits(limits)
    step = (high - low or 1) / bins
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return (step * np.arange(first, max(last, first + 1) + 1)).tolist()


def _zero_strip(ax, share, colors):
    """The shares of exact zeros beside a histogram: on its scale, or from 0 to 1 if that is logarithmic."""
    log = ax.get_yscale() == "log"  # there, half as many would look almost as tall
    strip = ax.inset_axes((1.03, 0, 0.07 * len(share), 1), sharey=None if log else ax)
    bars = strip.bar(range(len(share)), list(share.values()), color=[colors[label] for label in share])
    strip.bar_label(bars, [f"{100 * z:.0f} %" for z in share.values()], fontsize=9)
    strip.set(xlim=(-0.7, len(share) - 0.3), title="exactly 0")
    strip.set_xticks(range(len(share)), list(share), rotation=90, fontsize=9)
    strip.tick_params(left=False, which="both", labelleft=False)
    strip.spines["left"].set_visible(False)
    room = 1.12  # for the numbers on the bars
    if log:
        strip.set_ylim(0, room)
    else:
        ax.set_ylim(top=room * max(ax.get_ylim()[1], *share.values()))


def computed_over_wanted(x: ArrayLike, computed: ArrayLike, wanted: ArrayLike, ax: Axes | None = None,
                         dots: bool = False) -> Axes:
    """What an FFN of one number computes, a thin line over the broad grey one that is wanted.

    Parameters
    ----------
    x, computed, wanted : array_like (n,)
    dots : bool
        Dots and rings in place of lines: the function counts at these x only.

    Returns
    -------
    Axes, holding the wanted line and then the computed one

    Raises
    ------
    ValueError, TypeError
        If the three are not one-dimensional arrays of one length that hold finite numbers.

    Examples
    --------
    >>> ax = computed_over_wanted([-1, 0, 1], [0, 0, 1], [1, 0, 1])
    >>> [line.get_label() for line in ax.lines]
    ['wanted', 'yours']
    >>> plt.close(ax.figure)
    """
    x, computed, wanted = _same_shape({"x": x, "computed": computed, "wanted": wanted}, 1)
    ax = _axes(ax)
    broad, thin = ({"ls": "", "marker": "o", "ms": 10}, {"ls": "", "marker": ".", "ms": 6}) if dots else (
        {"lw": 5}, {"lw": 1.5})
    ax.plot(x, wanted, color="#BBBBBB", label="wanted", solid_capstyle="butt", antialiased=False, **broad)
    ax.plot(x, computed, color=STAGE_COLORS["project_down"], label="yours", **thin)
    ax.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def value_map(a: ArrayLike, b: ArrayLike, values: ArrayLike, limits: tuple[float, float],
              ax: Axes | None = None, bar: bool = True) -> Axes:
    """A map of a function of two numbers over a grid: a to the right, b up, one colour for each value.

    Parameters
    ----------
    a, b, values : array_like (n,)
        Every pair of the different a and the different b once, in any order.
    limits : (low, high)
        The values of the darkest colours; 0 is white if low < 0 < high.
    bar : bool
        Whether to add a colour bar.

    Returns
    -------
    Axes, holding one image of shape (different b, different a)

    Raises
    ------
    ValueError, TypeError
        If the three are not arrays of one length that hold finite numbers, or are no grid, or limits are not two
        finite numbers with low < high.

    Examples
    --------
    >>> ax = value_map([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], limits=(-1, 1))
    >>> ax.images[0].get_array().tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    >>> plt.close(ax.figure)
    """
    a, b, values = _same_shape({"a": a, "b": b, "values": values}, 1)
    low, high = _limits(limits)
    (across, i), (up, j) = (np.unique(v, return_inverse=True) for v in (a, b))
    if len(values) != len(across) * len(up) or len(set(zip(i, j))) != len(values):
        raise ValueError(f"a and b must hold every pair of a grid once, got {len(values)} pairs of {len(across)} "
                         f"different a and {len(up)} different b")
    image = np.empty((len(up), len(across)))                                  # (different b, different a)
    image[j, i] = values
    ax = _axes(ax, (4, 3.2))
    size = max(-low, high)
    cmap, low, high = ("PuOr", -size, size) if low < 0 < high else ("Greys", low, high)
    step = [(v[-1] - v[0]) / max(len(v) - 1, 1) or 1 for v in (across, up)]
    extent = (across[0] - step[0] / 2, across[-1] + step[0] / 2, up[0] - step[1] / 2, up[-1] + step[1] / 2)
    drawn = ax.imshow(image, origin="lower", extent=extent, aspect="auto", cmap=cmap, vmin=low, vmax=high)
    if bar:
        ax.figure.colorbar(drawn, ax=ax)
    return ax


def _same_shape(arrays, ndim):
    """The arrays, or an error that names them: one shape, ndim axes, finite numbers, at least one."""
    parts = [float_array(name, value) for name, value in arrays.items()]
    *first, last = arrays
    names = f"{', '.join(first)} and {last}"
    what = {1: "arrays (n,)", 2: "matrices"}[ndim]
    if any(p.ndim != ndim or p.shape != parts[0].shape for p in parts):
        raise ValueError(f"{names} must be {what} of one shape, got {[p.shape for p in parts]}")
    if not parts[0].size or not all(np.isfinite(p).all() for p in parts):
        raise ValueError(f"{names} must hold finite numbers, got shape {parts[0].shape}")
    return parts


def gate_heatmap(gate: ArrayLike, value: ArrayLike, product: ArrayLike, ax: Axes | None = None,
                 mark: int | None = None) -> Axes:
    """Three heatmaps in a row: activated gate x value = product; negative cells carry a minus sign.

    Parameters
    ----------
    gate, value, product : array_like (n_tokens, d_ff), all of one shape
        A trace's "activate", "lift" and "gated".
    mark : int or None
        A token (row) to outline.

    Returns
    -------
    Axes, holding one image of shape (n_tokens, 3 d_ff + 2 gaps)

    Raises
    ------
    ValueError, TypeError
        If the three are not matrices of the same shape that hold finite numbers, or mark is not a row.

    Notes
    -----
    Source of the product: Shazeer 2020 (arXiv:2002.05202), equation 5.

    Examples
    --------
    >>> gate, value = np.array([[0.0, 1.0], [0.5, 2.0]]), np.array([[3.0, -4.0], [2.0, 1.0]])
    >>> ax = gate_heatmap(gate, value, gate * value)
    >>> ax.images[0].get_array().shape, sum(text.get_text() == "\N{MINUS SIGN}" for text in ax.texts)
    ((2, 10), 2)
    >>> plt.close(ax.figure)
    """
    parts = _same_shape({"gate": gate, "value": value, "product": product}, 2)
    if mark is not None:
        _check_mark(mark, len(parts[0]))
    rows, columns = parts[0].shape
    gap = np.full((rows, max(2, columns // 8)), np.nan)                       # (n_tokens, gap)
    image = np.hstack([parts[0], gap, parts[1], gap, parts[2]])               # (n_tokens, 3 d_ff + 2 gap)
    ax = _axes(ax, (11, 3.0))
    size = np.nanmax(np.abs(image))
    drawn = ax.imshow(image, cmap="PuOr", vmin=-size, vmax=size, aspect="auto")
    for row, column in zip(*np.nonzero(image < 0)):
        dark = image[row, column] < -0.6 * size
        ax.text(column, row, "\N{MINUS SIGN}", ha="center", va="center", fontsize=9,
                color="white" if dark else "black")
    starts = np.arange(3) * (columns + gap.shape[1])
    for start, title in zip(starts, ("act(gate)", "lift", "gated = act(gate) × lift")):
        ax.text(start + (columns - 1) / 2, -0.7, title, ha="center", va="bottom")
        if mark is not None:
            ax.add_patch(Rectangle((start - 0.5, mark - 0.5), columns, 1, fill=False, linewidth=2, clip_on=False))
    for start, sign in zip(starts, ("×", "=")):
        ax.text(start + columns - 0.5 + gap.shape[1] / 2, (rows - 1) / 2, sign, ha="center", va="center", fontsize=16)
    units = np.unique([*range(0, columns, 7), columns - 1])
    ax.set(xticks=np.concatenate([start + units for start in starts]), xticklabels=list(map(str, units)) * 3,
           yticks=range(rows), xlabel="hidden unit", ylabel="token")
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(drawn, ax=ax, label="number", pad=0.01)
    return ax
