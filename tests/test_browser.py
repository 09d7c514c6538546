"""What a reader does and sees in JupyterLab, in a real browser: `pytest -m browser`.

Works on copies without execution counts, so every count that is found afterwards comes from this run.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    sync_playwright = None

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = "install playwright (`pip install -e '.[browser]'`) and Chromium (Debian: `apt install chromium`)"
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not (sync_playwright and CHROMIUM), reason=MISSING)]

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
LESSONS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
EXERCISES = sorted(NOTEBOOKS.glob("exercises/[0-9]*.ipynb"))
MINUTE = 60_000  # Playwright counts in milliseconds


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda p: p.stem)


def code_cells(path):
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


def count_figures(cell):
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


EXPLORERS = [p for p in LESSONS if any("ipywidgets" in c.source for c in code_cells(p))]


def wait_for_url(process, runtime):
    """The address that a Jupyter server writes down once it listens."""
    deadline = time.monotonic() + 90
    while True:
        for file in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(json.JSONDecodeError):  # half written
                return json.loads(file.read_text(encoding="utf-8"))["url"]
        assert process.poll() is None and time.monotonic() < deadline, "JupyterLab did not start"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One JupyterLab for all tests, with a home of its own, on a copy of the notebooks."""
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("notebooks")
    shutil.copytree(NOTEBOOKS, root, dirs_exist_ok=True)
    names = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR")
    env = {**os.environ, **{name: str(home / name) for name in names}}
    env.pop("MPLBACKEND", None)
    # In a new home, pyplot's first import lists the fonts, and says so on stderr if that takes long.
    subprocess.run([sys.executable, "-c", "import matplotlib.pyplot"], env=env, check=True, capture_output=True)
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
               "--IdentityProvider.token=", f"--ServerApp.root_dir={root}", "--ServerApp.disable_check_xsrf=True",
               "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with open(home / "server.log", "w") as log:
        process = subprocess.Popen(command, cwd=root, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield SimpleNamespace(url=wait_for_url(process, home / "JUPYTER_RUNTIME_DIR"), root=root)
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=MINUTE / 2)
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        with playwright.chromium.launch(executable_path=CHROMIUM, args=flags) as browser:
            yield browser


@pytest.fixture
def open_in_lab(server, browser):
    """A function that opens a fresh copy of a notebook; afterwards its kernel is shut down."""
    page, errors = browser.new_page(viewport={"width": 1280, "height": 900}), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)

    def open_copy(path):
        name = path.relative_to(NOTEBOOKS).as_posix()
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count = None
        nbformat.write(notebook, server.root / name)
        page.goto(f"{server.url}lab/tree/{name}?reset")
        expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(notebook.cells), timeout=MINUTE)
        expect(page.locator("#jp-main-statusbar")).to_contain_text("Python 3 (ipykernel) | Idle", timeout=MINUTE)
        return SimpleNamespace(page=page, file=server.root / name, errors=errors)

    yield open_copy
    for session in page.request.get(f"{server.url}api/sessions").json():
        page.request.delete(f"{server.url}api/sessions/{session['id']}")
    page.close()


def cells(page):
    return page.locator(".jp-Notebook .jp-CodeCell")


def output_of(cell):
    return cell.locator(".jp-OutputArea-output")


