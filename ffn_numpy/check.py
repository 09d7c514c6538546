"""Exercise checks that recognise the usual mistakes.

    from ffn_numpy.check import check
    check("1.1", lift)          # your function, not its result

A check calls your function with random inputs of several shapes and dtypes. If the answers are right it
prints a line with a tick. If not, it compares them with the answers that known mistakes would give
(`ffn_numpy.exercises`) and names the one that fits; else it says what is right and where the answer differs.
"""
from __future__ import annotations

import contextlib
import inspect
import linecache
import re
import signal
import threading
import warnings
from _thread import interrupt_main
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._compare import as_array, describe, dtype_message, same, value_text
from ._validate import random_generator
from .exercises import find

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
    """The inputs of one call with their names, the right result, and what the answer gave."""

    names: tuple
    inputs: tuple
    right: Any
    got: _Outcome

    @property
    def single(self):
        return any(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in self.inputs)

    def gives(self, value):
        """Is the answer's result this value, up to rounding in the trial's precision?"""
        return self.got.error is None and same(self.got.value, value, self.single)

    @property
    def is_right(self):
        return self.gives(self.right)

    def __str__(self):
        """The inputs in a message: arrays by their shape, numbers by their value."""
        return ", ".join(f"{name} {a.shape}" if isinstance(a, np.ndarray) else f"{name} = {value_text(a)}"
                         for name, a in zip(self.names, self.inputs) if isinstance(a, (np.ndarray, int, float)))


def show_guess(guess: object) -> None:
    """Print a prediction, or that there is none: the first line of the result's cell in every lesson.

    Any object is a guess, and none is an error.

    Examples
    --------
    >>> show_guess((7, 32))
    your guess: (7, 32)
    >>> show_guess(None)
    your guess: no guess
    """
    print("your guess:", "no guess" if guess is None else guess)


def check(number: str, answer: Callable[..., object], seed: int = 0) -> None:
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

    Examples
    --------
    >>> check("2.1", lambda x: x - np.clip(x, -1, 1))
    ✓ 2.1 quiet(x): right on 6 random inputs, in float64 and float32.
    >>> check("2.1", lambda x: x)
    Traceback (most recent call last):
    ffn_numpy.check.CheckFailed: ✗ 2.1 quiet(x)
      Nothing changed: both folds are at 0, where relu(x) - relu(-x) is x. The biases move them.
      Right already: it runs, and every shape fits.
    """
    exercise = find(number)
    random_generator("seed", seed)
    title = f"{number} {exercise.call}"
    try:
        praise = _judge(exercise, answer, seed)
    except CheckFailed as failure:
        mark = "○" if isinstance(failure, NotAttempted) else "✗"
        raise type(failure)(f"{mark} {title}\n  {failure}") from None
    line = f"✓ {title}: {praise}"
    try:
        print(line)
    except UnicodeEncodeError:  # a console of another encoding, not Jupyter
        print(line.encode("ascii", "replace").decode())


def _judge(exercise, answer, seed):
    """What is right, in words; CheckFailed or NotAttempted with what is wrong."""
    name, _, rest = exercise.call.partition("(")
    if not callable(answer):
        came = "None" if answer is None else f"an object of type {type(answer).__name__}"
        raise CheckFailed(f"The check needs your function, got {came}: write {name}, not {name}(...).")
    names, calls = tuple(rest.rstrip(")").split(", ")), []
    _check_arguments(exercise, answer, names)
    for case in exercise.cases(seed):
        inputs = tuple(_cast(a, np.float64 if exercise.float64_only else case.dtype) for a in exercise.inputs(case))
        with np.errstate(all="ignore"):
            calls.append((inputs, exercise.right(*_copy(inputs))))
    try:
        with _time_limit(TIME_LIMIT):
            outcomes = [_attempt(answer, inputs, names) for inputs, _ in calls]
    except TimeoutError:
        raise CheckFailed(f"Stopped after {TIME_LIMIT:.0f} s: is there a loop that never ends?") from None
    trials = [_Trial(names, inputs, right, got) for (inputs, right), got in zip(calls, outcomes)]
    if all(isinstance(t.got.error, NotImplementedError) and _raised_by(answer, t.got.error) for t in trials):
        raise NotAttempted("Not attempted yet: replace `raise NotImplementedError()` by your code.")
    try:
        problem = _wrong_values(exercise, answer, trials) or _wrong_manners(exercise, answer, trials)
    except Exception:  # an object whose own methods fail, or an array too large to compare
        kind = type(trials[0].got.value).__name__
        problem = f"Your function returned something that cannot be compared, of type {kind}."
    if problem:
        raise CheckFailed(problem)
    dtypes = {a.dtype.name for t in trials for a in t.inputs if isinstance(a, np.ndarray) and a.dtype.kind == "f"}
    return f"right on {len(trials)} random inputs{', in float64 and float32' if len(dtypes) == 2 else ''}."


def _check_arguments(exercise, answer, names):
    try:
        signature = inspect.signature(answer)
    except ValueError:
        return  # a built-in such as np.maximum has none
    try:
        signature.bind(*names)
    except TypeError:
        n = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in signature.parameters.values())
        raise CheckFailed(f"Your function takes {n} argument{'s' * (n != 1)} in order; the check calls "
                          f"{exercise.call}, with {len(names)}.") from None


def _attempt(function, inputs, names=()):
    """Call `function` with copies of `inputs`, and keep what comes of it: a value, an error, a warning."""
    copies = _copy(inputs)
    try:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn", under="ignore"):
            warnings.simplefilter("always")
            value = function(*copies)
    except KeyboardInterrupt:
        raise  # the time limit, or the reader
    except BaseException as error:
        return _Outcome(error=error)
    warned = next((str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)), None)
    changed = next((name for name, a, b in zip(names, inputs, copies) if not _identical(a, b)), None)
    return _Outcome(value, None, warned, changed)


def _wrong_values(exercise, answer, trials):
    """The message for an answer whose values are wrong on some trial, or None."""
    first = next((t for t in trials if not t.is_right), None)
    if first is None:
        return None
    good = next((t for t in trials if t.is_right), None)
    if any(t.got.error is None and t.got.value is None for t in trials):
        where = f" for {first}" if good else ""
        return f"Your function returned None{where}: is a line with `return` missing?"
    message = next((message for message, wrong in exercise.known() if _explains(wrong, trials)), None)
    if message is None and first.got.error is not None:
        return _about_error(answer, first, good)
    if message is None and _same_answer_always(trials):
        return (f"Your function gives the same answer, {value_text(first.got.value)}, for every input: does it use its "
                "arguments, or names from other cells?")
    if message is None:
        message = describe(first.got.value, first.right, first, exercise)
        if good:
            return f"{message}\n  It is right for {good}."
    return message + ("\n  Right already: it runs, and every shape fits." if all(map(_shape_fits, trials)) else "")


def _shape_fits(trial):
    got, right = as_array(trial.got.value), as_array(trial.right)
    return trial.got.error is None and got is not None and right is not None and right.ndim and got.shape == right.shape


def _explains(mistake, trials):
    """Does this mistake give the student's answers on every trial, and on some trial a wrong one?"""
    telling = False
    for t in trials:
        wrong = _attempt(mistake, t.inputs)
        if t.got.error is not None or wrong.error is not None:
            if type(t.got.error) is not type(wrong.error):
                return False
        elif not t.gives(wrong.value):
            return False
        else:
            telling |= not t.is_right
    return telling


