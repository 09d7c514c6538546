"""What a check says about a wrong result: the whole text for every way in which arrays and numbers can differ."""
from types import SimpleNamespace

import numpy as np
import pytest

from ffn_numpy._call import Outcome as _Outcome
from ffn_numpy._compare import as_array, describe, dtype_message, same, value_text
from ffn_numpy.check import _Trial

R = np.random.default_rng(0)
A, V, SQUARE, B = (R.normal(size=shape) for shape in ((5, 3), (4,), (4, 4), (2, 3, 5)))
SINGLE = A.astype(np.float32)
NEAR = A.copy()
NEAR[2, 1] += 1e-7
WHERE, AXIS = "for x (5, 3), n = 3", "an axis too many or too few (keepdims, reshape, indexing?)."
PLACES = "the right numbers in the wrong places: is something sorted, not moved, or reshaped instead of transposed?"
ALL = f"15 of 15 numbers differ, {WHERE}. The largest difference is at"


@pytest.mark.parametrize("got, right, says", [
    (A.T, A, "shape (3, 5) is transposed, expected (5, 3)."),
    (B.transpose(0, 2, 1), B, "shape (2, 5, 3) is transposed, expected (2, 3, 5)."),
    (B.transpose(2, 1, 0), B, "shape (5, 3, 2) is transposed, expected (2, 3, 5)."),
    (B.transpose(1, 0, 2), B, "shape (3, 2, 5), expected (2, 3, 5): the axes are in another order."),
    (A[None], A, f"shape (1, 5, 3), expected (5, 3): {AXIS}"), (A.ravel(), A, f"shape (15,), expected (5, 3): {AXIS}"),
    (V[None], V, f"shape (1, 4), expected (4,): {AXIS}"), (A[:, :2], A, f"shape (5, 2), expected (5, 3) {WHERE}."),
    (np.vstack([A, A]), A, f"shape (10, 3), expected (5, 3) {WHERE}."),
    (V[:3], V, f"shape (3,), expected (4,) {WHERE}."), (np.r_[V, V], V, f"shape (8,), expected (4,) {WHERE}."),
    (1.0, V, f"shape (), expected (4,) {WHERE}."), ((A, A), A, f"shape (2, 5, 3), expected (5, 3) {WHERE}."),
    (V, 1.0, "an array of shape (4,) came back; one single value is expected."),
    (V > 0, True, "an array of shape (4,) came back; one single value is expected (for True and False: .any() or "
                  ".all())."),
    # the numbers
    (3 * A, A, f"every number is 3 times the right one, {WHERE}."),
    (A / 2, A, f"every number is 0.5 times the right one, {WHERE}."),
    (-A, A, f"every number is -1 times the right one, {WHERE}."),
    (A * 1.0005, A, f"{ALL} [4, 0]: -2.326, expected -2.325."), (0 * A, A, f"{ALL} [4, 0]: 0, expected -2.325."),
    (A * (1 + 1e-6), A, f"{ALL} [4, 0]: -2.3250331, expected -2.32503077."),
    (A[::-1], A, PLACES), (SQUARE.T, SQUARE, PLACES), (np.sort(A, axis=0), A, PLACES),
    (A + 1, A, f"{ALL} [0, 0]: 1.126, expected 0.1257."), (np.full_like(A, np.nan), A, f"{ALL} [0, 0]: nan, expected "
                                                                                      "0.1257."),
    (NEAR, A, f"1 of 15 numbers differ, {WHERE}. The largest difference is at [2, 1]: 0.947081063, expected "
              "0.947080963."),
    (np.where(A > 1, np.inf, A), A, f"1 of 15 numbers differ, {WHERE}. The largest difference is at [2, 0]: inf, "
                                    "expected 1.304."),
    (SINGLE + np.float32(1e-3), SINGLE, f"{ALL} [2, 0]: 1.305, expected 1.304."),
    (np.array([1.0, 1.0]), np.array([1.0, 0.0]), f"1 of 2 numbers differ, {WHERE}. The largest difference is at [1]: "
                                                 "1, expected 0."),
    (np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0]), f"2 of 3 numbers differ, {WHERE}. The largest difference is "
                                                           "at [0]: 0, expected 1."),
    (np.array([1.0]), np.array([3.0]), f"1 of 1 numbers differ, {WHERE}. The largest difference is at [0]: 1, "
                                       "expected 3."),
    (np.array([np.inf, 1.0, -np.inf, 2.5]), np.array([np.inf, 1.0, -np.inf, 2.0]),
     f"1 of 4 numbers differ, {WHERE}. The largest difference is at [3]: 2.5, expected 2."),
    (np.where(A > 1, A + 1e-3, A + 1e-12), A, f"1 of 15 numbers differ, {WHERE}. The largest difference is at [2, 0]: "
                                              "1.305, expected 1.304."),
    ([1, 2, 3], np.array([1, 2, 4]), f"1 of 3 numbers differ, {WHERE}. The largest difference is at [2]: 3, "
                                     "expected 4."),
    (A <= 0, A > 0, f"{ALL} [0, 0]: False, expected True."),
    (3, 4, f"3, expected 4, {WHERE}."), (0.15, 0.1234, f"0.15, expected 0.1234, {WHERE}."),
    (0.12, 0.1234, "0.12, expected 0.1234, return the number as it is, not rounded."),
    (0.123457, 0.12345678, "0.123457, expected 0.12345678, return the number as it is, not rounded."),
    (0.1, 0.1234, f"0.1, expected 0.1234, {WHERE}."),
    (0.1234567, 0.12345678, f"0.1234567, expected 0.12345678, {WHERE}."),
    (np.nan, 1.0, f"nan, expected 1, {WHERE}."), (1e12, 2e12, f"1000000000000.0, expected 2000000000000.0, {WHERE}."),
    # another kind of thing
    (A > 0, A, "expected an array of numbers, shape (5, 3), yours is an array of True and False, shape (5, 3)."),
    (A, A > 0, "expected an array of True and False, shape (5, 3), yours is an array of numbers, shape (5, 3)."),
    (True, 1.0, "expected a number, yours is True or False."),
    (1.0, True, "expected True or False, yours is a number."),
    (None, A, "expected an array of numbers, shape (5, 3), yours is None."),
    ("x", 1.0, "expected a number, yours is of type str."),
    ({}, True, "expected True or False, yours is of type dict."),
    (1j * A, A, "expected an array of numbers, shape (5, 3), yours is of type ndarray of dtype complex128."),
    ([[1], [1, 2]], A, "expected an array of numbers, shape (5, 3), yours is a list of 2."),
    # several results
    (A, (A, V), "Return 2 results: a, b. Yours is an array of numbers, shape (5, 3)."),
    ((A,), (A, V), "Return 2 results: a, b. Yours is a tuple of 1."),
    ([A, V, V], (A, V), "Return 2 results: a, b. Yours is a list of 3."),
    ((A, V[:2]), (A, V), f"a: right. b: shape (2,), expected (4,) {WHERE}."),
    ([2 * A, V], (A, V), f"b: right. a: every number is 2 times the right one, {WHERE}."),
    ((2 * A, V > 0), (A, V), f"a: every number is 2 times the right one, {WHERE}."),
])
def test_how_a_result_differs(got, right, says):
    trial = _Trial(("x", "n"), (SINGLE if right is SINGLE else A, 3), right, _Outcome(got))
    assert not trial.is_right
    assert describe(got, right, trial, SimpleNamespace(returns=("a", "b"), elementwise=False)) == says


