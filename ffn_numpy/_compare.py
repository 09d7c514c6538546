"""Is a result the right one, and if not, how does it differ? Used by `check`, on whatever a student's code returns."""
import warnings

import numpy as np

from ._messages import say
from ._validate import short


def as_array(value):
    """`value` as an array of numbers or booleans, or None if it is anything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            array = np.asarray(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # ragged lists, and whatever a foreign __array__ raises, SystemExit included
        return None
    return array if array.dtype.kind in "biuf" else None


def same(got, right, single=False):
    """Equal in structure and shape, and in value up to rounding (of float32 if `single`). A list counts as an array."""
    if isinstance(right, tuple):
        return (isinstance(got, (tuple, list)) and len(got) == len(right)
                and all(same(g, r, single) for g, r in zip(got, right)))
    a, b = as_array(got), as_array(right)
    if a is None or b is None or a.shape != b.shape or (a.dtype.kind == "b") != (b.dtype.kind == "b"):
        return False
    if b.dtype.kind in "bi":
        return np.array_equal(a, b)
    return bool(_close(a, b, single).all())


def _close(a, b, single):
    dtypes = {a.dtype, b.dtype}
    tolerance = 5e-3 if np.dtype(np.float16) in dtypes else 2e-5 if single or np.dtype(np.float32) in dtypes else 1e-9
    size = np.abs(b[np.isfinite(b)]).max(initial=1e-3)
    return np.isclose(a, b, rtol=tolerance, atol=tolerance * size, equal_nan=True)


def dtype_message(got, right):
    """What to say about right values in another dtype, or None."""
    if isinstance(right, tuple):
        return next(filter(None, map(dtype_message, got, right)), None)
    if isinstance(right, (bool, int)) and isinstance(got, (float, np.floating)):
        return say("Right value, but {value} is a float: it should be a whole number; use int(...) or //.",
                   value=float(got))
    if isinstance(got, np.ndarray) and isinstance(right, np.ndarray) and got.dtype != right.dtype:
        if right.dtype == np.float32 and got.dtype == np.float64:
            return say("Right values, but float32 came back as float64: look for np.zeros, np.ones, np.full, np.eye "
                       "or np.tri without dtype, np.where(..., 1.0, 0.0), np.sqrt(a number) (use math.sqrt), or a "
                       "list that became an array.")
        if right.dtype.kind == got.dtype.kind == "f":
            return say("Right values, but {given} came back as {came}: the result should follow the input.",
                       given=right.dtype, came=got.dtype)
        if right.dtype == np.int8:
            return say("Right values, but as {came}, and int8 is asked for: one byte a number is the point.",
                       came=got.dtype)
    return None


def describe(got, right, trial, exercise):
    """How `got` differs from `right`: structure, shape, a factor, the places, or the largest difference."""
    if isinstance(right, tuple):
        return _describe_results(got, right, trial, exercise)
    a, b = as_array(got), np.asarray(right)
    if a is None or (a.shape == b.shape and (a.dtype.kind == "b") != (b.dtype.kind == "b")):
        return say("expected {wanted}, yours is {came}.", wanted=_kind(right), came=_kind(got))
    if a.shape != b.shape:
        return _describe_shape(a, b, trial)
    if b.ndim == 0:
        return _describe_number(a, b, trial)
    if b.dtype.kind == "f" and a.size > 1:
        if factor := _factor(a, b, trial.single):
            return say("every number is {factor:.4g} times the right one, for {trial}.", factor=factor, trial=trial)
        if len(np.unique(b)) > 3 and same(np.sort(a, axis=None), np.sort(b, axis=None), trial.single):
            return say("the right numbers in the wrong places: is something sorted, not moved, or reshaped instead of "
                       "transposed?")
    return _describe_numbers(a, b, trial, exercise.elementwise)


def _describe_results(got, right, trial, exercise):
    names = exercise.returns
    if not isinstance(got, (tuple, list)) or len(got) != len(right):
        return say("Return {n} results: {names}. Yours is {came}.", n=len(right), names=", ".join(names),
                   came=_kind(got))
    fits = [same(g, r, trial.single) for g, r in zip(got, right)]
    i = fits.index(False)
    problem = describe(got[i], right[i], trial, exercise)
    good = [name for name, fit in zip(names, fits) if fit]
    return (f"{say('{names}: right.', names=', '.join(good))} " if good else "") + (f"{names[i]}: " + problem)


def _describe_number(a, b, trial):
    got, wanted = _pair(a, b)
    if b.dtype.kind == "f" and any(a == np.round(b, digits) for digits in range(2, 7)):
        return say("{got}, expected {wanted}, return the number as it is, not rounded.", got=got, wanted=wanted)
    return say("{got}, expected {wanted}, for {trial}.", got=got, wanted=wanted, trial=trial)


def _describe_shape(a, b, trial):
    if b.ndim == 0:
        if a.dtype.kind == "b":
            return say("an array of shape {came} came back; one single value is expected (for True and False: .any() "
                       "or .all()).", came=a.shape)
        return say("an array of shape {came} came back; one single value is expected.", came=a.shape)
    if a.ndim == b.ndim > 1 and a.shape in (b.shape[::-1], np.swapaxes(b, -1, -2).shape):
        return say("shape {came} is transposed, expected {wanted}.", came=a.shape, wanted=b.shape)
    if a.ndim == b.ndim and sorted(a.shape) == sorted(b.shape):
        return say("shape {came}, expected {wanted}: the axes are in another order.", came=a.shape, wanted=b.shape)
    if a.size == b.size:
        return say("shape {came}, expected {wanted}: an axis too many or too few (keepdims, reshape, indexing?).",
                   came=a.shape, wanted=b.shape)
    return say("shape {came}, expected {wanted} for {trial}.", came=a.shape, wanted=b.shape, trial=trial)


def _describe_numbers(a, b, trial, elementwise):
    if b.dtype.kind == "f":
        differs = ~_close(a, b, trial.single)
        with np.errstate(all="ignore"):
            gap = np.where(np.isnan(a), np.inf, np.abs(a - b)) * differs
        gap = np.where(np.isnan(gap), 0, gap)
    else:
        gap = differs = a != b
    where = tuple(int(i) for i in np.unravel_index(np.argmax(gap), gap.shape))
    got, wanted = _pair(a[where], b[where])
    values = {"n": differs.sum(), "size": differs.size, "trial": trial, "got": got, "wanted": wanted}
    if elementwise:
        return say("{n} of {size} numbers differ, for {trial}. The largest difference is for {name} = {value}: {got}, "
                   "expected {wanted}.", name=trial.names[0], value=_number(trial.inputs[0][where]), **values)
    return say("{n} of {size} numbers differ, for {trial}. The largest difference is at {place}: {got}, expected "
               "{wanted}.", place=list(where), **values)


def _factor(a, b, single):
    """The constant c with a = c b, if there is one that is neither 0 nor 1."""
    largest = np.unravel_index(np.argmax(np.abs(b)), b.shape)
    with np.errstate(all="ignore"):
        factor = a[largest] / b[largest]
        return float(factor) if factor != 0 and abs(factor - 1) > 1e-3 and same(a, factor * b, single) else None


def _kind(value):
    if isinstance(value, (tuple, list)):
        return say("a {kind} of {n}", kind=type(value).__name__, n=len(value))
    array = as_array(value)
    if array is None:
        if isinstance(value, np.ndarray):
            return say("of type {kind} of dtype {dtype}", kind=type(value).__name__, dtype=value.dtype)
        return "None" if value is None else say("of type {kind}", kind=type(value).__name__)
    if array.ndim == 0:
        return say("True or False") if array.dtype.kind == "b" else say("a number")
    if array.dtype.kind == "b":
        return say("an array of True and False, shape {shape}", shape=array.shape)
    return say("an array of numbers, shape {shape}", shape=array.shape)


def _pair(a, b):
    """Two numbers with as many digits as are needed to tell them apart."""
    for digits in (4, 6, 9, 17):
        texts = _number(a, digits), _number(b, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _number(value, digits=4):
    return f"{value + 0.0:.{digits}g}" if value.dtype.kind == "f" and abs(value) < 1e9 else str(value)


def value_text(value):
    """A result in a message: a single number with a few digits, anything else cut short."""
    array = as_array(value)
    return short(value) if array is None or array.size != 1 else _number(array.reshape(())[()])
