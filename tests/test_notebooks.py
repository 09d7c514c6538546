"""The rules for notebooks that need no kernel (what cells print is nbval's part of `pytest`)."""
import json
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(ROOT.glob("*.ipynb"))
EXECUTED = NOTEBOOKS + sorted(ROOT.glob("solutions/*.ipynb"))
ALL = EXECUTED + sorted(ROOT.glob("exercises/*.ipynb"))
LESSONS = [p for p in NOTEBOOKS if p.stem != "00_ready"]
LOCAL = re.compile(r"/root/|/home/|/tmp/|/Users/|[A-Z]:\\\\|site-packages|\b0x[0-9a-f]{6,}|<[\w.]+ object at")


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda p: f"{p.parent.name}-{p.stem}")


def code_cells(nb):
    return [c for c in nb.cells if c.cell_type == "code"]


def read(path):
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def test_lessons_are_numbered_without_gaps_and_lead_to_the_next_one():
    assert [int(p.stem[:2]) for p in NOTEBOOKS] == list(range(len(NOTEBOOKS)))
    for path, after in zip(NOTEBOOKS, [*NOTEBOOKS[1:], None]):
        last = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown").split("\n## ")[-1]
        links = re.findall(r"\]\((\d\d_\w+\.ipynb)\)", last)
        assert links == ([after.name] if after else []), path.name
        assert f"](exercises/{path.name})" in last or path not in LESSONS, path.name


@by_name(EXECUTED)
def test_format_and_metadata(path):
    nb = read(path)
    nbformat.validate(nb)
    assert (nb.nbformat, nb.nbformat_minor) == (4, 5) and path.stat().st_size < 600_000
    ids = [c.id for c in nb.cells]
    assert len(set(ids)) == len(ids)
    assert set(nb.metadata) == {"kernelspec", "language_info"} and nb.metadata.language_info == {"name": "python"}
    for cell in nb.cells:
        assert set(cell.metadata) <= {"tags", "jupyter", "nbgrader"}, cell.id
        assert cell.metadata.get("jupyter", {"outputs_hidden": True}) == {"outputs_hidden": True}, cell.id


@by_name(EXECUTED)
def test_executed_in_order_and_quiet(path):
    nb = read(path)
    cells = code_cells(nb)
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error" and output.get("name") != "stderr", cell.id
            data = {k: v for k, v in output.get("data", {}).items() if "image" not in k}
            text = json.dumps([output.get("text"), data])
            assert not LOCAL.search(text), f"{cell.id}: {text[:200]}"
            assert "widget-view" not in text, cell.id


@by_name(EXECUTED)
def test_cells_are_short_and_show_their_output(path):
    for cell in code_cells(read(path)):
        lines = cell.source.splitlines()
        assert 0 < len(lines) <= 25, cell.id
        assert not lines[-1].rstrip().endswith(";"), cell.id
        assert max(map(len, lines)) <= 114, f"{cell.id}: a line that JupyterLab would cut off"
        assert "%matplotlib" not in cell.source and "np.float64(" not in json.dumps(cell.outputs), cell.id
        if "plots." in cell.source or "subplots" in cell.source:
            assert "plt.show()" in cell.source or "use_course_style" in cell.source or "STAGE" in cell.source, cell.id


@by_name(NOTEBOOKS)
def test_predictions_come_before_their_folded_results(path):
    """`guess = None` alone in a cell; the next code cell shows the guess first and is folded."""
    nb = read(path)
    cells = code_cells(nb)
    asked = [i for i, c in enumerate(cells) if c.source.startswith("guess = None")]
    assert len(asked) >= 3
    for i in asked:
        assert len(cells[i].source.splitlines()) == 1 and not cells[i].outputs
        between = 1  # a cell that defines or trains may stand between, if it shows nothing
        while not cells[i + between].source.startswith("show_guess"):
            assert not cells[i + between].outputs or "nbval-ignore-output" in cells[i + between].metadata.tags
            between += 1
        result = cells[i + between]
        assert result.source.startswith("show_guess(guess)") and result.metadata.jupyter.outputs_hidden
        assert result.outputs[0].text.startswith("your guess: no guess\n")
        after = nb.cells[nb.cells.index(result) + 1]  # the answer in prose waits for a click, too
        assert after.source.startswith("<details><summary>After you have run it</summary>"), after.id


@by_name(LESSONS)
def test_anatomy(path):
    nb = read(path)
    text = "\n".join(c.source for c in nb.cells if c.cell_type == "markdown")
    title = nb.cells[0].source.splitlines()[0]
    assert re.fullmatch(rf"# {path.stem[:2]} \S.*", title)
    for needed in ("**Objectives.**", "**Time:**", "## Warm-up", "### Predict 1", "### Predict 3",
                   "## What people get wrong", "## Recap", "**Sources.**", "## Next"):
        assert needed in text, needed
    figures = sum("image/png" in o.get("data", {}) for c in code_cells(nb) for o in c.outputs)
    assert figures >= 2
    assert text.count("<details>") == text.count("</details>") >= 7
    statements = re.findall(r"^\*\*([A-D])\. \"", text, re.M)
    verdicts = re.findall(r"<details><summary>Verdict on ([A-D])</summary>\n\n(True|False)", text)
    assert statements == [letter for letter, _ in verdicts] and {v for _, v in verdicts} == {"True", "False"}
    assert not re.search(r"\b(magic|powerful|simply|of course|obviously|as we all know)\b", text, re.I)


@by_name(ALL)
def test_headings_do_not_skip_a_level(path):
    cells = [c.source for c in read(path).cells if c.cell_type == "markdown"]
    prose = re.sub(r"```.*?```", "", "\n".join(cells), flags=re.S)
    levels = [len(m) for m in re.findall(r"^(#+) ", prose, re.M)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(levels, levels[1:]))


@by_name(ALL)
def test_links_to_files_lead_somewhere(path):
    text = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (path.parent / target).exists(), target


@by_name(NOTEBOOKS)
def test_every_figure_is_described_in_the_cell_after_it(path):
    """The text alternative: what is to be seen, for readers who cannot see it."""
    nb = read(path)
    for cell, after in zip(nb.cells, nb.cells[1:]):
        if cell.cell_type == "code" and any("image/png" in o.get("data", {}) for o in cell.outputs):
            assert after.cell_type == "markdown" and len(after.source) > 80, cell.id


def outputs_as_text(cell):
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs)


@by_name(LESSONS)
def test_every_count_in_prose_is_printed_by_some_cell(path):
    """Phrases such as "100 of 224" and "17 of 32" must stand in an output, a title or the code."""
    nb = read(path)
    shown = "\n".join(outputs_as_text(c) + c.source for c in code_cells(nb)).replace(",", "")
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            for a, b in re.findall(r"(?<![\d.])(\d[\d,]*) of (?:the )?(\d[\d,]*)\b", cell.source):
                a, b = a.replace(",", ""), b.replace(",", "")
                assert re.search(rf"\b{a}\b", shown) and re.search(rf"\b{b}\b", shown), f"{cell.id}: {a} of {b}"
