"""Weight puzzles: write the weights of an FFN by hand, and see what they compute.

    from ffn_numpy.puzzles import puzzle
    puzzle("2.4", ramp)         # your function, which builds the FFN; the FFN itself, or a list of layers, will do

A puzzle draws what the answer computes over what is wanted, judges it on the whole domain (all inputs if they are few;
all real numbers, by folds and slopes, for ReLU of one number; else hidden ones), and counts units against par. If the
answer is wrong, it tries changes: a message names one only if everything would be right with it.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ._call import error_text, raised_by, timed
from ._diagnose import diagnosis, text
from ._messages import CheckFailed, NotAttempted, say
from ._puzzle import CAP, Impossible, Line, Puzzle, Rows, on_line, rebuilt
from ._validate import short
from .check import show
from .exercises.puzzles import PUZZLES
from .ffn import FeedForward, GatedFeedForward

N_MEMBERS = 200  # random FFNs of a family on which a witness is tried


def puzzle(number: str, answer: Any, draw: bool = True) -> None:
    """Judge an answer to a weight puzzle: draw it over what is wanted, and count its units against par.

    Parameters
    ----------
    number : str, the puzzle, such as "2.4"
    answer : the FFN; a list of FFNs, the layers in a row; or a function without arguments that builds one of them.
        For an impossible puzzle: inputs (n, ...) and coefficients (n,), or a function that returns them.
    draw : bool, whether to show figures and tables

    Raises
    ------
    CheckFailed
        If the answer is wrong; the message says what is seen, and names the slip if a trial shows it.
    NotAttempted
        If the function raises NotImplementedError.
    ValueError
        If there is no such puzzle.

    Examples
    --------
    >>> puzzle("4.1", FeedForward([[-1]], None, [[2]], None), draw=False)
    ✓ 4.1 |x|: right on all real numbers. 1 unit, par 1 (proved).
    >>> puzzle("4.1", FeedForward([[1]], None, [[2]], None), draw=False)
    Traceback (most recent call last):
    ffn_numpy.check.CheckFailed: ✗ 4.1 |x|
      For positive x it is 2x or more: the unit hears positive x, where nothing has to change.
      Yours: folds at 0, slopes 1, 3; wanted: folds at 0, slopes -1, 1.
    [4.1 78f520]
    """
    if not isinstance(number, str) or number not in PUZZLES:
        raise ValueError(f"puzzle must be one of {', '.join(PUZZLES)}; got {short(number)}")
    task = PUZZLES[number]
    try:
        answer = _built(task, answer)
        verdict = _witness(task, answer, draw) if isinstance(task, Impossible) else _judge(task, answer, draw)
    except CheckFailed as failure:
        raise failure.titled(number, f"{number} {say(task.title)}") from None
    show(f"✓ {number} {say(task.title)}: {verdict}")


def _built(task, answer):
    """What the learner's function returns; anything else as it is."""
    if isinstance(answer, (FeedForward, GatedFeedForward)) or not callable(answer):
        return answer
    try:
        return timed(answer)
    except (KeyboardInterrupt, CheckFailed):
        raise
    except BaseException as error:
        if isinstance(error, NotImplementedError) and raised_by(answer, error):
            raise NotAttempted(say("Not attempted yet: replace `raise NotImplementedError()` by your code.")) from None
        raise CheckFailed(say("{name}() stopped with {kind}: {text}", name=task.call, kind=type(error).__name__,
                              text=error_text(error))) from None


# ---- the FFN and its conditions

def _judge(task, answer, draw):
    layers = _layers(task, answer)
    if draw:
        _draw(task, layers)
    if not task.solved_by(layers):
        raise CheckFailed(diagnosis(task, layers))
    return f"{_where(task, len(task.points(layers)))} {_score(task, sum(ffn.d_ff for ffn in layers))}"


