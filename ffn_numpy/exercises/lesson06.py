"""Lesson 06, size and cost: widths, rounding up, FLOPs, parameters of a block with grouped keys and values."""
from . import Exercise


def _width_inputs(c):
    return (3 * int(c.rng.integers(50, 2000)) + c.i % 3,)                       # 8/3 of it: whole, above, below .5


def _multiple_inputs(c):
    m = (64, 256, 1024, 96, 128, 4096)[c.i]
    missing = (m // 4, 3 * m // 4, 0)[c.i % 3]                                  # less, more than half, nothing
    return m * (2 * int(c.rng.integers(1, 10)) + 1) - missing, m                # the result is no multiple of 2 m


def _flops_inputs(c):
    return int(c.rng.integers(2, 2000)), int(c.rng.integers(8, 1000))           # T, d_model


def _block_inputs(c):
    n_kv_heads = int(c.rng.integers(1, 5))
    n_heads = n_kv_heads * (2, 3, 4)[c.i % 3]
    d_model = n_heads * 8 * c.d
    return d_model, 3 * d_model + c.f, n_heads, n_kv_heads


def _block(d, f, q=1.0, k=1.0, v=1.0, o=1.0, matrices=3):
    return round((q + k + v + o) * d * d + matrices * d * f)


EXERCISES = {
    "6.1": Exercise(
        1, "gated_width(d_model)", lambda d: 8 * d // 3, _width_inputs, {
            "8 // 3 is 2: multiply first, divide last.": lambda d: 8 // 3 * d,
            "Rounded too early: multiply first, divide once at the end.": (
                lambda d: 4 * d // 3 * 2, lambda d: d // 3 * 8, lambda d: 4 * (2 * d // 3)),
            "That is 2/3 of d_model: the plain width is 4 d_model, and 2/3 of it is 8/3 d_model.": lambda d: 2 * d // 3,
            "Rounded up: the width must not give more weights.": lambda d: -(-8 * d // 3),
            "Rounded to the nearest: the width must not give more weights, so round down.": lambda d: round(8 * d / 3),
            "That is 4 d_model, the plain width: with a third matrix, take 2/3 of it.": lambda d: 4 * d,
            "4 d_model / 3: a gated FFN has 3 matrices instead of 2, so its width is 2/3 of 4 d_model.":
                lambda d: 4 * d // 3,
            "That is 2/3 of d_model, and not rounded: the plain width is 4 d_model.": lambda d: 2 / 3 * d,
            "3/8 instead of 8/3.": lambda d: 3 * d // 8,
            "3/2 instead of 2/3: a third matrix means a smaller width.": lambda d: 6 * d,
            "Not rounded: a width is a whole number.": lambda d: 8 * d / 3,
        }),
    "6.2": Exercise(
        2, "round_up(n, multiple_of)", lambda n, m: -(-n // m) * m, _multiple_inputs, {
            "A number that is a multiple already was raised to the next one: it should stay.":
                lambda n, m: (n // m + 1) * m,
            "Rounded down: the next multiple *above* is asked for.": lambda n, m: n // m * m,
            "Rounded to the nearest multiple: always up is asked for.": lambda n, m: (n + m // 2) // m * m,
            "The number of multiples came back: multiply it by multiple_of.": lambda n, m: -(-n // m),
            "The remainder n % multiple_of was added: "
            "the distance to the next multiple is multiple_of - n % multiple_of.":
                lambda n, m: n + n % m,
            "multiple_of is not used: 64 is only one of the rules.": lambda n, m: -(-n // 64) * 64,
            "multiple_of is not used: 256 is only one of the rules.": lambda n, m: -(-n // 256) * 256,
        }),
    "6.3": Exercise(
        2, "attention_flops(T, d_model)", lambda T, d: 8 * T * d * d + 4 * T * T * d, _flops_inputs, {
            "Half of it: one multiply-add counts as 2 FLOPs.": lambda T, d: 4 * T * d * d + 2 * T * T * d,
            "Half of 4 T² d is missing: scores and mixing (weights @ values) cost 2 T² d each. (A causal count halves "
            "them; here every token looks at all T.)": (
                lambda T, d: 8 * T * d * d + 2 * T * T * d, lambda T, d: 8 * T * d * d + 2 * T * (T + 1) * d),
            "^ is not a power in Python: d_model ** 2, T ** 2.": (
                lambda T, d: 8 * T * (d ^ 2) + 4 * (T ^ 2) * d, lambda T, d: 8 * T * d ^ 2 + 4 * T ^ 2 * d,
                lambda T, d: (8 * T * d ^ 2) + (4 * T ^ 2 * d)),
            "The scores and the mixing are missing: 4 T² d more.": lambda T, d: 8 * T * d * d,
            "The projections are missing: four matrices, 8 T d² more.": lambda T, d: 4 * T * T * d,
            "The output projection is missing: there are four matrices, q, k, v and o.":
                lambda T, d: 6 * T * d * d + 4 * T * T * d,
            "The projections are counted for one token: multiply them by T.": lambda T, d: 8 * d * d + 4 * T * T * d,
            "That is the count for one token: all T of them do it.": lambda T, d: 8 * d * d + 4 * T * d,
            "The projections are counted as one matrix: there are four, q, k, v and o.":
                lambda T, d: 2 * T * d * d + 4 * T * T * d,
            "In the projections a multiply-add counts as 1: "
            "it counts as 2.": lambda T, d: 4 * T * d * d + 4 * T * T * d,
            "Scores and mixing are counted for one token: each of the T tokens does it, T² in all.":
                lambda T, d: 8 * T * d * d + 4 * T * d,
            "That is the parameter count, 4 d²: computation grows with T.": lambda T, d: 4 * d * d,
            "Scores and mixing have the roles of T and d_model swapped: 4 T² d, not 4 T d².":
                lambda T, d: 8 * T * d * d + 4 * T * d * d,
        }),
    "6.4": Exercise(
        3, "repaired_block_parameters(d_model, d_ff, n_heads, n_kv_heads)",
        lambda d, f, h, kv: _block(d, f, k=kv / h, v=kv / h), _block_inputs, {
            "Still as broken: both errors are there. "
            "Hint 1 says where to look for one of them.": lambda d, f, h, kv: _block(d, f, matrices=2),
            "The attention is right now; the gated FFN has three matrices: gate, up, down.":
                lambda d, f, h, kv: _block(d, f, k=kv / h, v=kv / h, matrices=2),
            "The FFN is right now; in the attention, W_k and W_v have only n_kv_heads heads.":
                lambda d, f, h, kv: _block(d, f),
            "Only W_k is smaller in your count: W_v has n_kv_heads heads as well.":
                lambda d, f, h, kv: _block(d, f, k=kv / h),
            "All four attention matrices are made smaller: W_q and W_o keep all heads.":
                lambda d, f, h, kv: _block(d, f, kv / h, kv / h, kv / h, kv / h),
            "W_q is made smaller too: it keeps all heads, as W_o does.":
                lambda d, f, h, kv: _block(d, f, kv / h, kv / h, kv / h),
            "The ratio is upside down: n_kv_heads / n_heads is smaller than 1.":
                lambda d, f, h, kv: _block(d, f, k=h / kv, v=h / kv),
            "One matrix for keys and values together: there are two, W_k and W_v.":
                lambda d, f, h, kv: _block(d, f, k=kv / h, v=0),
            "W_k and W_v map d_model numbers to n_kv_heads heads: their first side is still d_model.":
                lambda d, f, h, kv: _block(d, f, k=(kv / h) ** 2, v=(kv / h) ** 2),
            "W_k and W_v vanish: n_kv_heads // n_heads is 0. Multiply first.":
                lambda d, f, h, kv: _block(d, f, k=0, v=0),
            "The ratio 4 belongs to Llama-3-8B: use n_heads and n_kv_heads.":
                lambda d, f, h, kv: _block(d, f, k=1 / 4, v=1 / 4),
            "W_k and W_v are counted with n_kv_heads columns: each head has d_model / n_heads of them.": (
                lambda d, f, h, kv: _block(d, f, k=0, v=0) + 2 * d * kv,
                lambda d, f, h, kv: _block(d, f, k=0, v=0) + d * kv),
            "W_k and W_v are counted with one head: they have n_kv_heads.":
                lambda d, f, h, kv: _block(d, f, k=1 / h, v=1 / h),
            "The output matrix W_o is missing.": lambda d, f, h, kv: _block(d, f, k=kv / h, v=kv / h, o=0),
        }),
}
