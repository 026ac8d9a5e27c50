"""Small random models in the format of ELMoForManyLangs, and the same model in slow, obvious NumPy.

The reference shares no code with the package. tests/golden has outputs of the original to compare it with.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray

Array = NDArray[Any]

SIZES: dict[str, dict[str, Any]] = {
    "encoder": {"name": "elmo", "projection_dim": 5, "dim": 9, "n_layers": 2, "cell_clip": 0.7, "proj_clip": 0.4},
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 3], [2, 4], [3, 5]],
        "n_highway": 2,
        "word_dim": 6,
        "char_dim": 4,
        "max_characters_per_token": 12,
    },
}

# Rows in no particular order. An ideographic space in a file is read as what it is, although it is whitespace.
CHARACTERS = [
    *"hausetrobwinf",
    "<eow>",
    *"äßАб",
    "<pad>",
    *"你好世界",
    "<bos>",
    "\u3000",
    "<oov>",
    "<eos>",
    "<bow>",
    *"Z.<>",
]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "the", "house", "你好", "New York", "Zauberhaft", "."]

SENTENCES = [
    ["the", "house", "is", "New York", "."],
    ["house"],
    [],
    ["你好", "世界", "好人", "qqq", "<oov>", "<pad>", "a\u3000b", "\u00a0"],
    ["Zauberhafte", "Zauberhaftigkeiten", "Zauberhaft", "x" * 60, "the", "the"],
    ["Straße", "Аб", "🦆", "", " ", "ﬁnd"],
]

# One change at a time, and those that only the rows of a table or a projection of equal width can tell apart.
VARIANTS: dict[str, dict[str, Any]] = {
    "small": {},
    "no words": {"word_dim": 0},
    "no characters": {"char_dim": 0},
    "one layer, no clipping": {"n_layers": 1, "cell_clip": 0, "proj_clip": None},
    "three layers, tanh": {"n_layers": 3, "activation": "tanh", "n_highway": 1},
    "no highway": {"n_highway": 0},
    "projections of equal widths": {"projection_dim": 18, "dim": 18},
    "short words": {"max_characters_per_token": 7},
}


class Model(NamedTuple):
    """What the files of a model hold."""

    sizes: dict[str, dict[str, Any]]
    arrays: dict[str, Array]
    characters: dict[str, int]
    words: dict[str, int]


def make_model(seed: int = 0, **changes: Any) -> Model:
    """Make a random model in which every part of the computation matters.

    seed (int): The seed.
    changes: Other sizes, by their names in either section.
    """
    sizes = {part: {key: changes.get(key, value) for key, value in values.items()} for part, values in SIZES.items()}
    encoder, tokens = sizes["encoder"], sizes["token_embedder"]
    p, dim, width = encoder["projection_dim"], encoder["dim"], tokens["word_dim"]
    shapes: dict[str, tuple[int, ...]] = {}
    if tokens["word_dim"]:
        shapes["word_emb_layer.embedding.weight"] = (len(WORDS), tokens["word_dim"])
    if tokens["char_dim"]:
        shapes["char_emb_layer.embedding.weight"] = (len(CHARACTERS), tokens["char_dim"])
        n = sum(count for _, count in tokens["filters"])
        width += n
        for i, (size, count) in enumerate(tokens["filters"]):
            shapes |= {
                f"convolutions.{i}.weight": (count, tokens["char_dim"], size),
                f"convolutions.{i}.bias": (count,),
            }
        for i in range(tokens["n_highway"]):
            shapes |= {f"highways._layers.{i}.weight": (2 * n, n), f"highways._layers.{i}.bias": (2 * n,)}
    shapes |= {"projection.weight": (p, width), "projection.bias": (p,)}
    for i in range(encoder["n_layers"]):
        for layer in (f"forward_layer_{i}", f"backward_layer_{i}"):
            shapes[f"{layer}.input_linearity.weight"] = shapes[f"{layer}.state_linearity.weight"] = (4 * dim, p)
            shapes |= {f"{layer}.state_linearity.bias": (4 * dim,), f"{layer}.state_projection.weight": (p, dim)}
    random = numpy.random.RandomState(seed)
    arrays = {
        name: (random.standard_normal(shape) / numpy.sqrt(shape[-1] if len(shape) > 1 else 1)).astype("float32")
        for name, shape in shapes.items()
    }
    ids = [{entry: i for i, entry in enumerate(entries)} for entries in (CHARACTERS, WORDS)]
    return Model(sizes, arrays, *ids)


def write_model(directory: Path, model: Model) -> Path:
    """Write a model as the original does: pickles of torch 0.4, and a path that exists on no other machine."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "cnn.json").write_text(json.dumps({**model.sizes, "dropout": 0.1}), encoding="utf8")
    (directory / "config.json").write_text(json.dumps({"seed": 1, "config_path": "/home/author/cnn.json"}))
    for name, ids in (("char.dic", model.characters), ("word.dic", model.words)):
        text = "".join(f"{entry}\t{i}\n" for entry, i in ids.items())
        (directory / name).write_text(text, encoding="utf8", newline="\n")
    files: dict[str, dict[str, torch.Tensor]] = {"encoder.pkl": {}, "token_embedder.pkl": {}}
    for name, array in model.arrays.items():
        files["encoder.pkl" if "_layer_" in name else "token_embedder.pkl"][name] = torch.as_tensor(array)
    for file, tensors in files.items():
        torch.save(tensors, directory / file, _use_new_zipfile_serialization=False)
    return directory


