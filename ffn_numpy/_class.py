"""What a class got wrong: `ffn-numpy class FOLDER` reads the notebooks that came back, and runs nothing.

A check leaves its verdict in the notebook, and behind a failed one the id of its message (`_messages`). So mistakes are
counted by id, in whatever language the message was shown.
"""
from __future__ import annotations

import html
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ._messages import message_id

CHECK = re.compile(r'^\s*(?:check|puzzle)\(\s*["\']([\w.]+)["\']\s*,\s*(\w+)', re.M)
FAILED = re.compile(r"\n\[([\d.]+) ([0-9a-f]{6})\]\s*$")
LESSON = re.compile(r"(\d\d_[a-z_]+)")
STATES = ("solved", "tried", "left")
SECTIONS = {  # which section of the lesson treats an exercise, or a level of the puzzles
    "1.1": "The lift", "1.2": "What attention adds", "1.3": "The lift", "1.4": "Who sees whom?",
    "2.1": "What the bend buys: folds", "2.2": "Three curves", "2.3": "What the bend buys: folds",
    "2.4": "Why a bend at all", "3.1": "Four lines", "3.2": "Four lines", "3.3": "One unit that does something",
    "3.4": "The swap that no shape check finds", "4.1": "Count the parameters", "4.2": "What one token writes",
    "4.3": "One unit that finds something out", "4.4": "Shuffle the hidden units", "5.1": "How large can an output be?",
    "5.2": "Who is silent?", "5.3": "Swap the activation", "5.4": "What the outlier breaks", "6.1": "The KV cache",
    "6.2": "8/3, then round up", "6.3": "Optional: one FFN on two devices", "6.4": "Do the counts add up?",
    "7.1": "Two norms", "7.2": "Two norms", "7.3": "Attention", "7.4": "The block",
    "8.1": "A task that needs two skills", "8.2": "Attention alone",
    "8.3": "A task that needs two skills", "8.4": "The missing part, by hand",
    "9.1": "Units that stay silent", "9.2": "The backward pass, one line at a time", "9.3": "A slope, by measuring",
    "9.4": "The backward pass, one line at a time", "10.1": "Balance", "10.2": "Route one token by hand",
    "10.3": "Balance", "10.4": "The whole batch, expert by expert", "11.1": "Patient 3", "11.2": "Six more",
    "11.3": "Six more", "11.4": "Patient 2", "level 1": "Build a line", "level 2": "Build a line",
    "level 3": "Let the course judge", "level 4": "Change one number, under a condition",
    "level 5": "Prove that fewer are not enough", "level 6": "Prove that none can",
}


class Verdict(NamedTuple):
    """What one check says in one notebook. state: solved, tried or left; stale: the answer was run after the check."""

    state: str
    mistake: str = ""
    text: str = ""
    stale: bool = False


@dataclass
class Handed:
    """One notebook that came back."""

    path: Path
    student: str
    lesson: str
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


# ---- reading

def read_folder(folder: Path) -> list[Handed]:
    """Every notebook under the folder: nbgrader's `submitted/NAME/LESSON/LESSON.ipynb`, or files in any other order."""
    paths = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    return [_read(path, folder) for path in paths]


