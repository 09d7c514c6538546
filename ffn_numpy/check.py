"""Exercise checks that recognise the usual mistakes.

    from ffn_numpy.check import check
    check("1.1", lift)          # your function, not its result

A check calls your function with random inputs of several shapes and dtypes. If the answers are right it
prints a line with a tick. If not, it compares them with the answers that known mistakes would give
(`ffn_numpy.exercises`) and names the one that fits; else it says what is right and where the first difference is.
"""
import contextlib
import inspect
import linecache
import threading
import time
import warnings
from _thread import interrupt_main
from typing import Any, NamedTuple

import numpy as np

from ._validate import random_generator, short
from .exercises import find

TIME_LIMIT = 10.0  # seconds for one check; an endless loop ends here


class CheckFailed(AssertionError):
    """The answer is not right. Shown without a traceback in Jupyter, and still an error to nbgrader and nbclient."""

    def _render_traceback_(self):
        return str(self).splitlines()


class NotAttempted(CheckFailed):
    """The exercise still holds its `raise NotImplementedError()`."""


class _Outcome(NamedTuple):
    """What one call gave: a value or an error, a NumPy warning, the argument that it changed."""

    value: Any = None
    error: BaseException | None = None
    warning: str | None = None
    changed: str | None = None


class _Trial(NamedTuple):
    inputs: tuple
    right: Any
    got: _Outcome


def show_guess(guess):
    """Print a prediction, or that there is none: the first line of the result's cell in every lesson."""
    print("your guess:", "no guess" if guess is None else guess)


def check(number, answer, seed=0):
    """Check an answer to an exercise: print a tick, or say what is wrong.

    Parameters
    ----------
    number : str, the exercise, such as "1.2"
    answer : callable, the function that you wrote
    seed : int, chooses other random inputs

    Raises
    ------
    CheckFailed
        If the answer is wrong; the message names the mistake if it is a known one.
    NotAttempted
        If the answer raises NotImplementedError.
    ValueError, TypeError
        If there is no such exercise, or the seed is not one.
    """
    exercise = find(number)
    random_generator("seed", seed)
    failure, message = _verdict(exercise, answer, seed)
    title = f"{number} {exercise.call}"
    if failure:
        mark = "○" if failure is NotAttempted else "✗"
        raise failure(f"{mark} {title}\n  {message}")
    print(f"✓ {title}: {message}")


def _verdict(exercise, answer, seed):
    """(the exception's class or None, the message)."""
    if not callable(answer):
        name = exercise.call.partition("(")[0]
        came = "None" if answer is None else f"a {type(answer).__name__}"
        return CheckFailed, f"The check needs your function, got {came}: write {name}, not {name}(...)."
    trials = []
    for case in exercise.cases(seed):
        inputs = tuple(_cast(a, np.float64 if exercise.float64_only else case.dtype) for a in exercise.inputs(case))
        if not trials and (problem := _wrong_arguments(exercise, answer, inputs)):
            return CheckFailed, problem
        trials.append((inputs, exercise.right(*_copy(inputs))))
    try:
        with _time_limit(TIME_LIMIT):
            outcomes = [_attempt(answer, inputs, exercise.call) for inputs, _ in trials]
    except TimeoutError:
        return CheckFailed, f"Stopped after {TIME_LIMIT:.0f} s: is there a loop that never ends?"
    trials = [_Trial(inputs, right, got) for (inputs, right), got in zip(trials, outcomes)]
    if any(isinstance(t.got.error, NotImplementedError) for t in trials):
        return NotAttempted, "Not attempted yet: replace `raise NotImplementedError()` by your code."
    problem = _wrong_values(exercise, answer, trials) or _wrong_manners(exercise, trials)
    if problem:
        return CheckFailed, problem
    dtypes = ", in float64 and float32" if len(set().union(*(_dtypes(t.inputs) for t in trials))) == 2 else ""
    return None, f"right on {len(trials)} random inputs{dtypes}."


def _wrong_arguments(exercise, answer, inputs):
    try:
        inspect.signature(answer).bind(*inputs)
    except TypeError:
        n = len(inspect.signature(answer).parameters)
        return f"Your function takes {n} argument{'s' * (n != 1)}; the check calls {exercise.call}, with {len(inputs)}."
    except ValueError:
        return None  # a built-in such as np.maximum has no signature
    return None


def _attempt(function, inputs, call=""):
    """Call `function` with copies of `inputs`; nothing that happens inside comes out."""
    copies = _copy(inputs)
    try:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
            warnings.simplefilter("always")
            value = function(*copies)
    except (Exception, SystemExit) as error:
        return _Outcome(error=error)
    warned = next((str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)), None)
    names = [name.strip() for name in call.partition("(")[2].rstrip(")").split(",")]
    changed = next((name for name, a, b in zip(names, inputs, copies) if not _identical(a, b)), None)
    return _Outcome(value, None, warned, changed)


