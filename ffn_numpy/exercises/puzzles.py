"""The weight puzzles: what each FFN is to compute, under which conditions, and how few units can do it.

`ffn_numpy.puzzles` judges the answers. The proofs of the pars stand in notebooks/solutions/12_weight_puzzles.ipynb.
"""
from __future__ import annotations

from itertools import product

import numpy as np

from .._puzzle import Box, Impossible, Line, Puzzle, Rows
from ..activations import gelu, relu, silu
from ..ffn import FeedForward, GatedFeedForward

# ---- what is wanted

def bits(n, more=0):
    """All 2**n rows of n zeros and ones, then `more` zeros."""
    return Rows(np.array([[*row, *[0] * more] for row in product((0.0, 1.0), repeat=n)]))


def last(value):
    """ffn(x) writes `value(a, b, ...)` into the last feature and nothing into the others."""
    return lambda x: np.column_stack([0 * x[:, :-1], value(*x.T[:-1]) + 0 * x[:, -1]])


def stream(*values):
    """The residual stream after the layer: one function of (a, b, ...) for each feature."""
    return lambda x: np.column_stack([value(*x.T) + 0 * x[:, 0] for value in values])


def one(value):
    """A function of one number."""
    return lambda x: value(x) + 0 * x


def odd(a, b, c):
    return (a + b + c) % 2


def zigzag(x):
    return np.abs(np.abs(np.abs(x) - 4) - 2)


def network(x, *pairs):
    """The numbers of each row after these comparisons, smaller first."""
    x = x.copy()
    for i, j in pairs:
        x[:, [i, j]] = np.sort(x[:, [i, j]], axis=1)
    return x


def unless_noted(a, b, c):
    return np.maximum(c, a * b)


OUT = ("a", "b", "out")
AB = ("a", "b")
WHOLE = np.arange(-5.0, 6.0)
PAIRS = Rows(np.array([[a, b, 0] for a, b in product(WHOLE, WHOLE)]))
SWITCH = Rows(np.array([[x, s, 0] for s, x in product((0.0, 1.0), np.arange(11.0))]))
FACTS = ("Paris", "Rome", "Tokyo", "France", "Italy", "Japan")
CITIES = np.eye(6)[:3]


def facts(x):
    return np.column_stack([x[:, :3], x[:, :3]])


NO_THRESHOLD = "It adds up: one alone gives something already. A bias sets the threshold."
NEGATIVE_HALF = "The negative half is missing: ReLU keeps quiet there. A unit with a negative weight hears it."
XOR_SLIPS = {
    "That is a + b: for two ones it gives 2, not 0. Something has to be taken away when both are there.":
        last(lambda a, b: a + b),
    "That is OR: two ones give 1, and 0 is wanted.": last(np.maximum),
    "That is AND: it speaks for two ones, and is wanted to speak for exactly one.": last(lambda a, b: a * b),
    "That is the opposite, 1 for equal ones: write it the other way round.": last(lambda a, b: 1 - (a + b) % 2),
    "That is a - b: the sign is wrong for b alone.": last(lambda a, b: a - b),
    "That is (a + b) squared: two ones give 4, and 0 is wanted.": last(lambda a, b: (a + b) ** 2),
}
XOR_HALVES = {
    "b alone is missing: what speaks for a without b needs a partner.": last(lambda a, b: a * (1 - b)),
    "a alone is missing: what speaks for b without a needs a partner.": last(lambda a, b: b * (1 - a)),
}
SIZE_SLIPS = {
    NEGATIVE_HALF: one(relu),
    "That is x itself: for negative x the row has the wrong sign.": one(lambda x: x),
    "The positive half is missing.": one(lambda x: relu(-x)),
}