def _same_answer_always(trials):
    value = trials[0].got.value
    return all(t.gives(value) for t in trials) and not all(same(trials[0].right, t.right) for t in trials)


def _about_error(answer, trial, good):
    """An exception inside the answer: for which input, what, and in which line."""
    error = trial.got.error
    if isinstance(error, RecursionError):
        return "Your function calls itself without end (RecursionError)."
    try:
        text = " ".join(str(error).split())
    except Exception:  # the exception's own __str__ fails
        text = "(no message)"
    text = re.sub(r"Input operand 1 has a mismatch.*\((size .*)\)", r"\1", text)
    text = text if len(text) <= 160 else text[:157] + "..."
    lines = [f"Right for {good}."] if good else []
    lines.append(f"For {trial} it stopped with {type(error).__name__}: {text}")
    lines += [f"({plain})" for sign, plain in PLAIN_WORDS.items() if sign in text]
    file, where, line = getattr(getattr(answer, "__code__", None), "co_filename", None), error.__traceback__, ""
    while where is not None:
        if where.tb_frame.f_code.co_filename == file:
            line = linecache.getline(file, where.tb_lineno).strip()
        where = where.tb_next
    if "broadcast" in text and "@" in line and "*" in line:
        lines.append("(`*` and `@` bind equally, from left to right: put each product in brackets.)")
    return "\n  ".join(lines + [f"in the line:  {line}"] * bool(line))


def _raised_by(answer, error):
    """Did the answer itself raise this, and not something that it calls?"""
    where = error.__traceback__
    while where.tb_next is not None:
        where = where.tb_next
    return where.tb_frame.f_code is getattr(answer, "__code__", None)


def _wrong_manners(exercise, answer, trials):
    """Right values, but inputs are changed, a warning is given or hidden, or the dtype is another."""
    for t in trials:
        if t.got.changed and not exercise.may_change_inputs:
            return (f"Right values, but your function changed its input {t.got.changed}, which the caller may still "
                    f"need: make new arrays, or start from a copy of {t.got.changed}.")
        if t.got.warning:
            single = " (in float32)" if t.single else ""
            return (f"Right values, but NumPy warned{single}: {t.got.warning}. Some numbers are too large for one of "
                    "your steps; np.where does not help, it computes both sides. Use a form that cannot overflow.")
        problem = dtype_message(t.got.value, t.right)
        if problem:
            return problem
    if exercise.no_overflow and (name := _silencer(answer)):
        return (f"Right values, but {name} stands in your function: it turns NumPy's warning off, and changes nothing "
                "about the numbers. Leave it out, and use a form that cannot overflow.")
    return None


def _silencer(answer):
    """What turns warnings off in the answer, or in a function of the same notebook that it calls; or None."""
    own, todo, known = getattr(inspect.unwrap(answer), "__globals__", {}), [answer], set()
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


@contextlib.contextmanager
def _time_limit(seconds):
    """Raise TimeoutError in the main thread when the body takes longer (in other threads: no limit)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended, expired = threading.Event(), threading.Event()

    def interrupt():  # again and again: the body may catch a KeyboardInterrupt
        wait = seconds
        while not ended.wait(wait):
            expired.set()
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # wakes a sleeping call, too
            else:
                interrupt_main()
            wait = 0.5

    watch = threading.Thread(target=interrupt, daemon=True)
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as in a shell's background jobs: no interrupt arrives
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        watch.start()
        yield
    except KeyboardInterrupt:
        if not expired.is_set():
            raise  # the reader pressed stop
    finally:
        with contextlib.suppress(KeyboardInterrupt):  # one that was under way when the body ended
            ended.set()
            watch.join()
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    if expired.is_set():
        raise TimeoutError
