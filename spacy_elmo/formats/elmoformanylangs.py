"""The format of ELMoForManyLangs: two pickled state dicts, tables of characters and words, and sizes as JSON.

The model is the same as bilm-tf's up to the order of rows and columns, which `_convert` changes. Only torch reads the pickles,
and only tensors: a pickle that would run code is refused.
"""

import json
import pickletools
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import IO, Any

import torch
from torch import Tensor

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..files.tensors import Shape, check_finite, check_fit

TOKENS, ENCODER = "token_embedder.pkl", "encoder.pkl"
CHARACTERS, WORDS = "char.dic", "word.dic"
CONFIG = "config.json"

# Pickles of weights have no longer names, and need no more room. torch searches its error for names, and would take hours
# for an endless one.
LONGEST_NAME, MOST_BYTES = 1_000, 10_000_000

# The sizes of all published models. Most of them name this file in their config.json without including it, because the
# package has it, under two names.
PUBLISHED_NAMES = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
PUBLISHED_SIZES = {
    "encoder": {"name": "elmo", "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096, "n_layers": 2},
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}

# The entries of char.dic in the order of our marks. The original swaps the marks of a word: it starts with <eow>.
CHARACTER_MARKS = ("<bos>", "<eos>", "<eow>", "<bow>", "<pad>", "<oov>")
WORD_MARKS = ("<bos>", "<eos>", "<oov>")

Tensors = dict[str, Tensor]
Ids = dict[str, int]


def recognizes(paths: Sequence[Path]) -> bool:
    """RETURNS (bool): Whether the paths are one directory with a file that only this format has."""
    return len(paths) == 1 and any((paths[0] / name).is_file() for name in (TOKENS, ENCODER, CHARACTERS, WORDS))


def read(paths: Sequence[Path]) -> BiLM:
    """Read a model of ELMoForManyLangs.

    paths (Sequence[Path]): The directory.
    RETURNS (BiLM): The model.
    """
    if len(paths) != 1 or not paths[0].is_dir():
        raise ValueError(f"Expected one directory with {TOKENS} and {ENCODER}, got {', '.join(map(str, paths))}.")
    directory = paths[0]
    sizes_path, sizes = _find_sizes(directory)
    try:
        has_characters, has_words = (bool(sizes["token_embedder"][name]) for name in ("char_dim", "word_dim"))
        character_ids, n_characters = _read_ids(directory / CHARACTERS, CHARACTER_MARKS) if has_characters else ({}, 0)
        word_ids, n_words = _read_ids(directory / WORDS, WORD_MARKS) if has_words else ({}, 0)
        config = _make_config(sizes, sizes_path, character_ids, word_ids)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"The sizes in {sizes_path} are not those of ELMoForManyLangs: {error!r:.200}. Expected the objects 'encoder' and "
            f"'token_embedder'."
        ) from None
    expected_tokens, expected_encoder = _expected_shapes(config, n_characters, n_words)
    tokens = _load_tensors(directory / TOKENS, expected_tokens, f"the sizes in {sizes_path}, {CHARACTERS} and {WORDS}")
    encoder = _load_tensors(directory / ENCODER, expected_encoder, f"the sizes in {sizes_path}")
    with torch.device("meta"):  # allocates nothing: the tensors replace the parameters
        bilm = BiLM(config)
    bilm.load_state_dict(_convert(config, tokens, encoder, character_ids, word_ids), assign=True)
    check_finite(bilm, directory)
    return bilm


def _find_sizes(directory: Path) -> tuple[str, dict[str, Any]]:
    """Find the sizes, which config.json names. The path there is often one of the author's machine: only its name counts."""
    named = _read_json(directory / CONFIG).get("config_path")
    if not isinstance(named, str):
        raise ValueError(f"{directory / CONFIG} has no config_path, the name of the file with the sizes.")
    name = PureWindowsPath(named).name  # separates at both kinds of slashes
    if any(path.name == name for path in directory.iterdir()):
        return str(directory / name), _read_json(directory / name)
    if name in PUBLISHED_NAMES:
        return name, PUBLISHED_SIZES
    raise ValueError(
        f"{directory / CONFIG} names {name!r:.80} as the file with the sizes, but it is not in {directory}. Copy it there."
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(_read_text(path))
    except RecursionError:
        data = None
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path}: expected an object, got {data!r:.80}.")
    return data


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"There is no {path.name} in {path.parent}: was the model copied whole?")
    try:
        return path.read_text(encoding="utf8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8, at byte {error.start}.") from None


