"""What a reader does and sees in JupyterLab, in a real browser: `pytest -m browser`.

Works on copies without execution counts, so every count that is found afterwards comes from this run.
"""
import contextlib
import itertools
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
PATIENCE = 300  # seconds; only a failure lasts that long, a busy machine with two cores needs a part of it


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda p: p.stem)


def code_cells(path):
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


def count_figures(cell):
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


EXPLORERS = [p for p in LESSONS if any("ipywidgets" in c.source for c in code_cells(p))]


def wait_for_url(process, runtime):
    """The address that a Jupyter server writes down once it listens."""
    deadline = time.monotonic() + PATIENCE
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
    # On a slow machine a test outlasts the two minutes after which JupyterLab would save by itself.
    settings = home / "JUPYTER_CONFIG_DIR/lab/user-settings/@jupyterlab/docmanager-extension/plugin.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"autosave": false}', encoding="utf-8")
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
            try:
                process.wait(PATIENCE)
            finally:
                process.kill()


@pytest.fixture(scope="module")
def browser():
    timeout = 1000 * PATIENCE
    expect.set_options(timeout=timeout)
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        with playwright.chromium.launch(executable_path=CHROMIUM, args=flags, timeout=timeout) as browser:
            yield browser


@pytest.fixture
def page(browser):
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(1000 * PATIENCE)
        yield context.new_page()


@pytest.fixture
def open_in_lab(server, page):
    """A function that opens a fresh copy of a notebook; afterwards its kernel is shut down."""
    errors = []
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
        expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(notebook.cells))
        expect_idle(page)
        return SimpleNamespace(page=page, file=server.root / name, errors=errors)

    yield open_copy
    for session in page.request.get(f"{server.url}api/sessions", timeout=1000 * PATIENCE).json():
        page.request.delete(f"{server.url}api/sessions/{session['id']}", timeout=1000 * PATIENCE)


def expect_idle(page):
    expect(page.locator("#jp-main-statusbar")).to_contain_text("Python 3 (ipykernel) | Idle")


def cells(page):
    return page.locator(".jp-Notebook .jp-CodeCell")


def output_of(cell):
    return cell.locator(".jp-OutputArea-output")


