"""Make the golden data of ELMoForManyLangs: tiny random models, and the layers that its own embedder computes with them.

The environment needs ELMoForManyLangs; the head of ../shared/tools/manylangs_elmo.py says how to make one. From the checkout:

    PYTHONPATH=.:../shared/tools peer/bin/python -m tests.golden.make_many_langs

Every model becomes a directory of the files that it is published as, and layers.npz, which holds one array (layers, words,
width) for each sentence of sentences.json, computed from a zero state.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy
import torch

from tests.many_langs import SENTENCES, make_model, write_model

HERE = Path(__file__).parent / "many_langs"

MODELS: dict[str, dict[str, Any]] = {
    "both": {},
    "characters": {"word_dim": 0, "n_layers": 3, "activation": "tanh", "max_characters_per_token": 9},
    "words": {"char_dim": 0, "n_layers": 1, "cell_clip": 0, "proj_clip": None},
}


def main() -> None:
    """Write the golden data beside this file."""
    from manylangs_elmo import Embedder

    torch.set_num_threads(1)  # their number changes the last bits
    shutil.rmtree(HERE, ignore_errors=True)
    for seed, (name, changes) in enumerate(MODELS.items()):
        directory = write_model(HERE / name, make_model(seed, **changes))
        embedder = Embedder(str(directory))
        layers = {}
        for i, words in enumerate(SENTENCES):
            embedder.model.encoder.reset_states()  # it would carry the state from call to call
            layers[str(i)] = embedder.sents2elmo([words], -2)[0]
        numpy.savez_compressed(directory / "layers.npz", **layers)
    text = json.dumps(SENTENCES, ensure_ascii=False, indent=1)
    (HERE / "sentences.json").write_text(text + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