PUZZLES: dict[str, Puzzle | Impossible] = {
    # ---- level 1: one unit
    "1.1": Puzzle("both", "a and b", 1, OUT, last(lambda a, b: a * b), bits(2, 1), slips={
        NO_THRESHOLD: last(lambda a, b: a + b),
        "It never speaks: with two ones the unit gets exactly 0. The threshold is too high.": last(lambda a, b: 0 * a),
        "For two ones it writes 0.5: the threshold sits half a step too high, or the row is too small.":
            last(lambda a, b: 0.5 * a * b)}),
    "1.2": Puzzle("either", "a or b", 1, OUT, last(np.maximum), bits(2, 1), slips={
        "Two ones give 2: it adds up. Let the unit speak when *nothing* is there, and take that away from 1.":
            last(lambda a, b: a + b),
        "That is the opposite, 1 when nothing is there: the unit's row should take 1 away from a b2 of 1.":
            last(lambda a, b: (1 - a) * (1 - b)),
        "That is AND: one of the two should be enough.": last(lambda a, b: a * b)}),
    "1.3": Puzzle("always_three", "3, whatever x is", 1, ("x",), one(lambda x: 3), Line(), without=("b2",), slips={
        "The unit still listens to x: its column has to be 0.": one(lambda x: relu(x + 3)),
        "Nothing arrives: a unit with a negative or zero bias and a column of 0 is always quiet.": one(lambda x: 0)}),
    "1.4": Puzzle("switch", "x if s is 1, else 0", 1, ("x", "s", "out"), last(lambda x, s: x * s), SWITCH, slips={
        "It lets x through whatever s is: s has no weight that could close it.": last(lambda x, s: x),
        "The switch works the other way round: open at s = 0.": last(lambda x, s: x * (1 - s)),
        "Closed, it leaks for large x: the bias is not large enough for an x of 10.":
            tuple(last(lambda x, s, k=k: np.where(s == 1, x, relu(x - k))) for k in range(1, 10))}),
    # ---- level 2: a few units
    "2.1": Puzzle("same", "x itself", 2, ("x",), one(lambda x: x), Line(), slips={
        NEGATIVE_HALF: one(relu),
        "That is |x|: the row of the unit that hears negative x has the wrong sign.": one(np.abs),
        "The positive half is missing.": one(lambda x: -relu(-x))}),
    "2.2": Puzzle("size", "|x|", 2, ("x",), one(np.abs), Line((0,)), slips=SIZE_SLIPS),
    "2.3": Puzzle("leaky", "x, but 0.1 x where x is negative", 2, ("x",), one(lambda x: np.maximum(x, 0.1 * x)),
                  Line((0,)), slips={
        NEGATIVE_HALF: one(relu),
        "Left of 0 the line rises to the left: the row of the second unit has the wrong sign.":
            one(lambda x: np.maximum(x, -0.1 * x))}),
    "2.4": Puzzle("ramp", "0 up to x = 2, 1 from x = 5 on, straight between", 2, ("x",),
                  one(lambda x: np.clip((x - 2) / 3, 0, 1)), Line((2, 5))),
    "2.5": Puzzle("clamp", "x, held between -1 and 1", 2, ("x",), one(lambda x: np.clip(x, -1, 1)), Line((-1, 1))),
    "2.6": Puzzle("hat", "0 up to x = 0, up to 1 at x = 1, down to 0 at x = 2, then 0", 3, ("x",),
                  one(lambda x: relu(1 - np.abs(x - 1))), Line((0, 1, 2)), slips={
        "The unit that turns at x = 1 takes away 1 of slope; it has to take away 2: one to stop, one to fall.":
            one(lambda x: np.clip(x, 0, 1) - relu(x - 2))}),
    "2.7": Puzzle("larger_than", "1 if a > b, else 0; whole numbers", 2, OUT, last(lambda a, b: 1.0 * (a > b)), PAIRS,
                  slips={
        "It says by *how much* a is larger: a second unit has to stop the rise one step later.":
            last(lambda a, b: relu(a - b)),
        "For a = b it says 1: the step sits one place too early.": last(lambda a, b: 1.0 * (a >= b)),
        "The step comes one place too late: for a = b + 1 it still says 0.": last(lambda a, b: 1.0 * (a > b + 1)),
        "a and b are exchanged.": last(lambda a, b: 1.0 * (b > a))}),
    "2.8": Puzzle("sign", "-1, 0 or 1: the sign of a whole number", 2, ("x",), one(np.sign), Rows(WHOLE[:, None]),
                  slips={
        "It is 0 for negative x, where -1 is wanted: start at -1 (b2), and let the rise begin one step earlier.":
            one(lambda x: np.clip(x, 0, 1)),
        "It is x itself, which goes on rising: the sign stays at 1 from 1 on.": one(lambda x: x),
        "Everything is 1 too large: b2.": one(lambda x: np.sign(x) + 1)}),
    "2.9": Puzzle("exactly_one", "a or b, but not both", 2, OUT, last(lambda a, b: (a + b) % 2), bits(2, 1),
                  slips={**XOR_SLIPS, **XOR_HALVES}),
    "2.10": Puzzle("larger", "the larger of a and b", 3, OUT, last(np.maximum), Box(10, 2), without=("b1", "b2"),
                   slips={
        "The right size is added to the wrong number: a lacks relu(b - a), b lacks relu(a - b).":
            (last(lambda a, b: b + relu(b - a)), last(lambda a, b: a + relu(a - b))),
        "It says by how much a is larger: b itself is missing.": last(lambda a, b: relu(a - b)),
        "It says by how much b is larger: a itself is missing.": last(lambda a, b: relu(b - a)),
        "A number that is negative does not get through: b itself takes two units, as in 2.1.":
            last(lambda a, b: relu(b) + relu(a - b)),
        "A number that is negative does not get through: a itself takes two units, as in 2.1.":
            last(lambda a, b: relu(a) + relu(b - a)),
        "That is the smaller one: what is added when one number is larger has the wrong sign.": last(np.minimum)}),
    "2.11": Puzzle("odd", "1 if one or three of a, b, c are 1", 3, ("a", "b", "c", "out"), last(odd), bits(3, 1),
                   slips={
        "Right up to two ones; for three ones it goes on falling: one more unit turns it up again.":
            last(lambda a, b, c: relu(a + b + c) - 2 * relu(a + b + c - 1)),
        "For three ones it is not yet up at 1: the last turn is from -1 to +1, so 2, not 1.":
            last(lambda a, b, c: np.minimum(a + b + c, 2 - a - b - c) + relu(a + b + c - 2)),
        "That is exactly one of three: three ones should give 1, too.": last(lambda a, b, c: 1.0 * (a + b + c == 1)),
        "That is the opposite, the even ones.": last(lambda a, b, c: 1 - odd(a, b, c))}),
    # ---- level 3: gates and curves
    "3.1": Puzzle("square", "x squared", 1, ("x",), one(lambda x: x * x), Box(10), gated=True, activation="identity"),
    "3.2": Puzzle("times", "a times b", 1, OUT, last(lambda a, b: a * b), Box(5, 2), gated=True, activation="identity",
                  slips={
        "That is a squared: gate and up both listen to a.": last(lambda a, b: a * a),
        "That is b squared: gate and up both listen to b.": last(lambda a, b: b * b),
        "That is (a + b) squared: each of the two, gate and up, should hear one number only.":
            last(lambda a, b: (a + b) ** 2)}),
    "3.3": Puzzle("exactly_one_gated", "a or b, but not both, by a product", 1, OUT, last(lambda a, b: (a + b) % 2),
                  bits(2, 1), gated=True, activation="identity", slips={
        **XOR_SLIPS, "(a - b)(a + b) is a - b for bits: the same difference twice has no sign.":
            last(lambda a, b: a * a - b * b)}),
    "3.4": Puzzle("nearly_relu", "ReLU, by GELU, with an error of at most 0.001", 1, ("x",), one(relu),
                  Box(10, fine=True), activation="gelu", tolerance=1e-3),
    "3.5": Puzzle("same_by_gelu", "x itself, by GELU", 2, ("x",), one(lambda x: x), Box(10), activation="gelu",
                  without=("b1", "b2"), slips={
        "It is never negative, gelu(x) + gelu(-x): the second row has the wrong sign.":
            one(lambda x: gelu(x) + gelu(-x))}),
    "3.6": Puzzle("ones", "1, whatever x is, by sigmoid", 1, ("x",), one(lambda x: 1), Box(10), activation="sigmoid",
                  without=("b1", "b2"), slips={
        "It is 0.5 everywhere: sigmoid(0) is 0.5, so the row has to double it.": one(lambda x: 0.5),
        "It is 0 everywhere: sigmoid(h) - sigmoid(-h) with a column of 0, or a row of 0.": one(lambda x: 0)}),
    "3.7": Puzzle("times_by_swiglu", "a times b, exactly, by SwiGLU", 2, OUT, last(lambda a, b: a * b), Box(3, 2),
                  gated=True, activation="silu", without=("b_gate", "b_up", "b_down"), slips={
        "One unit gives silu(a) * b, which is not a * b: silu(a) - silu(-a) is a. Let a second unit hear -a.":
            last(lambda a, b: silu(a) * b),
        "One unit gives a * silu(b), which is not a * b: silu(b) - silu(-b) is b. Let a second unit hear -b.":
            last(lambda a, b: a * silu(b)),
        "It is (silu(a) + silu(-a)) * b; the difference, silu(a) - silu(-a), is a.":
            last(lambda a, b: (silu(a) + silu(-a)) * b)}),
    "3.8": Puzzle("exactly_one_dip", "a or b, but not both, by GELU", 1, OUT, last(lambda a, b: (a + b) % 2),
                  bits(2, 1), activation="gelu", tolerance=1e-4, slips=XOR_SLIPS),
    # ---- level 4: the residual stream, x + ffn(x)
    "4.1": Puzzle("size_in_stream", "|x|", 1, ("x",), one(np.abs), Line((0,)), residual=True, slips={
        "For negative x it is 0: the unit takes away what was there. To turn the sign it has to write twice as much.":
            one(relu),
        "For negative x it has the wrong sign, and three times the size: the row takes away in place of adding.":
            one(lambda x: np.where(x < 0, 3 * x, x)),
        "For positive x it is 2x or more: the unit hears positive x, where nothing has to change.":
            (one(lambda x: x + relu(x)), one(lambda x: x + 2 * relu(x)))}),
    "4.2": Puzzle("larger_in_stream", "a becomes the larger of a and b, b stays", 1, AB,
                  stream(np.maximum, lambda a, b: b), Box(10, 2), residual=True, slips={
        "a became the smaller one: the sign of the row, or a - b in place of b - a.":
            stream(np.minimum, lambda a, b: b),
        "b was raised, and a stayed: the row writes into the wrong feature.": stream(lambda a, b: a, np.maximum),
        "The larger one is *added* to a: the FFN should write only what a lacks.":
            (stream(lambda a, b: a + np.maximum(a, b), lambda a, b: b),)}),
    "4.3": Puzzle("sort_two", "a becomes the smaller, b the larger", 1, AB, stream(np.minimum, np.maximum), Box(10, 2),
                  residual=True, slips={
        "They are sorted the other way: the larger one came first.": stream(np.maximum, np.minimum),
        "a is right and b stayed: what is taken from a has to be given to b, by the same row.":
            stream(np.minimum, lambda a, b: b),
        "b is right and a stayed: what is given to b has to be taken from a, by the same row.":
            stream(lambda a, b: a, np.maximum)}),
    "4.4": Puzzle("move", "a (never negative) moves to b, and a becomes 0", 1, AB,
                  stream(lambda a, b: 0, lambda a, b: a), Line(low=0), residual=True, slips={
        "It is copied, not moved: a is still there. The row has to take it away.":
            stream(lambda a, b: a, lambda a, b: a),
        "a is erased, and nothing was written into b.": stream(lambda a, b: 0, lambda a, b: 0)}),
    "4.5": Puzzle("move_any", "a (of any sign) moves to b, and a becomes 0", 2, AB,
                  stream(lambda a, b: 0, lambda a, b: a), Line(), residual=True, slips={
        "Right for positive a; negative a stays where it is: ReLU does not hear it. A second unit does.":
            stream(lambda a, b: -relu(-a), lambda a, b: relu(a)),
        "b gets |a|: the second unit writes into b with the wrong sign.":
            stream(lambda a, b: 0, lambda a, b: np.abs(a)),
        "It is copied, not moved: a is still there. The rows have to take it away.":
            stream(lambda a, b: a, lambda a, b: a)}),
    "4.6": Puzzle("note", "c becomes 1 if a and b, and a c that is 1 stays 1", 1, ("a", "b", "c"),
                  stream(lambda a, b, c: a, lambda a, b, c: b, unless_noted), bits(3), residual=True, slips={
        "If c is noted already, it becomes 2: the unit should ask for c, too, with a minus.":
            stream(lambda a, b, c: a, lambda a, b, c: b, lambda a, b, c: c + a * b),
        "c is erased where a and b are missing: nothing has to be taken away.":
            stream(lambda a, b, c: a, lambda a, b, c: b, lambda a, b, c: a * b)}),
    "4.7": Puzzle("three_facts", "a city writes its country; no city, no country", 3, FACTS, facts,
                  Rows(np.vstack([CITIES, np.zeros(6)])), residual=True, slips={
        "Right for each city; but if none is named, a country is written all the same: b2 is always there.":
            tuple(lambda x, j=j: facts(x) + np.eye(6)[j] * (x.sum(axis=1, keepdims=True) == 0) for j in (3, 4, 5))}),
    "4.8": Puzzle("three_facts_two_units", "a city writes its country; there is always a city", 2, FACTS, facts,
                  Rows(CITIES), residual=True),
    "4.9": Puzzle("last_digit", "a sum from 0 to 18 becomes its last digit", 2, ("sum",), one(lambda s: s % 10),
                  Rows(np.arange(19.0)[:, None]), residual=True, slips={
        "From 11 on it falls behind more and more: the step has to end one place later, by a second unit.":
            one(lambda s: s - 10 * relu(s - 9)),
        "9 becomes -1: the step sits one place too early.": one(lambda s: s - 10 * (s >= 9)),
        "10 stays 10: the step comes one place too late.": one(lambda s: s - 10 * (s >= 11)),
        "It adds 10 where it should take 10 away: the rows' sign.": one(lambda s: s + 10 * (s >= 10))}),
    # ---- level 5: depth
    "5.1": Puzzle("zigzag", "the zigzag | | |x| - 4 | - 2 |, eight pieces", 3, ("x",), one(zigzag),
                  Line((-6, -4, -2, 0, 2, 4, 6)), residual=True, deep=True, slips={
        "That is | |x| - 4 |, four pieces. Before the last fold, 2 has to be taken away.":
            one(lambda x: np.abs(np.abs(x) - 4)),
        "The shifts come in the other order: first 4, then 2.": one(lambda x: np.abs(np.abs(np.abs(x) - 2) - 4))}),
    "5.2": Puzzle("adder", "a + b + c in binary: sum and carry", 3, ("a", "b", "c", "sum", "carry"),
                  lambda x: np.column_stack([x[:, :3], x[:, :3].sum(1) % 2, x[:, :3].sum(1) // 2]), bits(3, 2),
                  residual=True, deep=True, slips={
        "sum and carry are exchanged.":
            lambda x: np.column_stack([x[:, :3], x[:, :3].sum(1) // 2, x[:, :3].sum(1) % 2]),
        "carry is right; sum still counts all three ones: take away 2 for each carry.":
            lambda x: np.column_stack([x[:, :3], x[:, :3].sum(1), x[:, :3].sum(1) // 2])}),
    "5.3": Puzzle("odd_by_products", "1 into out if one or three of a, b, c are 1", 2, ("a", "b", "c", "out"),
                  stream(lambda a, b, c, out: a, lambda a, b, c, out: b, lambda a, b, c, out: c,
                         lambda a, b, c, out: odd(a, b, c)), bits(3, 1), gated=True, activation="identity",
                  residual=True, deep=True, slips={
        "out holds a or b, but not both: c has not been asked yet.":
            stream(lambda a, b, c, out: a, lambda a, b, c, out: b, lambda a, b, c, out: c,
                   lambda a, b, c, out: (a + b) % 2),
        "The second layer added (out - c)^2 to what was there: with the residual it should add only the change.":
            stream(lambda a, b, c, out: a, lambda a, b, c, out: b, lambda a, b, c, out: c,
                   lambda a, b, c, out: (a + b) % 2 + odd(a, b, c))}),
    "5.4": Puzzle("sort_four", "four numbers, the smallest first", 5, ("a", "b", "c", "d"),
                  lambda x: np.sort(x, axis=1), Box(10, 4), residual=True, deep=True, slips={
        "They are sorted the other way, the largest first.": lambda x: -np.sort(-x, axis=1),
        "The smallest and the largest are right; the two in the middle are not compared yet: one pair more.":
            lambda x: network(x, (0, 1), (2, 3), (0, 2), (1, 3)),
        "Neighbours only, once each: a number can stand three places off, and moves one place in each layer.":
            (lambda x: network(x, (0, 1), (2, 3), (1, 2)), lambda x: network(x, (0, 1), (1, 2), (2, 3))),
        "Each half is sorted; now the halves have to be compared with each other.":
            lambda x: network(x, (0, 1), (2, 3))}),
}


# ---- the impossible ones: families

def _random(rng, d_model, activations, gated=False, bias=True):
    """A random FFN, some with large and some with small weights."""
    kind = GatedFeedForward if gated else FeedForward
    d_ff, activation = int(rng.integers(1, 9)), str(rng.choice(activations))
    size = {"d_model": d_model, "d_ff": d_ff}
    scale = 10 ** rng.uniform(-1, 1)
    parameters = {name: scale * rng.normal(size=[size[s] for s in shape]) if bias or name.startswith("W") else None
                  for name, shape in kind.shapes.items()}
    units = "bilinear" if gated else "linear" if activation == "identity" else activation
    return kind(**parameters, activation=activation), f"{d_ff} {units} unit{'s' * (d_ff > 1)}"


def _family(size, activations=("relu",), gated=False, bias=True):
    """Random members f: (n, size) -> (n,): one number is its own output, several have an `out` feature behind them."""
    def member(rng):
        ffn, name = _random(rng, size + (size > 1), activations, gated, bias)
        return name, lambda x: ffn(np.column_stack([x, 0 * x[:, 0]]) if size > 1 else x)[:, -1]
    return member


def _two_tokens(rng):
    """The same FFN for both tokens, one number each; read at the first."""
    ffn, name = _random(rng, 1, ("relu", "gelu", "silu"))
    return name, lambda x: ffn(x[:, :, None])[:, 0, 0]


ANY = ("relu", "gelu", "silu")
PUZZLES |= {
    "6.1": Impossible("swap", "two tokens trade places", 2, lambda x: x[:, 1], _two_tokens),
    "6.2": Impossible("one_at_zero", "1 at x = 0, without biases", 1, lambda x: np.ones(len(x)),
                      _family(1, ANY, bias=False)),
    "6.3": Impossible("no_bend", "a or b, but not both, without a bend", 2, lambda x: x.sum(1) % 2,
                      _family(2, ("identity",)), bits=True),
    "6.4": Impossible("one_product_layer", "parity of three, by one bilinear layer", 3, lambda x: x.sum(1) % 2,
                      _family(3, ("identity",), gated=True), bits=True),
    "6.5": Impossible("square_by_relu", "x squared, by ReLU without biases", 1, lambda x: x[:, 0] ** 2,
                      _family(1, bias=False)),
    "6.6": Impossible("sign_by_products", "the sign of x, by a bilinear layer without biases", 1,
                      lambda x: np.sign(x[:, 0]), _family(1, ("identity",), gated=True, bias=False)),
    "6.7": Impossible("clamp_by_gelu", "x held between -1 and 1, by GELU without biases", 1,
                      lambda x: np.clip(x[:, 0], -1, 1), _family(1, ("gelu",), bias=False)),
}


def numbers() -> list[str]:
    """All puzzle numbers in their order: ["1.1", "1.2", ...]."""
    return list(PUZZLES)
