"""`spacy elmo probe`: what a linear classifier can read from each layer."""

from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from tqdm import tqdm
from wasabi import msg

from .help_texts import RESULTS_HELP, WEIGHTS_ARG_HELP

if TYPE_CHECKING:
    from ..analysis.probe_scores import ProbeResults

DOCS_HELP = "Annotated docs (.spacy)"


def probe_cli(
    weights: str = Arg(..., help=WEIGHTS_ARG_HELP),
    train: Path = Arg(..., help=f"{DOCS_HELP} to train on"),
    dev: Path = Arg(..., help=f"{DOCS_HELP} to choose the best epoch by"),
    test: Path = Arg(..., help=f"{DOCS_HELP} to score on"),
    attribute: str = Opt(
        "tag", "--attr", "-a", help="The attribute of a token to predict: tag, pos, dep, ent_type, morph and so on"
    ),
    n_seeds: int = Opt(3, "--seeds", "-s", help="The number of seeds", min=1),
    n_epochs: int = Opt(8, "--epochs", "-e", help="How many times the training data are read", min=1),
    output: Path | None = Opt(None, "--output", "-o", help=RESULTS_HELP),
) -> None:
    """Score linear probes of each layer.

    A probe is a linear classifier that sees only a token's vector. Its accuracy says what a layer knows of an attribute:

        python -m spacy elmo probe en_elmo_sm train.spacy dev.spacy test.spacy --attr pos
    """
    from ..experiments.formatting import format_count, format_number, format_sample
    from ..experiments.sample import Sample
    from .results import check_output, write_results

    try:
        check_output(output)
        results = probe(weights, [train, dev, test], attribute, n_seeds=n_seeds, n_epochs=n_epochs)
    except (ValueError, OSError) as error:
        msg.fail("Could not probe the layers", str(error), exits=1)
    if results.labels_only_in_test:
        msg.warn(
            f"Labels that are not in the training data: {', '.join(results.labels_only_in_test)}",
            f"All predictions for them are wrong: {format_count(sum(results.labels_only_in_test.values()), 'token')}.",
        )
    rows = [
        (name, format_number(accuracy.overall, 2), format_number(accuracy.unseen, 2), "")
        for name, accuracy in results.baselines.items()
    ]
    for score in results.probes:
        overall = Sample([accuracy.overall for accuracy in score.accuracies])
        unseen = Sample([accuracy.unseen for accuracy in score.accuracies if accuracy.unseen is not None])
        weights_of_mix = ", ".join(f"{weight:.2f}" for weight in score.weights or [])
        rows.append((score.name, format_sample(overall), format_sample(unseen), weights_of_mix))
    header = ("", "Accuracy", "Of unseen words", "Weights of the mix")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "l"))
    n_tokens = results.n_tokens["test"]
    msg.text(
        f"{results.n_tokens['train']:,} tokens to train on, {n_tokens:,} to test on, {results.n_unseen:,} of them "
        f"({results.n_unseen / n_tokens:.1%}) words that are not in the training data; {results.n_labels} labels; "
        f"seeds: {n_seeds}"
    )
    if output is not None:
        arguments = [Path(weights), train, dev, test, "--attr", attribute, "--seeds", n_seeds, "--epochs", n_epochs]
        details = {"attribute": attribute, **results.to_dict()}
        write_results(output, "probe", weights=weights, arguments=arguments, results=details)


def probe(weights: str, paths: list[Path], attribute: str, *, n_seeds: int = 3, n_epochs: int = 8) -> "ProbeResults":
    """Train and score probes of an attribute.

    weights (str): A weights directory, or the name of a bundled model.
    paths (list[Path]): Annotated docs: train, dev and test.
    attribute (str): The attribute of a token to predict.
    n_seeds, n_epochs (int): The number of seeds, and of epochs.
    RETURNS (ProbeResults): The scores.
    """
    import spacy

    from ..analysis.labelled_tokens import embed_tokens
    from ..analysis.probe_scores import run_probes
    from ..corpora.docs import read_docs

    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"weights": weights})
    train, dev, test = (
        embed_tokens(
            nlp,
            tqdm(read_docs(path, nlp.vocab), desc=f"Embedding {path.name}", unit=" docs", disable=None),
            attribute,
            source=str(path),
        )
        for path in paths
    )
    total = n_seeds * n_epochs * len(train.words)
    with tqdm(total=total, desc="Training", unit=" tokens", unit_scale=True, disable=None) as bar:
        return run_probes(train, dev, test, n_epochs=n_epochs, seeds=range(n_seeds), on_batch=bar.update)
