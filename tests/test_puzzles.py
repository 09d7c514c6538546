"""Weight puzzles: the answers of people, the known best ones, and attacks on every par that is called proved."""
import dataclasses
import re
from itertools import combinations, product
from pathlib import Path

import matplotlib
import nbformat
import numpy as np
import pytest

matplotlib.use("agg")
from puzzle_answers import RIGHT, WRONG  # noqa: E402

from ffn_numpy import ACTIVATIONS, FeedForward, GatedFeedForward, gelu  # noqa: E402
from ffn_numpy._puzzle import Box, Impossible, Line, Puzzle, Rows  # noqa: E402
from ffn_numpy.check import CheckFailed, NotAttempted  # noqa: E402
from ffn_numpy.exercises.puzzles import PUZZLES, numbers  # noqa: E402
from ffn_numpy.puzzles import puzzle  # noqa: E402

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SOLUTIONS = nbformat.read(NOTEBOOKS / "solutions" / "12_weight_puzzles.ipynb", as_version=4)
STUDENTS = nbformat.read(NOTEBOOKS / "exercises" / "12_weight_puzzles.ipynb", as_version=4)
POSSIBLE = [n for n, task in PUZZLES.items() if isinstance(task, Puzzle)]
every_puzzle = pytest.mark.parametrize("number", numbers())


def functions(nb):
    """The learner's functions of a notebook, and its checks as (number, name)."""
    names, checks = {}, []
    for cell in nb.cells:
        if cell.cell_type == "code":
            found = re.findall(r'^puzzle\("(.+?)", (\w+)\)$', cell.source, re.M)
            checks += found
            if not found:
                exec(compile(cell.source, cell.id, "exec"), names)
    return names, checks


BEST, CHECKS = functions(SOLUTIONS)
CELLS = {c.metadata.nbgrader.grade_id: c for c in SOLUTIONS.cells if "nbgrader" in c.metadata}


def answer(number, source):
    """What a person's source defines under the puzzle's name."""
    names = {"np": np, "FeedForward": FeedForward, "GatedFeedForward": GatedFeedForward, "gelu": gelu}
    exec(source, names)
    return names[PUZZLES[number].call]


def said(number, given):
    """The whole message for a wrong answer, on one line."""
    with pytest.raises(CheckFailed) as caught:
        puzzle(number, given, draw=False)
    return " ".join(caught.value.text.split())


# ---- the notebook and the table

