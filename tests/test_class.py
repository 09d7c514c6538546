"""The report on a class: made-up students with real answers; the notebooks are read, never run."""
import json
import shutil
import time
from pathlib import Path

import nbformat
import pytest
from student_answers import RIGHT, WRONG

from ffn_numpy._class import as_page, as_text, count, need_help, read_folder, report, section
from ffn_numpy._messages import message_id
from ffn_numpy.check import CheckFailed, check
from ffn_numpy.exercises import numbers
from ffn_numpy.exercises.puzzles import PUZZLES

EXERCISES = Path(__file__).parent.parent / "notebooks" / "exercises"
LESSON = "01_lift"


def answer(number, right=True):
    """The first source that somebody wrote for this exercise."""
    return next(a for a in (RIGHT if right else WRONG) if a[0] == number)[-1]


def hand_in(folder, student, answers, lesson=LESSON, name=None, change=None):
    """A notebook of this student with stored outputs, as after Run All. answers: number -> source."""
    nb = nbformat.read(EXERCISES / f"{lesson}.ipynb", as_version=4)
    names, last = {}, None
    exec("import math\nimport numpy as np\nfrom ffn_numpy import gelu, layer_norm, sigmoid, silu, softmax", names)
    for i, cell in enumerate(c for c in nb.cells if c.cell_type == "code"):
        cell.execution_count = i + 1
        if "raise NotImplementedError" in cell.source and "def " in cell.source:
            last = cell
            exec(cell.source, names)
        elif cell.source.rstrip().endswith(")") and 'check("' in cell.source:
            number, function = cell.source.split('check("')[1].rstrip(")\n").split('", ')
            if number in answers:
                last.source = answers[number]
                exec(answers[number], names)
            cell.outputs = [said(number, names[function])]
    if change:
        change(nb)
    path = folder / student / lesson / f"{name or lesson}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(nbformat.writes(nb), encoding="utf-8")
    return path


def said(number, function):
    """What Jupyter stores when this check runs."""
    try:
        check(number, function)
    except CheckFailed as error:
        return nbformat.v4.new_output("error", ename=type(error).__name__, evalue=str(error),
                                      traceback=error._render_traceback_())
    return nbformat.v4.new_output("stream", name="stdout", text=f"✓ {number} right\n")


@pytest.fixture
def folder(tmp_path, capsys):
    return tmp_path / "submitted"


def test_each_exercise_says_who_solved_tried_and_left_it(folder):
    bias = "def lift(x, W1, b1):\n    return x @ W1"
    hand_in(folder, "ada", {"1.1": answer("1.1"), "1.2": answer("1.2")})
    hand_in(folder, "bo", {"1.1": bias})
    hand_in(folder, "cy", {"1.1": bias, "1.2": answer("1.2")})
    lessons = count(read_folder(folder))
    one, two, three, four = lessons[LESSON].values()
    assert one.students == {"solved": ["ada"], "tried": ["bo", "cy"], "left": []}
    assert two.students == {"solved": ["ada", "cy"], "tried": [], "left": ["bo"]}
    assert three.students["left"] == four.students["left"] == ["ada", "bo", "cy"]
    text = "The bias is missing: add b1 to x @ W1."
    assert dict(one.mistakes) == {message_id(text): ["bo", "cy"]} and not one.stale
    printed = as_text(folder, read_folder(folder))
    assert printed.startswith("01_lift: 3 students\n  1.1   solved   1   tried   2   left   0")
    assert f"        2 x {text}" in printed


def test_mistakes_are_counted_by_id_whatever_the_language(folder):
    def in_another_language(nb):
        for cell in nb.cells:
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    output.evalue = "✗ 1.1 lift(x, W1, b1)\n  偏置\n" + output.evalue.splitlines()[-1]

    bias = "def lift(x, W1, b1):\n    return x @ W1"
    hand_in(folder, "ada", {"1.1": bias})
    hand_in(folder, "bo", {"1.1": bias}, change=in_another_language)
    (mistake,) = count(read_folder(folder))[LESSON]["1.1"].mistakes.items()
    assert mistake[1] == ["ada", "bo"] and "2 x The bias is missing" in as_text(folder, read_folder(folder))


