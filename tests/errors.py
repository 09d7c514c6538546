"""How every test of bad input compares: the exact type and the whole message, as the user reads it."""
import pytest

from ffn_numpy import ACTIVATIONS
from ffn_numpy.ffn import KINDS

ACTIVATION_NAMES = ", ".join(ACTIVATIONS)
KIND_NAMES = ", ".join(KINDS | ACTIVATIONS)
REAL = "must hold real numbers (float16, float32, float64 or integers), got"


def assert_error(call, error_type, message):
    """call() raises error_type itself, no subclass, with this message from the first letter to the last."""
    with pytest.raises(error_type) as caught:
        call()
    assert type(caught.value) is error_type
    text = caught.value.args[0] if error_type is KeyError else str(caught.value)  # str(KeyError) adds quotes
    assert text == message, f"\n  wanted: {message}\n  came:   {text}"