def _read_ids(path: Path, marks: Sequence[str]) -> tuple[Ids, int]:
    """Read a table: on each line an entry, a tab and its row. It must have the marks.

    RETURNS (tuple): The row of each entry, and the number of rows.
    """
    ids: Ids = {}
    spaces: list[int] = []  # the rows of entries that have disappeared with the whitespace
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if not line:
            continue
        *entry, row = line.strip().split("\t")
        if len(entry) > 1 or not row.isdecimal():
            raise ValueError(f"{path}, line {number}: expected an entry, a tab and a number, got {line!r:.80}.")
        if entry:
            ids[entry[0]] = int(row)
        else:
            spaces.append(int(row))
    rows = [*ids.values(), *spaces]
    if sorted(rows) != list(range(len(rows))):
        raise ValueError(f"{path} must have each entry and each number from 0 on once. Was it edited, or cut off?")
    if missing := [mark for mark in marks if mark not in ids]:
        raise ValueError(f"{path} has no row for {', '.join(missing)}. Was it edited, or cut off?")
    if spaces:
        ids["\u3000"] = spaces[-1]  # as in the original: an ideographic space, and the last one counts
    return ids, len(rows)


def _make_config(sizes: dict[str, Any], sizes_path: str, character_ids: Ids, word_ids: Ids) -> BiLMConfig:
    try:
        for section, supported in (("encoder", "elmo"), ("token_embedder", "cnn")):
            name = sizes[section]["name"]
            if name.lower() != supported:
                raise ValueError(
                    f"The {section} must be {supported!r}, got {name!r:.80}. Other kinds are not supported."
                )
        return _translate_sizes(sizes["encoder"], sizes["token_embedder"], character_ids, word_ids)
    except ValueError as error:
        raise ValueError(f"The sizes in {sizes_path} cannot be used: {error}") from None


def _translate_sizes(encoder: dict[str, Any], tokens: dict[str, Any], character_ids: Ids, word_ids: Ids) -> BiLMConfig:
    reading: dict[str, Any] = {"filters": [], "highways": 0, "activation": "relu"}
    if character_ids:
        # Entries of several characters, such as the marks, are never looked up.
        characters = sorted((entry for entry in character_ids if len(entry) == 1), key=character_ids.__getitem__)
        reading = {"filters": tokens["filters"], "highways": tokens["n_highway"], "activation": tokens["activation"]}
        reading["characters"] = "".join(characters)
    if word_ids:
        reading["words"] = sorted(word_ids.keys() - set(WORD_MARKS), key=word_ids.__getitem__)
    return BiLMConfig(
        **reading,
        char_dim=tokens["char_dim"],
        word_dim=tokens["word_dim"],
        max_chars=tokens["max_characters_per_token"],
        projection=encoder["projection_dim"],
        cells=encoder["dim"],
        depth=encoder["n_layers"],
        cell_clip=encoder.get("cell_clip") or None,
        projection_clip=encoder.get("proj_clip") or None,
        skip_connections=True,
        always_project=True,
    )


def _expected_shapes(config: BiLMConfig, n_characters: int, n_words: int) -> tuple[dict[str, Shape], dict[str, Shape]]:
    """RETURNS (tuple): The shapes of the tensors of either file."""
    tokens: dict[str, Shape] = {
        "projection.weight": (config.projection, config.unprojected),
        "projection.bias": (config.projection,),
    }
    if config.word_dim:
        tokens["word_emb_layer.embedding.weight"] = (n_words, config.word_dim)
    if config.char_dim:
        tokens["char_emb_layer.embedding.weight"] = (n_characters, config.char_dim)
    for i, (width, count) in enumerate(config.filters):
        tokens |= {f"convolutions.{i}.weight": (count, config.char_dim, width), f"convolutions.{i}.bias": (count,)}
    for i in range(config.highways):
        n = config.n_filters
        tokens |= {f"highways._layers.{i}.weight": (2 * n, n), f"highways._layers.{i}.bias": (2 * n,)}
    encoder: dict[str, Shape] = {}
    for direction in ("forward", "backward"):
        for i in range(config.depth):
            encoder |= {
                f"{direction}_layer_{i}.input_linearity.weight": (4 * config.cells, config.projection),
                f"{direction}_layer_{i}.state_linearity.weight": (4 * config.cells, config.projection),
                f"{direction}_layer_{i}.state_linearity.bias": (4 * config.cells,),
                f"{direction}_layer_{i}.state_projection.weight": (config.projection, config.cells),
            }
    return tokens, encoder


