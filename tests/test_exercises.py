"""Exercise notebooks: students' versions follow from the solutions, every stub says "not attempted"."""
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from ffn_numpy.check import CheckFailed, NotAttempted, check
from ffn_numpy.exercises import LESSONS, find, numbers

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"
SOLUTIONS = sorted(NOTEBOOKS.glob("solutions/*.ipynb"))
STARS = {1: "★", 2: "★★", 3: "★★★"}
SHAPE = [1, 2, 2, 3]   # the stars of a lesson's exercises, which are their points
OTHER_SHAPE = {"12_weight_puzzles"}  # lessons (notebook names without .ipynb) with others; tested in test_puzzles.py

by_name = pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)
# A lesson without a file in ffn_numpy/exercises/ has no exercises that `check` knows: OTHER_SHAPE must name it.
by_checked = pytest.mark.parametrize("path", [p for p in SOLUTIONS if str(int(p.stem[:2])) in LESSONS],
                                     ids=lambda p: p.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def graded(nb, cell_type="code"):
    return [c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade") and c.cell_type == cell_type]


def student(path):
    return NOTEBOOKS / "exercises" / path.name


def own(path):
    """The numbers of the exercises in the lesson's file in ffn_numpy/exercises/."""
    return [n for n in numbers() if n.partition(".")[0] == str(int(path.stem[:2]))]


def test_every_lesson_has_exercises():
    lessons = [p.name for p in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))][1:]
    assert [p.name for p in SOLUTIONS] == lessons == [p.name for p in sorted(NOTEBOOKS.glob("exercises/*.ipynb"))]
    names = {str(int(p.stem[:2])): p.stem for p in SOLUTIONS}
    assert set(LESSONS) <= set(names), "a file in ffn_numpy/exercises/ without a notebook"
    assert {name for n, name in names.items() if n not in LESSONS} <= OTHER_SHAPE <= set(names.values())


def test_numbers_begin_with_their_lesson_and_count_up():
    count = Counter(n.partition(".")[0] for n in numbers())
    assert numbers() == [f"{lesson}.{i + 1}" for lesson in LESSONS for i in range(count[lesson])]
    assert set(count) == set(LESSONS)


@by_checked
def test_every_exercise_has_its_check_in_the_notebook_and_every_check_its_exercise(path):
    checks = [re.findall(r'^check\("(.+?)", (\w+)\)$', c.source, re.M) for c in graded(read(path))]
    assert checks == [[(n, find(n).call.partition("(")[0])] for n in own(path)]


@by_name
def test_student_version_is_what_nbgrader_makes_of_the_solution(path):
    pytest.importorskip("nbgrader", reason='nbgrader is not installed: pip install -e ".[teach]"')
    from scripts.regenerate import student_version
    assert student(path).read_text(encoding="utf-8") == student_version(path), "run tests/scripts/regenerate.py"


@by_name
def test_student_version_differs_in_the_answers_only(path):
    """Without nbgrader, too, a change of one notebook that is missing in the other is noticed."""
    for ours, theirs in zip(read(path).cells, read(student(path)).cells, strict=True):
        assert ours.id == theirs.id and ours.cell_type == theirs.cell_type
        if ours.metadata.get("nbgrader", {}).get("solution"):
            before, found, _ = ours.source.partition("    ### BEGIN SOLUTION\n")
            stub = before + "    # YOUR CODE HERE\n    raise NotImplementedError()" if found else "YOUR ANSWER HERE"
            assert theirs.source == stub, ours.id
        else:
            assert ours.source == theirs.source, ours.id
        assert not theirs.get("outputs")


@by_checked
def test_every_stub_is_reported_as_not_attempted(path):
    """Run the student's version as it is handed out; cells that call an unwritten answer stop there."""
    nb, names, said = read(student(path)), {}, []
    for cell in nb.cells:
        if cell.cell_type == "code":
            try:
                exec(compile(cell.source, cell.id, "exec"), names)
            except NotAttempted as error:
                said.append(str(error))
            except NotImplementedError:
                assert cell not in graded(nb) and "raises-exception" in cell.metadata.get("tags", [])  # Run All goes on
    assert len(said) == len(own(path)) and all(s.startswith("○") and "Not attempted yet" in s for s in said)


@by_checked
def test_the_broken_function_of_the_third_star_is_told_so_without_the_fix(path):
    """Whoever checks the unchanged code learns that it is as broken as before, not how to repair it."""
    nb, names = read(path), {}
    for cell in nb.cells:
        if cell.cell_type == "code" and cell not in graded(nb):
            exec(compile(cell.source, cell.id, "exec"), names)
    broken = [f for name, f in names.items() if name.startswith("broken_") or name == "patient"]
    to_repair = [n for n in own(path) if find(n).stars == 3]
    for number, function in zip(to_repair, broken, strict=True):
        with pytest.raises(CheckFailed, match="Still as broken|Still a straight layer|The wrong branch is activated"):
            check(number, function)


@by_checked
def test_rising_exercises_with_hints_and_a_question(path):
    nb = read(path)
    stars = [find(n).stars for n in own(path)]
    assert stars == SHAPE or path.stem in OTHER_SHAPE
    assert stars == sorted(stars) == [c.metadata.nbgrader.points for c in graded(nb)]
    text = "\n".join(c.source for c in nb.cells if c.cell_type == "markdown")
    *sections, last = text.split("\n## ")[1:]
    assert [s.split()[:2] for s in sections] == [[n, STARS[find(n).stars]] for n in own(path)]
    for section in sections:
        assert section.count("<details><summary>Hint 1</summary>") == 1 and section.count("<summary>Hint") >= 2
    assert last.startswith(f"{int(path.stem[:2])}.{len(stars) + 1} ")
    (question,) = graded(nb, "markdown")
    assert question.source.startswith("**Model answer.**") and "**Rubric (3 points).**" in question.source


def test_readme_and_guide_give_the_points_of_the_usual_shape():
    points = f"{sum(SHAPE)} of {sum(SHAPE) + 3}"
    assert points in (ROOT / "README.md").read_text(encoding="utf-8")
    assert points in (NOTEBOOKS / "TEACHING.md").read_text(encoding="utf-8")
