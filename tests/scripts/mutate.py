"""Mutation test: change one thing in the package, and see whether the unit tests notice.

    python tests/scripts/mutate.py --n 50 --seed 1                # 50 random mutations, two at a time
    python tests/scripts/mutate.py --modules block moe --n 30     # of these modules only
    python tests/scripts/mutate.py --modules block:131 --n 9      # of this line only: a survivor again
    python tests/scripts/mutate.py --list --n 20                  # show them, run nothing

A mutation is one small, wrong edit: `<` for `<=`, `+` for `-`, `and` for `or`, 1 for 0, another axis, `.T` or `not` or
a whole statement (a check's `raise`, say) taken away, None returned. Each runs in a copy of package and tests; the
tests that are most likely to notice run first, and the first failure ends the run: "caught". If every test passes, the
mutation "survived": either a test is missing, or the change changes nothing (a quick path, a block size).
Works from any folder; needs pytest and hypothesis, as the tests do. A survivor costs a full run of the unit tests.
"""
import argparse
import ast
import difflib
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("activations ffn trace sizing block moe training plots _validate _compare check naming config formats "
           "pretrained").split()
FIRST = {"trace": "ffn block", "_validate": "ffn block plots", "_compare": "compare", "config": "naming"}  # others: own
NOT_UNIT = {"notebooks", "exercises", "readme", "teaching", "nbgrader", "browser", "packaging", "contribute"}
LOOKS = {"alpha", "color", "edgecolor", "facecolor", "figsize", "fontsize", "fontweight", "ha", "linestyle", "pad",
         "linewidth", "rotation", "textcoords", "va"}  # arguments of matplotlib
TIME_LIMIT = 400  # seconds; a mutation that never ends counts as caught
COMPARE = {ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.Lt),
           ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
           ast.In: (ast.NotIn,), ast.NotIn: (ast.In,)}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
              ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.BitOr: ast.BitAnd,
              ast.BitAnd: ast.BitOr}


def mutations(source):
    """All mutations of a module: (line, kind, start, end, new text), start and end in bytes."""
    tree, starts = ast.parse(source), [0]
    for text in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(text) + 1)
    skipped = _texts(tree)
    for node in ast.walk(tree):
        if node in skipped or not hasattr(node, "lineno"):
            continue
        for kind, new in _changes(node):
            yield (node.lineno, kind, starts[node.lineno - 1] + node.col_offset,
                   starts[node.end_lineno - 1] + node.end_col_offset, new)


def _texts(tree):
    """What is not mutated: docstrings, messages, annotations, looks, and what is inside them."""
    roots = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            roots.append(node)
        elif isinstance(node, ast.Raise):  # the statement itself may go, its message may not change
            roots += ast.iter_child_nodes(node)
        elif isinstance(node, ast.keyword) and node.arg in LOOKS:
            roots.append(node)
        roots += filter(None, (getattr(node, "annotation", None), getattr(node, "returns", None)))
    return {inner for root in roots for inner in ast.walk(root)}


def _changes(node):
    """(kind, source text of the changed node) for every way to mutate this node alone."""
    def changed(**fields):
        return f"({ast.unparse(type(node)(**{f: getattr(node, f, None) for f in node._fields} | fields))})"

    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in COMPARE[type(op)]:
                yield "comparison", changed(ops=[*node.ops[:i], other(), *node.ops[i + 1:]])
    elif isinstance(node, ast.BoolOp):
        yield "boolean", changed(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield "arithmetic", changed(op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.AugAssign):
        yield "statement removed", "pass"
        if type(node.op) in ARITHMETIC:
            yield "arithmetic", changed(op=ARITHMETIC[type(node.op)]())[1:-1]
    elif isinstance(node, ast.UnaryOp):
        yield "not removed" if isinstance(node.op, ast.Not) else "sign removed", f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.keyword) and node.arg == "axis" and isinstance(node.value, (ast.Constant, ast.UnaryOp)):
        axis = ast.literal_eval(node.value)
        yield "axis", f"axis={0 if axis else -1}"
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield ".T removed", f"({ast.unparse(node.value)})"
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, (bool, int, float)):
            yield "constant", repr(not value if isinstance(value, bool) else
                                   value + 1 if isinstance(value, int) or value == 0 else 2 * value)
        elif isinstance(value, str) and " " not in value and not value.startswith("#"):  # no message and no colour
            yield "constant", repr(value + "x")
    elif (isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
          or (isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)))):
        yield "statement removed", "pass"
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield "None returned", "return None"


def run(folder, module):
    """"caught", "time limit" or "survived": the module's own tests first, then all others and the doctests."""
    names = sorted(p.stem[5:] for p in (ROOT / "tests").glob("test_*.py") if p.stem[5:] not in NOT_UNIT)
    first = FIRST.get(module, module).split()
    environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "agg",
                   "OPENBLAS_NUM_THREADS": "1"}
    for files, more in (([n for n in names if n in first], []), ([n for n in names if n not in first], ["ffn_numpy"])):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-o", "addopts=",
                   "--doctest-modules", *[f"tests/test_{name}.py" for name in files], *more]
        try:
            done = subprocess.run(command, cwd=folder, env=environment, timeout=TIME_LIMIT, check=False,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "time limit"
        if done.returncode:
            return "caught"
    return "survived"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="which mutations are drawn")
    parser.add_argument("--n", type=int, default=20, help="how many")
    parser.add_argument("--modules", nargs="+", default=MODULES, help="names, or name:line")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at a time")
    parser.add_argument("--list", action="store_true", help="show the mutations, run nothing")
    options = parser.parse_args()
    sources, found = {}, []
    for name in options.modules:
        module, _, line = name.partition(":")
        sources[module] = (ROOT / "ffn_numpy" / f"{module}.py").read_text(encoding="utf-8")
        found += [(module, *m) for m in mutations(sources[module]) if not line or int(line) == m[0]]
    chosen = random.Random(options.seed).sample(found, min(options.n, len(found)))
    print(f"{len(found)} possible mutations, {len(chosen)} drawn with seed {options.seed}", flush=True)

    folders = queue.Queue()
    with tempfile.TemporaryDirectory() as temporary:
        for job in range(0 if options.list else options.jobs):
            folder = Path(temporary) / str(job)
            for part in ("ffn_numpy", "tests"):
                shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "scripts"))
            shutil.copy(ROOT / "pyproject.toml", folder)
            folders.put(str(folder))
        if not options.list and run(str(folder), "ffn") != "survived":  # else every mutation would seem to be caught
            sys.exit("the tests fail without any mutation")

        def judge(mutation):
            module, line, kind, start, end, new = mutation
            source = sources[module].encode()
            mutant = (source[:start] + new.encode() + source[end:]).decode()
            if options.list:
                verdict = "-"
            else:
                folder = folders.get()
                file = Path(folder) / "ffn_numpy" / f"{module}.py"
                file.write_text(mutant, encoding="utf-8")
                verdict = run(folder, module)
                file.write_text(sources[module], encoding="utf-8")
                folders.put(folder)
            changes = list(difflib.unified_diff(sources[module].splitlines(), mutant.splitlines(), lineterm="", n=0))
            print("\n    ".join([f"{verdict:10} {module}.py:{line}  {kind}", *changes[3:]]), flush=True)
            return verdict

        with ThreadPoolExecutor(options.jobs) as pool:
            verdicts = list(pool.map(judge, chosen))
    if not options.list:
        survived = verdicts.count("survived")
        print(f"{len(verdicts) - survived} of {len(verdicts)} caught, {survived} survived")


if __name__ == "__main__":
    main()
