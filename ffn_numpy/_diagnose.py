"""What is wrong with an answer to a weight puzzle, in words that claim no more than a trial showed."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from ._messages import Message, say
from ._puzzle import CAP, Box, Layers, Line, Puzzle, Rows, rebuilt
from .activations import ACTIVATIONS

SMALL = 80  # parameters: above that, single numbers are not tried


def diagnosis(task: Puzzle, layers: Layers) -> Message:
    """The slip, if one is known or found by trying changes, and what is seen."""
    x = task.points(layers)                                                     # (n, d_model)
    slip, seen = _slip(task, layers, x), _seen(task, layers, x)
    return slip + "\n  " + seen if slip else seen


def _slip(task, layers, x):
    """The usual slip that gives this output everywhere, or a change with which everything is right."""
    got = task.run(layers, x)
    for message, slips in task.slips.items():
        if any(task.right(got, slip(x)).all() for slip in (slips if isinstance(slips, tuple) else (slips,))):
            return say(message)
    if not (got - (x if task.residual else 0)).any():
        return say("The FFN writes 0 for every input: no unit speaks, or the rows are 0.")
    found = next((message for message, repaired in _repairs(task, layers, x) if repaired), None)
    return found or (_about_line(task, layers) if isinstance(task.inputs, Line) else None)


def _repairs(task: Puzzle, layers: Layers, x: np.ndarray) -> Iterator[tuple[str, bool]]:
    """Changes, the simplest first: what would be wrong, and whether everything is right with the change."""
    if task.residual:
        yield (say("ffn(x) alone would be right; but here x is added to it. Let the FFN write only the change."),
               task.solved_by(layers, residual=False))
    else:
        yield say("x + ffn(x) would be right; but here ffn(x) alone counts."), task.solved_by(layers, residual=True)
    if task.gated and task.activation != "identity":
        yield say("Gate and up are exchanged."), task.solved_by(
            [rebuilt(f, W_gate=f.W_up, W_up=f.W_gate, b_gate=f.b_up, b_up=f.b_gate) for f in layers])
    for i, ffn in enumerate(layers):
        where = say(" of layer {i}", i=i) if len(layers) > 1 else ""
        before, after = layers[:i], layers[i + 1:]
        last_first = list(ffn.parameters().items())[::-1]                       # biases and rows before columns
        for name, p in last_first:
            yield (say("The sign of {name}{where} is the wrong way round: with -{name} everything is right.",
                       name=name, where=where),
                   task.solved_by([*before, rebuilt(ffn, **{name: -p}), *after]))
        for name, p in last_first if ffn.n_parameters <= SMALL else ():
            for changed in _other_numbers(p):
                yield (say("One number of {name}{where} is wrong; the others can stay.", name=name, where=where),
                       task.solved_by([*before, rebuilt(ffn, **{name: changed}), *after]))
    if len(layers) == 1:
        yield from _repairs_of_units(task, layers[0], x)
        yield from _repairs_of_rows(task, layers[0], x)
    else:
        yield from _repairs_of_all(task, layers)


def _repairs_of_all(task, layers):
    """Several layers with the same slip in each."""
    for name in layers[0].shapes:
        for factor, message in ((-1, "The sign of {name} is the wrong way round in every layer."),
                                (2, "{name} is half of what it should be, in every layer."),
                                (0.5, "{name} is twice what it should be, in every layer.")):
            changed = [rebuilt(f, **{name: factor * getattr(f, name)}) if getattr(f, name) is not None else f
                       for f in layers]
            yield say(message, name=name), task.solved_by(changed)


def _repairs_of_units(task, ffn, x):
    """One plain layer: units that look the wrong way, and other biases."""
    if task.gated or ffn.n_parameters > SMALL:
        return
    b1 = np.zeros(ffn.d_ff) if ffn.b1 is None else ffn.b1                       # (d_ff,)
    for j in range(ffn.d_ff):
        sign = np.where(np.arange(ffn.d_ff) == j, -1, 1)
        yield (say("One unit looks the wrong way: turn the signs of its column and of its number in b1."),
               task.solved_by([rebuilt(ffn, W1=sign * ffn.W1, b1=sign * b1)]))
    if "b1" not in task.without and ffn.d_ff <= 3:
        missing = say("b1 is missing: with numbers in b1, everything else can stay." if ffn.b1 is None else
                      "Only b1 is wrong: with other numbers in it, everything else can stay.")
        yield missing, _other_biases_do(task, ffn, x)


def _other_biases_do(task, ffn, x):
    """Is everything right with some b1 of whole numbers from -12 to 12? Tried at a few inputs first."""
    some = x[:: max(1, len(x) // 50)]                                           # (n, d_model)
    lift = some @ ffn.W1                                                        # (n, d_ff)
    act = ACTIVATIONS[ffn.activation].function
    biases = np.arange(-12.0, 13)                                               # (25,)
    written = [act(lift[None, :, [j]] + biases[:, None, None]) * ffn.W2[j] for j in range(ffn.d_ff)]  # 25, n, d_model
    rest = task.wanted(some) - (some if task.residual else 0) - (0 if ffn.b2 is None else ffn.b2)
    for chosen in product(range(25), repeat=ffn.d_ff):
        total = sum(w[i] for w, i in zip(written, chosen))
        if np.abs(total - rest).max() <= 1e-6 and task.solved_by([rebuilt(ffn, b1=biases[list(chosen)])]):
            return True
    return False


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
        yield (say("The right numbers are written into the wrong features: look at the places in each row."),
               right(written[:, order]))
    offset = np.median(wanted - written, axis=0)                                # (d_model,)
    if last not in task.without:
        yield (say("Only a constant is missing or too much in {names}: a job for {bias}.",
                   names=names(task, np.abs(offset) > 1e-6), bias=last),
               right(written + offset))
    size = (written * written).sum()
    factor = (written * wanted).sum() / size if size else 0
    if factor:
        yield (say("Everything that the FFN writes is {factor} times what it should be: the rows of {rows}.",
                   factor=text(1 / factor), rows=down),
               right(factor * written))
    if isinstance(task.inputs, Line) or task.tolerance > 1e-9:
        return                                                                  # what is seen says more
    hidden = ffn.trace(x)["gated" if task.gated else "activate"]                # (n, d_ff)
    spare = last not in task.without
    if spare:
        hidden = np.column_stack([hidden, np.ones(len(x))])                     # (n, d_ff + 1)
    rows = np.linalg.lstsq(hidden, wanted, rcond=None)[0]                       # (d_ff + 1, d_model)
    yield (say("The hidden numbers will do: with other rows in {rows} everything is right.",
               rows=f"{down} ({last})" if spare else down),
           np.abs(rows).max() <= CAP and right(hidden @ rows))


class _Bends(NamedTuple):
    """One feature on a line: where it bends, and the slopes before, between and after."""

    at: np.ndarray
    slopes: np.ndarray

    def __str__(self):
        if not len(self.at):
            return say("no fold, slope {slope}", slope=_list(self.slopes))
        return say("folds at {places}, slopes {slopes}", places=_list(self.at), slopes=_list(self.slopes))


def _bends(folds, slopes):
    """Of the places where a line may bend, (n,), those where its slope, (n + 1,), does change."""
    where = np.flatnonzero(np.abs(np.diff(slopes)) > 1e-9)
    return _Bends(folds[where], slopes[[0, *(where + 1)]])


def _lines(task, layers):
    """For each feature: its name, the bends that are there, and those that are wanted."""
    folds, got, wanted = task.slopes(layers)                                    # (n,), (n + 1, d_model) twice
    return [(name, _bends(folds, got[:, j]), _bends(folds, wanted[:, j])) for j, name in enumerate(task.features)]


def _about_line(task, layers):
    """The first bend that is missing, is where none should be, or changes the slope by another amount."""
    for name, mine, theirs in _lines(task, layers):
        where = say(" of {name}", name=name) if len(task.features) > 1 else ""
        if task.deep and len(mine.at) < len(theirs.at):
            return say("It has {n} straight pieces, and {wanted} are wanted. A layer can double them, if what it folds "
                       "lies on both sides of its fold.", n=len(mine.slopes), wanted=len(theirs.slopes))
        extra = [t for t in mine.at if not np.isclose(t, theirs.at, atol=1e-7).any()]
        if extra:
            return say("The line{where} bends at {places}, where it should not: a unit relu(w x + b) folds at "
                       "x = -b / w.", where=where, places=_list(extra))
        for i, t in enumerate(theirs.at):
            if not np.isclose(t, mine.at, atol=1e-7).any():
                return say("Nothing bends{where} at x = {place}, where the slope should go from {before} to {after}: "
                           "a fold is missing there.", where=where, place=text(t), before=text(theirs.slopes[i]),
                           after=text(theirs.slopes[i + 1]))
        if not np.allclose(mine.slopes, theirs.slopes, atol=1e-9):
            return say("The folds{where} are right, the slopes are not. A unit adds column times row to the slope, to "
                       "the right of its fold if its column is positive, to the left if it is negative.", where=where)
    return None


def _seen(task, layers, x):
    """Folds and slopes of a line, or how much is right and the place where it differs most."""
    got, wanted = task.run(layers, x), task.wanted(x)
    fine = task.right(got, wanted)                                              # (n, d_model)
    stays = task.residual & (wanted == x).all(axis=0)                           # (d_model,)
    lines = []
    if isinstance(task.inputs, Line):
        for name, mine, theirs in _lines(task, layers):
            if str(mine) != str(theirs):
                lines.append(say("Yours: {mine}; wanted: {theirs}." if len(task.features) == 1 else
                                 "{name}: yours {mine}; wanted {theirs}.", name=name, mine=mine, theirs=theirs))
    if broken := names(task, stays & ~fine.all(axis=0)):
        lines.append(say("Your FFN writes into what should stay: {names}.", names=broken))
    if not lines or not isinstance(task.inputs, Line):
        lines.append(_worst(task, x, got, wanted, fine))
    if good := names(task, fine.all(axis=0) & ~stays & (wanted != 0).any(axis=0)):
        lines.append(say("Right already: {names}.", names=good))
    seen = lines[0]
    for line in lines[1:]:
        seen += "\n  " + line
    return seen


def _worst(task, x, got, wanted, fine):
    """How many inputs are right, and where the largest difference is."""
    row, column = np.unravel_index(np.argmax(np.where(fine, 0, np.abs(got - wanted))), got.shape)
    used = x.any(axis=0)                                                        # (d_model,)
    given = ", ".join(f"{name} = {v:.4g}" for name, v, u in zip(task.features, x[row] + 0.0, used) if u)
    n = fine.all(axis=1).sum()
    name = "ffn(x)" if len(task.features) == 1 and not task.residual else task.features[column]
    place = say("For {given}: {name} becomes {got}, wanted {wanted}." if task.residual else
                "For {given}: {name} is {got}, wanted {wanted}.", given=given, name=name, got=text(got[row, column]),
                wanted=text(wanted[row, column]))
    if isinstance(task.inputs, Rows):
        place = say("Right for {n} of {all} inputs.", n=n, all=len(x)) + " " + place
    if isinstance(task.inputs, Box):
        place = say("Right on {share:.0%} of the inputs.", share=n / len(x)) + " " + place
    if task.tolerance > 1e-9:
        place += " " + say("The largest error is {error}; {allowed:g} is allowed.",
                           error=text(np.abs(got - wanted).max()), allowed=task.tolerance)
    return place


def _list(values):
    return ", ".join(map(text, values))


def text(value: float) -> str:
    """A number with at most six digits, without -0."""
    return f"{round(float(value), 9) + 0.0:.6g}"


def names(task: Puzzle, which: np.ndarray) -> str:
    """The names of these features, (d_model,) of booleans."""
    return ", ".join(name for name, w in zip(task.features, which) if w)
