"""The exercise checks: every known mistake gets its own message, other right styles pass, nonsense stays calm."""
import io
import math
import re
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from errors import assert_error
from student_answers import RIGHT, WRONG

import ffn_numpy.check
from ffn_numpy._messages import message_id
from ffn_numpy.check import CheckFailed, NotAttempted, check, show_guess
from ffn_numpy.exercises import find, numbers

NUMBERS = numbers()
every_exercise = pytest.mark.parametrize("number", NUMBERS)


def message(number, answer, seed=0):
    """What the check says about a wrong answer, on one line."""
    with pytest.raises(CheckFailed) as failure:
        check(number, answer, seed)
    return " ".join(failure.value.text.split())


@every_exercise
@pytest.mark.parametrize("seed", range(4))
def test_the_function_that_is_asked_for_passes(number, seed, capsys):
    """In every dtype and without a warning. (That it is right is shown by the solutions and by RIGHT below.)"""
    check(number, find(number).right, seed)
    assert capsys.readouterr().out.startswith(f"✓ {number} {find(number).call}: right on 6 random inputs")


@every_exercise
@pytest.mark.parametrize("seed", range(4))
def test_every_mistake_is_told_from_the_right_answer_and_from_the_others(number, seed):
    for text, wrong in find(number).known():
        assert text in message(number, wrong, seed)


@every_exercise
def test_enough_mistakes_are_known_and_messages_are_short(number):
    exercise = find(number)
    assert len(exercise.mistakes) >= (2 if exercise.stars == 1 else 3)
    for text in exercise.mistakes:
        assert len(text) <= 200 and re.search(r"([.:?]|Hint \d)\W*$", text) and "\n" not in text, text


def function(number, source):
    """The function that a student's source defines, with the imports of the exercise notebooks."""
    names = {}
    exec("import math\nimport numpy as np\nfrom ffn_numpy import ACTIVATIONS, gelu, layer_norm, sigmoid, silu, softmax",
         names)
    exec(source, names)
    return names[find(number).call.partition("(")[0]]


@pytest.mark.parametrize("number, mistake, said, source", WRONG, ids=[f"{w[0]}: {w[1]}" for w in WRONG])
def test_wrong_answers_of_students_are_named(number, mistake, said, source):
    promoted = "np.sqrt" in source and "float32 came back" in said
    if np.__version__ < "2" and (promoted or "score of each *column*" in said):
        pytest.skip("NumPy 1 keeps float32 beside a float64 scalar, and compares arrays of different length to False")
    assert said in message(number, function(number, source))


@pytest.mark.parametrize("number, style, source", RIGHT, ids=[f"{r[0]}: {r[1]}" for r in RIGHT])
def test_other_right_styles_pass(number, style, source):
    """Loops, einsum, lists, other names: what counts is the result."""
    check(number, function(number, source))


# What students hand in besides a wrong formula.

def endless_recursion(*inputs):
    return endless_recursion(*inputs)


NONSENSE = {
    "no return": (lambda *a: None, "returned None"),
    "text": (lambda *a: "hello", "ours is of type str"),
    "a dict": (lambda *a: {"h": 1}, "ours is of type dict"),
    "a generator": (lambda *a: (i for i in range(3)), "ours is of type generator"),
    "an object": (lambda *a: object(), "ours is of type object"),
    "ragged": (lambda *a: [[1, 2], [3]], ""),
    "complex": (lambda *a: np.ones(3) * 1j, "ours is of type ndarray of dtype complex128"),
    "nan": (lambda *a: np.full((5, 3), np.nan), ""),
    "the wrong number of results": (lambda *a: (1, 2, 3, 4, 5), ""),
    "nothing in it": (lambda *a: np.zeros(0), ""),
    "its inputs": (lambda *a: a, ""),
    "an exception": (lambda *a: 1 / 0, "ZeroDivisionError: division by zero"),
    "a long message": (lambda *a: (_ for _ in ()).throw(ValueError("x" * 9999)), "ValueError"),
    "exit": (lambda *a: exit(), "SystemExit"),
    "endless recursion": (endless_recursion, "calls itself without end"),
    "not attempted": (lambda *a: (_ for _ in ()).throw(NotImplementedError()), "Not attempted yet"),
    "too few arguments": (lambda: 1, "Your function takes 0 arguments in order; the check calls"),
    "too many arguments": (lambda a, b, c, d, e, f, g: 1, "Your function takes 7 arguments in order; the check calls"),
    "a number": (3, "needs your function, got an object of type int"),
    "an array": (np.zeros(3), "needs your function, got an object of type ndarray"),
    "None": (None, "needs your function, got None"),
}


