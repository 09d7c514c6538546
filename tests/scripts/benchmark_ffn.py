"""Time and peak memory of a forward pass, in one run:  python tests/scripts/benchmark_ffn.py

Every figure is a ratio of medians of interleaved runs, so that a machine that slows down slows both.
"bare" is the matrix products alone (same arrays, no bias, no activation); "naive" the formula as usually
written, float64 scalars, cubes by `**` and all. PyTorch is compared if it is installed.
"""
import statistics
import subprocess
import sys
import time
import tracemalloc

import numpy as np

from ffn_numpy import FeedForward, GatedFeedForward

BOUNDS = {"relu": 1.12, "gelu": 1.50, "gelu_tanh": 1.25, "silu (SwiGLU)": 1.15}


def medians(functions, x, repeat, number=1):
    """Median seconds of each function of x, run in turn `repeat` times (`number` calls each)."""
    times = [[] for _ in functions]
    for _ in range(repeat):
        for seconds, function in zip(times, functions):
            start = time.perf_counter()
            for _ in range(number):
                function(x)
            seconds.append((time.perf_counter() - start) / number)
    return [statistics.median(t) for t in times]


def naive_act(name, h):
    """The activation as tutorials write it."""
    if name == "relu":
        return np.maximum(h, 0)
    if name.startswith("silu"):
        return h * (1 / (1 + np.exp(-h)))
    return 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))


def cases(d_model, d_ff, gated_d_ff, dtype):
    """Name -> (ffn, its matrix products alone, the naive expression), each a function of x."""
    for name in ("relu", "gelu", "gelu_tanh"):
        f = FeedForward.random(d_model, d_ff, name, dtype=dtype)
        yield (name, f, lambda x, f=f: (x @ f.W1) @ f.W2,
               lambda x, f=f, name=name: naive_act(name, x @ f.W1 + f.b1) @ f.W2 + f.b2)
    g = GatedFeedForward.random(d_model, gated_d_ff, dtype=dtype)
    yield ("silu (SwiGLU)", g, lambda x: (x @ g.W_gate, (x @ g.W_up) @ g.W_down),
           lambda x: (naive_act("silu", x @ g.W_gate) * (x @ g.W_up)) @ g.W_down)


def torch_forward(name, ffn):
    """The same forward in PyTorch as a function of an array, or None without it."""
    try:
        import torch
        from torch.nn import functional as F
    except ImportError:
        return None
    P = {n: torch.from_numpy(np.ascontiguousarray(p)) for n, p in ffn.parameters().items()}
    act = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda h: F.gelu(h, approximate="tanh")}.get(name)

    def forward(x):
        x = torch.from_numpy(x)  # shares the memory
        if "W_gate" in P:
            return (F.silu(x @ P["W_gate"]) * (x @ P["W_up"])) @ P["W_down"]
        return act(x @ P["W1"] + P["b1"]) @ P["W2"] + P["b2"]
    return forward


def peak_hidden_arrays(ffn, x):
    """Peak memory of a forward, in hidden-size arrays, after input and output are taken off."""
    ffn(x)
    tracemalloc.start()
    y = ffn(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - y.nbytes) / (x.shape[0] * ffn.d_ff * x.itemsize)


def main():
    rng = np.random.default_rng(0)
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}\n")
    print("BERT-base size: 512 tokens, 768 -> 3072 plain, 768 -> 2048 gated, float32")
    columns = ("bare ms", "ours/bare", "bound", "naive/bare", "torch/bare", "hidden arrays")
    print(" " * 14 + "".join(f"{c:>15}" for c in columns))
    x = rng.standard_normal((512, 768)).astype(np.float32)
    for name, ffn, bare, naive in cases(768, 3072, 2048, np.float32):
        torch_run = torch_forward(name, ffn)
        t = medians([bare, ffn, naive] + ([torch_run] if torch_run else []), x, repeat=31)
        torch_ratio = f"{t[3] / t[0]:.2f}" if torch_run else "-"
        print(f"{name:14}{1e3 * t[0]:15.1f}{t[1] / t[0]:15.2f}{BOUNDS[name]:15.2f}{t[2] / t[0]:15.2f}{torch_ratio:>15}"
              f"{peak_hidden_arrays(ffn, x):15.1f}")
    print("\nRunning example: 7 x 8 -> 32 (21), float64; bound: ours/naive 4.00")
    x = rng.standard_normal((7, 8))
    for name, ffn, bare, naive in cases(8, 32, 21, np.float64):
        t = medians([bare, ffn, naive], x, repeat=31, number=300)
        print(f"{name:14}ours {1e6 * t[1]:5.1f} us   ours/naive {t[1] / t[2]:5.2f}   "
              f"ours/bare products {t[1] / t[0]:5.2f}")

    def importing(module):
        return lambda _: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    t = medians([importing("numpy"), importing("ffn_numpy")], None, repeat=9)
    print(f"\nimport ffn_numpy / import numpy (whole processes): {t[1] / t[0]:.2f}, bound 1.20")


if __name__ == "__main__":
    main()
