"""Score linear probes of each layer of a biLM, as a Markdown table."""

import statistics
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import DocBin
from tqdm import tqdm
from wasabi import msg

from spacy_elmo.analysis.probes import embed_tokens, new_words, probe_layers, score_most_frequent
from spacy_elmo.analysis.vectors import layer_name


def probe(
    train: Path,
    dev: Path,
    test: Path,
    attribute: str = "pos_",
    weights: str | None = None,
    epochs: Annotated[int, typer.Option(min=1)] = 8,
    seeds: Annotated[int, typer.Option(min=1)] = 3,
) -> None:
    """Print the accuracy of a linear classifier of tokens for each layer, and for a learned mix of all layers.

    train, dev, test (Path): Annotated docs, such as those that `spacy convert` makes of Universal Dependencies.
    attribute (str): The attribute of a token to predict, such as "pos_", "tag_" or "dep_".
    weights (str | None): A weights directory instead of the default weights.
    epochs (int): How many times the training data are read.
    seeds (int): How many probes are trained for each row.
    """
    nlp = spacy.blank("en")
    labels: dict[str, int] = {}
    try:
        nlp.add_pipe("elmo", config={"weights": weights})
        parts = []
        for path in (train, dev, test):
            docs = list(DocBin().from_disk(path).get_docs(nlp.vocab))
            parts.append(embed_tokens(nlp, tqdm(docs, desc=path.name, disable=None), labels, attribute=attribute))
    except (AttributeError, OSError, ValueError) as error:
        msg.fail("Could not probe the layers", str(error), exits=1)
    n_new = float(new_words(parts[0], parts[2]).float().mean())
    typer.echo(
        f"{len(parts[0].texts):,} words to train on, {len(parts[2].texts):,} to test on ({n_new:.1%} new), "
        f"{len(labels)} classes\n\n"
        "| probe of | accuracy | all seeds | of new words | weights of the mix |\n|---|---|---|---|---|"
    )
    baseline = score_most_frequent(parts[0], parts[2])
    typer.echo(
        f"| no vectors: each word's most frequent class | {percent(baseline.overall)} | | {percent(baseline.new_words)} | |"
    )
    for score in probe_layers(*parts, n_labels=len(labels), n_epochs=epochs, seeds=range(seeds)):
        is_mix = len(score.layers) > 1
        cells = [
            "the mix" if is_mix else layer_name(score.layers[0]),
            percent(statistics.mean(accuracy.overall for accuracy in score.accuracies)),
            ", ".join(percent(accuracy.overall) for accuracy in score.accuracies),
            percent(statistics.mean(accuracy.new_words for accuracy in score.accuracies)),
            ", ".join(f"{weight:.2f}" for weight in score.mix) if is_mix else "",
        ]
        typer.echo(f"| {' | '.join(cells)} |")


def percent(accuracy: float) -> str:
    return f"{100 * accuracy:.2f}"


if __name__ == "__main__":
    typer.run(probe)