def run_all(page):
    """Every cell shows [*] from the start until it has run, or until an error ends the run."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
    prompts = cells(page).locator(".jp-InputPrompt")
    expect(prompts.first).to_have_text("[1]:", timeout=MINUTE)
    expect(prompts.filter(has_text="[*]")).to_have_count(0, timeout=5 * MINUTE)


@by_name(LESSONS)
def test_lesson_keeps_results_folded_until_they_are_run(path, open_in_lab):
    lab, stored = open_in_lab(path), code_cells(path)
    folded = [i for i, c in enumerate(stored) if c.metadata.get("jupyter", {}).get("outputs_hidden")]
    expect(lab.page.locator(".jp-OutputPlaceholder")).to_have_count(len(folded))
    for i in folded:
        expect(output_of(cells(lab.page).nth(i))).to_have_count(0)
        if stored[i].source.startswith("show_guess"):
            expect(cells(lab.page).nth(i).locator(".jp-OutputPlaceholder")).to_have_text("your guess: no guess")

    run_all(lab.page)
    expect(lab.page.locator(".jp-OutputPlaceholder")).to_have_count(0)
    for i in folded:
        cells(lab.page).nth(i).scroll_into_view_if_needed()
        expect(output_of(cells(lab.page).nth(i)).first).to_be_visible()
    figures = output_of(cells(lab.page)).locator("img")
    assert figures.count() >= sum(map(count_figures, stored))
    figures.evaluate_all("images => Promise.all(images.map(image => image.decode()))")  # fails if one is broken

    details = lab.page.locator(".jp-Notebook details")
    expect(details).to_have_count(path.read_text(encoding="utf-8").count("<details>"))
    expect(lab.page.locator(".jp-Notebook details[open]")).to_have_count(0)
    for answer in details.all():
        answer.locator("summary").click()
        expect(answer).to_have_attribute("open", "")

    lab.page.keyboard.press("Escape")
    with lab.page.expect_response(lambda r: r.request.method == "PUT" and "/api/contents/" in r.url):
        lab.page.keyboard.press("Control+s")
    saved = code_cells(lab.file)
    assert [c.execution_count for c in saved] == list(range(1, len(stored) + 1))
    assert [count_figures(c) for c in saved] == [count_figures(c) for c in stored]
    for output in (o for c in saved for o in c.outputs):
        assert output.output_type != "error" and output.get("name") != "stderr", output
    assert lab.errors == []


@by_name(EXPLORERS)
def test_explorer_answers_the_keyboard(path, open_in_lab):
    lab = open_in_lab(path)
    run_all(lab.page)
    explorer = lab.page.locator(".widget-interact").first
    control = explorer.locator(".noUi-handle, .widget-dropdown select").first
    drawn = explorer.locator(".widget-output").element_handle()
    read_value = "e => e.value ?? e.closest('.widget-slider').querySelector('.widget-readout').textContent"
    read_drawn = "e => e.textContent.trim() + [...e.querySelectorAll('img')].map(image => image.src)"
    value, before = control.evaluate(read_value), drawn.evaluate(read_drawn)
    control.press("End")  # for a list, JupyterLab keeps the arrows to itself
    if control.evaluate(read_value) == value:
        control.press("Home")
    assert before and control.evaluate(read_value) != value
    lab.page.wait_for_function(f"([e, old]) => ![old, ''].includes(({read_drawn})(e))", arg=[drawn, before])
    assert lab.errors == []


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_cheat_sheet_prints_on_one_page(paper, browser):
    page = browser.new_page()
    page.goto((NOTEBOOKS / "teaching" / "cheat_sheet.html").as_uri())
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format=paper, prefer_css_page_size=False))) == 1
    page.close()


def first_check(path):
    """Where the first check stands among the code cells; the cell before it holds the solution."""
    return next(i for i, cell in enumerate(code_cells(path)) if re.search(r"^check\(", cell.source, re.M))


@by_name(EXERCISES[:2])
def test_unsolved_exercises_say_so_and_do_not_stop_run_all(path, open_in_lab):
    page = open_in_lab(path).page
    run_all(page)
    expect(output_of(cells(page)).filter(has_text="Not attempted yet")).to_have_count(4)
    expect(output_of(cells(page)).filter(has_text="Traceback")).to_have_count(0)


@by_name(EXERCISES[:1])
def test_exercise_solved_by_typing_gets_its_tick(path, open_in_lab):
    page, check = open_in_lab(path).page, first_check(path)
    assert 'check("1.1"' in code_cells(path)[check].source
    run_all(page)  # for the imports
    cells(page).nth(check - 1).locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("def lift(x, W1, b1):\nreturn x @ W1 + b1")  # JupyterLab indents by itself
    page.keyboard.press("Shift+Enter")
    cells(page).nth(check).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    expect(output_of(cells(page).nth(check)).first).to_have_text(re.compile(r"^\s*✓"))