def _wrong_values(exercise, answer, trials):
    """The message for an answer whose values are wrong on some trial, or None."""
    if all(t.got.error is None and _same(t.got.value, t.right) for t in trials):
        return None
    if all(t.got.error is None and t.got.value is None for t in trials):
        return "Your function returned None: is the line with `return` missing?"
    for message, wrong in exercise.mistakes.items():
        if _explains(wrong, trials):
            return f"{message}\n  {_right_already(trials)}".rstrip()
    failed = [t for t in trials if t.got.error is not None]
    if failed:
        return _about_error(answer, failed, trials)
    wrong = next(t for t in trials if not _same(t.got.value, t.right))
    return f"{_about_difference(exercise, wrong, trials)}\n  {_right_already(trials)}".rstrip()


def _explains(mistake, trials):
    """Does this mistake give the student's answers, and on some trial not the right one?"""
    telling = False
    for t in trials:
        if t.got.error is not None:
            continue
        wrong = _attempt(mistake, t.inputs)
        if wrong.error is not None or not _same(t.got.value, wrong.value):
            return False
        telling |= not _same(wrong.value, t.right)
    return telling


def _about_error(answer, failed, trials):
    """An exception inside the answer: what, where, and for which input if others went well."""
    error = failed[0].got.error
    if isinstance(error, RecursionError):
        return "Your function calls itself without end (RecursionError)."
    lines = [f"Your function stopped with {type(error).__name__}: {short_text(error)}"]
    where = error.__traceback__
    file = getattr(getattr(answer, "__code__", None), "co_filename", None)
    while where is not None:
        if where.tb_frame.f_code.co_filename == file:
            line = linecache.getline(file, where.tb_lineno).strip()
        where = where.tb_next
    with contextlib.suppress(UnboundLocalError):
        lines.append(f"in the line:  {line}")
    good = [t for t in trials if t.got.error is None and _same(t.got.value, t.right)]
    shapes = _shapes(failed[0].inputs)
    lines.append(f"with inputs of shape {shapes}." + (f" It is right for {_shapes(good[0].inputs)}." if good else ""))
    return "\n  ".join(lines)


def _about_difference(exercise, trial, trials):
    """An answer without a name: shape first, then a factor, then the first number that differs."""
    got, right = trial.got.value, trial.right
    if isinstance(right, tuple):
        if not isinstance(got, (tuple, list)) or len(got) != len(right):
            return f"Return {len(right)} results: {', '.join(exercise.returns)}. Yours is {_kind(got)}."
        same = [_same(g, r) for g, r in zip(got, right)]
        i = same.index(False)
        good = [name for name, ok in zip(exercise.returns, same) if ok]
        before = f"{', '.join(good)}: right. " if good else ""
        return f"{before}{exercise.returns[i]}: {_about_array(got[i], right[i], trial)}"
    constant = [t.got.value for t in trials]
    if all(_same(constant[0], c) for c in constant) and not all(_same(trials[0].right, t.right) for t in trials):
        return (f"Your function gives the same answer, {short(constant[0])}, for every input. Does it use its "
                "arguments, or names from other cells?")
    return _about_array(got, right, trial)


def _about_array(got, right, trial):
    a, b = _array(got), np.asarray(right)
    if a is None:
        return f"expected {_kind(right)}, yours is {_kind(got)}."
    if a.shape != b.shape:
        if a.shape == b.shape[::-1] or (a.ndim == b.ndim > 1 and np.moveaxis(b, -1, -2).shape == a.shape):
            return f"shape {a.shape} is transposed, expected {b.shape}."
        if a.size == b.size:
            return f"shape {a.shape}, expected {b.shape}: an axis too many or too few (keepdims, reshape, indexing?)."
        return f"shape {a.shape}, expected {b.shape} for inputs of shape {_shapes(trial.inputs)}."
    if b.dtype.kind == "f" and a.size > 1 and (factor := _factor(a, b)):
        return f"every number is {factor:.4g} times the right one."
    if b.ndim == 0:
        return f"{short(a.item())}, expected {short(b.item())}, for inputs {_brief(trial.inputs)}."
    differs = ~np.isclose(a, b, rtol=_tolerance(a, b), atol=_tolerance(a, b), equal_nan=True)
    where = tuple(int(i) for i in np.argwhere(differs)[0])
    return (f"{differs.sum()} of {differs.size} numbers differ, for inputs of shape {_shapes(trial.inputs)}. "
            f"The first is at {list(where)}: {_number(a[where])}, expected {_number(b[where])}.")


def _right_already(trials):
    """A last line with what is right although the values are not."""
    def shape_fits(t):
        a = _array(t.got.value)
        return t.got.error is None and a is not None and a.shape == np.shape(t.right)

    if any(isinstance(t.right, tuple) or np.ndim(t.right) == 0 for t in trials):
        return ""
    return "Right already: it runs, and every shape fits." if all(map(shape_fits, trials)) else ""


