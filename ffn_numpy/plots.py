"""The course's figures, in one style. The only module that imports matplotlib.

Every function draws into `ax` (or a new one), returns the Axes and never calls `plt.show()`.
Colours are from Okabe and Ito's colour-blind-safe palette; one stage has one colour everywhere.
"""
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from ._validate import float_array
from .activations import ACTIVATIONS
from .trace import Trace

STAGE_COLORS = {
    "x": "#4D4D4D", "lift": "#0072B2", "gate": "#CC79A7", "activate": "#E69F00",
    "gated": "#D55E00", "project_down": "#009E73",
}
RANDOM_COLOR = "#999999"  # the random twin of a trained layer
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def use_course_style():
    """Set matplotlib's defaults to the course's style: readable on a projector, no ink without meaning."""
    plt.rcParams.update({
        "figure.figsize": (8, 3.4), "figure.dpi": 100, "figure.constrained_layout.use": True,
        "font.size": 11, "axes.titlesize": 12, "axes.titlelocation": "left",
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
        "lines.linewidth": 2, "image.cmap": "PuOr",
    })


def _axes(ax, figsize=None):
    return plt.subplots(figsize=figsize)[1] if ax is None else ax


# Where the ledger draws the stages of a gated FFN: column, and lane above or below the middle.
GATED_PLACES = {"x": (0, 0), "gate": (1, 1), "lift": (1, -1), "activate": (2, 1), "gated": (3, 0),
                "project_down": (4, 0)}
GATED_ARROWS = [("x", "gate"), ("x", "lift"), ("gate", "activate"), ("activate", "gated"), ("lift", "gated"),
                ("gated", "project_down")]


def shape_ledger(shapes, ax=None, mark=None):
    """Draw the arrays of a forward pass to scale: one row per token, one column per number.

    Parameters
    ----------
    shapes : Trace or dict
        Stage name -> shape, in order. Leading batch dimensions are written, not drawn. The stages of a
        gated FFN are drawn as two branches, any others as a chain.
    mark : int or None
        A token (row) to outline in every array.

    Returns
    -------
    Axes, with one Rectangle per array (and one per outlined row)

    Raises
    ------
    ValueError
        If mark is not a row of every array.
    """
    shapes = shapes.shapes if isinstance(shapes, Trace) else dict(shapes)
    sizes = {name: ((1, *shape)[-2:]) for name, shape in shapes.items()}  # one token is drawn as one row
    if mark is not None and not all(0 <= mark < rows for rows, _ in sizes.values()):
        raise ValueError(f"mark must be a row of every array, got {mark} for {sizes}")
    if set(sizes) == set(GATED_PLACES):
        places, arrows = GATED_PLACES, GATED_ARROWS
    else:
        places, arrows = {name: (i, 0) for i, name in enumerate(sizes)}, list(zip(sizes, list(sizes)[1:]))
    two_lanes = any(lane for _, lane in places.values())
    ax = _axes(ax, (10, 4.2 if two_lanes else 2.4))

    widths = [max(sizes[n][1] for n in sizes if places[n][0] == c) for c in range(max(places.values())[0] + 1)]
    tallest, gap = max(rows for rows, _ in sizes.values()), 0.09 * sum(widths)
    boxes = {}  # name -> left, middle, right: where arrows start and end
    for name, (rows, columns) in sizes.items():
        column, lane = places[name]
        left = sum(widths[:column]) + column * gap
        bottom = (0.8 * lane - 0.5) * tallest + (tallest - rows) / 2
        boxes[name] = left, bottom + rows / 2, left + columns
        ax.add_patch(Rectangle((left, bottom), columns, rows, facecolor=STAGE_COLORS.get(name, RANDOM_COLOR),
                               edgecolor="black", alpha=0.75))
        if mark is not None:
            ax.add_patch(Rectangle((left, bottom + rows - 1 - mark), columns, 1, facecolor="none",
                                   edgecolor="black", linewidth=2))
        ax.text(left + columns / 2, bottom + rows + 0.03 * tallest, name, ha="center", va="bottom")
        ax.text(left + columns / 2, bottom - 0.05 * tallest, str(shapes[name]), ha="center", va="top")
    for source, target in arrows:
        start, end = (boxes[source][2], boxes[source][1]), boxes[target][:2]
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "shrinkA": 4, "shrinkB": 4})
    half = (1.5 if two_lanes else 0.72) * tallest
    ax.set(xlim=(-gap / 2, sum(widths) + (len(widths) - 0.5) * gap), ylim=(-half, half))
    ax.axis("off")
    return ax


