"""What README's "Contribute" says that a new thing needs: whoever adds half of it fails a test that names the rest.

Here are the activations, the exercises and the figures. Lessons: test_notebooks.py, test_exercises.py, test_teaching.py
and test_readme.py; the exercises' notebooks: test_exercises.py, their mistakes: test_check.py.
"""
import ast
import inspect
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from student_answers import RIGHT, WRONG

import ffn_numpy
from ffn_numpy import ACTIVATIONS
from ffn_numpy.exercises import numbers

matplotlib.use("agg")
from ffn_numpy import plots  # noqa: E402

TESTS = Path(__file__).parent
ROOT = TESTS.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LESSONS = "".join(p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("notebooks/[0-9]*.ipynb")))


def test_readme_says_where_to_add_what():
    chapter = README.partition("\n## Contribute\n")[2].partition("\n## ")[0]
    for thing in ("an activation", "a naming family", "an exercise", "a lesson", "a figure"):
        (line,) = re.findall(rf"^- \*\*{thing}\*\*: (.*(?:\n  .*)*)", chapter, re.M)
        assert re.search(r"`(ffn_numpy|notebooks)/", line), thing


# ---- activations

NAMES = {}  # every activation once, with the names it has: the first is its own, the others are aliases
for _name, _activation in ACTIVATIONS.items():
    NAMES.setdefault(_activation, []).append(_name)
every_activation = pytest.mark.parametrize("name", [names[0] for names in NAMES.values()])
NO_PAPER = ("sigmoid", "gelu_tanh")  # older than the papers; the docstring refers to gelu's


@every_activation
def test_activation_is_compared_with_pytorch(name):
    """Values, slopes and both kinds of FFN, stored by make_references.py and read by test_references.py."""
    from test_references import NAMES as compared

    with np.load(TESTS / "references.npz") as stored:
        needed = {f"{name}_y", f"{name}_dy", f"plain/{name}/y", f"gated/{name}/y"}
        assert needed <= set(stored.files), f"add {name} to tests/scripts/make_references.py and run it"
    assert f'"{name}": ' in (TESTS / "scripts" / "make_references.py").read_text(encoding="utf-8")
    assert name in compared, "stored, but test_references.py does not compare it"


@every_activation
def test_activation_is_documented(name):
    doc = inspect.getdoc(ACTIVATIONS[name].function) or ""
    assert re.search(r"\b(19|20)\d\d\b", doc) or name in NO_PAPER, "its docstring names no source"
    row = re.search(r"^\| `activations.py` \| (.*) \|$", README, re.M)[1]
    assert name in re.split(r",? ", row), "README's table of modules does not list it"


@every_activation
def test_public_activation_has_an_example(name):
    function = ACTIVATIONS[name].function
    if function.__name__ in ffn_numpy.__all__:
        assert ">>> " in function.__doc__
    else:  # reached by its name in ACTIVATIONS alone
        assert not hasattr(ffn_numpy, function.__name__), f"{function.__name__} is imported, but not in __all__"


# ---- exercises

@pytest.mark.parametrize("number", numbers())
def test_exercise_was_tried_on_answers(number):
    """Somebody's right answer passes and somebody's wrong one gets a message: test_check.py runs both."""
    assert number in {n for n, *_ in RIGHT} and number in {n for n, *_ in WRONG}, "add to student_answers.py"


# ---- figures

FIGURES = [name for name, f in inspect.getmembers(plots, inspect.isfunction)
           if f.__module__ == plots.__name__ and not name.startswith("_") and name != "use_course_style"]
every_figure = pytest.mark.parametrize("name", FIGURES)


def calls(tree, name):
    """Every call of plots.NAME in the syntax tree of a test."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == f"plots.{name}"]


@every_figure
def test_figure_has_its_tests(name):
    """It draws into the Axes it is given and returns them; what it draws is right."""
    tree = ast.parse((TESTS / "test_plots.py").read_text(encoding="utf-8"))
    tests = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")}
    shared = tests["test_every_function_draws_into_the_given_axes_and_does_not_show"].decorator_list
    assert any(k.arg == "ax" for d in shared for call in calls(d, name) for k in call.keywords), "not given an ax"
    assert any(calls(statement, name) for f in tests.values() for statement in f.body), "its data are not tested"


@every_figure
def test_figure_is_documented_and_drawn_in_a_lesson(name):
    function = getattr(plots, name)
    assert inspect.signature(function).parameters["ax"].default is None
    doc = inspect.getdoc(function) or ""
    assert ">>> " in doc, "no example in its docstring"
    assert f"plots.{name}(" in LESSONS, "no lesson draws it"