def _where(task, n):
    if isinstance(task.inputs, Rows):
        return say("right for all {n} inputs.", n=n)
    if not isinstance(task.inputs, Line):
        return say("right on {n:,} hidden inputs.", n=n)
    return say("right on all real numbers from 0 up.") if task.inputs.low == 0 else say("right on all real numbers.")


def _score(task, units):
    par = say("par {par} (proved)" if task.proved else "par {par} (best known)", par=task.par)
    line = say("{units} unit, {par}." if units == 1 else "{units} units, {par}.", units=units, par=par)
    if units < task.par:
        return line + " " + say("That is fewer than anybody is known to need: please tell us!")
    return line + (" " + say("It can be done with {n} fewer.", n=units - task.par) if units > task.par else "")


def _layers(task: Puzzle, answer: Any) -> list:
    """The layers, rebuilt in float64 from their weights, if they meet the puzzle's conditions."""
    kind = GatedFeedForward if task.gated else FeedForward
    layers = list(answer) if isinstance(answer, (list, tuple)) else [answer]
    for ffn in layers:
        if not isinstance(ffn, (FeedForward, GatedFeedForward)):
            came = "None" if ffn is None else say("an object of type {kind}", kind=type(ffn).__name__)
            raise CheckFailed(say("A {wanted} is asked for; yours is {came}. Does the function return it?",
                                  wanted=kind.__name__, came=came))
    if not layers:
        raise CheckFailed(say("At least one FFN is asked for; yours are {n}.", n=0))
    if len(layers) > 1 and not task.deep:
        raise CheckFailed(say("Exactly one FFN is asked for; yours are {n}.", n=len(layers)))
    for i, ffn in enumerate(layers):
        if problem := _condition(task, kind, ffn):
            raise CheckFailed(say("Layer {i}: {problem}", i=i, problem=problem) if len(layers) > 1 else problem)
    return [rebuilt(ffn) for ffn in layers]


def _condition(task, kind, ffn):
    """Which condition of the puzzle this layer does not meet, or None."""
    if not isinstance(ffn, kind):
        return say("A {wanted} is asked for; yours is a {came}.", wanted=kind.__name__, came=type(ffn).__name__)
    if ffn.activation != task.activation:
        return say("The activation is to be {wanted!r}; yours is {came!r}.", wanted=task.activation,
                   came=ffn.activation)
    if ffn.d_model != len(task.features):
        return say("d_model is {wanted} here, one number for each of {names}; yours has d_model = {came}.",
                   wanted=len(task.features), names=", ".join(task.features), came=ffn.d_model)
    for name, p in ffn.parameters().items():
        if not np.isfinite(p).all() or np.abs(p).max() > CAP:
            return say("{name} holds {value}; weights go from -{cap:,.0f} to {cap:,.0f} here.", name=name,
                       value=text(np.abs(p).max()), cap=CAP)
        if name in task.without and np.any(p):
            return say("This puzzle has no {name}: pass None.", name=name)
    return None


# ---- pictures and tables

def _draw(task, layers):
    """A curve where one number varies, two maps where two do, a table for the rest."""
    inputs, d = task.inputs, len(task.features)
    if isinstance(inputs, Rows):
        if d == 1:
            return _curves(task, layers, inputs.x, dots=True)
        if len(inputs.x) > 16:
            return _maps(task, layers, inputs.x)
        return _table(task, layers, inputs.x)
    if isinstance(inputs, Line):
        folds, got, _ = task.slopes(layers)                                     # (n,), (n + 1, d_model)
        bends = folds[(np.abs(np.diff(got, axis=0)) > 1e-9).any(axis=1)]        # a fold far away is to be seen, too
        low, high = min([0, *inputs.folds, *bends]) - 3, max([0, *inputs.folds, *bends]) + 3
        return _curves(task, layers, on_line(np.linspace(max(low, inputs.low), high, 301), d))
    if inputs.free == 1:
        size = 0.02 if inputs.fine else min(inputs.size, 4)
        return _curves(task, layers, on_line(np.linspace(-size, size, 301), d))
    if inputs.free == 2:
        side = np.linspace(-inputs.size, inputs.size, 11)
        return _maps(task, layers, np.array([[a, b, *[0] * (d - 2)] for a in side for b in side]))
    return _table(task, layers, np.random.default_rng(0).integers(-9, 10, size=(6, d)).astype(float))