def test_elementwise_results_name_the_input():
    x, right = np.array([0.0, 1.25, 2.0]), np.array([1.0, 2.25, 3.0])
    got = np.array([1.0, 7.0, 3.5])
    trial = _Trial(("h",), (x,), right, _Outcome(got))
    assert describe(got, right, trial, SimpleNamespace(returns=(), elementwise=True)) == (
        "2 of 3 numbers differ, for h (3,). The largest difference is for h = 1.25: 7, expected 2.25.")


def test_what_is_the_same():
    one = np.ones(3)
    for got, right, single in (
            (A, A, False), (A.tolist(), A, False), (A + 1e-10, A, False), (A + 1e-6, A, True), (SINGLE, A, False),
            (A, SINGLE, False), ((A, V), (A, V), False), ([A, V], (A, V), False), (3, 3, False), (3.0, 3, False),
            (True, True, False), (np.array([np.nan, np.inf]), np.array([np.nan, np.inf]), False),
            (A.astype(np.float16), A, False), (1e9 + one, 1e9 + 1 + 1e-3 * one, False)):
        assert same(got, right, single)
    for got, right, single in (
            (A + 1e-7, A, False), (A + 1e-3, A, True), (A + 1e-3, SINGLE, False), (V[:3], V, False), (V, V[:3], False),
            (np.ones(1), np.ones(2), False), (1.0, one, False), (one, 1.0, False), (one[None], one, False),
            ((A,), (A, V), False), ((A, V, V), (A, V), False), (A, (A, V), False), ((A, V + 1), (A, V), False),
            (True, 1, False), (1, True, False), (one > 0, one, False), (one, one > 0, False), (None, A, False),
            ("1", 1, False), (4, 3, False), (3.001, 3, False), (np.array([np.nan]), np.array([1.0]), False),
            (np.array([1.0]), np.array([np.nan]), False), (np.array([-np.inf]), np.array([np.inf]), False),
            (A.astype(np.float16) + np.float16(0.1), A, False),
            ((A, A + 1e-6), (A, A), False), (1e-3 * one + 1e-11, 1e-3 * one, False)):
        assert not same(got, right, single), (got, right, single)
    assert same(A + 1e-10, A) and not same(A + 1e-6, A)  # float64's precision, unless it is said otherwise


