"""Exercise notebooks: students' versions follow from the solutions, every stub says "not attempted"."""
from pathlib import Path

import nbformat
import pytest

from ffn_numpy.check import CheckFailed, NotAttempted, check
from ffn_numpy.exercises import find, numbers

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SOLUTIONS = sorted(NOTEBOOKS.glob("solutions/*.ipynb"))
STARS = {1: "★", 2: "★★", 3: "★★★"}
by_name = pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def graded(nb, cell_type="code"):
    return [c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade") and c.cell_type == cell_type]


def student(path):
    return NOTEBOOKS / "exercises" / path.name


def test_every_lesson_has_exercises_and_every_exercise_a_notebook():
    lessons = [p.name for p in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))][1:]
    assert [p.name for p in SOLUTIONS] == lessons == [p.name for p in sorted(NOTEBOOKS.glob("exercises/*.ipynb"))]
    checks = [c.source for p in SOLUTIONS for c in graded(read(p))]
    assert [f'check("{n}", ' in source for n, source in zip(numbers(), checks)] == [True] * len(numbers())
    assert len(checks) == len(numbers()) == 44


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


@by_name
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
                assert cell not in graded(nb)
    assert len(said) == 4 and all(s.startswith("○") and "Not attempted yet" in s for s in said)


@by_name
def test_the_broken_function_of_the_third_star_is_told_so_without_the_fix(path):
    """Whoever checks the unchanged code learns that it is as broken as before, not how to repair it."""
    nb, names = read(path), {}
    for cell in nb.cells:
        if cell.cell_type == "code" and cell not in graded(nb):
            exec(compile(cell.source, cell.id, "exec"), names)
    (broken,) = [f for name, f in names.items() if name.startswith("broken_") or name == "patient"]
    with pytest.raises(CheckFailed, match="Still as broken|Still a straight layer|The wrong branch is activated"):
        check(f"{int(path.stem[:2])}.4", broken)


@by_name
def test_three_or_four_rising_exercises_with_hints_and_a_question(path):
    nb = read(path)
    lesson = int(path.stem[:2])
    stars = [find(f"{lesson}.{i}").stars for i in range(1, 5)]
    assert stars == [1, 2, 2, 3] and [c.metadata.nbgrader.points for c in graded(nb)] == stars
    text = "\n".join(c.source for c in nb.cells if c.cell_type == "markdown")
    sections = text.split("\n## ")[1:]
    assert [s.split()[0] for s in sections] == [f"{lesson}.{i}" for i in range(1, 6)]
    for section, n in zip(sections, stars):
        assert section.split()[1] == STARS[n]
        assert section.count("<details><summary>Hint 1</summary>") == 1 and section.count("<summary>Hint") >= 2
    (question,) = graded(nb, "markdown")
    assert question.source.startswith("**Model answer.**") and "**Rubric (3 points).**" in question.source
