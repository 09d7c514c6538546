"""Calling a learner's code: what it gives, raises, warns of and changes, and an end to loops that have none."""
from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import re
import signal
import sys
import threading
import warnings
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ._messages import CheckFailed, Message, say

TIME_LIMIT = 10.0  # seconds for one check; an endless loop ends here

# What NumPy and Python say about frequent slips, in words that help.
PLAIN_WORDS = {
    "matmul": "`@` needs the last axis of the left array as long as the second-to-last of the right one.",
    "not aligned": "the inner sizes of the product do not fit.",
    "could not be broadcast": "compared from the right, two axes must be equal, or one of them 1.",
    "truth value of an array": "max, min and if take one number; for arrays use np.maximum, np.where or a comparison.",
    "converted to Python scalar": "float(...) and the functions of math take one number; for arrays use those of np.",
    "equal division": "np.split cuts axis 0 unless you say axis=-1.",
    "inhomogeneous": "the rows of what became an array have different lengths.",
    "object too deep": "a flat array is needed: .ravel().",
}

SILENCERS = {"errstate", "seterr", "catch_warnings", "simplefilter", "filterwarnings"}  # they turn warnings off


class Outcome(NamedTuple):
    """What one call gave: a value or an error, a NumPy warning, the argument that it changed."""

    value: Any = None
    error: BaseException | None = None
    warning: str | None = None
    changed: str | None = None


def attempt(function: Callable, inputs: tuple, names: tuple[str, ...] = ()) -> Outcome:
    """Call `function` with copies of `inputs`, and keep what comes of it."""
    copies = copy(inputs)
    try:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn", under="ignore"):
            warnings.simplefilter("always")
            value = function(*copies)
    except KeyboardInterrupt:
        raise  # the time limit, or the reader
    except BaseException as error:
        return Outcome(error=error)
    changed = next((name for name, a, b in zip(names, inputs, copies) if not _identical(a, b)), None)
    return Outcome(value, None, _warning(caught), changed)


def _warning(caught):
    """The first warning about numbers. Some processors warn in products of ordinary matrices: that says nothing."""
    texts = (str(w.message) for w in caught if issubclass(w.category, RuntimeWarning))
    return next((text for text in texts if not text.endswith("encountered in matmul")), None)


def timed(work: Callable[[], Any]) -> Any:
    """work(), or CheckFailed if it takes too long."""
    try:
        with time_limit(TIME_LIMIT):
            return work()
    except TimeoutError:
        raise CheckFailed(say("Stopped after {seconds:.0f} s: is there a loop that never ends?",
                              seconds=TIME_LIMIT)) from None


def raised_by(function: Callable, error: BaseException) -> bool:
    """Did the function itself raise this, and not something that it calls?"""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    return where is not None and where.tb_frame.f_code is getattr(function, "__code__", None)


def error_text(error: BaseException) -> str:
    """What the error says, on one line, without NumPy's signatures."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # the exception's own __str__ fails
        text = "(no message)"
    text = re.sub(r"Input operand 1 has a mismatch.*\((size .*)\)", r"\1", text)
    return text if len(text) <= 160 else text[:157] + "..."


def about_error(function: Callable, error: BaseException, what: str, good: str) -> Message:
    """An exception in a function that was called with `what`: in plain words, and in which line.

    good : for which inputs the function is right, if for any.
    """
    if isinstance(error, RecursionError):
        return say("Your function calls itself without end (RecursionError).")
    text, line = error_text(error), _line_of(function, error)
    message = say("For {what} it stopped with {kind}: {text}", what=what, kind=type(error).__name__, text=text)
    if good:
        message = str(say("Right for {good}.", good=good)) + "\n  " + message
    for sign, plain in PLAIN_WORDS.items():
        if sign in text:
            message += f"\n  ({say(plain)})"
    if "broadcast" in text and _product_split_by_at(line):
        message += "\n  " + say("(`*` and `@` bind equally, from left to right: put each product in brackets.)")
    if line:
        message += "\n  " + say("in the line:  {line}", line=line)
    return message


def _product_split_by_at(line):
    """Is there an `a * b @ c` without brackets, which Python reads as (a * b) @ c?"""
    try:
        nodes = list(ast.walk(ast.parse(line)))
    except SyntaxError:  # a line that is no whole statement
        return False
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult) and isinstance(n.left, ast.BinOp)
               and isinstance(n.left.op, ast.Mult) and line[n.left.end_col_offset:].lstrip().startswith("@")
               for n in nodes)


def _line_of(function, error):
    """The line of the function that stopped, or of a function of the same notebook that it calls."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    where, line = error.__traceback__, ""
    while where is not None:
        if where.tb_frame.f_code.co_filename == file:
            line = linecache.getline(file, where.tb_lineno).strip()
        where = where.tb_next
    return line


def silencer(function: Callable) -> str | None:
    """What turns warnings off in the function, or in one of the same notebook that it calls; or None."""
    own, todo, known = getattr(inspect.unwrap(function), "__globals__", {}), [function], set()
    if str(own.get("__name__")).startswith("ffn_numpy."):
        return None  # the package's own function
    while todo:
        part = todo.pop()
        if any(isinstance(cell.cell_contents, np.errstate) for cell in getattr(part, "__closure__", None) or ()):
            return "errstate"  # as a decorator
        part = inspect.unwrap(part) if callable(part) else part
        code = getattr(part, "__code__", part)
        if not inspect.iscode(code) or code in known:
            continue
        known.add(code)
        for name in code.co_names:
            used = own.get(name)
            if name in SILENCERS or used is np.errstate:
                return name
            if inspect.isfunction(used) and getattr(inspect.unwrap(used), "__globals__", None) is own:
                todo.append(used)
        todo += [constant for constant in code.co_consts if inspect.iscode(constant)]
    return None


def copy(value: Any) -> Any:
    """A copy of arrays, and of tuples, lists and dicts of them."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(copy, value))
    if isinstance(value, dict):
        return {k: copy(v) for k, v in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def _identical(a, b):
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_identical(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_identical, a, b))
    return True


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError when the body takes longer. No limit outside the main thread, or where no thread can start."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended, expired, outside = threading.Event(), threading.Event(), sys._getframe(2)

    def interrupt():  # again and again: the body may catch a KeyboardInterrupt
        wait = seconds
        while not ended.wait(wait):
            expired.set()
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # wakes a sleeping call, too
            else:
                interrupt_main()
            wait = 0.2

    def stop(signum, frame):
        if expired.is_set():
            _raise_at_every_line(frame, outside)
        raise KeyboardInterrupt

    watch, handler, tracer = threading.Thread(target=interrupt, daemon=True), None, sys.gettrace()
    try:
        try:
            watch.start()
        except RuntimeError:  # as in a browser
            yield
            return
        handler = signal.signal(signal.SIGINT, stop)
        yield
    except KeyboardInterrupt:
        if not expired.is_set():
            raise  # the reader pressed stop
    finally:
        with contextlib.suppress(KeyboardInterrupt):  # one that was under way when the body ended
            ended.set()
            if watch.ident is not None:
                watch.join()
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        sys.settrace(tracer)
    if expired.is_set():
        raise TimeoutError


def _raise_at_every_line(frame, outside):
    """Let every line of these frames raise: one of them lies outside a loop's `except BaseException`."""
    def trace(*_):
        raise KeyboardInterrupt

    while frame is not None and frame is not outside:
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)