def test_an_answer_that_was_run_again_after_the_check_is_marked(folder):
    def again(nb):
        cell = next(c for c in nb.cells if c.cell_type == "code" and "def lift" in c.source)
        cell.execution_count = 99

    hand_in(folder, "ada", {"1.1": answer("1.1")}, change=again)
    assert count(read_folder(folder))[LESSON]["1.1"].stale == ["ada"]
    assert "run again after the check: ada" in as_text(folder, read_folder(folder))


def test_notebooks_that_would_spoil_the_grading_are_listed(folder):
    def copied(nb):
        graded = next(c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade"))
        nb.cells.append(nbformat.from_dict(json.loads(json.dumps(graded)) | {"id": "copy"}))

    def lost(nb):
        for cell in nb.cells:
            cell.metadata.pop("nbgrader", None)

    hand_in(folder, "copied", {}, change=copied)
    hand_in(folder, "lost", {}, change=lost)
    hand_in(folder, "renamed", {"1.1": answer("1.1")}, name="exercises")
    hand_in(folder, "damaged", {}).write_text("{ half a notebo", encoding="utf-8")
    hand_in(folder, "fine", {})
    printed = as_text(folder, read_folder(folder)).split("before you grade:\n")[1]
    for line in ("copied/01_lift/01_lift.ipynb has two cells with the grade_id", "lost/01_lift/01_lift.ipynb has lost",
                 "renamed/01_lift/exercises.ipynb is named exercises.ipynb",
                 "damaged/01_lift/01_lift.ipynb cannot be read"):
        assert line in printed
    assert "fine" not in printed
    assert "renamed" in count(read_folder(folder))[LESSON]["1.1"].students["solved"]


def test_names_come_from_folders_or_files(tmp_path):
    path = hand_in(tmp_path / "submitted", "ada", {})
    shutil.copy(path, tmp_path / "bo_01_lift.ipynb")
    assert {h.student for h in read_folder(tmp_path)} == {"bo", "submitted"}
    assert "01_lift: 1 students" in report(tmp_path, tmp_path / "page.html")  # nbgrader's folder: `submitted` alone
    assert [h.student for h in read_folder(tmp_path / "submitted")] == ["ada"]


def test_who_may_need_help(folder):
    for student in ("ada", "bo", "cy"):
        hand_in(folder, student, {n: answer(n) for n in ("1.1", "1.2", "1.3", "1.4")})
    hand_in(folder, "dee", {"1.1": answer("1.1")})
    assert need_help(read_folder(folder)) == [("dee", 1, 4)]


def test_the_page_is_complete_and_safe(folder, tmp_path):
    hand_in(folder, "<b>ada</b>", {"1.1": "def lift(x, W1, b1):\n    return x @ W1"}, name="x")
    page = as_page(folder, read_folder(folder))
    assert "&lt;b&gt;ada&lt;/b&gt;" in page and "<b>ada" not in page and "src=" not in page and "<script" not in page
    assert "The bias is missing: add b1 to x @ W1." in page and "0 solved, 1 tried, 0 left" in page
    text = report(folder, tmp_path / "page.html")
    assert text.endswith(f"as a page: {tmp_path / 'page.html'}")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page


def test_every_exercise_names_a_section_of_its_lesson():
    for lesson in sorted((EXERCISES.parent).glob("[0-9]*.ipynb"))[1:]:
        text = "\n".join(c.source for c in nbformat.read(lesson, as_version=4).cells if c.cell_type == "markdown")
        own = [n for n in numbers() if n.split(".")[0] == str(int(lesson.stem[:2]))] or list(PUZZLES)
        for number in own:
            heading = section(lesson.stem, number)
            assert heading and f"# {heading}" in text, f"{lesson.stem} {number}: {heading}"


def test_a_folder_that_is_none_or_empty(tmp_path):
    with pytest.raises(ValueError, match="folder must be a folder with notebooks.*there is no"):
        report(tmp_path / "nowhere")
    assert report(tmp_path, tmp_path / "page.html").startswith("no notebooks with checks in")


def test_three_hundred_students_take_seconds(folder):
    first = hand_in(folder, "s000", {"1.1": answer("1.1", right=False), "1.2": answer("1.2")})
    for i in range(1, 300):
        path = folder / f"s{i:03}" / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        shutil.copy(first, path)
    start = time.perf_counter()
    assert "01_lift: 300 students" in as_text(folder, read_folder(folder))
    assert time.perf_counter() - start < 20