FOLLOW = "the result should follow the input."
CREEP = ("Right values, but float32 came back as float64: look for np.zeros, np.ones, np.full, np.eye or np.tri "
         "without dtype, np.where(..., 1.0, 0.0), np.sqrt(a number) (use math.sqrt), or a list that became an array.")


@pytest.mark.parametrize("got, right, says", [
    (SINGLE, A, f"Right values, but float64 came back as float32: {FOLLOW}"), (A, SINGLE, CREEP),
    (A, A.astype(np.float16), f"Right values, but float16 came back as float64: {FOLLOW}"),
    (SINGLE, A.astype(np.float16), f"Right values, but float16 came back as float32: {FOLLOW}"),
    (A, A, None), (A.tolist(), SINGLE, None), (np.array([1.0]), np.array([1]), None),
    (np.array([1]), np.array([1], np.int8), "Right values, but as int64, and int8 is asked for: one byte a number is "
                                            "the point."),
    (np.array([1]), np.array([1.0]), None), (3, 3.0, None), (3, 3, None), (True, True, None),
    (3.0, 3, "Right value, but 3.0 is a float: it should be a whole number; use int(...) or //."),
    (np.float64(3), 3, "Right value, but 3.0 is a float: it should be a whole number; use int(...) or //."),
    ((A, A), (A, A), None), ((A, A), (A, SINGLE), CREEP), ([A, A], (SINGLE, A), CREEP),
])
def test_dtypes(got, right, says):
    assert dtype_message(got, right) == says


@pytest.mark.parametrize("value, text", [
    (3.14159, "3.142"), (np.array([[2.5]]), "2.5"), (10**20, "100000000000000000000"), (-0.0, "0"), (True, "True"),
    (1e9, "1000000000.0"), (999999999.0, "1e+09"), ("text", "'text'"), (None, "None"), ([], "[]"),
    ([1.0, 2.0], "[1.0, 2.0]"), (np.arange(99), "array([ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,..."),
])
def test_values_in_a_message(value, text):
    assert value_text(value) == text


def test_what_counts_as_an_array():
    for value in (1, 1.5, True, [1, 2], ((1.0,),), A, A > 0, np.uint8(3), []):
        np.testing.assert_array_equal(as_array(value), value)
    for value in (None, "1", 1j, [[1], [1, 2]], {}, object(), np.array(["a"]), np.array([None])):
        assert as_array(value) is None
