"""A slow, obvious ELMo in NumPy, straight from the published layout, to hold the package against.

It shares no code with the package: one word, one character and one step at a time, in double precision.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

Array = NDArray[Any]

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 256, 257, 258, 259, 260


class Memory(NamedTuple):
    """What one sentence starts from or ends with: hidden is (layers, 2, projection), cell is (layers, 2, dim)."""

    hidden: Array
    cell: Array


def run_sentence(
    options: Mapping[str, Any], arrays: Mapping[str, Array], words: Sequence[str], memory: Memory | None = None
) -> tuple[Array, Memory]:
    """Compute (1 + layers, words, 2 * projection), and the memory after the sentence."""
    lstm = options["lstm"]
    depth, projection = lstm["n_layers"], lstm["projection_dim"]
    if memory is None:
        memory = Memory(numpy.zeros((depth, 2, projection)), numpy.zeros((depth, 2, lstm["dim"])))
    end = Memory(numpy.zeros_like(memory.hidden), numpy.zeros_like(memory.cell))
    limit = options["char_cnn"]["max_characters_per_token"]
    spellings = [spell([BEGIN_SENTENCE], limit)]
    for word in words:
        spellings.append(spell(word_bytes(word), limit))
    spellings.append(spell([END_SENTENCE], limit))
    tokens = [encode_spelling(options, arrays, spelling) for spelling in spellings]

    layers = numpy.zeros((1 + depth, len(tokens), 2 * projection))
    for t, token in enumerate(tokens):
        layers[0, t] = numpy.concatenate([token, token])
    for direction in (0, 1):
        inputs = tokens if direction == 0 else tokens[::-1]
        for layer in range(depth):
            name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            h, c = memory.hidden[layer, direction], memory.cell[layer, direction]
            outputs = []
            for x in inputs:
                h, c = step(options, arrays, name, x, h, c)
                outputs.append(x + h if lstm["use_skip_connections"] and layer > 0 else h)
            end.hidden[layer, direction], end.cell[layer, direction] = h, c
            inputs = outputs
            for t, output in enumerate(outputs if direction == 0 else outputs[::-1]):
                layers[1 + layer, t, direction * projection : (direction + 1) * projection] = output
    return layers[:, 1:-1], end


def word_bytes(word: str) -> list[int]:
    """Give the UTF-8 bytes of a word, leaving out what has none."""
    return [byte for letter in word if not "\ud800" <= letter <= "\udfff" for byte in letter.encode("utf8")]


def spell(content: list[int], limit: int) -> list[int]:
    """Frame and pad the ids of a word, then shift them by one."""
    ids = [BEGIN_WORD, *content[: limit - 2], END_WORD]
    while len(ids) < limit:
        ids.append(PADDING)
    return [i + 1 for i in ids]


def encode_spelling(options: Mapping[str, Any], arrays: Mapping[str, Array], spelling: list[int]) -> Array:
    """Turn one word into its vector."""
    cnn = options["char_cnn"]
    no_word = numpy.zeros((1, cnn["embedding"]["dim"]))
    table = numpy.concatenate([no_word, arrays["char_embed"]]).astype("float64")
    pooled = []
    for i, (width, count) in enumerate(cnn["filters"]):
        weights, bias = arrays[f"CNN/W_cnn_{i}"].astype("float64"), arrays[f"CNN/b_cnn_{i}"].astype("float64")
        best = numpy.full(count, -numpy.inf)
        for start in range(len(spelling) - width + 1):
            value = bias.copy()
            for k in range(width):
                value += table[spelling[start + k]] @ weights[0, k]
            best = numpy.maximum(best, value)
        pooled.append(best)
    x: Array = numpy.concatenate(pooled)
    x = relu(x) if cnn["activation"] == "relu" else numpy.tanh(x)
    for i in range(cnn["n_highway"]):
        name = f"CNN_high_{i}"
        gate = sigmoid(x @ arrays[f"{name}/W_carry"] + arrays[f"{name}/b_carry"])
        x = gate * relu(x @ arrays[f"{name}/W_transform"] + arrays[f"{name}/b_transform"]) + (1 - gate) * x
    if "CNN_proj/W_proj" in arrays:
        x = x @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]
    return x


def step(
    options: Mapping[str, Any], arrays: Mapping[str, Array], name: str, x: Array, h: Array, c: Array
) -> tuple[Array, Array]:
    """Take one step of one LSTM layer in one direction."""
    lstm = options["lstm"]
    gates = numpy.concatenate([x, h]) @ arrays[f"{name}/W_0"].astype("float64") + arrays[f"{name}/B"]
    n = lstm["dim"]
    i, j, f, o = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    c = sigmoid(f + 1) * c + sigmoid(i) * numpy.tanh(j)
    if lstm["cell_clip"] is not None:
        c = numpy.clip(c, -lstm["cell_clip"], lstm["cell_clip"])
    h = sigmoid(o) * numpy.tanh(c)
    if f"{name}/W_P_0" in arrays:
        h = h @ arrays[f"{name}/W_P_0"].astype("float64")
        # TensorFlow's cell clips only what it projects.
        if lstm["proj_clip"] is not None:
            h = numpy.clip(h, -lstm["proj_clip"], lstm["proj_clip"])
    return h, c


def relu(x: Array) -> Array:
    """Cut off what is negative."""
    return numpy.maximum(x, 0.0)


def sigmoid(x: Array) -> Array:
    """Squash to between 0 and 1."""
    y: Array = 1 / (1 + numpy.exp(-x))
    return y