@every_exercise
@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_gets_a_calm_message(number, nonsense):
    answer, expected = NONSENSE[nonsense]
    said = message(number, answer)
    assert expected in said and len(said) < 500 and said[0] in "✗○"


@pytest.mark.parametrize("answer, says", [
    (None, "The check needs your function, got None: write lift, not lift(...)."),
    (3, "The check needs your function, got an object of type int: write lift, not lift(...)."),
    (lambda: 1, "Your function takes 0 arguments in order; the check calls lift(x, W1, b1), with 3."),
    (lambda x: 1, "Your function takes 1 argument in order; the check calls lift(x, W1, b1), with 3."),
    (lambda x, W1, b1, /, d: 1, "Your function takes 4 arguments in order; the check calls lift(x, W1, b1), with 3."),
    (lambda x, W1, *, b1: 1, "Your function takes 2 arguments in order; the check calls lift(x, W1, b1), with 3."),
    (endless_recursion, "Your function calls itself without end (RecursionError)."),
    (lambda *a: None, "Your function returned None: is a line with `return` missing?"),
    (lambda *a: 7, "Your function gives the same answer, 7, for every input: does it use its arguments, or names from "
                   "other cells?"),
    (lambda x, W1, b1: x @ W1, "The bias is missing: add b1 to x @ W1. Right already: it runs, and every shape fits."),
    (lambda x, W1, b1: x.sum(), "shape (), expected (5, 11) for x (5, 6), W1 (6, 11), b1 (11,)."),
])
def test_the_whole_message(answer, says):
    assert message("1.1", answer) == f"✗ 1.1 lift(x, W1, b1) {says}"


def test_the_whole_praise(capsys):
    check("1.1", lambda x, W1, b1, more=0: x @ W1 + b1)
    check("6.2", find("6.2").right)
    assert capsys.readouterr().out == (
        "✓ 1.1 lift(x, W1, b1): right on 6 random inputs, in float64 and float32.\n"
        f"✓ 6.2 {find('6.2').call}: right on 6 random inputs.\n")


def test_an_endless_loop_is_stopped(monkeypatch):
    def loop(x, W1, b1):
        while True:
            pass

    monkeypatch.setattr("ffn_numpy._call.TIME_LIMIT", 0.3)
    start = time.monotonic()
    assert "is there a loop that never ends?" in message("1.1", loop)
    assert time.monotonic() - start < 5
    check("1.1", lambda x, W1, b1: x @ W1 + b1)  # and the next check is not hit by the same alarm


def test_an_answer_that_catches_the_interrupt_is_stopped_too(monkeypatch):
    def loop(x, W1, b1):
        try:
            while True:
                pass
        except:  # noqa: E722  as students write it
            return x @ W1 + b1

    monkeypatch.setattr("ffn_numpy._call.TIME_LIMIT", 0.3)
    assert "is there a loop that never ends?" in message("1.1", loop)


def test_a_loop_around_a_bare_except_is_stopped_and_nothing_is_left_behind(monkeypatch):
    """Every interrupt is caught inside the loop; what ends it is that its other lines raise, too."""
    monkeypatch.setattr("ffn_numpy._call.TIME_LIMIT", 0.2)

    def stubborn(x, W1, b1):
        while True:
            try:
                x = x + 0
            except BaseException:
                pass

    before = signal.getsignal(signal.SIGINT), sys.gettrace()
    assert "Stopped after 0 s: is there a loop that never ends?" in message("1.1", stubborn)
    assert (signal.getsignal(signal.SIGINT), sys.gettrace()) == before
    check("1.1", lambda x, W1, b1: x @ W1 + b1)


def test_a_host_without_threads_checks_without_a_limit(monkeypatch, capsys):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    check("1.1", lambda x, W1, b1: x @ W1 + b1)
    assert "The bias is missing" in message("1.1", lambda x, W1, b1: x @ W1)


def test_an_answer_that_calls_its_own_check_is_told_so():
    def calls_check(x, W1, b1):
        check("1.1", calls_check)

    assert "Your function calls check." in message("1.1", calls_check)
    check("1.1", lambda x, W1, b1: x @ W1 + b1)  # and the next check works


def test_an_object_that_exits_when_it_is_read_is_no_end():
    class Exits:
        def __array__(self, *args, **kwargs):
            raise SystemExit

    assert "yours is of type Exits" in message("1.1", lambda x, W1, b1: Exits())


