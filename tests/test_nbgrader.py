"""README's commands for teachers, run offline on a copy: hand out, collect five submissions, grade, give feedback."""
import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbgrader", reason='nbgrader is not installed: pip install -e ".[teach]"')

ROOT = Path(__file__).parent.parent
LESSON = "01_lift"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of the repository's notebooks folder, as a teacher has it after cloning."""
    course = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "notebooks", course / "notebooks")
    return course


def commands():
    """The nbgrader commands of the README, in its order: their arguments."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return [line.split() for line in re.findall(r"^\.\./\.venv/bin/nbgrader ([\w -]+?) *(?:#.*)?$", readme, re.M)]


def nbgrader(course, arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "PYTHONWARN"))}
    env |= {"JUPYTER_CONFIG_DIR": str(course / "config"), "IPYTHONDIR": str(course / "ipython")}
    done = subprocess.run([sys.executable, "-m", "nbgrader", *arguments], cwd=course / "notebooks", env=env,
                          capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def place(course, *step, suffix="ipynb"):
    """Where nbgrader keeps the lesson's notebook: place(course, "release"), place(course, "submitted", "right")."""
    return course.joinpath("classroom", *step, LESSON, f"{LESSON}.{suffix}")


def submit(course, student, **cells):
    """Hand in the released notebook with the sources of some cells replaced: cell id -> source."""
    nb = nbformat.read(place(course, "release"), as_version=4)
    for cell in nb.cells:
        cell.source = cells.get(cell.id.replace("-", "_"), cell.source)
    place(course, "submitted", student).parent.mkdir(parents=True)
    nbformat.write(nb, place(course, "submitted", student))


def scores(course):
    with open(course / "classroom" / "grades.csv", encoding="utf-8") as f:
        return {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(f)}


def solutions():
    nb = nbformat.read(ROOT / "notebooks" / "solutions" / f"{LESSON}.ipynb", as_version=4)
    return {c.id.replace("-", "_"): c.source for c in nb.cells
            if c.cell_type == "code" and c.metadata.get("nbgrader", {}).get("solution")}


def test_a_round_with_five_submissions(course):
    hand_out, grade, feedback, export = commands()
    assert [hand_out[0], grade[0], feedback[0], export[0]] == [
        "generate_assignment", "autograde", "generate_feedback", "export"]

    nbgrader(course, hand_out)
    committed = ROOT / "notebooks" / "exercises" / f"{LESSON}.ipynb"
    assert place(course, "release").read_bytes() == committed.read_bytes()

    right = solutions()
    submit(course, "right", **right)
    submit(course, "wrong", **right | {"lift": "def lift(x, W1, b1):\n    return x @ W1"})
    submit(course, "blank")
    submit(course, "endless", **right | {"mix": "while True:\n    pass"})
    submit(course, "tampered", lift="def lift(x, W1, b1):\n    return x @ W1", check_1_1="print('all good')")

    for arguments in (grade, feedback, export):
        nbgrader(course, arguments)
    # 1 + 2 + 2 + 3 points are graded by machine, 3 more (the question to discuss) by the teacher.
    assert scores(course) == {
        "right": (8, 11), "wrong": (7, 11), "blank": (0, 11), "endless": (6, 11), "tampered": (0, 11)}

    page = place(course, "feedback", "wrong", suffix="html").read_text(encoding="utf-8")
    assert "The bias is missing: add b1 to x @ W1." in page and "Traceback (most recent" not in page


def test_a_teachers_own_hidden_test_is_kept_from_students_and_counts(course):
    """As the guide says: change the copy in classroom/source, hand out again, grade again."""
    nb = nbformat.read(place(course, "source"), as_version=4)
    check = next(c for c in nb.cells if c.id == "check-1-1")
    check.source += ("\n### BEGIN HIDDEN TESTS\ncheck('1.1', lift, seed=7)\n"
                     "assert lift([1.0], [[2.0]], [3.0]) == 0, 'a test that nobody can pass'\n### END HIDDEN TESTS")
    nbformat.write(nb, place(course, "source"))
    nbgrader(course, ["generate_assignment", LESSON, "--force"])
    released = place(course, "release").read_text(encoding="utf-8")
    assert "HIDDEN" not in released and "seed=7" not in released

    nbgrader(course, ["autograde", LESSON, "--student=right", "--force"])
    nbgrader(course, ["export"])
    assert scores(course)["right"] == (7, 11)
