"""The README's code runs, its links lead somewhere, and its lesson map is complete."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_example_runs_and_prints_what_it_says():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len([line for line in code.splitlines() if line.strip()]) <= 13
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True).stdout
    assert "lift          (7, 8)  -> (7, 32)" in out and "(7, 8) 504" in out and out.rstrip().endswith("True")


def test_links_and_commands_name_files_that_exist():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target.startswith("https://") or (ROOT / target.partition("#")[0]).exists(), target
    for name in re.findall(r"(?:tests|notebooks|ffn_numpy)/[\w./-]*\w", README):
        assert (ROOT / name).exists(), name


LESSONS = sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))


def test_every_module_is_listed():
    rows = re.findall(r"^\| `([\w/.]+)` \| \S", README, re.M)
    assert all((ROOT / "ffn_numpy" / row).exists() for row in rows)
    assert {path.name for path in ROOT.glob("ffn_numpy/[a-z]*.py")} <= set(rows)
    assert {f"{path.parent.name}/" for path in ROOT.glob("ffn_numpy/*/__init__.py")} <= set(rows)


def test_every_lesson_has_its_row_with_the_minutes_that_it_gives_itself():
    rows = re.findall(r"^\| \[(\d\d) [^\]]+\]\(notebooks/(\S+)\) \| \S.* \| \S.* \| (\d+) \|$", README, re.M)
    assert [name for _, name, _ in rows] == [path.name for path in LESSONS]
    for (number, name, minutes), path in zip(rows, LESSONS):
        assert name.startswith(number)
        assert f"**Time:** {minutes} minutes" in path.read_text(encoding="utf-8") or number == "00", name


def test_lessons_with_sliders_are_those_that_readme_and_guide_name():
    with_slider = [path.stem[:2] for path in LESSONS if "ipywidgets" in path.read_text(encoding="utf-8")]
    guide = (ROOT / "notebooks" / "TEACHING.md").read_text(encoding="utf-8")
    for text, sentence in ((README, r"Lessons (.+) have sliders"), (guide, r"a slider in lessons (.+?)\)")):
        assert re.findall(r"\d\d", re.search(sentence, text)[1]) == with_slider


def test_both_commands_make_their_own_environment():
    learn, test = re.findall(r"```bash\n(python3 -m venv .*)\n```", README)
    assert learn.endswith("jupyter lab notebooks/00_ready.ipynb") and test.endswith("python -m pytest")
    assert README.count("py -m venv .venv;") == 2


def test_every_public_name_can_be_imported_from_the_package():
    import ffn_numpy
    from ffn_numpy import MixtureOfExperts, attention, load  # noqa: F401  imported when first used
    for name in ffn_numpy.__all__:
        assert getattr(ffn_numpy, name) is not None and name in dir(ffn_numpy), name
    assert ffn_numpy.block.softmax is ffn_numpy.softmax
    with pytest.raises(AttributeError, match="module 'ffn_numpy' has no attribute 'sofmax'"):
        _ = ffn_numpy.sofmax


def test_importing_the_package_leaves_heavy_modules_for_later():
    code = "import sys, ffn_numpy; sys.exit(any(f'ffn_numpy.{m}' in sys.modules for m in ('pretrained', 'plots')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