def run_sentence(model: Model, sentence: list[str]) -> Array:
    """Compute all layers of a sentence from a zero state: (layers, words, width)."""
    encoder = model.sizes["encoder"]
    n_layers, p = encoder["n_layers"], encoder["projection_dim"]
    tokens = [encode(model, word, is_mark=word in ("<bos>", "<eos>")) for word in ["<bos>", *sentence, "<eos>"]]
    layers = numpy.zeros((n_layers + 1, len(tokens), 2 * p))
    layers[0] = numpy.concatenate([tokens, tokens], axis=1)
    for d, direction in enumerate(("forward", "backward")):
        inputs = tokens if d == 0 else tokens[::-1]
        for i in range(n_layers):
            h, c = numpy.zeros(p), numpy.zeros(encoder["dim"])
            outputs = []
            for x in inputs:
                h, c = step(model, f"{direction}_layer_{i}", x, h, c)
                outputs.append(x + h if i else h)
            inputs = outputs
            layers[i + 1, :, d * p : (d + 1) * p] = outputs if d == 0 else outputs[::-1]
    return layers[:, 1:-1]


def encode(model: Model, word: str, *, is_mark: bool) -> Array:
    """Turn one word into its vector."""
    tokens, arrays = model.sizes["token_embedder"], model.arrays
    limit = tokens["max_characters_per_token"]
    word = word[: limit - 2]
    parts: list[Array] = []
    if tokens["word_dim"]:
        parts.append(arrays["word_emb_layer.embedding.weight"][model.words.get(word, model.words["<oov>"])])
    if tokens["char_dim"]:
        ids = model.characters
        content = [ids[word]] if is_mark else [ids.get(letter, ids["<oov>"]) for letter in word]
        spelling = [ids["<eow>"], *content, ids["<bow>"]]  # swapped, as the models were trained
        spelling += [ids["<pad>"]] * (limit - len(spelling))
        table = arrays["char_emb_layer.embedding.weight"].astype("float64")[spelling]
        pooled = []
        for i, (width, _) in enumerate(tokens["filters"]):
            weight, bias = arrays[f"convolutions.{i}.weight"], arrays[f"convolutions.{i}.bias"]
            windows = [table[start : start + width] for start in range(limit - width + 1)]
            pooled.append(numpy.max([numpy.einsum("ndw,wd->n", weight, window) + bias for window in windows], axis=0))
        x: Array = numpy.concatenate(pooled)
        x = numpy.maximum(x, 0) if tokens["activation"] == "relu" else numpy.tanh(x)
        for i in range(tokens["n_highway"]):
            y = arrays[f"highways._layers.{i}.weight"] @ x + arrays[f"highways._layers.{i}.bias"]
            transformed, gate = numpy.maximum(y[: len(x)], 0), sigmoid(y[len(x) :])
            x = gate * x + (1 - gate) * transformed
        parts.append(x)
    vector: Array = arrays["projection.weight"] @ numpy.concatenate(parts) + arrays["projection.bias"]
    return vector


def step(model: Model, layer: str, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    """Take one step of one LSTM layer in one direction."""
    encoder, arrays = model.sizes["encoder"], model.arrays
    gates = arrays[f"{layer}.input_linearity.weight"] @ x + arrays[f"{layer}.state_linearity.weight"] @ h
    i, f, g, o = numpy.split(gates + arrays[f"{layer}.state_linearity.bias"], 4)
    c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
    if encoder["cell_clip"]:
        c = numpy.clip(c, -encoder["cell_clip"], encoder["cell_clip"])
    h = arrays[f"{layer}.state_projection.weight"] @ (sigmoid(o) * numpy.tanh(c))
    if encoder["proj_clip"]:
        h = numpy.clip(h, -encoder["proj_clip"], encoder["proj_clip"])
    return h, c


def sigmoid(x: Array) -> Array:
    """Squash to between 0 and 1."""
    y: Array = 1 / (1 + numpy.exp(-x))
    return y
