"""nbgrader for this course: every lesson's exercises are one assignment, named as its notebook ("01_lift").

Run nbgrader in this folder. Everything it makes goes to `classroom/` beside `notebooks/`:
source/ (the solutions, copied once: change sizes, seeds and tests there), release/ (hand this out),
submitted/STUDENT/LESSON/ (put what comes back here), autograded/, feedback/, gradebook.db. Files named
STUDENT_LESSON.ipynb in downloaded/LESSON/archive/ are filed by `nbgrader zip_collect LESSON`.
"""
import os
import shutil
import sys
from pathlib import Path

notebooks = Path(__file__).resolve().parent
classroom = notebooks.parent / "classroom"
for solution in sorted(notebooks.glob("solutions/*.ipynb")):
    copy = classroom / "source" / solution.stem / solution.name
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(solution, copy)

# nbgrader calls alembic, which stands beside this Python.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

c = get_config()  # noqa: F821  provided by nbgrader
c.CourseDirectory.root = str(classroom)
c.CourseDirectory.course_id = "ffn"
c.ExecutePreprocessor.timeout = 15                   # seconds for one cell: an endless loop ends here
c.FileNameCollectorPlugin.named_regexp = r".*[/\\](?P<student_id>[^/\\_]+)_(?P<file_id>\d\d_\w+)\.ipynb"
c.CsvExportPlugin.to = str(classroom / "grades.csv")
