"""`spacy elmo senses`: word senses by nearest neighbours, layer by layer."""

from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from tqdm import tqdm
from wasabi import msg

from .help_texts import RESULTS_HELP, WEIGHTS_ARG_HELP

if TYPE_CHECKING:
    from ..analysis.senses import SenseResults

SENSES_HELP = "a .jsonl file, or a .data.xml file with its .gold.key.txt file beside it"


def senses_cli(
    weights: str = Arg(..., help=WEIGHTS_ARG_HELP),
    train: Path = Arg(..., help=f"Annotated senses to average: {SENSES_HELP}"),
    tests: list[Path] = Arg(..., help="Test sets, in the same formats"),
    first_senses: Path | None = Opt(
        None,
        "--first-senses",
        "-f",
        help="First senses, for words that are not in the training data: WordNet's index.sense, or a table of a lemma, its part "
        "of speech and a key, separated by tabs",
    ),
    output: Path | None = Opt(None, "--output", "-o", help=RESULTS_HELP),
) -> None:
    """Score word senses by nearest neighbours.

    Each use of a word gets the sense of its lemma whose average vector in the training data is the nearest. The score is F1,
    for each layer and each test set:

        python -m spacy elmo senses en_elmo_sm train.jsonl test.jsonl
    """
    from .results import check_output, write_results

    try:
        check_output(output)
        results = senses(weights, train, tests, first_senses)
        scores = results.to_dict()
    except (ValueError, OSError) as error:
        msg.fail("Could not score the senses", str(error), exits=1)
    if results.n_unknown_keys:
        msg.warn(
            f"{results.inventory} lacks {results.n_unknown_keys:,} of the keys of the training data",
            "They are left out.",
        )
    for test in results.tests[: len(tests)]:
        if test.n_unknown_keys:
            msg.warn(
                f"{results.inventory} lacks {test.n_unknown_keys:,} of the keys of {test.name}",
                "Nothing can match them.",
            )
    names = [test.name for test in results.tests]
    rows = [
        (each["name"], *(f"{each['f1'][name]:.1f}" for name in names))
        for each in scores["baselines"] + scores["layers"]
    ]
    rows += [("instances", *(f"{test.n_instances:,}" for test in results.tests))]
    rows += [("of lemmas not in training", *(f"{test.n_unseen:,}" for test in results.tests))]
    msg.table(rows, header=("F1", *names), divider=True, aligns=("l", *("r" for _ in names)))
    msg.text(
        f"{results.n_instances:,} uses in the training data, of {results.n_senses:,} senses of {results.n_entries:,} lemmas"
    )
    if first_senses is None:
        msg.text("Without --first-senses, uses of lemmas that are not in the training data have no answer")
    if output is not None:
        options = [] if first_senses is None else ["--first-senses", first_senses]
        write_results(
            output, "senses", weights=weights, arguments=[Path(weights), train, *tests, *options], results=scores
        )


def senses(weights: str, train: Path, tests: list[Path], first_senses: Path | None = None) -> "SenseResults":
    """Score word senses by nearest neighbours.

    weights (str): A weights directory, or the name of a bundled model.
    train (Path): Annotated senses to average.
    tests (list[Path]): Test sets.
    first_senses (Path | None): First senses.
    RETURNS (SenseResults): The scores.
    """
    import spacy

    from ..analysis.sense_data import read_senses, set_name
    from ..analysis.sense_inventory import read_inventory
    from ..analysis.senses import disambiguate

    names = [set_name(path) for path in tests]
    if len(set(names)) < len(names):
        raise ValueError(f"The names of test sets should differ, got {', '.join(names)}. Rename the files.")
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"weights": weights})
    return disambiguate(
        nlp,
        tqdm(read_senses(train), desc=train.name, unit=" sentences", disable=None),
        {name: list(read_senses(path)) for name, path in zip(names, tests, strict=True)},
        read_inventory(first_senses) if first_senses else None,
    )
