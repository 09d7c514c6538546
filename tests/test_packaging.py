"""The sdist holds all that git tracks, the wheel the package alone, whatever earlier builds left in the folder."""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest

import ffn_numpy
from ffn_numpy.exercises import numbers

ROOT = Path(__file__).parent.parent
LEFTOVERS = (  # of builds, tests, classes and people
    "build/lib/ffn_numpy/stale.py", "build/lib/tests/test_stale.py", "dist/ffn_numpy-0.0.1.tar.gz",
    "ffn_numpy.egg-info/SOURCES.txt", "ffn_numpy/__pycache__/stale.cpython-310.pyc",
    "notebooks/.ipynb_checkpoints/01_lift-checkpoint.ipynb", ".venv/lib/stale.py", "classroom/grades.csv",
    "private.txt",
)


def tree():
    """What git tracks; without git, as in an unpacked sdist, all that .gitignore leaves."""
    try:
        tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        tracked = ""
    if (ROOT / ".git").exists() and tracked:
        return {name for name in tracked.splitlines() if (ROOT / name).exists()}
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()]
    found = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if not any(fnmatch(f, pattern) for pattern in ignored)]
        found |= {(Path(folder) / f).relative_to(ROOT).as_posix() for f in files}
    return {name for name in found if not any(fnmatch(Path(name).name, pattern) for pattern in ignored)} - {"PKG-INFO"}


def build(folder, out):
    """Both distributions of `folder`, by the backend that pyproject.toml names; a warning is an error."""
    done = subprocess.run([sys.executable, "-W", "error", "-m", "hatchling", "build", "-d", str(out)], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, f"pip install -r requirements.txt brings hatchling\n{done.stderr}"
    assert "warn" not in (done.stdout + done.stderr).lower(), done.stderr
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Distributions built from a copy of the project, with leftovers in it, and the sdist unpacked."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("out")
    files = tree()
    for name in (*files, *LEFTOVERS):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if name in files:
            shutil.copyfile(ROOT / name, copy / name)
        else:
            (copy / name).write_text("ffn_numpy/stale.py\n")
    sdist, wheel = build(copy, out)
    with tarfile.open(sdist) as archive:
        archive.extractall(out, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    unpacked = out / sdist.name.removesuffix(".tar.gz")
    return SimpleNamespace(files=files, wheel=wheel, unpacked=unpacked)


@pytest.fixture(scope="module")
def contents(built):
    with zipfile.ZipFile(built.wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


INFO = f"ffn_numpy-{ffn_numpy.__version__}.dist-info/"


def test_sdist_holds_all_that_git_tracks(built):
    packed = {p.relative_to(built.unpacked).as_posix() for p in built.unpacked.rglob("*") if p.is_file()}
    assert packed == built.files | {"PKG-INFO"}
    assert {"tests/references.npz", "tests/scripts/regenerate.py", "notebooks/overview.png", "requirements.txt",
            "tests/constraints.txt", ".ci/run"} < packed


def test_wheel_holds_the_package_alone(built, contents):
    package = {name for name in built.files if name.startswith("ffn_numpy/")}
    licences = {"LICENSE", *(name for name in package if "/LICENSE-" in name)}
    info = {INFO + name for name in ("METADATA", "WHEEL", "RECORD", *(f"licenses/{name}" for name in licences))}
    assert set(contents) == package | info
    assert "ffn_numpy/py.typed" in package and len(licences) == 3
    assert contents[INFO + "licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_wheel_is_the_same_from_the_sdist(built, tmp_path):
    _, wheel = build(built.unpacked, tmp_path)
    assert wheel.read_bytes() == built.wheel.read_bytes()


def test_wheel_works_by_itself(built, tmp_path):
    """Every module can be imported, the data and the exercises are found; nothing of this folder helps."""
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(tmp_path)
    code = """if True:
        import json, pkgutil, sys
        sys.path.insert(0, sys.argv[1])
        import ffn_numpy, ffn_numpy.exercises
        names = [m.name for m in pkgutil.walk_packages(ffn_numpy.__path__, "ffn_numpy.") if "__main__" not in m.name]
        for name in names:
            __import__(name)
        print(json.dumps([ffn_numpy.__file__, len(ffn_numpy.load("minilm_L2").x), len(ffn_numpy.exercises.numbers())]))
    """
    done = subprocess.run([sys.executable, "-I", "-c", code, str(tmp_path)], cwd=tmp_path, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    file, tokens, exercises = json.loads(done.stdout)
    assert Path(file).is_relative_to(tmp_path) and tokens == 46 and exercises == len(numbers())


def test_metadata(contents):
    from trove_classifiers import classifiers

    about = message_from_bytes(contents[INFO + "METADATA"])
    assert (about["Name"], about["Version"]) == ("ffn-numpy", ffn_numpy.__version__)
    used = about.get_all("Classifier")
    assert used == sorted(used) and set(used) <= set(classifiers) and "Typing :: Typed" in used
    assert about["Summary"] and about["Keywords"] and about["Requires-Python"] == ">=3.10"
    # One licence expression for all that is inside: ours, and those that the data's README names.
    table = (ROOT / "ffn_numpy" / "data" / "README.md").read_text(encoding="utf-8")
    named = {"MIT"} | set(re.findall(r"\| (BSD-3-Clause|Apache-2\.0|[A-Z][\w.]*-\d[\w.-]*)[,:]", table))
    assert set(about["License-Expression"].split(" AND ")) == named
    assert not any(c.startswith("License ::") for c in used)
    assert {INFO + "licenses/" + name for name in about.get_all("License-File")} < set(contents)


def test_requirements_and_extras_name_the_same_packages(contents):
    """requirements.txt is the package with the extras `learn` and `test`, in tested ranges."""
    name = re.compile(r"^[\w-]+", re.M)
    needs = message_from_bytes(contents[INFO + "METADATA"]).get_all("Requires-Dist")
    wanted = {name.match(need)[0] for need in needs if "extra ==" not in need or re.search("'(learn|test)'", need)}
    listed = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert set(name.findall(listed)) - {"-e"} == wanted - {"ffn-numpy"}


def test_tests_are_collected_from_the_unpacked_sdist(built):
    """README's test command finds the tests, their data and the notebooks there."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--co", "-q", "-p", "no:cacheprovider"], cwd=built.unpacked,
                          env={**os.environ, "PYTHONPATH": str(built.unpacked)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]  # 2 if a file could not be imported
    for found in ("tests/test_packaging.py::", "tests/test_references.py::", "ffn_numpy/ffn.py::",
                  "notebooks/01_lift.ipynb::", "notebooks/solutions/01_lift.ipynb::"):
        assert found in done.stdout, found
