"""Compare 50 random models of ELMoForManyLangs with its own embedder, in float32 and in float64.

The environment is that of make_many_langs.py. From the checkout:

    PYTHONPATH=.:../shared/tools peer/bin/python -m tests.golden.compare_many_langs

It prints the largest differences over all models, sentences and layers.
"""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.formats import elmoformanylangs

SEEDS = range(200, 250)
WORDS = ["the", "house", "你好", "世界", "straße", "a", "zebras", "qqq", "Ünknown", "abcdefghijklmnop", "."]
SCALES = (1.0, 0.5)  # of the tool's weights, whose standard deviation is 0.5


def main() -> None:
    """Print one line for each scale of weights."""
    torch.set_num_threads(1)
    generator = random.Random(0)
    sentences = [generator.choices(WORDS, k=length) for length in (1, 2, 4, 8, 12, 16, 20, 24) for _ in range(2)]
    for scale in SCALES:
        rows = [_compare(seed, scale, sentences) for seed in SEEDS]
        columns = [sorted(column) for column in zip(*rows, strict=True)]
        names = ("both in float32", "the original from float64", "ours from float64", "both in float64")
        print(f"standard deviation {scale / 2}: median and largest difference of {len(rows)} models")
        for name, column in zip(names, columns, strict=False):
            above = sum(value > 5e-6 for value in column)
            print(f"  {name}: {column[len(column) // 2]:.1e}, {column[-1]:.1e}; above 5e-6: {above}")
        print(f"  the largest value of the layers: {columns[-1][-1]:.1f}")


def _compare(seed: int, scale: float, sentences: list[list[str]]) -> tuple[float, ...]:
    from manylangs_elmo import make

    with TemporaryDirectory() as name:
        make(name, str(seed))
        for file in ("encoder.pkl", "token_embedder.pkl"):
            tensors = torch.load(Path(name, file), weights_only=True)
            # Few digits, so that taking 1 from a bias of the forget gate is exact in float32.
            tensors = {key: (tensor * scale * 1024).round() / 1024 for key, tensor in tensors.items()}
            torch.save(tensors, Path(name, file), _use_new_zipfile_serialization=False)
        bilm = elmoformanylangs.read([Path(name)])
        ours = [_run_ours(bilm.to(dtype), sentences) for dtype in (torch.float32, torch.float64)]
        theirs = [_run_theirs(name, dtype, sentences) for dtype in (torch.float32, torch.float64)]
    pairs = ((ours[0], theirs[0]), (theirs[0], theirs[1]), (ours[0], theirs[1]), (ours[1], theirs[1]))
    return *(float((one - other).abs().max()) for one, other in pairs), float(theirs[1].abs().max())


def _run_ours(bilm: BiLM, sentences: list[list[str]]) -> Tensor:
    with torch.no_grad():
        layers = embed_sentences(bilm, sentences, max_batch_items=100)
    return torch.cat(layers, dim=1).double()


def _run_theirs(directory: str, dtype: torch.dtype, sentences: list[list[str]]) -> Tensor:
    from manylangs_elmo import Embedder

    embedder = Embedder(directory)
    embedder.model.to(dtype)
    layers = []
    for words in sentences:
        embedder.model.encoder.reset_states()  # it would carry the state from call to call
        layers.append(torch.as_tensor(embedder.sents2elmo([words], -2)[0]).double())
    return torch.cat(layers, dim=1)


if __name__ == "__main__":
    main()
