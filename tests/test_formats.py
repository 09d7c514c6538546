"""safetensors, shards and GGUF against their own libraries; files that are something else; headers not trusted."""
import json
import zipfile

import numpy as np
import pytest

import ffn_numpy as F
from ffn_numpy.formats import TensorFile

R = np.random.default_rng(0)
LIFT, DOWN = R.normal(size=(6, 10)), R.normal(size=(10, 6))


def write_safetensors(path, tensors):
    """The format written by hand: length, JSON header, numbers."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, array) in tensors.items():
        raw = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def from_bits(bits):
    """bfloat16 -> float32, number by number."""
    return np.array([np.frombuffer(bytes([0, 0, b & 255, b >> 8]), "<f4")[0] for b in bits.ravel().tolist()],
                    np.float32).reshape(bits.shape)


def test_read_safetensors_equals_the_library(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    tensors = {"a": LIFT, "b.weight": LIFT.astype(np.float32), "c": DOWN.astype(np.float16), "i": np.arange(3),
               "empty": np.empty((0, 3), np.float32), "scalar": np.array(2.0), "u": np.arange(5, dtype=np.uint8)}
    library.save_file(tensors, tmp_path / "m.safetensors", metadata={"format": "np"})
    ours = F.read_safetensors(str(tmp_path / "m.safetensors"))
    assert set(ours) == set(tensors) and len(ours) == 7 and "a" in ours and "z" not in ours
    assert ours.shapes == {name: array.shape for name, array in tensors.items()}
    for name, expected in library.load_file(tmp_path / "m.safetensors").items():
        assert ours[name].dtype == expected.dtype
        np.testing.assert_array_equal(ours[name], expected)
    with pytest.raises(ValueError, match="read-only"):
        ours["a"][0] = 1
    with pytest.raises(KeyError):
        ours["z"]
    assert repr(ours).startswith("TensorFile of 7 tensors: ") and repr(ours).endswith(", ...")


def test_bfloat16_opens_and_unknown_dtypes_wait_until_asked_for(tmp_path):
    bits = {name: (W.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            for name, W in {"m.fc1.weight": LIFT.T.copy(), "m.fc2.weight": DOWN.T.copy()}.items()}
    write_safetensors(tmp_path / "m.safetensors", {"head.weight": ("F8_E4M3", np.ones((3, 3), np.uint8)),
                                                   **{name: ("BF16", b) for name, b in bits.items()}})
    tensors = F.read_safetensors(tmp_path / "m.safetensors")
    for name, b in bits.items():
        np.testing.assert_array_equal(tensors[name], from_bits(b))
    assert F.from_state_dict(tensors, "m", "relu").W1.dtype == np.float32
    assert [record.prefix for record in F.find_ffns(tensors)] == ["m."]
    with pytest.raises(ValueError) as error:
        tensors["head.weight"]
    assert str(error.value) == (f"head.weight in {tmp_path / 'm.safetensors'} is stored as 'F8_E4M3', which NumPy does "
                                "not have; known are F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL")


def test_opening_a_file_reads_no_tensor(tmp_path):
    path = tmp_path / "m.safetensors"
    write_safetensors(path, {"a": ("BF16", np.zeros(10, np.uint16))})
    tensors = F.read_safetensors(path)
    with open(path, "r+b") as f:  # what is read later is what stands in the file then
        f.seek(-2, 2)
        f.write(b"\x80\x3f")
    assert tensors["a"][-1] == 1.0 and F.find_ffns(tensors) == []


def test_prefix(tmp_path):
    tensors = {f"model.layers.{i}.mlp.{n}.weight": ("F32", np.ones(2, np.float32))
               for i in range(3) for n in ("fc1", "fc2")}
    write_safetensors(tmp_path / "f", tensors)
    assert list(F.read_safetensors(tmp_path / "f", "model.layers.2.")) == list(tensors)[4:]
    for prefix, there in (("layers.1.mlp.", "model.layers.1.mlp., ..."),
                          ("no", "model.layers.0.mlp.fc1.weight, model.layers.0.mlp.fc2.weight, "
                                 "model.layers.1.mlp.fc1.weight, ...")):
        with pytest.raises(ValueError) as error:
            F.read_safetensors(tmp_path / "f", prefix)
        assert str(error.value) == (f"prefix must be the start of a name in {tmp_path / 'f'}, got '{prefix}'; "
                                    f"there is {there}")


# ---------------------------------------------------------------- shards

def shards(folder, missing=()):
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    parts = {first: {"l.0.fc1.weight": LIFT.T, "l.0.fc2.weight": DOWN.T, "l.1.fc1.weight": LIFT.T},
             second: {"l.1.fc2.weight": DOWN.T}}
    for file, tensors in parts.items():
        if file not in missing:
            write_safetensors(folder / file, {n: ("F64", np.ascontiguousarray(t)) for n, t in tensors.items()})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": {n: f for f, ts in parts.items() for n in ts}}))
    return index


def test_a_sharded_model_opens_by_its_index(tmp_path):
    tensors = F.read_safetensors(shards(tmp_path))
    assert [record.prefix for record in F.find_ffns(tensors)] == ["l.0.", "l.1."]  # the second lies in both files
    x = R.normal(size=(3, 6))
    np.testing.assert_allclose(F.from_state_dict(tensors, "l.1", "relu")(x), np.maximum(x @ LIFT, 0) @ DOWN)


def test_only_the_shards_that_are_needed_have_to_be_there(tmp_path):
    index = shards(tmp_path, missing=("model-00002-of-00002.safetensors",))
    assert F.from_state_dict(F.read_safetensors(index, "l.0."), "l.0", "relu").d_ff == 10
    with pytest.raises(FileNotFoundError) as error:
        F.read_safetensors(index, "l.1.")
    assert str(error.value) == (f"{tmp_path / 'model-00002-of-00002.safetensors'} is missing: "
                                "model.safetensors.index.json says that it holds l.1.fc2.weight")
    with pytest.raises(ValueError, match="^prefix must be the start of a name in .*, got 'x.'; there is l.0.fc1"):
        F.read_safetensors(index, "x.")


def test_an_index_is_not_trusted(tmp_path):
    index = shards(tmp_path)
    good = json.loads(index.read_text())["weight_map"]
    for content, says in [
        ("{}", 'is not the index of a sharded model: it has no "weight_map"'), ("[1]", "is not the index"),
        ("oops", "is not the index"), ({"weight_map": {"a": 3}}, "must name a file for every tensor"),
        ({"weight_map": {"a": "../f.safetensors"}}, "must name files in its own folder, got '../f.safetensors'"),
        ({"weight_map": {"a": ".."}}, "must name files in its own folder, got '..'"),
        ({"weight_map": good | {"l.2.fc1.weight": "model-00002-of-00002.safetensors"}},
         "does not hold l.2.fc1.weight, although model.safetensors.index.json says so"),
    ]:
        index.write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(ValueError) as error:
            F.read_safetensors(index)
        assert says in str(error.value)


# ---------------------------------------------------------------- files that are something else

def zipped(tmp_path, name, content=b"x"):
    with zipfile.ZipFile(tmp_path / "z", "w") as z:
        z.writestr(name, content)
    return (tmp_path / "z").read_bytes()


TORCH = ("it is a PyTorch file; read it in an environment with PyTorch, torch.load(path, map_location='cpu', "
         "weights_only=True), and pass that to from_state_dict")
BROKEN = "it begins with no such header; is it a file of another kind, or a download that was cut off?"


@pytest.mark.parametrize("content, says", [
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 42\n", "it is a Git-LFS pointer, the real "
     "file was not downloaded; run `git lfs pull` in its repository"),
    (b"GGUF\x03\x00\x00\x00" + bytes(100), "it is a GGUF file; open it with read_gguf"),
    (("archive/data.pkl",), TORCH), (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", TORCH),
    (("a.npy",), "it is a NumPy .npz file; open it with np.load, or with load if RealLayer.save wrote it"),
    (("readme.txt",), BROKEN), (b"\x80\x04\x95 a pickled dict", BROKEN), (b"\x1f\x8b gzip.........", BROKEN),
    (b"\x93NUMPY\x01\x00v\x00{'descr'", "it is a NumPy .npy file; open it with np.load"),
    (b"PK\x03\x04 the beginning of a zip....", "it is the beginning of a zip file, perhaps of a PyTorch one that was "
     "not downloaded whole"),
    (b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>", "it is a web page, an error or a login "
     "instead of the file; download it again"),
    (b"\n  <html>...............................", "it is a web page, an error or a login instead of the file; "
     "download it again"),
    (b'{"weight_map": {"a": "model.safetensors"}}', "it is a JSON text; a sharded model's index must keep its ending "
     ".json"),
    (b"\x89HDF\r\n\x1a\n" + bytes(50), "it is an HDF5 file (Keras, TensorFlow); read it with h5py and pass a dict of "
     "its arrays"),
    (b"", "it has 0 bytes"), (b"abc", "it has 3 bytes"),
    ((4).to_bytes(8, "little") + b"oops", BROKEN), ((4).to_bytes(8, "little") + b"null", BROKEN),
    ((3).to_bytes(8, "little") + b"[1]", BROKEN), ((90_000).to_bytes(8, "little") + b"[" * 90_000, BROKEN),
    ((5000).to_bytes(8, "little") + b'{"a": {"dtype"', BROKEN), (bytes(100), BROKEN),
])
def test_files_that_are_not_safetensors_are_told_what_they_are(tmp_path, content, says):
    (tmp_path / "f").write_bytes(zipped(tmp_path, *content) if isinstance(content, tuple) else content)
    with pytest.raises(ValueError) as error:
        F.read_safetensors(tmp_path / "f")
    assert str(error.value) == f"{tmp_path / 'f'} is not a whole .safetensors file: {says}"


def test_file_that_is_cut_off(tmp_path):
    write_safetensors(tmp_path / "f", {"a": ("F32", np.ones(100, np.float32))})
    (tmp_path / "f").write_bytes((tmp_path / "f").read_bytes()[:-40])
    with pytest.raises(ValueError, match="^a in .* ends at byte 400 of 360: the file is cut off$"):
        F.read_safetensors(tmp_path / "f")


@pytest.mark.parametrize("read, what", [(F.read_safetensors, ".safetensors"), (F.read_gguf, ".gguf")])
def test_bad_arguments(read, what, tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")
    for path in (1, True, None):  # a number is a file descriptor to `open`
        with pytest.raises(TypeError) as error:
            read(path)
        assert str(error.value) == f"path must be a path to a {what} file, got {path!r}"
    with pytest.raises(TypeError) as error:
        read(tmp_path / "f", prefix=3)
    assert str(error.value) == "prefix must be a string, got 3"


GOOD_ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


@pytest.mark.parametrize("entry, says", [
    (None, "has a broken header entry: None"), ([1], "has a broken header entry: [1]"),
    ({}, "has a broken header entry: {}"), *[(GOOD_ENTRY | change, "has a broken header entry: ") for change in (
        {"shape": [-1, 3]}, {"shape": None}, {"shape": [2.0, 3]}, {"data_offsets": [-24, 0]}, {"data_offsets": [24, 0]},
        {"data_offsets": [0]}, {"data_offsets": ["0", "24"]}, {"dtype": ["F32"]}, {"shape": "23"})],
    (GOOD_ENTRY | {"data_offsets": [0, 20]}, "has 20 bytes, which do not fit shape (2, 3) of F32"),
    (GOOD_ENTRY | {"dtype": "F16"}, "has 24 bytes, which do not fit shape (2, 3) of F16"),
])
def test_header_entries_are_not_trusted(tmp_path, entry, says):
    text = json.dumps({"a.weight": entry, "b": GOOD_ENTRY | {"data_offsets": [24, 48]}}).encode()
    (tmp_path / "f").write_bytes(len(text).to_bytes(8, "little") + text + bytes(48))
    with pytest.raises(ValueError) as error:
        F.read_safetensors(tmp_path / "f")
    assert str(error.value).startswith(f"a.weight in {tmp_path / 'f'} {says}")


def write_header(path, text, n_bytes):
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(n_bytes))


ENTRY = '{{"dtype": "F32", "shape": [2], "data_offsets": [{}, {}]}}'


@pytest.mark.parametrize("text, says", [
    (f'{{"x": {ENTRY.format(0, 8)}, "x": {ENTRY.format(8, 16)}}}', "is broken: its header names x twice"),
    (f'{{"x": {ENTRY.format(0, 8)}, "y": {ENTRY.format(0, 8)}}}', "is broken: x and y share numbers"),
    (f'{{"x": {ENTRY.format(4, 12)}, "y": {ENTRY.format(0, 8)}}}', "is broken: y and x share numbers"),
    (f'{{"x": {ENTRY.format(0, 8)}, "y": {ENTRY.format(12, 20)}}}',
     "is broken: x and y have numbers between them that belong to none"),
    (f'[["x", {ENTRY.format(0, 8)}]]', f"is not a whole .safetensors file: {BROKEN}"),
])
def test_headers_that_the_format_forbids(tmp_path, text, says):
    write_header(tmp_path / "f", text.encode(), 20)
    with pytest.raises(ValueError) as error:
        F.read_safetensors(tmp_path / "f")
    assert str(error.value) == f"{tmp_path / 'f'} {says}"
    write_header(tmp_path / "g", f'{{"x": {ENTRY.format(0, 8)}}}'.encode("utf-16"), 8)
    with pytest.raises(ValueError, match="g is not a whole .safetensors file: "):
        F.read_safetensors(tmp_path / "g")


def test_tensor_file_is_a_mapping_that_reads_when_asked():
    asked = []
    tensors = TensorFile({"a": (lambda: asked.append("a") or np.ones(2), (2,)), "b": (lambda: np.zeros(1), (1,))})
    assert "a" in tensors and list(tensors) == ["a", "b"] and len(tensors) == 2 and not asked
    assert tensors["a"].tolist() == [1, 1] and asked == ["a"] and tensors.get("c") is None
    assert repr(tensors) == "TensorFile of 2 tensors: a, b"


# ---------------------------------------------------------------- GGUF

def test_q4_1_by_hand():
    block = np.zeros(20, np.uint8)
    block[:2], block[2:4] = np.array([0.5], np.float16).view(np.uint8), np.array([-1.0], np.float16).view(np.uint8)
    block[4], block[19] = 0x2F, 0xA0  # weight 0: q = 15, weight 16: q = 2; weight 15: q = 0, weight 31: q = 10
    w = F.decode_q4_1(block, (4, 8))
    assert w.dtype == np.float32 and w.shape == (4, 8)
    flat = w.ravel().tolist()
    assert [flat[i] for i in (0, 16, 15, 31, 1)] == [6.5, 0.0, -1.0, 4.0, -1.0]


@pytest.mark.parametrize("blocks, shape, error, says", [
    ([0], (1, 32), TypeError, "blocks must be a uint8 array (n_bytes,), got [0]"),
    (None, (1, 32), TypeError, "blocks must be a uint8 array (n_bytes,), got None"),
    (np.zeros(2, np.int8), (1, 32), TypeError,
     "blocks must be a uint8 array (n_bytes,), got array([0, 0], dtype=int8)"),
    (np.zeros((1, 2), np.uint8), (1, 32), TypeError,
     "blocks must be a uint8 array (n_bytes,), got array([[0, 0]], dtype=uint8)"),
    (np.zeros(19, np.uint8), (1, 32), ValueError,
     "shape must be (out, in) with 32 weights per 20 bytes, that is 30 weights for 19 bytes; got (1, 32)"),
    *[(np.zeros(20, np.uint8), shape, ValueError,
       f"shape must be (out, in) with 32 weights per 20 bytes, that is 32 weights for 20 bytes; got {shape!r}")
      for shape in ((1, 64), -1, None, (-1, -32), (32,), (1.5, 32), (1, 4, 8), "ab", (True, 32), ([1], [2, 3]))],
    (np.zeros(0, np.uint8), (0, 0), ValueError,
     "shape must be (out, in) with 32 weights per 20 bytes, that is 0 weights for 0 bytes; got (0, 0)"),
])
def test_bad_q4_1(blocks, shape, error, says):
    with pytest.raises(error) as caught:
        F.decode_q4_1(blocks, shape)
    assert str(caught.value) == says


@pytest.fixture
def gguf_file(tmp_path):
    """A small GGUF file with one FFN in four formats, and the numbers that the library itself decodes."""
    gguf = pytest.importorskip("gguf", reason='gguf is not installed: pip install -e ".[gguf]"')
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    W = {"gate": R.normal(size=(64, 32)), "up": R.normal(size=(64, 32)), "down": R.normal(size=(32, 64))}
    formats = {"gate": "Q4_1", "up": "Q8_0", "down": "BF16"}
    expected = {}
    for part, array in W.items():
        kind = gguf.GGMLQuantizationType[formats[part]]
        raw = gguf.quants.quantize(array.astype(np.float32), kind)
        writer.add_tensor(f"blk.0.ffn_{part}.weight", raw, raw_dtype=kind)
        expected[f"blk.0.ffn_{part}.weight"] = gguf.quants.dequantize(raw, kind).reshape(array.shape)
    writer.add_tensor("blk.0.ffn_norm.weight", np.ones(32, np.float32))
    writer.add_tensor("output.weight", np.ones((7, 32), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "m.gguf", expected, W


def test_read_gguf_equals_the_library_and_opens(gguf_file):
    path, expected, W = gguf_file
    tensors = F.read_gguf(path)
    assert set(tensors) == {*expected, "blk.0.ffn_norm.weight", "output.weight"}
    assert tensors.shapes["blk.0.ffn_down.weight"] == (32, 64) and tensors["output.weight"].dtype == np.float32
    for name, array in expected.items():
        assert tensors[name].dtype == np.float32
        np.testing.assert_array_equal(tensors[name], array)
        assert np.abs(array - W[name.split("_")[1][:-7]]).max() < 0.3  # the formats are coarse, not wrong
    (record,) = F.find_ffns(tensors)
    assert record == F.FFNRecord("blk.0.", "GGUF", 32, 64, True, 0)
    gate, up, down = (expected[f"blk.0.ffn_{part}.weight"].astype(np.float64) for part in ("gate", "up", "down"))
    x = R.normal(size=(3, 32))
    h = x @ gate.T
    y = (h / (1 + np.exp(-h)) * (x @ up.T)) @ down.T
    np.testing.assert_allclose(F.from_state_dict(tensors, "blk.0", "silu")(x), y, rtol=1e-5, atol=1e-5)
    assert list(F.read_gguf(str(path), "output")) == ["output.weight"]
    with pytest.raises(ValueError, match="^prefix must be the start of a name in .*, got 'blk.7.'; there is"):
        F.read_gguf(path, "blk.7.")


def test_q4_1_is_the_library_s():
    gguf = pytest.importorskip("gguf", reason='gguf is not installed: pip install -e ".[gguf]"')
    raw = gguf.quants.quantize(R.normal(size=(8, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q4_1)
    expected = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType.Q4_1)
    np.testing.assert_array_equal(F.decode_q4_1(raw.ravel(), (8, 64)), expected.reshape(8, 64))


def test_files_that_are_not_gguf(tmp_path):
    write_safetensors(tmp_path / "f", {"a": ("F32", np.ones(3, np.float32))})
    with pytest.raises(ValueError, match="^.*f is not a GGUF file"):
        F.read_gguf(tmp_path / "f")
    (tmp_path / "f").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(ValueError, match="f is not a GGUF file: it is a Git-LFS pointer"):
        F.read_gguf(tmp_path / "f")


def test_a_gguf_file_that_is_cut_off(gguf_file):
    path, _, _ = gguf_file
    whole = path.read_bytes()
    for keep in (30, len(whole) // 2):
        path.write_bytes(whole[:keep])
        with pytest.raises(ValueError, match="m.gguf is not a whole GGUF file: "):
            F.read_gguf(path)


def test_without_the_gguf_library_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ImportError) as error:
        F.read_gguf(tmp_path / "m.gguf")
    assert str(error.value) == 'read_gguf needs the gguf library: pip install "ffn-numpy[gguf]"'


def test_gguf_tensors_that_share_numbers_are_refused(gguf_file):
    path, _, _ = gguf_file
    raw = path.read_bytes()
    name = b"blk.0.ffn_up.weight"
    place = raw.index(name) + len(name) + 4 + 2 * 8 + 4  # behind the number of sizes, two sizes and the format
    offset = int.from_bytes(raw[place:place + 8], "little")
    path.write_bytes(raw[:place] + (offset - 32).to_bytes(8, "little") + raw[place + 8:])
    with pytest.raises(ValueError, match="m.gguf is broken: blk.0.ffn_gate.weight and blk.0.ffn_up.weight share"):
        F.read_gguf(path)