def test_every_puzzle_has_its_place_in_the_notebook_and_points_that_rise():
    assert [(n, PUZZLES[n].call) for n in numbers()] == CHECKS
    assert len({task.call for task in PUZZLES.values()}) == len(PUZZLES) >= 24
    points = [c.metadata.nbgrader.points for c in SOLUTIONS.cells if c.cell_type == "code" and
              c.metadata.get("nbgrader", {}).get("grade")]
    assert points == [{"1": 1, "5": 3, "6": 3}.get(n[0], 2) for n in numbers()] and sum(points) == 93
    assert sum("◆" in c.source and c.source.startswith("###") for c in SOLUTIONS.cells) == 8
    for text in ("exercises/12_weight_puzzles.ipynb", "notebooks/12_weight_puzzles.ipynb"):
        assert text in (NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8")


@every_puzzle
def test_the_statement_says_what_the_table_says(number):
    task = PUZZLES[number]
    (text,) = [c.source for c in SOLUTIONS.cells if c.source.startswith(f"### {number} ")]
    assert text.count("<summary>Hint 1") == text.count("<summary>Hint 2") == 1
    if isinstance(task, Impossible):
        assert "*Family*" in text and "*Target*" in text
        return
    conditions = re.search(r"^\*`(.*)\*$", text, re.M)[1].split(" · ")
    assert conditions[0].startswith(("GatedFeedForward" if task.gated else "FeedForward") + f"`, {task.activation}")
    weights = 3 if task.gated else 2
    assert conditions[1] == ("no biases" if len(task.without) == weights else
                             "no " + ", ".join(task.without) if task.without else "biases as you like")
    assert conditions[3].startswith("`x + ffn(x)`" if task.residual else "`ffn(x)`")
    assert ("layer after" in conditions[3]) == task.deep
    assert conditions[-1] == f"par {task.par}, {'proved' if task.proved else 'best known'}"
    assert (len(conditions) == 6) == (task.tolerance > 1e-9)


@every_puzzle
def test_the_best_known_answer_is_at_par_and_its_proof_stands_beside_it(number, capsys):
    task, source = PUZZLES[number], CELLS[PUZZLES[number].call].source
    puzzle(number, BEST[task.call])
    out = capsys.readouterr().out
    assert f"✓ {number} {task.title}: " in out
    if isinstance(task, Puzzle):
        assert out.endswith(f"{task.par} unit{'s' * (task.par > 1)}, par {task.par} "
                            f"({'proved' if task.proved else 'best known'}).\n")
        assert f"    # Par {task.par}, {'proved' if task.proved else 'best known'}" in source
    else:
        assert out.endswith("The same inputs and coefficients cannot give both: the target is none of them.\n")
        assert "    # " in source


@every_puzzle
def test_every_stub_is_not_attempted(number):
    stubs, _ = functions(STUDENTS)
    with pytest.raises(NotAttempted, match="Not attempted yet"):
        puzzle(number, stubs[PUZZLES[number].call])


def test_pictures_are_small():
    sizes = [len(o.data["image/png"]) * 3 / 4 for c in SOLUTIONS.cells if c.cell_type == "code" for o in c.outputs
             if "image/png" in o.get("data", {})]
    assert len(sizes) > 20 and max(sizes) <= 12 * 1024


# ---- people's answers

@pytest.mark.parametrize("number, style, source", RIGHT, ids=[f"{r[0]}: {r[1]}" for r in RIGHT])
def test_unusual_right_answers_pass_and_none_is_below_a_proved_par(number, style, source, capsys):
    puzzle(number, answer(number, source), draw=False)
    task, out = PUZZLES[number], capsys.readouterr().out
    if isinstance(task, Puzzle):
        units = int(re.search(r"(\d+) units?, par", out)[1])
        assert units >= task.par, "fewer than par: if the par is proved, the proof is wrong; else celebrate"
        assert ("fewer" in out) == (units > task.par)


@pytest.mark.parametrize("number, mistake, expected, source", WRONG, ids=[f"{w[0]}: {w[1]}" for w in WRONG])
def test_wrong_answers_get_their_message(number, mistake, expected, source):
    message = said(number, answer(number, source))
    assert message.startswith(f"✗ {number} ") and expected in message and len(message) < 600


# ---- attacks on the pars

def hidden_numbers(task, x):
    """What one hidden unit can say at the inputs x, for every column and bias of small whole numbers: (n, units)."""
    d = len(task.features)
    used = x.any(axis=0)
    weights = [(-2, -1, 0, 1, 2) if u else (0,) for u in used]
    columns = np.array(list(product(*weights))).T                              # (d_model, m)
    largest = 0 if len(task.without) > 1 else 8 if isinstance(task.inputs, Line) else 12 if d == 1 else 4
    biases = range(-largest, largest + 1)
    act = ACTIVATIONS[task.activation].function
    lifts = [x @ columns + b for b in biases]
    if task.gated:
        lift = lifts[0]
        said = np.hstack([act(lift) * lift[:, [i]] for i in range(lift.shape[1])])
    else:
        said = act(np.hstack(lifts))                                            # (n, m * biases)
    said = said[:, np.abs(said).max(axis=0) > 0]
    return np.unique((said / np.abs(said).max(axis=0)).round(12), axis=1)


def inputs_of(task):
    if isinstance(task.inputs, Rows):
        return task.inputs.x
    if isinstance(task.inputs, Line):
        t = np.arange(max(task.inputs.low, -9), 9.5, 0.5)
        return np.column_stack([t, np.zeros((len(t), len(task.features) - 1))])
    return task.points([])[:12]


SHALLOW = [n for n in POSSIBLE if PUZZLES[n].par > 1 and not PUZZLES[n].deep]


@pytest.mark.parametrize("number", SHALLOW)
def test_no_small_whole_numbers_beat_a_proved_par(number):
    """All ways to choose par - 1 units with whole columns and biases; their rows and b2 are the best there are."""
    task = PUZZLES[number]
    x = inputs_of(task)
    wanted = task.wanted(x) - (x if task.residual else 0)                       # (n, d_model)
    units = hidden_numbers(task, x)
    constant = [] if len(task.without) > 1 else [np.ones((len(x), 1))]

    def missed(chosen):
        hidden = np.hstack([units[:, chosen], *constant])
        return np.abs(hidden @ np.linalg.lstsq(hidden, wanted, rcond=None)[0] - wanted).max()

    n = units.shape[1]
    chosen = combinations(range(n), task.par - 1)
    if task.par == 3 and n > 60:                                                # a sample of the pairs, always the same
        chosen = np.random.default_rng(0).integers(n, size=(2000, 2)).tolist()
    assert min(missed(list(c)) for c in chosen) > 1e-4, "a par that is called proved was beaten"


def test_the_attack_finds_an_answer_where_there_is_one():
    """With par units instead of par - 1, the same search solves what small numbers can solve."""
    for number in ("2.2", "2.9", "4.9", "2.7", "3.5"):
        task, x = PUZZLES[number], inputs_of(PUZZLES[number])
        wanted, units = task.wanted(x) - (x if task.residual else 0), hidden_numbers(task, x)
        ones = np.ones((len(x), 1))
        rng = np.random.default_rng(0)
        pairs = list(combinations(range(units.shape[1]), 2))
        hidden = (np.hstack([units[:, list(pairs[i])], ones]) for i in rng.permutation(len(pairs)))
        assert any(np.abs(h @ np.linalg.lstsq(h, wanted, rcond=None)[0] - wanted).max() < 1e-9 for h in hidden), number


# ---- what decides

def relu_units(w, b, v, b2=None):
    return FeedForward([w], b, [[n] for n in v], b2)


@pytest.mark.parametrize("number, ffn", [
    ("2.1", relu_units([1.0], [1000], [1], [-1000])),                # x itself on every x from -1,000 up
    ("2.2", relu_units([1, -1, 1], [0, 0, -900], [1, 1, 0.001])),   # |x| up to 900
    ("2.4", relu_units([200, 200, 1], [-700, -701, -900], [1, -1, 0])),         # right at x = 0, 1, 2, 5, 6 ...
    ("2.6", relu_units([1, 1, 1, -1], [0, -1, -2, -500], [1, -2, 1, 1e-6])),        # the hat, for x > -500
    ("4.1", relu_units([-1, 1], [0, -800], [2, 1e-8])),
    ("2.2", relu_units([1, -1, 1e-6], [0, 0, -1000], [1, 1, 1])),    # bends at x = 1,000,000,000
    ("2.1", relu_units([1e-3], [1000], [1000], [-1000])),            # x up to a constant, from -1,000,000 up
])
def test_a_line_is_judged_on_all_reals(number, ffn):
    said(number, ffn)


def test_folds_that_cancel_and_units_far_away_do_no_harm():
    """The same line with units that add nothing: two that cancel at x = 1e6, one with a row of 0 at 1e9."""
    puzzle("2.2", relu_units([1, -1, 1e-3, 1e-3, 1e-6], [0, 0, -1000, -1000, -1000], [1, 1, 7, -7, 0]), draw=False)


def test_one_fold_too_many_is_seen_however_small_the_piece():
    """A spike of height 0.001 on a piece of width 0.002, which random inputs would miss."""
    spike = relu_units([1, -1, 1, 1, 1], [0, 0, -3, -3.001, -3.002], [1, 1, 1, -2, 1])
    assert "bends at 3, 3.001, 3.002, where it should not" in said("2.2", spike)


@pytest.mark.parametrize("number, given, message", [
    ("1.1", None, "A FeedForward is asked for; yours is None. Does the function return it?"),
    ("1.1", lambda: None, "A FeedForward is asked for; yours is None. Does the function return it?"),
    ("1.1", 3, "A FeedForward is asked for; yours is an object of type int. Does the function return it?"),
    ("1.1", [], "At least one FFN is asked for; yours are 0."),
    ("1.1", lambda: BEST["both"]() @ 3, "both() stopped with TypeError: unsupported operand type(s) for @: "
                                        "'FeedForward' and 'int'"),
    ("1.1", lambda: FeedForward([[1]], None, [[1, 2]], None),
     "both() stopped with ValueError: W2 must have shape (1, 1) to fit d_model = 1 and d_ff = 1; got (1, 2)"),
    ("1.1", [relu_units([1], [0], [1])] * 2, "Exactly one FFN is asked for; yours are 2."),
    ("1.1", relu_units([1], [0], [1]), "d_model is 3 here, one number for each of a, b, out; yours has d_model = 1."),
    ("1.3", relu_units([0], [1], [0], [3]), "This puzzle has no b2: pass None."),
    ("2.1", relu_units([1], [1e6], [1], [-1e6]), "b1 holds 1e+06; weights go from -1,000 to 1,000 here."),
    ("2.1", relu_units([np.nan], [1], [1]), "W1 holds nan; weights go from -1,000 to 1,000 here."),
    ("3.1", relu_units([1], [0], [1]), "A GatedFeedForward is asked for; yours is a FeedForward."),
    ("3.1", GatedFeedForward([[1]], [[1]], [[1]]), "The activation is to be 'identity'; yours is 'silu'."),
    ("5.1", [relu_units([1], [0], [1]), FeedForward([[1]], None, [[1]], None, "gelu")],
     "Layer 1: The activation is to be 'relu'; yours is 'gelu'."),
    ("6.1", ([[0, 1]],), "Two results are asked for: inputs and coefficients. Yours is of type tuple."),
    ("6.1", ([0, 1], [1, -1]), "inputs must have shape (n, 2); yours has (2,). The answer is two results: return "
                               "inputs, coefficients."),
    ("6.1", ([[0, 1], [0, 2]], [1]), "There must be one coefficient for each input: (2,); yours has shape (1,)."),
    ("6.1", ([["a", "b"]], [1]), "inputs and coefficients must be arrays of numbers."),
    ("6.3", ([[0, 0], [1, 1], [2, 0]], [1, 1, 1]), "inputs must be zeros and ones."),
    ("6.5", ([np.inf, 1], [1, -2]), "inputs must be finite, up to 1,000."),
    ("6.5", ([2, 1], [0, 0]), "All coefficients are 0: then the sum is 0 for every function, the target too."),
    ("6.6", ([1, -1, 2, -2], [1, 1, 1, 1]), "For one of the family, 7 bilinear units, the sum is -0.974, not 0. "
                                            "These inputs will do, with other coefficients."),
    ("6.3", ([[1, 0], [1, 0]], [1, -1]), "The sum is 0 for the family, and for the target, too. No coefficients tell "
                                         "them apart at these inputs: choose others, or more."),
])
def test_the_whole_message(number, given, message):
    assert said(number, given) == f"✗ {number} {PUZZLES[number].title} {message}"


def test_unknown_numbers_and_loops(monkeypatch):
    with pytest.raises(ValueError, match=r"^puzzle must be one of 1\.1, 1\.2, .*; got '9\.9'$"):
        puzzle("9.9", None)
    with pytest.raises(ValueError, match="got 1.1$"):
        puzzle(1.1, None)
    monkeypatch.setattr("ffn_numpy._call.TIME_LIMIT", 0.2)

    def for_ever():
        while True:
            pass

    assert "Stopped after 0 s: is there a loop that never ends?" in said("1.1", for_ever)


@pytest.mark.parametrize("par, proved, ends", [
    (2, False, "2 units, par 2 (best known)."),
    (3, False, "2 units, par 3 (best known). That is fewer than anybody is known to need: please tell us!"),
    (1, True, "2 units, par 1 (proved). It can be done with 1 fewer."),
])
def test_units_are_counted_against_par(par, proved, ends, monkeypatch, capsys):
    monkeypatch.setitem(PUZZLES, "2.2", dataclasses.replace(PUZZLES["2.2"], par=par, proved=proved))
    puzzle("2.2", BEST["size"], draw=False)
    assert capsys.readouterr().out == f"✓ 2.2 |x|: right on all real numbers. {ends}\n"


def test_the_answer_itself_is_not_changed_and_float32_is_enough():
    ffn = FeedForward(np.array([[1, -1]], np.float32), None, np.array([[1], [1]], np.float32), None)
    before = {name: p.copy() for name, p in ffn.parameters().items()}
    puzzle("2.2", ffn, draw=False)
    puzzle("2.2", [ffn], draw=False)
    assert all(p.dtype == np.float32 and np.array_equal(p, before[name]) for name, p in ffn.parameters().items())


@pytest.mark.parametrize("number", ["6.1", "6.2", "6.3", "6.4", "6.5", "6.6", "6.7"])
def test_members_of_a_family_differ_and_are_what_they_say(number):
    """Widths and sizes vary, so that no witness passes by luck; the target is none of them."""
    task, rng = PUZZLES[number], np.random.default_rng(0)
    x = rng.integers(0, 2, size=(9, task.size)) if task.bits else rng.normal(size=(9, task.size))
    values = np.array([f(x.astype(float)) for _, f in (task.member(rng) for _ in range(50))])  # (50, n)
    assert values.shape == (50, 9) and np.isfinite(values).all()
    sizes = np.abs(values).max(axis=1)
    assert sizes.max() > 100 * sizes.min()
    assert np.abs(values - task.target(x)).max(axis=1).min() > 1e-3


def test_boxes_hold_what_they_say():
    for task in PUZZLES.values():
        if isinstance(task, Puzzle) and isinstance(task.inputs, Box):
            x = task.points([])
            assert np.abs(x).max() <= task.inputs.size and not x[:, task.inputs.free:].any() and len(x) == 2000
            assert np.abs(x[:, :task.inputs.free]).max() > 0.8 * task.inputs.size
