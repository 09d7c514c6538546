"""Lesson 04, project down: counting parameters, what each unit writes, units that decide, reordered units."""
import numpy as np

from . import ROWS, Exercise


def _sizes(c):
    return c.d, c.f


def _write_inputs(c):
    return c.normal(c.lead[0], c.f), c.normal(c.f, c.d)                         # a, W2


def _facts(c):
    """What each of f units needs and forbids, of d features: the numbers of both differ from unit to unit."""
    needed, forbidden = np.zeros((c.f, c.d)), np.zeros((c.f, c.d))
    for j in range(c.f):
        order, n = c.rng.permutation(c.d), 1 + j % (c.d - 1)
        needed[j, order[:n]] = forbidden[j, order[n:n + (2 - j) % 3]] = 1
    return needed, forbidden


def _deciding(needed, forbidden):
    return (needed - forbidden).T, 1 - needed.sum(axis=1)


def _shuffle_inputs(c):
    order = np.roll(np.arange(c.f), 1)                                          # not its own inverse
    order[:3] = order[c.rng.permutation(3)]
    while np.array_equal(order[order], np.arange(c.f)) or np.array_equal(order, np.roll(np.arange(c.f), 1)):
        order = c.rng.permutation(c.f)
    return c.normal(c.d, c.f), c.normal(c.f), c.normal(c.f, c.d), order


