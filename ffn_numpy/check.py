"""Exercise checks that recognise the usual mistakes.

    from ffn_numpy.check import check
    check("1.1", lift)          # your function, not its result

A check calls your function with random inputs of several shapes and dtypes. If the answers are right it
prints a line with a tick. If not, it compares them with the answers that known mistakes would give
(`ffn_numpy.exercises`) and names the one that fits; else it says what is right and where the answer differs.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ._call import Outcome, about_error, attempt, copy, raised_by, silencer, timed
from ._compare import as_array, describe, dtype_message, same, value_text
from ._messages import CheckFailed, NotAttempted, say
from ._validate import random_generator
from .exercises import find

__all__ = ["CheckFailed", "NotAttempted", "check", "show_guess"]


class _Trial(NamedTuple):
    """The inputs of one call with their names, the right result, and what the answer gave."""

    names: tuple
    inputs: tuple
    right: Any
    got: Outcome

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
    [2.1 cb5f95]
    """
    exercise = find(number)
    random_generator("seed", seed)
    title = f"{number} {exercise.call}"
    try:
        praise = _judge(exercise, answer, seed)
    except CheckFailed as failure:
        raise failure.titled(number, title) from None
    show(f"✓ {title}: {praise}")


def show(line: str) -> None:
    """Print the line, on a console without ✓ too."""
    try:
        print(line)
    except UnicodeEncodeError:  # a console of another encoding, not Jupyter
        print(line.encode("ascii", "replace").decode())


def _judge(exercise, answer, seed):
    """What is right, in words; CheckFailed or NotAttempted with what is wrong."""
    names = _argument_names(exercise, answer)
    calls = []
    for case in exercise.cases(seed):
        inputs = tuple(_cast(a, np.float64 if exercise.float64_only else case.dtype) for a in exercise.inputs(case))
        with np.errstate(all="ignore"):
            calls.append((inputs, exercise.right(*copy(inputs))))
    with _one_at_a_time():
        outcomes = timed(lambda: [attempt(answer, inputs, names) for inputs, _ in calls])
    trials = [_Trial(names, inputs, right, got) for (inputs, right), got in zip(calls, outcomes)]
    if any(isinstance(t.got.error, CheckFailed) for t in trials):
        raise CheckFailed(say("Your function calls check. It should compute; the cell below it calls the check."))
    if all(isinstance(t.got.error, NotImplementedError) and raised_by(answer, t.got.error) for t in trials):
        raise NotAttempted(say("Not attempted yet: replace `raise NotImplementedError()` by your code."))
    try:
        problem = _wrong_values(exercise, answer, trials) or _wrong_manners(exercise, answer, trials)
    except KeyboardInterrupt:
        raise
    except BaseException:  # an object whose own methods fail, or an array too large to compare
        problem = say("Your function returned something that cannot be compared, of type {kind}.",
                      kind=type(trials[0].got.value).__name__)
    if problem:
        raise CheckFailed(problem)
    return _praise(trials)


def _praise(trials):
    dtypes = {a.dtype.name for t in trials for a in t.inputs if isinstance(a, np.ndarray) and a.dtype.kind == "f"}
    if len(dtypes) == 2 and not any(isinstance(t.got.value, list) for t in trials):  # a list has no dtype
        praise = say("right on {n} random inputs, in float64 and float32.", n=len(trials))
    else:
        praise = say("right on {n} random inputs.", n=len(trials))
    warned = next((t.got.warning for t in trials if t.got.warning), None)
    return praise + (" " + say("(NumPy warned: {warning}. The values are right.)", warning=warned) if warned else "")


_running: list[bool] = []


@contextmanager
def _one_at_a_time():
    """An answer that calls `check` itself would never end."""
    if _running:
        raise CheckFailed("")
    _running.append(True)
    try:
        yield
    finally:
        _running.pop()


def _argument_names(exercise, answer):
    """How the exercise names its arguments, if the answer can be called with so many."""
    name, _, rest = exercise.call.partition("(")
    if answer is None:
        raise CheckFailed(say("The check needs your function, got None: write {name}, not {name}(...).", name=name))
    if not callable(answer):
        raise CheckFailed(say("The check needs your function, got an object of type {kind}: write {name}, not "
                              "{name}(...).", kind=type(answer).__name__, name=name))
    names = tuple(rest.rstrip(")").split(", "))
    try:
        signature = inspect.signature(answer)
    except ValueError:
        return names  # a built-in such as np.maximum has none
    try:
        signature.bind(*names)
    except TypeError:
        n = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in signature.parameters.values())
        takes = "Your function takes {n} arguments in order; the check calls {call}, with {wanted}."
        if n == 1:
            takes = "Your function takes {n} argument in order; the check calls {call}, with {wanted}."
        raise CheckFailed(say(takes, n=n, call=exercise.call, wanted=len(names))) from None
    return names


def _wrong_values(exercise, answer, trials):
    """The message for an answer whose values are wrong on some trial, or None."""
    first = next((t for t in trials if not t.is_right), None)
    if first is None:
        return None
    good = next((t for t in trials if t.is_right), None)
    if any(t.got.error is None and t.got.value is None for t in trials):
        if good:
            return say("Your function returned None for {trial}: is a line with `return` missing?", trial=first)
        return say("Your function returned None: is a line with `return` missing?")
    message = next((say(message) for message, wrong in exercise.known() if _explains(wrong, trials)), None)
    if message is None and first.got.error is not None:
        return about_error(answer, first.got.error, str(first), str(good or ""))
    if message is None and _same_answer_always(trials) and not np.isfinite(as_array(first.got.value)).all():
        return say("The result is {value} for every input.", value=value_text(first.got.value))
    if message is None and _same_answer_always(trials):
        return say("Your function gives the same answer, {value}, for every input: does it use its arguments, or "
                   "names from other cells?", value=value_text(first.got.value))
    if message is None:
        message = describe(first.got.value, first.right, first, exercise)
        if good:
            return message + "\n  " + say("It is right for {good}.", good=good)
    if all(map(_shape_fits, trials)):
        message += "\n  " + say("Right already: it runs, and every shape fits.")
    return message


def _shape_fits(trial):
    got, right = as_array(trial.got.value), as_array(trial.right)
    return trial.got.error is None and got is not None and right is not None and right.ndim and got.shape == right.shape


def _explains(mistake, trials):
    """Does this mistake give the student's answers on every trial, and on some trial a wrong one?"""
    telling = False
    for t in trials:
        wrong = attempt(mistake, t.inputs)
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


def _wrong_manners(exercise, answer, trials):
    """Right values, but inputs are changed, a warning is given or hidden, or the dtype is another."""
    for t in trials:
        if t.got.changed and not exercise.may_change_inputs:
            return say("Right values, but your function changed its input {name}, which the caller may still need: "
                       "make new arrays, or start from a copy of {name}.", name=t.got.changed)
        if t.got.warning and "overflow" in t.got.warning:
            return say("Right values, but NumPy warned{single}: {warning}. Some numbers are too large for one of your "
                       "steps; np.where does not help, it computes both sides. Use a form that cannot overflow.",
                       single=" (in float32)" if t.single else "", warning=t.got.warning)
        problem = dtype_message(t.got.value, t.right)
        if problem:
            return problem
    if exercise.no_overflow and (name := silencer(answer)):
        return say("Right values, but {name} stands in your function: it turns NumPy's warning off, and changes "
                   "nothing about the numbers. Leave it out, and use a form that cannot overflow.", name=name)
    return None


def _cast(value, dtype):
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(dtype)
    if isinstance(value, dict):
        return {k: _cast(v, dtype) for k, v in value.items()}
    return value


