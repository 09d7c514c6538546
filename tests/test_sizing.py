"""d_ff rules, parameters and FLOPs against published sizes, counted arrays and hand arithmetic."""
from fractions import Fraction

import numpy as np
import pytest
from errors import assert_error
from hypothesis import given
from hypothesis import strategies as st

import ffn_numpy as F

SIZES = st.integers(1, 20_000)


@pytest.mark.parametrize("d_model, arguments, d_ff", [
    (4096, {}, 11008), (5120, {}, 13824), (6656, {}, 17920), (8192, {}, 22016),  # Llama 1: 7B 13B 33B 65B
    (4096, {"multiple_of": 1024, "ffn_dim_multiplier": 1.3}, 14336),             # Llama-3-8B
    (8192, {"multiple_of": 4096, "ffn_dim_multiplier": 1.3}, 28672),             # Llama-3-70B
])
def test_llama_sizes(d_model, arguments, d_ff):
    assert F.llama_d_ff(d_model, **arguments) == d_ff


def test_other_published_sizes():
    assert F.minimind_d_ff(4096) == 10944 and F.minimind_d_ff(512) == 1408
    assert F.gated_d_ff(768) == 2048 and F.gated_d_ff(576) == 1536 and F.gated_d_ff(8) == 21


@given(SIZES, SIZES)
def test_rounding(n, multiple):
    up = F.round_up(n, multiple)
    assert up % multiple == 0 and n <= up < n + multiple
    exact = Fraction(8, 3) * n
    assert F.gated_d_ff(n) == int(exact) or F.gated_d_ff(n, 1) == int(exact)
    assert F.llama_d_ff(n, multiple) == F.gated_d_ff(n, multiple)


@given(st.integers(1, 40), st.integers(1, 40), st.booleans(), st.booleans())
def test_parameters_are_what_the_arrays_hold(d_model, d_ff, gated, bias):
    kind = F.GatedFeedForward if gated else F.FeedForward
    assert F.ffn_parameters(d_model, d_ff, gated, bias) == kind.random(d_model, d_ff, bias=bias).n_parameters


def test_published_totals_add_up():
    d, layers = 768, 12  # GPT-2 small: vocabulary 50257, 1024 positions, LayerNorms with gain and bias
    block = F.attention_parameters(d, 12, bias=True) + F.ffn_parameters(d, 3072, bias=True) + 4 * d
    assert (50257 + 1024) * d + layers * block + 2 * d == 124_439_808
    d = 4096  # Llama-2-7B: vocabulary 32000 in and out, RMSNorm gains, no biases
    block = F.attention_parameters(d, 32) + F.ffn_parameters(d, F.llama_d_ff(d), gated=True) + 2 * d
    assert 2 * 32000 * d + 32 * block + d == 6_738_415_616
    ratio = F.ffn_parameters(4096, 14336, gated=True) / F.attention_parameters(4096, 32, 8)
    assert ratio == pytest.approx(4.2)  # Llama-3-8B, grouped-query attention


def test_attention_parameters_are_what_the_arrays_hold():
    d, heads, kv = 24, 6, 2
    matrices = [np.empty((d, d)), np.empty((d, d // heads * kv)), np.empty((d, d // heads * kv)), np.empty((d, d))]
    assert F.attention_parameters(d, heads, kv) == sum(m.size for m in matrices)
    assert F.attention_parameters(d, heads, kv, bias=True) == sum(m.size + m.shape[1] for m in matrices)


@given(st.integers(1, 5000), st.integers(1, 5000), SIZES)
def test_flops(T, d, d_ff):
    plain = T * (2 * d * d_ff + 2 * d_ff * d)  # one multiply and one add for each weight and token
    assert F.ffn_flops(T, d, d_ff) == plain and F.ffn_flops(T, d, d_ff, gated=True) * 2 == 3 * plain
    scores_and_mixing = 2 * (2 * T * T * d)
    assert F.attention_flops(T, d) == 4 * T * 2 * d * d + scores_and_mixing
    assert F.attention_flops(T, d, causal=True) == 4 * T * 2 * d * d + scores_and_mixing // 2
    assert F.ffn_flops(2 * d, d, 4 * d) == F.attention_flops(2 * d, d)
    assert F.ffn_flops(4 * d, d, 4 * d) == F.attention_flops(4 * d, d, causal=True)


CALLS = [
    (F.round_up, ("n", "multiple_of")), (F.gated_d_ff, ("d_model", "multiple_of")),
    (F.llama_d_ff, ("d_model", "multiple_of")), (F.minimind_d_ff, ("d_model",)),
    (F.ffn_parameters, ("d_model", "d_ff")), (F.attention_parameters, ("d_model", "n_heads", "n_kv_heads")),
    (F.ffn_flops, ("n_tokens", "d_model", "d_ff")), (F.attention_flops, ("n_tokens", "d_model")),
]


@pytest.mark.parametrize("bad, error, came", [
    (0, ValueError, "0"), (-4, ValueError, "-4"), (8.5, TypeError, "8.5"), (8.0, TypeError, "8.0"),
    ("8", TypeError, "'8'"), (True, TypeError, "True"), ([8], TypeError, "[8]"),
    ("8" * 99, TypeError, f"'{'8' * 56}..."),
    pytest.param(-10**5000, ValueError, "an object of type int", id="huge"),
])
@pytest.mark.parametrize("function, names", CALLS)
def test_sizes_must_be_positive_integers(function, names, bad, error, came):
    for name in names:
        assert_error(lambda name=name: function(**{n: bad if n == name else 1 for n in names}), error,
                     f"{name} must be a positive integer, got {came}")
    assert function(*[np.int64(1)] * len(names)) == function(*[1] * len(names))


LEAVES = ("ffn_dim_multiplier must be a positive finite number that leaves a d_ff of at least 1 for d_model = 64, "
          "got")


@pytest.mark.parametrize("bad, error, says", [
    (0, ValueError, f"{LEAVES} 0"), (-1.3, ValueError, f"{LEAVES} -1.3"), (float("nan"), ValueError, f"{LEAVES} nan"),
    (float("inf"), ValueError, f"{LEAVES} inf"), (1e-9, ValueError, f"{LEAVES} 1e-09"),
    pytest.param(10**5000, ValueError, f"{LEAVES} an object of type int", id="huge"),
    ("1.3", TypeError, "ffn_dim_multiplier must be a positive number, got '1.3'"),
    (None, TypeError, "ffn_dim_multiplier must be a positive number, got None"),
    (True, TypeError, "ffn_dim_multiplier must be a positive number, got True"),
])
def test_bad_multiplier(bad, error, says):
    assert_error(lambda: F.llama_d_ff(64, ffn_dim_multiplier=bad), error, says)


def test_heads_must_divide():
    assert_error(lambda: F.attention_parameters(8, 3), ValueError, "n_heads must divide d_model = 8, got 3")
    assert_error(lambda: F.attention_parameters(8, 4, 3), ValueError, "n_kv_heads must divide n_heads = 4, got 3")
    assert_error(lambda: F.attention_parameters(8, 10**5000), ValueError,
                 "n_heads must divide d_model = 8, got an object of type int")
