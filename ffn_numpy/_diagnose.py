"""What is wrong with an answer to a weight puzzle, in words that claim no more than a trial showed."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from ._puzzle import CAP, Box, Layers, Line, Puzzle, Rows, rebuilt

SMALL = 80  # parameters: above that, single numbers are not tried


def diagnosis(task: Puzzle, layers: Layers) -> str:
    """The slip, if one is known or found by trying changes, and what is seen."""
    x = task.points(layers)                                                     # (n, d_model)
    return "\n  ".join(filter(None, (_slip(task, layers, x), _seen(task, layers, x))))


def _slip(task, layers, x):
    """The usual slip that gives this output everywhere, or a change with which everything is right."""
    got = task.run(layers, x)
    for message, slips in task.slips.items():
        if any(task.right(got, slip(x)).all() for slip in (slips if isinstance(slips, tuple) else (slips,))):
            return message
    found = next((message for message, repaired in _repairs(task, layers, x) if repaired), None)
    return found or (_about_line(task, layers, x) if isinstance(task.inputs, Line) else None)


def _repairs(task: Puzzle, layers: Layers, x: np.ndarray) -> Iterator[tuple[str, bool]]:
    """Changes, the simplest first: what would be wrong, and whether everything is right with the change."""
    if task.residual:
        yield ("ffn(x) alone would be right; but here x is added to it. Let the FFN write only the change.",
               task.solved_by(layers, residual=False))
    else:
        yield "x + ffn(x) would be right; but here ffn(x) alone counts.", task.solved_by(layers, residual=True)
    if task.gated and task.activation != "identity":
        yield "Gate and up are exchanged.", task.solved_by(
            [rebuilt(f, W_gate=f.W_up, W_up=f.W_gate, b_gate=f.b_up, b_up=f.b_gate) for f in layers])
    for i, ffn in enumerate(layers):
        where = f" of layer {i}" if len(layers) > 1 else ""
        before, after = layers[:i], layers[i + 1:]
        for name, p in ffn.parameters().items():
            yield (f"The sign of {name}{where} is the wrong way round: with -{name} everything is right.",
                   task.solved_by([*before, rebuilt(ffn, **{name: -p}), *after]))
        for name, p in ffn.parameters().items() if ffn.n_parameters <= SMALL else ():
            for changed in _other_numbers(p):
                yield (f"One number of {name}{where} is wrong; the others can stay.",
                       task.solved_by([*before, rebuilt(ffn, **{name: changed}), *after]))
    if len(layers) == 1:
        yield from _repairs_of_rows(task, layers[0], x)


def _other_numbers(p):
    """p with one of its numbers replaced: its sign, nothing, one more or less, double, half."""
    for where in np.ndindex(p.shape):
        v = p[where]
        for other in dict.fromkeys((-v, 0.0, v + 1, v - 1, 2 * v, v / 2, 1.0, -1.0)):
            if other != v:
                changed = p.copy()
                changed[where] = other
                yield changed


def _repairs_of_rows(task, ffn, x):
    """One layer: what the rows and the last bias could do for the hidden numbers as they are."""
    down, last = ("W_down", "b_down") if task.gated else ("W2", "b2")
    base = x if task.residual else 0 * x
    written, wanted = task.run([ffn], x) - base, task.wanted(x) - base          # (n, d_model)

    def right(change):
        return task.right(base + change, base + wanted).all()

    for order in permutations(range(ffn.d_model)) if ffn.d_model < 5 else ():
        yield ("The right numbers are written into the wrong features: look at the places in each row.",
               right(written[:, order]))
    offset = np.median(wanted - written, axis=0)                                # (d_model,)
    if last not in task.without:
        yield (f"Only a constant is missing or too much in {names(task, np.abs(offset) > 1e-6)}: a job for {last}.",
               right(written + offset))
    size = (written * written).sum()
    factor = (written * wanted).sum() / size if size else 0
    if factor:
        yield (f"Everything that the FFN writes is {text(1 / factor)} times what it should be: the rows of {down}.",
               right(factor * written))
    if isinstance(task.inputs, Line):
        return                                                                  # _about_line says more
    hidden = ffn.trace(x)["gated" if task.gated else "activate"]                # (n, d_ff)
    spare = f" (and {last})" * (last not in task.without)
    if spare:
        hidden = np.column_stack([hidden, np.ones(len(x))])                     # (n, d_ff + 1)
    rows = np.linalg.lstsq(hidden, wanted, rcond=None)[0]                       # (d_ff + 1, d_model)
    yield (f"The hidden numbers will do: with other rows in {down}{spare} everything is right.",
           np.abs(rows).max() <= CAP and right(hidden @ rows))


def _about_line(task, layers, x):
    """The first bend that is missing, is where none should be, or changes the slope by another amount."""
    t, got, wanted = x[:, 0], task.run(layers, x), task.wanted(x)
    for j, name in enumerate(task.features):
        (at, mine), (wanted_at, theirs) = _pieces(t, got[:, j]), _pieces(t, wanted[:, j])
        where = f" of {name}" if len(task.features) > 1 else ""
        extra = [k for k in at if not np.isclose(k, wanted_at, atol=1e-7).any()]
        if extra:
            return (f"The line{where} bends at {_list(extra)}, where it should not: a unit relu(w x + b) folds at "
                    "x = -b / w.")
        for i, k in enumerate(wanted_at):
            if not np.isclose(k, at, atol=1e-7).any():
                return (f"Nothing bends{where} at x = {text(k)}, where the slope should go from {text(theirs[i])} to "
                        f"{text(theirs[i + 1])}: a fold is missing there.")
        if len(mine) == len(theirs) and not np.allclose(mine, theirs):
            return f"The folds{where} are right, the slopes are not: look at column times row of each unit."
    return None


def _seen(task, layers, x):
    """Folds and slopes of a line, or how much is right and the place where it differs most."""
    got, wanted = task.run(layers, x), task.wanted(x)
    fine = task.right(got, wanted)                                              # (n, d_model)
    stays = task.residual & (wanted == x).all(axis=0)                           # (d_model,)
    lines = []
    if isinstance(task.inputs, Line):
        for j, name in enumerate(task.features):
            mine, theirs = _line_text(x[:, 0], got[:, j]), _line_text(x[:, 0], wanted[:, j])
            title = f"{name}: " if len(task.features) > 1 else ""
            lines += [f"{title}{mine[0].upper()}{mine[1:]}; wanted: {theirs}."] if mine != theirs else []
    if broken := names(task, stays & ~fine.all(axis=0)):
        lines.append(f"{broken} should stay, and your FFN writes into it.")
    if not lines or not isinstance(task.inputs, Line):
        lines.append(_worst(task, x, got, wanted, fine))
    if good := names(task, fine.all(axis=0) & ~stays & (wanted != 0).any(axis=0)):
        lines.append(f"Right already: {good}.")
    return "\n  ".join(lines)


def _worst(task, x, got, wanted, fine):
    """How many inputs are right, and where the largest difference is."""
    row, column = np.unravel_index(np.argmax(np.where(fine, 0, np.abs(got - wanted))), got.shape)
    used = x.any(axis=0)                                                        # (d_model,)
    given = ", ".join(f"{name} = {v:.4g}" for name, v, u in zip(task.features, x[row] + 0.0, used) if u)
    n = fine.all(axis=1).sum()
    part = {Rows: f"Right for {n} of {len(x)} inputs. ", Box: f"Right on {n / len(x):.0%} of the inputs. "}
    name = "ffn(x)" if len(task.features) == 1 and not task.residual else task.features[column]
    error = np.abs(got - wanted).max()
    allowed = f" The largest error is {text(error)}; {task.tolerance:g} is allowed." * (task.tolerance > 1e-9)
    return (f"{part.get(type(task.inputs), '')}For {given}: {name} is {text(got[row, column])}, wanted "
            f"{text(wanted[row, column])}.{allowed}")


def _pieces(t, y):
    """The folds of a piecewise straight line through these points, and the slopes before, between and after them."""
    slopes = np.diff(y) / np.diff(t)                                            # (n - 1,)
    bends = np.flatnonzero(np.abs(np.diff(slopes)) > 1e-7)
    return t[1:-1][bends], slopes[[0, *(bends + 1)]]


def _line_text(t, y):
    """"folds at 2, 5, slopes 0, 0.333333, 0" or "slope 1, 0 at x = 0", from the values at the knots."""
    folds, slopes = _pieces(t, y)
    if len(folds):
        return f"fold{'s' * (len(folds) > 1)} at {_list(folds)}, slopes {_list(slopes)}"
    return f"slope {_list(slopes)}, {text(y[0] - slopes[0] * t[0])} at x = 0"


def _list(values):
    return ", ".join(map(text, values))


def text(value: float) -> str:
    """A number with at most six digits, without -0."""
    return f"{round(float(value), 9) + 0.0:.6g}"


def names(task: Puzzle, which: np.ndarray) -> str:
    """The names of these features, (d_model,) of booleans."""
    return ", ".join(name for name, w in zip(task.features, which) if w)