def _load_tensors(path: Path, expected: dict[str, Shape], source: str) -> Tensors:
    """Read a pickled state dict. Nothing but torch's reader of weights may open it."""
    if not path.is_file():
        raise ValueError(f"There is no {path.name} in {path.parent}: was the model copied whole?")
    try:
        _check_names(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickles that it does not know
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except PermissionError as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    except Exception:  # whatever a damaged or hostile file leads to; torch's message advises to run its code
        tensors = None
    if not isinstance(tensors, dict) or not all(map(_is_weight, tensors.values())):
        raise ValueError(
            f"{path} is damaged or incomplete, or it holds something else than weights, which could run code. None was run. "
            f"Download it again, from a source that you trust."
        )
    check_fit({str(name): tuple(tensor.shape) for name, tensor in tensors.items()}, expected, path, source)
    return {name: tensor.float() for name, tensor in tensors.items()}


def _check_names(path: Path) -> None:
    """Refuse pickles with endless names, before torch reads them. Nothing is unpickled."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith(".pkl"):
                    if entry.file_size > MOST_BYTES:
                        raise ValueError("endless pickle")
                    _check_opcodes(archive.open(entry))
    else:
        with path.open("rb") as file:
            for _ in range(4):  # three pickles of metadata, and that of the tensors; their values follow
                _check_opcodes(file)


def _check_opcodes(file: IO[bytes]) -> None:
    for _, argument, _ in pickletools.genops(file):
        if isinstance(argument, str | bytes) and len(argument) > LONGEST_NAME:
            raise ValueError("endless name")


def _is_weight(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout == torch.strided and value.is_floating_point()


def _convert(config: BiLMConfig, tokens: Tensors, encoder: Tensors, character_ids: Ids, word_ids: Ids) -> Tensors:
    """Give tensors our names, and their rows and columns our order."""
    ours: Tensors = {}
    if config.words is not None:
        rows = [word_ids[word] for word in (*config.words, *WORD_MARKS)]
        ours["char_cnn.word_embedding.weight"] = tokens["word_emb_layer.embedding.weight"][rows]
    if config.characters is not None:
        rows = [character_ids[entry] for entry in (*config.characters, *CHARACTER_MARKS)]
        ours["char_cnn.embedding.weight"] = tokens["char_emb_layer.embedding.weight"][rows]
    for i in range(len(config.filters)):
        # Ours: one row for each filter, its characters concatenated.
        ours[f"char_cnn.filters.{i}.weight"] = tokens[f"convolutions.{i}.weight"].transpose(1, 2).flatten(1)
        ours[f"char_cnn.filters.{i}.bias"] = tokens[f"convolutions.{i}.bias"]
    for i in range(config.highways):
        for kind in ("weight", "bias"):
            transform, gate = tokens[f"highways._layers.{i}.{kind}"].chunk(2)
            ours[f"char_cnn.highways.{i}.transform.{kind}"] = transform
            # Their gate is the fraction of the input that is kept, ours that of the transformed part: 1 - g(x) is g(-x).
            ours[f"char_cnn.highways.{i}.carry.{kind}"] = -gate
    for kind in ("weight", "bias"):
        ours[f"char_cnn.projection.{kind}"] = tokens[f"projection.{kind}"]
    for i in range(config.depth):
        weights, biases, projections = [], [], []
        for direction in ("forward", "backward"):
            layer = f"{direction}_layer_{i}"
            linearities = (encoder[f"{layer}.{name}_linearity.weight"].T for name in ("input", "state"))
            weights.append(torch.cat([_reorder_gates(weight) for weight in linearities]))
            bias = _reorder_gates(encoder[f"{layer}.state_linearity.bias"])
            bias[2 * config.cells : 3 * config.cells] -= 1  # the LSTM adds it
            biases.append(bias)
            projections.append(encoder[f"{layer}.state_projection.weight"].T)
        ours[f"lstm.layers.{i}.weight"] = torch.stack(weights)
        ours[f"lstm.layers.{i}.bias"] = torch.stack(biases)
        ours[f"lstm.layers.{i}.projection"] = torch.stack(projections)
    return {name: tensor.contiguous() for name, tensor in ours.items()}


def _reorder_gates(tensor: Tensor) -> Tensor:
    """Put the gates of the last dimension, here i, f, j, o, into the order i, j, f, o."""
    i, f, j, o = tensor.chunk(4, dim=-1)
    return torch.cat([i, j, f, o], dim=-1)
