"""How wide, how many parameters, how many FLOPs: plain integer arithmetic, no arrays."""
from __future__ import annotations

import math
from numbers import Real

from ._validate import positive_int, short


def round_up(n: int, multiple_of: int) -> int:
    """The smallest multiple of `multiple_of` that is at least n. Both are positive integers.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive integer.

    >>> round_up(10922, 256)
    11008
    """
    n, multiple_of = positive_int("n", n), positive_int("multiple_of", multiple_of)
    return -(-n // multiple_of) * multiple_of


def gated_d_ff(d_model: int, multiple_of: int = 1) -> int:
    """d_ff that gives a gated FFN the parameters of a plain one with 4 d_model: int(8 d_model / 3), rounded up.

    Source: Shazeer 2020 (arXiv:2002.05202), section 2: three matrices instead of two, so 2/3 of the width.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive integer.

    >>> gated_d_ff(8), gated_d_ff(768)
    (21, 2048)
    """
    d_model = positive_int("d_model", d_model)
    return round_up(8 * d_model // 3, multiple_of)


def llama_d_ff(d_model: int, multiple_of: int = 256, ffn_dim_multiplier: float = 1.0) -> int:
    """d_ff of Llama: int(ffn_dim_multiplier * int(2 * 4 d_model / 3)), rounded up to `multiple_of`.

    Source: Touvron et al. 2023 (arXiv:2302.13971) and the `llama` reference code, class FeedForward.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive integer, or the multiplier not a positive finite number.

    >>> llama_d_ff(4096), llama_d_ff(4096, multiple_of=1024, ffn_dim_multiplier=1.3)
    (11008, 14336)
    """
    d_model = positive_int("d_model", d_model)
    if isinstance(ffn_dim_multiplier, bool) or not isinstance(ffn_dim_multiplier, Real):
        raise TypeError(f"ffn_dim_multiplier must be a positive number, got {short(ffn_dim_multiplier)}")
    try:
        width = float(ffn_dim_multiplier) * (8 * d_model // 3)
    except OverflowError:
        width = math.inf
    if not (ffn_dim_multiplier > 0 and 1 <= width < math.inf):
        raise ValueError(f"ffn_dim_multiplier must be a positive finite number that leaves a d_ff of at least 1 "
                         f"for d_model = {short(d_model)}, got {short(ffn_dim_multiplier)}")
    return round_up(int(width), multiple_of)


def minimind_d_ff(d_model: int) -> int:
    """d_ff of MiniMind: int(8 d_model / 3), rounded up to a multiple of 64.

    Source: github.com/jingyaogong/minimind, model/model_minimind.py, class FeedForward, up to March 2026. From
    minimind-3 on (commit 101d7df), the width is pi d_model, rounded up to a multiple of 64.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive integer.

    >>> minimind_d_ff(512), minimind_d_ff(4096)
    (1408, 10944)
    """
    return gated_d_ff(d_model, multiple_of=64)


def ffn_parameters(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    """Parameters of one FFN: 2 d_model d_ff plain, 3 d_model d_ff gated, plus the biases.

    Source: the matrices of Vaswani et al. 2017 (arXiv:1706.03762), equation 2, and Shazeer 2020 (arXiv:2002.05202),
    equation 6, counted.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive integer.

    >>> ffn_parameters(8, 32, bias=True), ffn_parameters(8, 21, gated=True)
    (552, 504)
    """
    d_model, d_ff = positive_int("d_model", d_model), positive_int("d_ff", d_ff)
    lifts = 2 if gated else 1
    return (lifts + 1) * d_model * d_ff + (lifts * d_ff + d_model if bias else 0)


def attention_parameters(d_model: int, n_heads: int = 1, n_kv_heads: int | None = None, bias: bool = False) -> int:
    """Parameters of W_q, W_k, W_v, W_o: 4 d_model^2, less where heads share keys and values.

    n_kv_heads None means n_heads (multi-head attention); fewer is grouped-query attention
    (Ainslie et al. 2023, arXiv:2305.13245). The head size is d_model / n_heads.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive integer, n_heads does not divide d_model, or n_kv_heads n_heads.

    >>> attention_parameters(768, n_heads=12, bias=True)
    2362368
    """
    d_model, n_heads = positive_int("d_model", d_model), positive_int("n_heads", n_heads)
    n_kv_heads = n_heads if n_kv_heads is None else positive_int("n_kv_heads", n_kv_heads)
    if d_model % n_heads:
        raise ValueError(f"n_heads must divide d_model = {short(d_model)}, got {short(n_heads)}")
    if n_heads % n_kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads = {short(n_heads)}, got {short(n_kv_heads)}")
    d_kv = d_model // n_heads * n_kv_heads
    return 2 * d_model * (d_model + d_kv) + (2 * (d_model + d_kv) if bias else 0)


def ffn_flops(n_tokens: int, d_model: int, d_ff: int, gated: bool = False) -> int:
    """Floating-point operations of one FFN's matrix products, 2 per multiply-add.

    Biases, activation and gate are left out: per token they grow with d_ff, the products with d_model d_ff.
    Source of this way of counting: Narayanan et al. 2021 (arXiv:2104.04473), appendix.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive integer.

    >>> ffn_flops(1, 8, 32)
    1024
    """
    return 2 * positive_int("n_tokens", n_tokens) * ffn_parameters(d_model, d_ff, gated)


def attention_flops(n_tokens: int, d_model: int, causal: bool = False) -> int:
    """FLOPs of one attention: projections 8 T d^2, scores and mixing 4 T^2 d (half of it if causal).

    The number of heads makes no difference; softmax is left out. Source of this way of counting: Narayanan et
    al. 2021 (arXiv:2104.04473), appendix.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive integer.

    >>> attention_flops(16, 8) == ffn_flops(16, 8, 32)  # equal at T = 2 d_model when d_ff = 4 d_model
    True
    """
    n_tokens, d_model = positive_int("n_tokens", n_tokens), positive_int("d_model", d_model)
    return 8 * n_tokens * d_model**2 + (2 if causal else 4) * n_tokens**2 * d_model
