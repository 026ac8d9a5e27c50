"""Make the golden data: tiny random biLMs, and the layers that AllenNLP's Elmo computes with them.

The environment needs AllenNLP; the head of ../shared/tools/allennlp_elmo.py says how to make one. From the checkout:

    PYTHONPATH=.:../shared/tools peer/bin/python tests/golden/make_golden.py

Every model becomes a directory of options.json, weights.hdf5 (both as bilm-tf publishes them) and layers.npz, which holds
one array (layers, words, width) for each sentence of sentences.json, computed from a zero state.

AllenNLP runs only models with skip connections, with both projections, and with words of 50 characters. All others are
compared with tests/reference.py instead.
"""

import json
from pathlib import Path
from typing import Any

import numpy
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.formats import bilm_tf

HERE = Path(__file__).parent

# Odd sizes, so that no two dimensions can be confused; clips so tight that they are reached all the time.
MODELS: dict[str, dict[str, Any]] = {
    "one_layer": {
        "char_dim": 3,
        "filters": [[1, 5], [2, 6], [3, 2]],
        "highways": 1,
        "activation": "relu",
        "projection": 7,
        "cells": 11,
        "depth": 1,
        "cell_clip": 0.6,
        "projection_clip": 0.5,
    },
    "two_layers": {
        "char_dim": 5,
        "filters": [[1, 3], [2, 4], [3, 5], [4, 7], [7, 2]],
        "highways": 2,
        "activation": "relu",
        "projection": 9,
        "cells": 14,
        "depth": 2,
        "cell_clip": 0.7,
        "projection_clip": 0.3,
    },
    "two_layers_tanh": {
        "char_dim": 4,
        "filters": [[2, 8], [5, 9]],
        "highways": 1,
        "activation": "tanh",
        "projection": 13,
        "cells": 6,
        "depth": 2,
        "cell_clip": 0.4,
        "projection_clip": 0.2,
    },
    "three_layers": {
        "char_dim": 6,
        "filters": [[1, 7], [3, 12]],
        "highways": 2,
        "activation": "tanh",
        "projection": 5,
        "cells": 17,
        "depth": 3,
        "cell_clip": 1.1,
        "projection_clip": 0.3,
    },
}

SENTENCES = [
    "They play a play on Broadway .",
    "Wait",
    ".",
    "the the the the the The THE the",
    "Die Straße führt übers Wäldchen nach Öhringen – naïve façade , ½ £ ² …",
    "Москва́ слезам не верит , 日本語 の 文章 は 難しい 。",
    "שלום עולם مرحبا بالعالم नमस्ते दुनिया ສະບາຍດີ ꙮ 𒀭 𐍈𐌴𐌹",
    "👍 👩🏽‍🚀👨‍👩‍👧‍👦 🏴󠁧󠁢󠁷󠁬󠁳󠁿 ok ☃️",
    # 48 bytes of a word are read: words of 47, 48, 49 and 60, and one that is cut within a letter.
    f"{'a' * 47} {'b' * 48} {'c' * 49} {'xyz' * 20} z{'ö' * 24} Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz",
    # Not "<S>" and "</S>": AllenNLP takes these two words for its sentence marks, and here they are words.
    "<s> </s> <UNK> begin end",
    "It's 3.14159 -- or is it ? http://example.org/?q=1&r=2 @user #tag e-mail\u00a0me \u200b x",
    "In the long run , a model that reads one word after the other in both directions remembers the first word at the last one : "
    "if it did not forget any of it , then nothing would be gained by its gates .",
]


def make_bilm(seed: int, sizes: dict[str, Any]) -> BiLM:
    """Make a random model in which every part of the computation matters."""
    bilm = BiLM(BiLMConfig(**sizes, max_chars=50, skip_connections=True)).initialize(seed)
    with torch.no_grad():
        for name, view in bilm_tf.published_views(bilm).items():
            # Twice these makes every mistake visible, without a chaos in which rounding would be visible, too.
            if name == "char_embed" or "carry" in name or name.endswith(("/W_0", "/B")):
                view.mul_(2.0)
    return bilm


def main() -> None:
    """Write the golden data beside this file."""
    from allennlp_elmo import BiLM as AllenBiLM
    from allennlp_elmo import batch_to_ids

    torch.set_num_threads(1)  # their number changes the last bits
    sentences = [sentence.split(" ") for sentence in SENTENCES]
    text = json.dumps(sentences, ensure_ascii=False, indent=1)
    (HERE / "sentences.json").write_text(text + "\n", encoding="utf8")
    for seed, (name, sizes) in enumerate(MODELS.items()):
        directory = HERE / name
        # A directory with other files in it would be refused.
        (directory / "layers.npz").unlink(missing_ok=True)
        bilm_tf.write(make_bilm(seed, sizes), directory)
        peer = AllenBiLM(str(directory / "options.json"), str(directory / "weights.hdf5")).eval()
        layers = {}
        for i, words in enumerate(sentences):
            peer._elmo_lstm._states = None  # it would carry the state from call to call
            with torch.no_grad():
                activations = peer(batch_to_ids([words]))["activations"]
            layers[str(i)] = numpy.stack([layer[0, 1:-1].numpy() for layer in activations])
        numpy.savez_compressed(directory / "layers.npz", **layers)


if __name__ == "__main__":
    main()
