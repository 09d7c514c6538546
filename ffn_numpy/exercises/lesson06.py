"""Lesson 06, size and cost: KV cache, rounding up, an FFN on n devices, a block with grouped keys and values."""
import numpy as np

from . import Exercise


def _cache_inputs(c):
    layers, heads, d_head = int(c.rng.integers(3, 40)), int(c.rng.integers(3, 12)), 8 * int(c.rng.integers(5, 20))
    n_bytes = (2, 4, 2, 4, 1, 2)[c.i]
    token = 2 * layers * heads * d_head * n_bytes                               # bytes of one token
    rest = (token // 4, 3 * token // 4, 0)[c.i % 3]                             # less, more than half, nothing
    return int(c.rng.integers(100, 5000)) * token + rest, layers, heads, d_head, n_bytes


def _multiple_inputs(c):
    m = (64, 160, 1024, 96, 128, 4096)[c.i]                                     # two are no powers of 2
    missing = (m // 4, 3 * m // 4, 0)[c.i % 3]                                  # less, more than half, nothing
    return m * (2 * int(c.rng.integers(1, 10)) + 1) - missing, m                # the result is no multiple of 2 m


def _part_inputs(c):
    n, k = ((2, 1), (3, 0), (2, 1), (2, 1), (4, 2), (3, 2))[c.i]
    f = 4 if c.i == 3 else n * int(c.rng.integers(2, 5))
    return c.normal(c.d, 2 * f), c.normal(f, c.d), k, n                         # W_fused, W_down, k, n


def _block_inputs(c):
    n_kv_heads = int(c.rng.integers(1, 5))
    n_heads = n_kv_heads * (2, 3, 4)[c.i % 3]
    d_model = n_heads * 8 * c.d
    return d_model, 3 * d_model + c.f, n_heads, n_kv_heads


def _block(d, f, q=1.0, k=1.0, v=1.0, o=1.0, matrices=3):
    return round((q + k + v + o) * d * d + matrices * d * f)


def _part(fused, down, k, n, gate=None, up=None, write=None):
    """Device k's (W_gate, W_up, W_down); each mistake replaces one of the three."""
    f = len(down)
    mine = slice(k * (f // n), (k + 1) * (f // n))
    own = fused[:, :f][:, mine], fused[:, f:][:, mine], down[mine]
    return tuple(p if other is None else other for p, other in zip(own, (gate, up, write)))


def _straight(fused, down, k, n):
    piece = np.split(fused, n, axis=1)[k]
    return _part(fused, down, k, n, *np.split(piece, 2, axis=1))


def _alternate(fused, down, k, n):
    w = len(down) // n
    return _part(fused, down, k, n, fused[:, ::2][:, k * w:(k + 1) * w], fused[:, 1::2][:, k * w:(k + 1) * w])


EXERCISES = {
    "6.1": Exercise(
        1, "tokens_that_fit(free, n_layers, n_heads, d_head, n_bytes)",
        lambda free, L, h, d, b: free // (2 * L * h * d * b), _cache_inputs, {
            "A factor 2 is missing: a token keeps a key *and* a value.":
                lambda free, L, h, d, b: free // (L * h * d * b),
            "That counts numbers, not bytes: n_bytes is not used.": lambda free, L, h, d, b: free // (2 * L * h * d),
            "The 2 for key and value and n_bytes are both missing.": lambda free, L, h, d, b: free // (L * h * d),
            "That is the cache of one layer: each of the n_layers keeps its own.":
                lambda free, L, h, d, b: free // (2 * h * d * b),
            "That is one head: each of the n_heads keeps a key and a value.":
                lambda free, L, h, d, b: free // (2 * L * d * b),
            "A key has d_head numbers in each head: d_head is not used.":
                lambda free, L, h, d, b: free // (2 * L * h * b),
            "n_bytes is fixed: 2 bytes is only one of the formats.": lambda free, L, h, d, b: free // (4 * L * h * d),
            "n_bytes is taken as bits: it is bytes already.": lambda free, L, h, d, b: 8 * free // (2 * L * h * d * b),
            "Rounded up: the last token does not fit.": lambda free, L, h, d, b: -(-free // (2 * L * h * d * b)),
            "Rounded to the nearest: half a token does not fit.":
                lambda free, L, h, d, b: round(free / (2 * L * h * d * b)),
            "Not rounded: the number of tokens is a whole number, rounded down.":
                lambda free, L, h, d, b: free / (2 * L * h * d * b),
            "That is the bytes of one token: how often do they go into free?":
                lambda free, L, h, d, b: 2 * L * h * d * b,
            "Brackets: free // a * b divides by a only and multiplies by b.": (
                lambda free, L, h, d, b: free // 2 * L * h * d * b, lambda free, L, h, d, b: free / 2 * L * h * d * b),
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
        2, "device_part(W_fused, W_down, k, n)", _part, _part_inputs, {
            "W_fused is cut straight into n pieces: then some devices get only gates, others only ups. Take gate and "
            "up apart first.": _straight,
            "Gate and up are swapped: the gate is the first half of W_fused.":
                lambda F, D, k, n: (lambda g, u, d: (u, g, d))(*_part(F, D, k, n)),
            "The columns of gate and up are taken alternately: here all gates come first, then all ups.": _alternate,
            "W_down is cut by columns: row j belongs to unit j, so cut its rows.":
                lambda F, D, k, n: _part(F, D, k, n, write=np.array_split(D, n, axis=1)[k]),
            "W_down is not cut: device k keeps the rows of its own units.":
                lambda F, D, k, n: _part(F, D, k, n, write=D),
            "W_up is not cut: each device has the same units in gate and up.":
                lambda F, D, k, n: _part(F, D, k, n, up=F[:, len(D):]),
            "W_gate is not cut: each device has the same units in gate and up.":
                lambda F, D, k, n: _part(F, D, k, n, gate=F[:, :len(D)]),
            "Gate and up hold other units than the rows of W_down, which are those of device 0.":
                lambda F, D, k, n: _part(F, D, k, n, write=D[:len(D) // n]),
            "Every device gets the units of device 0: k is not used.": lambda F, D, k, n: _part(F, D, 0, n),
            "k counts from 0: device 0 has the first units.": lambda F, D, k, n: _part(F, D, k - 1, n),
            "Every n-th unit was taken: that split works, but device k shall have units that follow each other.":
                lambda F, D, k, n: (F[:, :len(D)][:, k::n], F[:, len(D):][:, k::n], D[k::n]),
            "Gate and up are cut by rows: their columns ask, one for each unit.":
                lambda F, D, k, n: _part(F, D, k, n, np.array_split(F[:, :len(D)], n)[k],
                                         np.array_split(F[:, len(D):], n)[k]),
            "The units are not divided by n: device k has d_ff / n of them.": lambda F, D, k, n: _part(F, D, 0, 1),
        }, returns=("W_gate", "W_up", "W_down")),
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