def _read(path, folder):
    *parents, name = path.relative_to(folder).with_suffix("").parts
    found = LESSON.search(name) or next(filter(None, map(LESSON.search, reversed(parents))), None)
    lesson = found[1] if found else ""
    students = [part for part in (*parents, *(name.replace(lesson, "").strip("_ -"),)) if part and part != lesson]
    handed = Handed(path, students[0] if students else name, lesson)
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        _read_cells(handed, [c for c in cells if c["cell_type"] == "code"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        handed.problems.append(f"cannot be read ({type(error).__name__}): ask for the file again")
        return handed
    if name != lesson:
        handed.problems.append(f"is named {path.name}: nbgrader grades {lesson or 'LESSON'}.ipynb only")
    return handed


def _read_cells(handed, cells):
    """The verdicts, and what would go wrong in grading."""
    ran = {}                                                # function name -> when its cell ran
    ids = Counter(c.get("metadata", {}).get("nbgrader", {}).get("grade_id") for c in cells)
    twice = [name for name, n in ids.items() if name and n > 1]
    if twice:
        handed.problems.append(f"has two cells with the grade_id {twice[0]}: autograde stops here; delete the copy")
    for cell in cells:
        source = "".join(cell["source"])
        when = cell.get("execution_count") or 0
        for name in re.findall(r"^def (\w+)\(", source, re.M):
            ran[name] = when
        for number, answer in CHECK.findall(source):
            if number in handed.verdicts:
                continue
            handed.verdicts[number] = _verdict(number, cell)._replace(stale=0 < when < ran.get(answer, 0))
            if not cell.get("metadata", {}).get("nbgrader", {}).get("grade"):
                handed.problems.append(f"has lost the grading metadata of {number}: it would count 0")


def _verdict(number, cell):
    for output in cell.get("outputs", []):
        text = "".join(output.get("text", ())) or "".join(output.get("data", {}).get("text/plain", ()))
        if f"✓ {number} " in text:
            return Verdict("solved")
        if output.get("output_type") == "error":
            said, kind = output.get("evalue", ""), output.get("ename", "")
            if kind == "NotAttempted" or "NotImplementedError" in kind:
                return Verdict("left")
            found = FAILED.search(said)
            lines = FAILED.sub("", said).strip().splitlines()
            if not found:
                return Verdict("tried", kind, f"{kind}: {lines[0] if lines else ''}")
            return Verdict("tried", found[2], lines[1].strip() if len(lines) > 1 else lines[0])
    return Verdict("left")


# ---- counting

@dataclass
class Exercise:
    """How a class did in one exercise: the students in each state, and behind each mistake."""

    number: str
    students: dict[str, list[str]] = field(default_factory=lambda: {state: [] for state in STATES})
    mistakes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    texts: dict[str, str] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)


def count(notebooks: list[Handed]) -> dict[str, dict[str, Exercise]]:
    """lesson -> number -> how the class did, in the order of the course."""
    lessons: dict[str, dict[str, Exercise]] = {}
    for handed in sorted(notebooks, key=lambda h: h.lesson):
        exercises = lessons.setdefault(handed.lesson, {})
        for number, verdict in handed.verdicts.items():
            exercise = exercises.setdefault(number, Exercise(number))
            exercise.students[verdict.state].append(handed.student)
            if verdict.mistake:
                exercise.mistakes[verdict.mistake].append(handed.student)
                exercise.texts.setdefault(verdict.mistake, verdict.text)
            if verdict.stale:
                exercise.stale.append(handed.student)
    return {lesson: dict(sorted(e.items(), key=lambda item: _order(item[0]))) for lesson, e in lessons.items() if e}


def _order(number):
    return [int(part) if part.isdigit() else 0 for part in number.split(".")]


def need_help(notebooks: list[Handed]) -> list[tuple[str, int, int]]:
    """Students who solved at most half of what the middle of the class did: (student, solved, of)."""
    solved: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for handed in notebooks:
        asked[handed.student] += len(handed.verdicts)
        solved[handed.student] += sum(v.state == "solved" for v in handed.verdicts.values())
    if not asked:
        return []
    middle = median(solved[s] for s in asked)
    few = [(s, solved[s], asked[s]) for s in asked if solved[s] <= middle / 2]
    return sorted(few, key=lambda row: (row[1], row[0]))


def sentence(mistake: str, shown: str) -> str:
    """The English text of a known mistake, or what stands in the notebook."""
    return _known().get(mistake, shown)


def _known():
    if not _KNOWN:
        from .exercises import find, numbers
        from .exercises.puzzles import PUZZLES
        texts = [text for n in numbers() for text in find(n).mistakes]
        texts += [text for task in PUZZLES.values() for text in getattr(task, "slips", ())]
        _KNOWN.update({message_id(text): text for text in texts})
    return _KNOWN


_KNOWN: dict[str, str] = {}


# ---- writing

def as_text(folder: Path, notebooks: list[Handed]) -> str:
    """The report for a terminal."""
    lines = []
    for lesson, exercises in count(notebooks).items():
        lines += ["", f"{lesson}: {len({h.student for h in notebooks if h.lesson == lesson})} students"]
        for e in exercises.values():
            lines.append(f"  {e.number:<5} " + "   ".join(f"{state} {len(e.students[state]):3}" for state in STATES)
                         + f"   {section(lesson, e.number)}")
            lines += [f"      {len(who):3} x {sentence(mistake, e.texts[mistake])}" for mistake, who in _frequent(e)]
            if e.stale:
                lines.append(f"      (the answer was run again after the check: {', '.join(e.stale)})")
    if help_for := need_help(notebooks):
        lines += ["", "may need help:"] + [f"  {s}: {n} of {of} solved" for s, n, of in help_for]
    if problems := [(h, p) for h in notebooks for p in h.problems]:
        lines += ["", "before you grade:"] + [f"  {h.path.relative_to(folder)} {p}" for h, p in problems]
    return "\n".join(lines).lstrip("\n") or f"no notebooks with checks in {folder}"


def _frequent(exercise):
    return sorted(exercise.mistakes.items(), key=lambda item: (-len(item[1]), item[0]))


def section(lesson: str, number: str) -> str:
    """The heading under which the lesson treats it, or nothing for an exercise of the teacher's own."""
    return SECTIONS.get(f"level {number[:1]}" if lesson.startswith("12_") else number, "")


STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%}td,th{padding:.25em .6em;text-align:left;vertical-align:top}
tr{border-bottom:1px solid #ddd}.bar{display:flex;height:1em;width:12em;background:#eee}.bar span{display:block}
.solved{background:#0072B2}.tried{background:#E69F00}.left{background:#BBB}small{color:#555}"""


def as_page(folder: Path, notebooks: list[Handed]) -> str:
    """The report as one HTML page that needs nothing else."""
    students = len({h.student for h in notebooks})
    body = [f"<h1>What the class got wrong</h1><p>{students} students, {len(notebooks)} notebooks. Bars: "
            + ", ".join(f'<span class="{s}">&emsp;</span> {s}' for s in STATES) + ".</p>"]
    for lesson, exercises in count(notebooks).items():
        body.append(f"<h2>{html.escape(lesson)}</h2><table><tr><th>exercise<th>solved, tried, left<th>mistakes")
        body += [_row(lesson, e) for e in exercises.values()]
        body.append("</table>")
    if help_for := need_help(notebooks):
        body.append("<h2>May need help</h2><ul>" + "".join(
            f"<li>{html.escape(s)}: {n} of {of} solved" for s, n, of in help_for) + "</ul>")
    if problems := [(h, p) for h in notebooks for p in h.problems]:
        body.append("<h2>Before you grade</h2><ul>" + "".join(
            f"<li><code>{html.escape(str(h.path.relative_to(folder)))}</code> {html.escape(p)}" for h, p in problems)
            + "</ul>")
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>What the class got wrong</title>'
            f"<style>{STYLE}</style>{''.join(body)}</html>\n")


def _row(lesson, e):
    n = {state: len(e.students[state]) for state in STATES}
    total = sum(n.values())
    bar = "".join(f'<span class="{s}" style="width:{100 * n[s] / total:.1f}%"></span>' for s in STATES)
    label = ", ".join(f"{n[s]} {s}" for s in STATES)
    mistakes = "<br>".join(f"<b>{len(who)} ×</b> {html.escape(sentence(m, e.texts[m]))} "
                           f"<small>{html.escape(', '.join(who))}</small>" for m, who in _frequent(e))
    stale = f"<br><small>answer run again after the check: {html.escape(', '.join(e.stale))}</small>" if e.stale else ""
    where = f"<br><small>{html.escape(section(lesson, e.number))}</small>" if section(lesson, e.number) else ""
    return (f'<tr><th scope="row">{html.escape(e.number)}{where}<td><div class="bar" role="img" aria-label="{label}">'
            f"{bar}</div><small>{label}</small><td>{mistakes}{stale}")


def report(folder: str | Path, out: str | Path | None = None) -> str:
    """Read the notebooks in `folder`, write the page, and return the text.

    Parameters
    ----------
    folder : where the notebooks are, such as classroom/submitted or classroom/autograded
    out : the page; default class_report.html beside the folder

    Raises
    ------
    ValueError
        If there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"folder must be a folder with notebooks, such as classroom/submitted; there is no {folder}")
    if (folder / "submitted").is_dir():  # nbgrader's own, which holds the same notebooks several times
        folder = folder / "submitted"
    notebooks = read_folder(folder)
    page = Path(out) if out else folder.parent / "class_report.html"
    page.write_text(as_page(folder, notebooks), encoding="utf-8")
    return f"{as_text(folder, notebooks)}\n\nas a page: {page}"