def activation_curves(names, ax=None, derivative=False, limits=(-4, 4)):
    """Draw activation functions (or their derivatives) by name, each line with its own dash pattern.

    Raises a ValueError for a name that is not in `ACTIVATIONS`.
    """
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if name not in ACTIVATIONS:
            raise ValueError(f"names must be in {', '.join(ACTIVATIONS)}; got {name!r}")
    ax = _axes(ax)
    ax.axhline(0, color="#BBBBBB", linewidth=1)
    ax.axvline(0, color="#BBBBBB", linewidth=1)
    x = np.linspace(*limits, 801)  # (801,)
    colors = ("#000000", "#0072B2", "#E69F00", "#CC79A7", "#009E73")
    for i, name in enumerate(names):
        y = getattr(ACTIVATIONS[name], "derivative" if derivative else "function")(x)  # (801,)
        ax.plot(x, y, label=name, color=colors[i % 5], linestyle=LINE_STYLES[i % 5])
    ax.set(xlabel="input h", ylabel="slope of act at h" if derivative else "act(h)", xlim=limits)
    ax.legend()
    return ax


def distribution(arrays, ax=None, bins=50, limits=None, colors=None, log=False):
    """Histograms of several arrays on the same bins, with the exact zeros in a strip of their own.

    Parameters
    ----------
    arrays : dict
        Label -> array. A label that is a stage's name takes the stage's colour.
    bins : int
    limits : (low, high) or None
        None spans all values. What lies outside is counted at the edges' bins.
    colors : dict or None
        Label -> colour, where the label is no stage.
    log : bool
        Logarithmic share axis, for heavy tails.

    Returns
    -------
    Axes
        The histogram: height is the share of *all* values, so bars and zeros sum to 1. Where an array
        holds exact zeros, `ax.child_axes[0]` is the strip with their shares.

    Raises
    ------
    ValueError
        If arrays is empty, or an array has no values.
    """
    if not arrays:
        raise ValueError("arrays must hold at least one array, got none")
    flat = {label: float_array(label, a).ravel() for label, a in arrays.items()}
    for label, a in flat.items():
        if not a.size:
            raise ValueError(f"arrays[{label!r}] must hold values, got shape {np.shape(arrays[label])}")
    low, high = limits or (min(a.min() for a in flat.values()), max(a.max() for a in flat.values()))
    edges = np.linspace(low, high, bins + 1)  # (bins + 1,)
    palette = STAGE_COLORS | {"random": RANDOM_COLOR} | (colors or {})
    spare = iter(("#0072B2", "#E69F00", "#CC79A7", "#009E73", "#D55E00"))
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
    zeros = {label: float((a == 0).mean()) for label, a in flat.items()}
    if any(zeros.values()):
        strip = ax.inset_axes([1.04, 0, 0.06 * len(zeros), 1])
        bars = strip.bar(range(len(zeros)), [100 * z for z in zeros.values()], color=[chosen[z] for z in zeros])
        strip.bar_label(bars, [f"{100 * z:.0f} %" for z in zeros.values()], fontsize=9)
        strip.set(ylim=(0, 112), xticks=[], yticks=[], xlim=(-0.7, len(zeros) - 0.3))
        strip.set_xlabel("exactly 0", fontsize=9)
        strip.spines["left"].set_visible(False)
    return ax


def gate_heatmap(gate, value, product, ax=None, mark=None):
    """Three heatmaps in a row: activated gate x value = product; negative cells carry a minus sign.

    Parameters
    ----------
    gate, value, product : array_like (n_tokens, d_ff), all of one shape
    mark : int or None
        A token (row) to outline.

    Returns
    -------
    Axes, holding one image of shape (n_tokens, 3 d_ff + 2 gaps)

    Raises
    ------
    ValueError
        If the three are not matrices of the same shape.
    """
    parts = [float_array(n, a) for n, a in (("gate", gate), ("value", value), ("product", product))]
    if any(p.ndim != 2 or p.shape != parts[0].shape for p in parts):
        raise ValueError(f"gate, value and product must be matrices of one shape, got {[p.shape for p in parts]}")
    rows, columns = parts[0].shape
    gap = np.full((rows, max(2, columns // 8)), np.nan)                       # (n_tokens, gap)
    image = np.hstack([parts[0], gap, parts[1], gap, parts[2]])               # (n_tokens, 3 d_ff + 2 gap)
    ax = _axes(ax, (11, 2.6))
    size = np.nanmax(np.abs(image))
    drawn = ax.imshow(image, cmap="PuOr", vmin=-size, vmax=size, aspect="auto")
    for row, column in zip(*np.nonzero(image < 0)):
        ax.text(column, row, "\N{MINUS SIGN}", ha="center", va="center", fontsize=7)
    step = columns + gap.shape[1]
    for i, title in enumerate(("act(gate)", "value (lift)", "gated")):
        ax.text(i * step + (columns - 1) / 2, -0.8, title, ha="center", va="bottom")
        if mark is not None:
            ax.add_patch(Rectangle((i * step - 0.5, mark - 0.5), columns, 1, fill=False, linewidth=2))
    for i, sign in enumerate(("×", "=")):
        ax.text(i * step + columns - 0.5 + gap.shape[1] / 2, (rows - 1) / 2, sign, ha="center", va="center",
                fontsize=16)
    ax.set(xticks=[], yticks=range(rows), ylabel="token")
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(drawn, ax=ax, label="value", pad=0.01)
    return ax