def test_warnings_of_matrix_products_and_of_zeros_say_nothing_about_right_values(capsys):
    def warns(text):
        def answer(x, W1, b1):
            warnings.warn(text, RuntimeWarning, stacklevel=1)
            return x @ W1 + b1
        return answer

    check("1.1", warns("divide by zero encountered in matmul"))
    check("1.1", warns("divide by zero encountered in log"))
    out = capsys.readouterr().out.splitlines()
    noted = "(NumPy warned: divide by zero encountered in log. The values are right.)"
    assert "warned" not in out[0] and out[1].endswith(noted)
    said = message("1.1", warns("overflow encountered in exp"))
    assert "overflow encountered in exp. Some numbers are too large" in said


def test_the_id_of_a_message_stays_in_the_notebook_and_is_not_shown():
    with pytest.raises(CheckFailed) as failure:
        check("2.1", lambda x: x)
    lines = failure.value._render_traceback_()
    assert lines[0] == "✗ 2.1 quiet(x)" and not any("[2.1" in line for line in lines)
    text = next(iter(find("2.1").mistakes))
    nothing = "Nothing changed: both folds are at 0, where relu(x) - relu(-x) is x. The biases move them."
    assert str(failure.value).endswith(f"[2.1 {message_id(nothing)}]") and re.fullmatch("[0-9a-f]{6}", message_id(text))


def test_every_known_mistake_has_an_id_of_its_own():
    texts = {text for n in numbers() for text in find(n).mistakes}
    assert len({message_id(text) for text in texts}) == len(texts)


def test_not_attempted_means_the_answer_itself():
    def stub(p, k):
        raise NotImplementedError

    with pytest.raises(NotAttempted):
        check("10.1", stub)
    said = message("10.2", lambda x, W_router, experts, k: stub(x, k))
    assert "stopped with NotImplementedError" in said and "Not attempted" not in said


def test_a_stop_by_the_reader_is_not_swallowed():
    def stopped(x, W1, b1):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("1.1", stopped)


