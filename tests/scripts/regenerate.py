"""Run the notebooks top to bottom and store their outputs, the same bytes every time.

    python tests/scripts/regenerate.py                  every lesson and solution, the exercises, the README's picture
    python tests/scripts/regenerate.py notebooks/01_lift.ipynb
    python tests/scripts/regenerate.py notebooks/exercises/01_lift.ipynb      made from its solution by nbgrader
    python tests/scripts/regenerate.py --check                write nothing, fail if any byte would change

The bytes are the same with the exact versions of tests/constraints.txt on the same kind of
processor; with others, pictures may differ by a pixel while every printed number stays the same.
"""
import argparse
import io
import sys
from pathlib import Path

import matplotlib
import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"  # carries a random id, its text/plain twin a version's wording
LIVE = "(live controls: run this cell in JupyterLab; the next cell shows one setting)"


def run(path):
    """The notebook at `path` as text, freshly executed and without anything that changes by itself."""
    nb = nbformat.read(path, as_version=4)
    unstable = {c.id: c.outputs for c in nb.cells if "nbval-ignore-output" in c.metadata.get("tags", [])}
    for cell in nb.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in ("tags", "jupyter", "nbgrader")}
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(nb, timeout=120, kernel_name="python3", record_timing=False,
                   resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs = merge_streams(cell.outputs)
        live = False
        for output in cell.get("outputs", []):
            if output.get("data", {}).pop(WIDGET, None):
                output.data, live = {"text/plain": LIVE}, True
            output.get("metadata", {}).clear()
        # Timings differ from run to run: a cell whose output no test compares keeps what is stored.
        if not live and unstable.get(cell.id) and len(unstable[cell.id]) == len(cell.outputs):
            cell.outputs = unstable[cell.id]
    nb.metadata = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
                   "language_info": {"name": "python"}}
    nb.nbformat, nb.nbformat_minor = 4, 5
    return nbformat.writes(nb) + "\n"


def student_version(path):
    """The solution notebook at `path` as students get it: what `nbgrader generate_assignment` makes of it."""
    from nbgrader import preprocessors as steps

    nb, resources = nbformat.read(path, as_version=4), {}
    for step in (steps.LockCells, steps.ClearSolutions, steps.ClearOutput, steps.CheckCellMetadata,
                 steps.ClearHiddenTests, steps.ClearMarkScheme, steps.ComputeChecksums, steps.CheckCellMetadata):
        nb, resources = step().preprocess(nb, resources)
    return nbformat.writes(nb) + "\n"


def merge_streams(outputs):
    """Join neighbouring prints: how they arrive in pieces depends on the kernel's timing."""
    merged = []
    for output in outputs:
        if merged and output.output_type == "stream" == merged[-1].output_type and output.name == merged[-1].name:
            merged[-1].text += output.text
        else:
            merged.append(output)
    return merged


def overview():
    """The README's picture as PNG bytes: both FFNs of the running example, to scale."""
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import numpy as np

    from ffn_numpy import FeedForward, GatedFeedForward, plots

    with plt.rc_context():
        plots.use_course_style()
        fig, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6), height_ratios=[2, 4])
        x = np.ones((7, 8))
        plots.shape_ledger(FeedForward.random(8).trace(x), ax=top).set_title("plain FFN")
        plots.shape_ledger(GatedFeedForward.random(8).trace(x), ax=bottom).set_title("gated FFN (SwiGLU)")
        png = io.BytesIO()
        fig.savefig(png, metadata={"Software": None})
        plt.close(fig)
    return png.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if any byte would change")
    options = parser.parse_args()
    solutions = sorted(NOTEBOOKS.glob("solutions/*.ipynb"))
    paths = options.notebooks or [*sorted(NOTEBOOKS.glob("*.ipynb")), *solutions,
                                  *(NOTEBOOKS / "exercises" / s.name for s in solutions), NOTEBOOKS / "overview.png"]
    changed = []
    for path in paths:
        if path.suffix == ".png":
            content = overview()
        elif path.parent.name == "exercises":
            content = student_version(path.parents[1] / "solutions" / path.name).encode()
        else:
            content = run(path).encode()
        if not path.exists() or content != path.read_bytes():
            changed.append(path)
            if not options.check:
                path.write_bytes(content)
        print(f"{path.parent.name}/{path.name}: {'changed' if path in changed else 'the same'}", flush=True)
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