def _wrong_manners(exercise, trials):
    """Right values with a wrong side: inputs changed, a warning, another dtype."""
    for t in trials:
        if t.got.changed and not exercise.may_change_inputs:
            return (f"Right values, but your function changed its input {t.got.changed}: work on a copy, "
                    "write a = a + b instead of a += b.")
        if t.got.warning:
            return (f"Right values, but NumPy warned: {t.got.warning}. Some input is too large for one of your "
                    "steps (exp?): use a form that cannot overflow.")
        problem = _wrong_dtype(t.got.value, t.right)
        if problem:
            return problem
    return None


def _wrong_dtype(got, right):
    if isinstance(right, tuple):
        return next(filter(None, map(_wrong_dtype, got, right)), None)
    if isinstance(right, (bool, int)) and isinstance(got, (float, np.floating)):
        return f"Right value, but {got!r} is a float: it should be a whole number; use int(...) or //."
    if isinstance(got, np.ndarray) and isinstance(right, np.ndarray) and got.dtype != right.dtype:
        if right.dtype.kind == got.dtype.kind == "f":
            return (f"Right values, but {right.dtype} came back as {got.dtype}: look for np.zeros(...) or np.ones(...) "
                    "without dtype, np.sqrt(a number) (use math.sqrt), or a list that became an array.")
        if right.dtype.kind == "i" and got.dtype.kind == "f":
            return "Right values, but as floats: they should be whole numbers."
    return None


def _same(got, right):
    """Equal in structure and shape, and in value up to rounding. A list counts as an array."""
    if isinstance(right, tuple):
        return isinstance(got, (tuple, list)) and len(got) == len(right) and all(map(_same, got, right))
    a, b = _array(got), np.asarray(right)
    if a is None or a.shape != b.shape or (a.dtype.kind == "b") != (b.dtype.kind == "b"):
        return False
    if b.dtype.kind in "bi":
        return np.array_equal(a, b)
    tolerance, size = _tolerance(a, b), np.abs(b[np.isfinite(b)]).max(initial=1e-3)
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * size, equal_nan=True)


def _tolerance(a, b):
    coarsest = max((x.dtype for x in (a, b) if x.dtype.kind == "f"), key=lambda t: np.finfo(t).eps, default=None)
    return {np.float16: 5e-3, np.float32: 2e-5}.get(getattr(coarsest, "type", None), 1e-9)


def _factor(a, b):
    """The constant c with a = c b, if there is one that is not 1."""
    with np.errstate(all="ignore"):
        ratio = (a / b)[np.abs(b) > 1e-6]
    if ratio.size > 1 and np.all(np.isfinite(ratio)) and ratio[0] != 0 and np.allclose(ratio, ratio[0], rtol=1e-4):
        return float(ratio[0]) if abs(ratio[0] - 1) > 1e-3 else None
    return None


def _array(value):
    """`value` as an array of numbers or booleans, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            array = np.asarray(value)
    except Exception:
        return None
    return array if array.dtype.kind in "biuf" else None


def _cast(value, dtype):
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(dtype)
    if isinstance(value, dict):
        return {k: _cast(v, dtype) for k, v in value.items()}
    return value


def _copy(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(_copy, value))
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def _identical(a, b):
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_identical(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_identical, a, b))
    return True


def _dtypes(inputs):
    return {a.dtype for a in inputs if isinstance(a, np.ndarray) and a.dtype.kind == "f"}


def _shapes(inputs):
    return ", ".join(str(a.shape) for a in inputs if isinstance(a, np.ndarray)) or _brief(inputs)


def _brief(inputs):
    return ", ".join(f"shape {a.shape}" if isinstance(a, np.ndarray) and a.ndim else short(a) for a in inputs)


def _kind(value):
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, (bool, np.bool_)):
        return "True or False"
    array = _array(value)
    if array is None:
        return "None" if value is None else f"a {type(value).__name__}"
    return f"an array of shape {array.shape}" if array.ndim else "a number"


def _number(value):
    return str(value) if value.dtype.kind in "bi" else f"{value:.4f}"


def short_text(error):
    """The first line of an error's message, cut to a length that fits on a screen."""
    text = " ".join(str(error).split())
    return text if len(text) <= 160 else text[:157] + "..."


@contextlib.contextmanager
def _time_limit(seconds):
    """Raise TimeoutError in the main thread when the body takes longer (in other threads: no limit)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deadline = time.monotonic() + seconds
    timer = threading.Timer(seconds, interrupt_main)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if time.monotonic() < deadline:
            raise  # the reader pressed stop
        raise TimeoutError from None
    finally:
        timer.cancel()