def test_right_values_with_a_wrong_side_are_named():
    def in_place(x, W1, b1):
        x *= 2
        return x / 2 @ W1 + b1

    assert message("1.1", in_place) == (
        "✗ 1.1 lift(x, W1, b1) Right values, but your function changed its input x, which the caller may still need: "
        "make new arrays, or start from a copy of x.")
    creep = message("1.1", lambda x, W1, b1: x @ W1 + b1 + np.zeros(b1.shape))
    assert "float32 came back as float64" in creep and "np.zeros" in creep
    assert "float64 came back as float32" in message("1.1", lambda x, W1, b1: (x @ W1 + b1).astype(np.float32))
    warned = ("✗ 2.2 my_silu(h) Right values, but NumPy warned{}: overflow encountered in exp. Some numbers are too "
              "large for one of your steps; np.where does not help, it computes both sides. Use a form that cannot "
              "overflow.")
    assert message("2.2", lambda h: h / (1 + np.exp(-h))) == warned.format("")

    def quiet_in_float64(h):
        with np.errstate(all="ignore" if h.dtype == np.float64 else "warn"):
            return h / (1 + np.exp(-h))

    assert message("2.2", quiet_in_float64) == warned.format(" (in float32)")
    bools = message("8.2", lambda weights, stars: stars.any(axis=1))
    assert "expected an array of numbers, shape (5,), yours is an array of True and False" in bools
    assert "is a float: it should be a whole number" in message("6.2", lambda n, m: -(-n // m) * float(m))


def test_a_mistake_without_a_name_is_described():
    assert "every number is 3 times the right one" in message("1.1", lambda x, W1, b1: 3 * (x @ W1 + b1))
    assert "is transposed, expected (5," in message("1.1", lambda x, W1, b1: (x @ W1 + b1).T)
    assert "an axis too many or too few" in message("1.1", lambda x, W1, b1: (x @ W1 + b1)[..., None])
    assert "shape (5, 2), expected (5," in message("1.1", lambda x, W1, b1: (x @ W1 + b1)[..., :2])
    assert "numbers differ, for x (5," in message("1.1", lambda x, W1, b1: x @ W1 + b1 + x.sum())
    assert "Right already: it runs, and every shape fits." in message("1.1", lambda x, W1, b1: x @ W1 + b1 + x.sum())
    assert "in the wrong places" in message("4.2", lambda a, W2: (a[:, :, None] * W2)[:, ::-1])
    rounded = message("8.3", lambda s, t: round(find("8.3").right(s, t), 2))
    assert "return the number as it is, not rounded" in rounded
    assert "times the right one" not in message("2.1", lambda h: -h)  # not where the right answer is 0
    assert "the axes are in another order" in message("4.2", lambda a, W2: np.einsum("tj,jd->jtd", a, W2))
    assert "ValueError: matmul: size 5 is different from 11 (`@` needs" in message("1.1", lambda x, W1, b1: W1 @ x)
    fixed = np.ones((5, 3))
    assert "the same answer" in message("1.1", lambda x, W1, b1: fixed)


def test_an_error_names_the_line_and_what_went_well():
    def rows_only(x, W1, b1):
        return x.dot(W1) + b1 + 0 * W1[0] * x[:, :1]

    said = message("1.1", rows_only)
    assert "stopped with ValueError" in said and "in the line: return x.dot" in said
    assert "Right for x (5," in said and "For x (2, 3," in said and "(compared from the right" in said


def test_an_error_is_told_in_words_that_help():
    """The whole message: the exercise, what stopped where, what NumPy's words mean, and the line."""
    def binds_equally(x, W1, b1):
        return W1 * x @ W1 + b1

    def brackets(x, W1, b1):
        return (W1 * x) @ W1 + b1

    first = next(find("1.1").cases(0))
    title = (f"✗ 1.1 lift(x, W1, b1) For x (5, {first.d}), W1 ({first.d}, {first.f}), b1 ({first.f},) it stopped with ")
    line = "in the line: return"
    compared = "(compared from the right, two axes must be equal, or one of them 1.)"
    said = message("1.1", binds_equally)
    assert said.startswith(f"{title}ValueError: operands could not be broadcast together with shapes ")
    assert said.endswith(f" {compared} (`*` and `@` bind equally, from left to right: put each product in brackets.) "
                         f"{line} W1 * x @ W1 + b1")
    said = message("1.1", lambda x, W1, b1: (x @ W1) + b1[:, None] * x)
    assert compared in said and said.count("bind equally") == 0  # each product stands for itself
    said = message("1.1", brackets)
    assert compared in said and "bind equally" not in said
    said = message("1.1", lambda x, W1, b1: x * W1)
    assert compared in said and "bind equally" not in said
    said = message("1.1", lambda x, W1, b1: x @ W1.T)
    assert "bind equally" not in said
    said = message("1.1", lambda x, W1, b1: 1 / 0)
    assert said == f"{title}ZeroDivisionError: division by zero {line.replace('return', '')}" \
        'said = message("1.1", lambda x, W1, b1: 1 / 0)'
    said = message("1.1", lambda x, W1, b1: max(x, 0))
    assert "(max, min and if take one number; for arrays use np.maximum, np.where or a comparison.)" in said


def raises(error):
    def answer(x, W1, b1):
        raise error
    return answer


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize("answer, words", [
    (lambda x, W1, b1: W1 @ x, "`@` needs the last axis of the left array as long as the second-to-last of the right"),
    (lambda x, W1, b1: W1.dot(x), "the inner sizes of the product do not fit."),
    (lambda x, W1, b1: x + W1, "compared from the right, two axes must be equal, or one of them 1."),
    (lambda x, W1, b1: max(x, 0), "max, min and if take one number; for arrays use np.maximum, np.where or a comp"),
    (lambda x, W1, b1: np.split(x, 4), "np.split cuts axis 0 unless you say axis=-1."),
    (lambda x, W1, b1: x + np.array([[1], [1, 2]]), "the rows of what became an array have different lengths."),
    (lambda x, W1, b1: np.bincount(x.astype(int)), "a flat array is needed: .ravel()."),
])
def test_numpys_words_are_put_plainly(answer, words):
    assert f" ({words}" in message("1.1", answer)


def test_an_error_in_no_line_of_the_answer_names_none():
    said = message("2.1", math.exp)
    assert said.endswith(" (float(...) and the functions of math take one number; for arrays use those of np.)")


def test_what_an_error_says_is_one_short_line():
    stopped = message("1.1", raises(ValueError("two\n lines"))).partition(" it stopped with ")[2]
    assert stopped == "ValueError: two lines in the line: raise error"
    for n, shown in ((160, "x" * 160), (161, "x" * 157 + "...")):
        assert f"ValueError: {shown} in the line:" in message("1.1", raises(ValueError("x" * n)))
    assert "Speechless: (no message) in the line:" in message("1.1", raises(Speechless()))


def test_the_time_limit_is_ten_seconds_and_only_in_the_main_thread(monkeypatch):
    assert ffn_numpy._call.TIME_LIMIT == 10

    def sleeps(x, W1, b1):
        time.sleep(9)

    monkeypatch.setattr("ffn_numpy._call.TIME_LIMIT", 0.2)
    assert message("1.1", sleeps) == "✗ 1.1 lift(x, W1, b1) Stopped after 0 s: is there a loop that never ends?"
    monkeypatch.setattr("ffn_numpy._call.TIME_LIMIT", 0.0)  # over at once, if there were a limit
    said = []
    thread = threading.Thread(target=lambda: said.append(message("1.1", lambda x, W1, b1: x @ W1)))
    thread.start()
    thread.join()
    assert "The bias is missing" in said[0]


def test_copies_and_comparisons_reach_into_lists_and_dicts():
    def inputs():
        return {"W": np.array([1.0, np.nan]), "rows": [np.arange(3), (2, np.ones(2))]}

    first, copy = inputs(), ffn_numpy._call.copy(inputs())
    assert ffn_numpy._call._identical(first, copy) and type(copy["rows"]) is list and type(copy["rows"][1]) is tuple
    for change in (lambda c: c["W"].fill(1), lambda c: c["rows"][0].fill(0), lambda c: c["rows"].pop(),
                   lambda c: c["rows"][1][1].fill(0), lambda c: c.pop("W"), lambda c: c.update(more=1)):
        copy = ffn_numpy._call.copy(first)
        change(copy)
        assert not ffn_numpy._call._identical(first, copy) and ffn_numpy._call._identical(first, inputs())
    cast = ffn_numpy.check._cast(first | {"x": np.ones(2)}, np.float32)
    assert cast["W"].dtype == cast["x"].dtype == np.float32 and cast["rows"] is first["rows"]


def test_failed_checks_are_shown_without_a_traceback():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    shell = InteractiveShell()
    with capture_output() as shown:
        result = shell.run_cell('from ffn_numpy.check import check\ncheck("1.1", lambda x, W1, b1: x @ W1)')
    assert isinstance(result.error_in_exec, CheckFailed)  # still an error to whoever runs the notebook
    assert shown.stdout.splitlines()[0].startswith("✗ 1.1 lift(x, W1, b1)")
    assert "Traceback" not in shown.stdout and "File" not in shown.stdout
    assert issubclass(NotAttempted, CheckFailed) and issubclass(CheckFailed, AssertionError)


@pytest.mark.parametrize("number, known, came", [
    ("1.9", "1.", "'1.9'"), ("11.1x", "11.", "'11.1x'"), ("0.1", "", "'0.1'"), ("12.1", "", "'12.1'"),
    ("lift", "", "'lift'"), ("", "", "''"), (None, "", "None"), (1.1, "", "1.1"), (7, "", "7"),
    ("1" * 99, "", f"'{'1' * 56}..."),
])
def test_unknown_exercises_are_refused(number, known, came):
    names = ", ".join(repr(name) for name in NUMBERS if name.startswith(known))
    assert_error(lambda: check(number, abs), ValueError, f"exercise must be one of {names}; got {came}")


def test_bad_seeds_are_refused():
    for seed, error in ((-1, ValueError), ("x", TypeError), (1.5, TypeError)):
        assert_error(lambda seed=seed: check("1.1", abs, seed), error,
                     f"seed must be a non-negative integer or a numpy.random.Generator, got {seed!r}")


def test_a_check_leaves_the_world_as_it_was():
    """NumPy's random state, warning filters and error settings are those of before, whatever the answer sets."""
    def meddling(h):
        np.seterr(all="raise")
        warnings.simplefilter("ignore")
        return 2 * h

    np.random.seed(1)
    state, filters, settings = np.random.get_state()[1].copy(), list(warnings.filters), np.geterr()
    message("2.2", meddling)
    assert np.array_equal(np.random.get_state()[1], state)
    assert warnings.filters == filters and np.geterr() == settings


def test_a_console_without_ticks_gets_a_question_mark(monkeypatch):
    console = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", console)
    check("6.2", find("6.2").right)
    console.flush()
    assert console.buffer.getvalue().decode().startswith(f"? 6.2 {find('6.2').call}: right on 6 random inputs")


def test_show_guess(capsys):
    show_guess(None)
    show_guess((7, 32))
    assert capsys.readouterr().out == "your guess: no guess\nyour guess: (7, 32)\n"


def test_the_time_limit_holds_where_interrupts_are_ignored(monkeypatch):
    """A shell starts its background jobs with SIGINT ignored; an endless loop must still end, and the setting stay."""
    monkeypatch.setattr("ffn_numpy._call.TIME_LIMIT", 0.3)

    def endless(h):
        while True:
            pass
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert "Stopped after" in message("2.1", endless)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