def run_all(page):
    """Until every cell has its number, or an error has ended the run."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function("""() => {
        const texts = part => [...document.querySelectorAll(`.jp-CodeCell ${part}`)].map(e => e.textContent)
        return texts('.jp-InputPrompt').every(text => /[0-9]/.test(text))
            || texts('.jp-OutputArea-output').some(text => text.includes('Traceback (most recent call last)'))
    }""")
    expect_idle(page)


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
    if expected := sum(map(count_figures, stored)):
        expect(figures.nth(expected - 1)).to_be_attached()
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
    is_last = "e => e.options ? e.selectedIndex === e.length - 1 : e.ariaValueNow === e.ariaValueMax"
    changed = "([e, old]) => ![old, ''].includes(({})(e))"
    lab.page.wait_for_function(changed.format(read_drawn), arg=[drawn, ""])
    value, before = control.evaluate(read_value), drawn.evaluate(read_drawn)
    control.press("Home" if control.evaluate(is_last) else "End")  # for a list, JupyterLab keeps the arrows to itself
    lab.page.wait_for_function(changed.format(read_value), arg=[control.element_handle(), value])
    lab.page.wait_for_function(changed.format(read_drawn), arg=[drawn, before])
    assert lab.errors == []


PAPERS = {"A4": (210, 297), "Letter": (215.9, 279.4)}  # mm
FONTS = [None, "DejaVu Sans", "Liberation Sans", "Liberation Sans Narrow"]  # the reader's own; from wide to narrow
SHARE_FREE = 0.08  # of the page's height, for what another browser, font or printer does otherwise

on_paper = pytest.mark.parametrize("paper", PAPERS)
in_font = pytest.mark.parametrize("font", FONTS, ids=lambda font: font or "default")

IS_INSTALLED = """font => {  // then it does not matter which font would stand in for it
    const pen = document.createElement('canvas').getContext('2d')
    const width = family => { pen.font = `99px ${family}`; return pen.measureText('h = x W1 + b1').width }
    return width('serif') !== width('monospace') && width(`"${font}", serif`) === width(`"${font}", monospace`)
}"""

MARGINS = """() => {
    const {marginLeft, marginTop} = [...document.styleSheets[0].cssRules].find(r => r instanceof CSSPageRule).style
    return [parseFloat(marginLeft), parseFloat(marginTop)]
}"""

BLOCKS = """() => [...document.querySelectorAll('h1, .intro, section > *')].map(e => {
    const text = document.createRange()  // may stick out of its element
    text.selectNodeContents(e)
    const box = e.getBoundingClientRect(), parts = [box, ...text.getClientRects()], column = e.parentElement
    const {left, right} = column.getBoundingClientRect()
    const pixels = [e, ...e.querySelectorAll('*')].map(part => parseFloat(getComputedStyle(part).fontSize))
    return {
        text: e.textContent.trim().slice(0, 40), top: box.top, bottom: box.bottom, column: [left, right],
        left: Math.min(...parts.map(part => part.left)), right: Math.max(...parts.map(part => part.right)),
        scrolls: [column, e, ...e.querySelectorAll('td, th')].some(part => part.scrollWidth > part.clientWidth),
        points: Math.min(...pixels) * 72 / 96
    }
})"""


@pytest.fixture
def cheat_sheet(font, page):
    page.goto((NOTEBOOKS / "teaching" / "cheat_sheet.html").as_uri())
    if font:
        if not page.evaluate(IS_INSTALLED, font):
            pytest.skip(f"{font} is not installed")
        page.add_style_tag(content=f'body {{ font-family: "{font}" }}')
    return page


def count_pages(page, paper, millimetres):
    """When printed with an empty block of this height at its end."""
    block = page.add_style_tag(content=f"body::after {{ content: ''; display: block; height: {millimetres}mm }}")
    pdf = page.pdf(format=paper, prefer_css_page_size=False)
    block.evaluate("style => style.remove()")
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@on_paper
@in_font
def test_cheat_sheet_prints_on_one_page(paper, cheat_sheet):
    height = PAPERS[paper][1]
    assert [count_pages(cheat_sheet, paper, share * height) for share in (0, SHARE_FREE, 1)] == [1, 1, 2]


@on_paper
@in_font
def test_cheat_sheet_keeps_to_its_columns(paper, cheat_sheet):
    (width, height), (across, down) = PAPERS[paper], cheat_sheet.evaluate(MARGINS)
    cheat_sheet.emulate_media(media="print")
    cheat_sheet.add_style_tag(content=f"body {{ width: {width - 2 * across}mm }}")
    blocks = cheat_sheet.evaluate(BLOCKS)
    assert len({tuple(block["column"]) for block in blocks}) == 3  # the heading's and two
    for block in blocks:
        left, right = block["column"]
        assert left - 0.5 <= block["left"] and block["right"] <= right + 0.5 and not block["scrolls"], block
        assert block["points"] >= 7.5, block
    for a, b in itertools.combinations(blocks, 2):
        across_both = min(a["right"], b["right"]) - max(a["left"], b["left"])
        down_both = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
        assert min(across_both, down_both) < 0.5, (a, b)
    used = max(block["bottom"] for block in blocks) * 25.4 / 96
    assert used <= height - 2 * down - SHARE_FREE * height


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
    editor = cells(page).nth(check - 1).locator(".cm-content")
    editor.click()
    expect(editor).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("def lift(x, W1, b1):\nreturn x @ W1 + b1")  # JupyterLab indents by itself
    expect(editor).to_have_text("def lift(x, W1, b1):    return x @ W1 + b1")
    page.keyboard.press("Shift+Enter")
    editor = cells(page).nth(check).locator(".cm-content")
    editor.click()
    expect(editor).to_be_focused()
    page.keyboard.press("Shift+Enter")
    expect(output_of(cells(page).nth(check)).first).to_have_text(re.compile(r"^\s*✓"))
