"""Time AllenNLP's Elmo for speed.py, in an environment that has AllenNLP. Reads a job as JSON from stdin."""

import json
import sys
import time
from typing import Any


def main(job: dict[str, Any]) -> None:
    import numpy
    import torch

    sys.path.insert(0, job["module"])
    from allennlp_elmo import BiLM, Elmo, batch_to_ids

    files = (f"{job['published']}/options.json", f"{job['published']}/weights.hdf5")
    sentences, single = job["sentences"], job["sentences"][: job["n_single"]]
    elmo = Elmo(*files, 1, dropout=0).eval()
    with torch.no_grad():
        elmo(batch_to_ids(sentences[:32]))
        start = time.perf_counter()
        for i in range(0, len(sentences), 32):
            elmo(batch_to_ids(sentences[i : i + 32]))
        batch_seconds = time.perf_counter() - start
        start = time.perf_counter()
        for words in single:
            elmo(batch_to_ids([words]))
        single_seconds = time.perf_counter() - start
        bilm = BiLM(*files).eval()
        layers: dict[str, Any] = {}
        for i, words in enumerate(sentences[: job["n_compared"]]):
            bilm._elmo_lstm._states = (
                None  # AllenNLP carries the state from call to call; here sentences start from zero
            )
            activations = bilm(batch_to_ids([words]))["activations"]
            layers[str(i)] = numpy.stack([layer[0, 1 : len(words) + 1].numpy() for layer in activations])
        numpy.savez(job["layers"], **layers)
    speeds = {
        "batch": sum(map(len, sentences)) / batch_seconds,
        "single": sum(map(len, single)) / single_seconds,
    }
    print(json.dumps(speeds))


if __name__ == "__main__":
    main(json.load(sys.stdin))