EXERCISES = {
    "4.1": Exercise(
        1, "count_parameters(d_model, d_ff)", lambda d, f: 2 * d * f + d + f, _sizes, {
            "The biases are missing: b1 has d_ff numbers, b2 has d_model.": lambda d, f: 2 * d * f,
            "b2 is missing: it has d_model numbers.": lambda d, f: 2 * d * f + f,
            "b1 is missing: it has d_ff numbers.": lambda d, f: 2 * d * f + d,
            "Three matrices: that is the gated FFN; the plain one has two.": (
                lambda d, f: 3 * d * f, lambda d, f: 3 * d * f + d + f, lambda d, f: 3 * d * f + d + 2 * f),
            "Only one of the matrices is counted.": lambda d, f: d * f + d + f,
            "Only W1 and b1 are counted: the way down has parameters too.": lambda d, f: d * f + f,
            "Both biases are counted with d_ff numbers: b2 has d_model.": lambda d, f: 2 * d * f + 2 * f,
            "Both biases are counted with d_model numbers: b1 has d_ff.": lambda d, f: 2 * d * f + 2 * d,
            "One bias for each weight: a bias has one number for each *output* of its matrix.":
                lambda d, f: 4 * d * f,
            "Only the last part is left: total = ... starts anew each time, total += ... adds.": (
                lambda d, f: d, lambda d, f: f),
            "d_ff was taken as 4 d_model: it is an argument of its own.": lambda d, f: 8 * d * d + 5 * d,
        }),
    "4.2": Exercise(
        2, "writes(a, W2)", lambda a, W2: a[:, :, None] * W2, _write_inputs, {
            "The units are summed already: that is a @ W2. Keep one row for each unit, shape (T, d_ff, d_model).":
                lambda a, W2: a @ W2,
            "The last two axes are swapped: (T, d_ff, d_model), unit first.":
                lambda a, W2: np.swapaxes(a[:, :, None] * W2, 1, 2),
            "Every unit writes its whole row, whatever its value: multiply row j of W2 by a[t, j].":
                lambda a, W2: np.ones_like(a)[:, :, None] * W2,
            "The tokens are summed: keep them apart, shape (T, d_ff, d_model).":
                lambda a, W2: a.sum(axis=0)[:, None] * W2,
            "a is spread along the wrong axis: its number j belongs to *row* j of W2.":
                lambda a, W2: a[:, None, :] * W2,
            "The size of the write, without its direction or sign: the row itself is asked for.":
                lambda a, W2: np.abs(a[:, :, None] * W2),
        }, ROWS),
    "4.3": Exercise(
        2, "deciding_units(needed, forbidden)", _deciding, _facts, {
            "The bias is -1 for every unit: that fits units that need two features.":
                lambda n, f: ((n - f).T, -np.ones(len(n), n.dtype)),
            "The threshold is too high by 1: with everything needed and nothing forbidden the unit gets exactly 0.":
                lambda n, f: ((n - f).T, -n.sum(axis=1)),
            "The bias counts the forbidden features, too: when a unit should speak, none of them is there.": (
                lambda n, f: ((n - f).T, 1 - n.sum(axis=1) - f.sum(axis=1)),
                lambda n, f: ((n - f).T, 1 - n.sum(axis=1) + f.sum(axis=1))),
            "The bias has the wrong sign: it must pull the unit down.": (
                lambda n, f: ((n - f).T, n.sum(axis=1) - 1), lambda n, f: ((n - f).T, n.sum(axis=1))),
            "There is no threshold: one needed feature is enough to make the unit speak.":
                lambda n, f: ((n - f).T, np.zeros(len(n), n.dtype)),
            "A unit that should say 1 says 0.5: the bias is half a step too low.":
                lambda n, f: ((n - f).T, 0.5 - n.sum(axis=1)),
            "The forbidden features are ignored: each needs a weight of -1 in the unit's column.": (
                lambda n, f: (n.T, 1 - n.sum(axis=1)), lambda n, f: (n.T, -n.sum(axis=1))),
            "The forbidden features count as needed ones: their weight is -1, not 1.": (
                lambda n, f: ((n + f).T, 1 - n.sum(axis=1)),
                lambda n, f: ((n + f).T, 1 - n.sum(axis=1) - f.sum(axis=1))),
            "W1 is on its side: each unit owns a *column*, so W1 has shape (d_model, d_ff).":
                lambda n, f: (n - f, 1 - n.sum(axis=1)),
            "b1 was summed along the wrong axis: it has one number for each unit, (d_ff,).": (
                lambda n, f: ((n - f).T, 1 - n.sum(axis=0)), lambda n, f: ((n - f).T, 1 - n.sum())),
            "Needed and forbidden are exchanged.": lambda n, f: _deciding(f, n),
        }, ROWS, ("W1", "b1")),
    "4.4": Exercise(
        3, "reordered(W1, b1, W2, order)", lambda W1, b1, W2, order: (W1[:, order], b1[order], W2[order]),
        _shuffle_inputs, {
            "Still as broken: something that belongs to a hidden unit stays behind. Hint 1 says how to find it.":
                lambda W1, b1, W2, order: (W1[:, order], b1, W2[order]),
            "W2 stays behind: unit j reads column j of W1 and writes row j of W2; both must move.":
                lambda W1, b1, W2, order: (W1[:, order], b1[order], W2),
            "W2 is reordered by the inverse: new unit i is old unit order[i] in all three arrays.":
                lambda W1, b1, W2, order: (W1[:, order], b1[order], W2[np.argsort(order)]),
            "Only b1 moved: column of W1, number of b1 and row of W2 belong together.":
                lambda W1, b1, W2, order: (W1, b1[order], W2),
            "b1 and W2 stay behind: column of W1, number of b1 and row of W2 belong together.":
                lambda W1, b1, W2, order: (W1[:, order], b1, W2),
            "W1 stays behind: column of W1, number of b1 and row of W2 belong together.":
                lambda W1, b1, W2, order: (W1, b1[order], W2[order]),
            "W1 is reordered by the inverse: new unit i is old unit order[i], so W1[:, order].":
                lambda W1, b1, W2, order: (W1[:, np.argsort(order)], b1[order], W2[order]),
            "b1 is reordered by the inverse: new unit i is old unit order[i], so b1[order].":
                lambda W1, b1, W2, order: (W1[:, order], b1[np.argsort(order)], W2[order]),
            "All three are reordered by the inverse: new unit i is old unit order[i].":
                lambda W1, b1, W2, order: (W1[:, np.argsort(order)], b1[np.argsort(order)], W2[np.argsort(order)]),
            "The rows of W1 moved: a hidden unit is a *column* of W1, W1[:, order].":
                lambda W1, b1, W2, order: (W1[order], b1[order], W2[order]),
            "The columns of W2 moved: a hidden unit is a *row* of W2, W2[order].":
                lambda W1, b1, W2, order: (W1[:, order], b1[order], W2[:, order]),
            "Nothing moved.": lambda W1, b1, W2, order: (W1, b1, W2),
        }, ROWS, ("W1", "b1", "W2")),
}