def _shown(task, x, got, wanted):
    """The features that the FFN should write into, or does."""
    quiet = x if task.residual else 0 * x
    moved = ~(np.isclose(got, quiet) & np.isclose(wanted, quiet)).all(axis=0)   # (d_model,)
    return [int(j) for j in np.flatnonzero(moved)] or [0]


def _curves(task, layers, x, dots=False):
    from . import plots

    got, wanted = task.run(layers, x), task.wanted(x)
    shown = _shown(task, x, got, wanted)
    fig, axes = plots.plt.subplots(1, len(shown), figsize=(2 * len(shown) + 1.2, 1.6), squeeze=False,
                                    dpi=100 if len(shown) == 1 else 80, layout="constrained")
    for ax, j in zip(axes[0], shown):
        plots.computed_over_wanted(x[:, 0], got[:, j], wanted[:, j], dots=dots, ax=ax)
        ax.set(xlabel=task.features[0], ylabel=_output(task, j))
        if ax is not axes[0, -1]:
            ax.get_legend().remove()
    _show(fig)


def _maps(task, layers, x):
    from . import plots

    got, wanted = task.run(layers, x), task.wanted(x)
    shown = _shown(task, x, got, wanted)[:2]
    limits = min(got.min(), wanted.min()), max(got.max(), wanted.max())
    n = 2 * len(shown)
    fig, axes = plots.plt.subplots(1, n, figsize=(1.3 * n + 1, 1.6), sharey=True, dpi=100 if n == 2 else 80,
                                    layout="constrained")
    for i, ax in enumerate(axes):
        j, y, name = shown[i // 2], (wanted, got)[i % 2], ("wanted", "yours")[i % 2]
        plots.value_map(x[:, 0], x[:, 1], y[:, j], limits=limits, ax=ax, bar=i == n - 1)
        ax.set(xlabel=task.features[0], title=name if n == 2 else f"{task.features[j]}, {name}")
    axes[0].set_ylabel(task.features[1])
    _show(fig)


def _output(task, j):
    """What the axis of feature j says."""
    name = "" if len(task.features) == 1 else f", {task.features[j]}"
    return f"{'x + ' * task.residual}ffn(x){name}"


def _show(fig):
    from .plots import plt

    if plt.get_backend().lower() == "agg":  # nowhere to show it
        plt.close(fig)
    else:
        plt.show()


def _table(task, layers, x):
    got, wanted = task.run(layers, x), task.wanted(x)
    shown = range(x.shape[1]) if task.residual else _shown(task, x, got, wanted)
    given = np.flatnonzero(x.any(axis=0))
    after = "'" * task.residual
    names = [*(task.features[j] for j in given), *(task.features[j] + after for j in shown)]
    print("   ".join(f"{name:>6}" for name in names), "  (wanted, where it differs)")
    for row, mine, theirs, fine in zip(x, got, wanted, task.right(got, wanted)):
        cells = [f"{row[j] + 0.0:6.3g}" for j in given] + [f"{mine[j] + 0.0:6.3g}" for j in shown]
        wrong = ", ".join(f"{task.features[j]} {text(theirs[j])}" for j in shown if not fine[j])
        print("   ".join(cells) + (f"   ({wrong})" if wrong else ""))
    print()


# ---- the impossible ones

def _witness(task, answer, draw):
    x, c = _read_witness(task, answer)
    rng = np.random.default_rng(0)
    members = [task.member(rng) for _ in range(N_MEMBERS)]
    values = [(name, f(x)) for name, f in members]                              # (n,) each
    target = task.target(x)
    if draw:
        _witness_table(task, x, c, target, values[:3])
    total = c @ target
    tells = abs(total) > 1e-6 * (np.abs(c) @ np.abs(target))
    for name, y in values:
        if abs(c @ y) > 1e-9 * (np.abs(c) @ np.abs(y)):
            raise CheckFailed(say("For one of the family, {name}, the sum is {sum:.3g}, not 0.", name=name, sum=c @ y)
                              + "\n  " + _about_inputs([y for _, y in values], target))
    if not tells:
        raise CheckFailed(say("The sum is 0 for the family, and for the target, too.")
                          + "\n  " + _about_inputs([y for _, y in values], target))
    return say("the sum is 0 for each of {n} random members of the family, and {sum} for the target. The same inputs "
               "and coefficients cannot give both: the target is none of them.", n=N_MEMBERS, sum=text(total))


def _about_inputs(values, target):
    """Whether other coefficients would do for these inputs: those that vanish on the members, and not on the target."""
    scaled = np.array([y / max(np.abs(y).max(), 1e-300) for y in values])       # (n_members, n)
    _, sizes, directions = np.linalg.svd(scaled, full_matrices=True)
    vanish = directions[(sizes > 1e-9 * sizes[0]).sum():]                       # (some, n)
    if np.abs(vanish @ target).max(initial=0) > 1e-6:
        return say("These inputs will do, with other coefficients.")
    return say("No coefficients tell them apart at these inputs: choose others, or more.")


def _read_witness(task, answer):
    """inputs (n, size) and coefficients (n,) as float64."""
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        came = "None" if answer is None else say("of type {kind}", kind=type(answer).__name__)
        raise CheckFailed(say("Two results are asked for: inputs and coefficients. Yours is {came}.", came=came))
    try:
        x, c = (np.asarray(part, dtype=np.float64) for part in answer)
    except (TypeError, ValueError):
        raise CheckFailed(say("inputs and coefficients must be arrays of numbers.")) from None
    if x.ndim == 1 and task.size == 1:
        x = x[:, None]
    shape = f"(n, {task.size})" if task.size > 1 else "(n,)"
    if x.ndim != 2 or x.shape[1] != task.size or not len(x):
        raise CheckFailed(say("inputs must have shape {wanted}; yours has {came}. The answer is two results: return "
                              "inputs, coefficients.", wanted=shape, came=np.shape(answer[0])))
    if c.shape != (len(x),):
        raise CheckFailed(say("There must be one coefficient for each input: {wanted}; yours has shape {came}.",
                              wanted=(len(x),), came=c.shape))
    for name, a in (("inputs", x), ("coefficients", c)):
        if not np.isfinite(a).all() or np.abs(a).max() > CAP:
            raise CheckFailed(say("{name} must be finite, up to {cap:,.0f}.", name=name, cap=CAP))
    if task.bits and not np.isin(x, (0, 1)).all():
        raise CheckFailed(say("inputs must be zeros and ones."))
    if not c.any():
        raise CheckFailed(say("All coefficients are 0: then the sum is 0 for every function, the target too."))
    return x, c


def _witness_table(task, x, c, target, values):
    print(f"{'input':>14}  coefficient    target   " + "   ".join(f"{name:>16}" for name, _ in values))
    for i, row in enumerate(x):
        text = ", ".join(f"{v:.4g}" for v in row + 0.0)
        print(f"{text:>14}  {c[i]:11.4g}  {target[i] + 0.0:8.4g}   "
              + "   ".join(f"{y[i]:16.4f}" for _, y in values))
    print(f"{'sum':>14}  {'':11}  {round(c @ target, 4) + 0.0:8.4g}   "
          + "   ".join(f"{round(c @ y, 4) + 0.0:16.4f}" for _, y in values) + "\n")
