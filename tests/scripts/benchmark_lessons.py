"""Time and memory of every lesson in a fresh kernel, for planning a class.

    python tests/scripts/benchmark_lessons.py
    python tests/scripts/benchmark_lessons.py 05 09              only these
    OMP_NUM_THREADS=1 python tests/scripts/benchmark_lessons.py  matrix products on one thread, as on a shared server

One row per lesson. "start" is the wall time from starting the kernel until it answers, "cells" the wall time of
all cells, "cpu" the kernel's CPU time from its start to the last cell: the figure to plan with, since other programs
disturb it least. "rss" is the kernel's memory after the last cell, "peak" its highest (not known on macOS). A second
run's value follows after a slash if it is more than 10 % away from the first. The row "-" is a kernel that runs
nothing. The notebooks run in a temporary copy; nothing is stored.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import nbformat
import numpy as np
import psutil
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
COLUMNS = {"start s": "{:.1f}", "cells s": "{:.1f}", "cpu s": "{:.1f}", "rss MB": "{:.0f}", "peak MB": "{:.0f}",
           "figures": "{:.0f}"}


def peak_bytes(process):
    """The highest resident memory of a process so far, or NaN where the system does not tell."""
    if sys.platform == "linux":
        status = Path(f"/proc/{process.pid}/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    return getattr(process.memory_info(), "peak_wset", float("nan"))


def measure(nb, folder):
    """The columns of one run of a notebook, cell by cell in a fresh kernel."""
    client = NotebookClient(nb, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}})
    begin = perf_counter()
    with client.setup_kernel(stderr=subprocess.DEVNULL):  # entered when the kernel answers
        start = perf_counter() - begin
        for i, cell in enumerate(nb.cells):
            client.execute_cell(cell, i)
        wall = perf_counter() - begin - start
        kernel = psutil.Process(client.km.provisioner.pid)
        cpu, rss, peak = sum(kernel.cpu_times()[:4]), kernel.memory_info().rss, peak_bytes(kernel)
    figures = sum("image/png" in out.get("data", {}) for c in nb.cells for out in c.get("outputs", []))
    return [start, wall, cpu, rss / 1e6, peak / 1e6, figures]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="beginnings of notebook names, e.g. 05 09; default: all")
    parser.add_argument("--runs", type=int, default=2, help="runs of each lesson (default 2)")
    args = parser.parse_args()
    threads = os.environ.get("OMP_NUM_THREADS", "not limited")
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, {os.cpu_count()} cores, threads {threads}\n")
    print(f"{'lesson':24}" + "".join(f"{c:>12}" for c in COLUMNS))
    paths = [p for p in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")) if p.name.startswith(tuple(args.names) or "")]
    with tempfile.TemporaryDirectory() as folder:
        for path in [None, *paths]:
            runs = []
            for _ in range(args.runs):
                nb = nbformat.read(shutil.copy(path, folder), 4) if path else nbformat.v4.new_notebook()
                runs.append(measure(nb, folder))
            cells = []
            for form, first, *rest in zip(COLUMNS.values(), *runs):
                far = [r for r in rest if abs(r - first) > 0.1 * first]
                cells.append("/".join(dict.fromkeys(form.format(v) for v in [first, *far])))
            print(f"{path.stem if path else '-':24}" + "".join(f"{c:>12}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
