"""Run the notebooks top to bottom and store their outputs, the same bytes every time.

    python tests/regenerate.py                        every notebook
    python tests/regenerate.py notebooks/01_lift.ipynb
    python tests/regenerate.py --check                write nothing, fail if any byte would change

The bytes are the same with the exact versions of tests/constraints.txt on the same kind of
processor; with others, pictures may differ by a pixel while every printed number stays the same.
"""
import argparse
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"  # carries a random id; its text/plain twin stays


def run(path):
    """The notebook at `path` as text, freshly executed and without anything that changes by itself."""
    nb = nbformat.read(path, as_version=4)
    for cell in nb.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in ("tags", "jupyter", "nbgrader")}
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(nb, timeout=120, kernel_name="python3", record_timing=False,
                   resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
            output.get("metadata", {}).clear()
    nb.metadata = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
                   "language_info": {"name": "python"}}
    nb.nbformat, nb.nbformat_minor = 4, 5
    return nbformat.writes(nb) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if any byte would change")
    options = parser.parse_args()
    changed = []
    for path in options.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        text = run(path)
        if text != path.read_text(encoding="utf-8"):
            changed.append(path.name)
            if not options.check:
                path.write_text(text, encoding="utf-8", newline="\n")
        print(f"{path.name}: {'changed' if path.name in changed else 'the same'}", flush=True)
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
