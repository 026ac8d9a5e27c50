"""`spacy elmo convert`: published weights to ours, and back."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from wasabi import msg

if TYPE_CHECKING:
    from ..bilm.model import BiLM


class Form(str, Enum):
    spacy_elmo = "spacy-elmo"
    bilm_tf = "bilm-tf"


def convert_cli(
    paths: list[Path] = Arg(
        ...,
        metavar="SOURCE... OUT",
        help="What to convert (the two files of a published model, or a weights directory), then where to write",
    ),
    to: Form = Opt(Form.spacy_elmo, "--to", "-t", help="The form to write"),
    warm_up: Path | None = Opt(
        None,
        "--warm-up",
        "-w",
        help="A text to find an initial state from: one sentence per line, tokens separated by spaces, a few hundred lines",
        exists=True,
        dir_okay=False,
    ),
) -> None:
    """Convert ELMo weights.

    Reads any model that was published in the form of bilm-tf or AllenNLP, and writes a weights directory for
    nlp.add_pipe("elmo", config={"weights": OUT}):

        python -m spacy elmo convert options.json weights.hdf5 OUT

    And back, to an options.json and a weights.hdf5 that AllenNLP loads:

        python -m spacy elmo convert WEIGHTS_DIR OUT --to bilm-tf

    Published models were trained with the LSTM's state carried over from sentence to sentence, so that starting each
    sentence from zero is slightly foreign to them. With --warm-up, the state that they settle into over a text is
    stored, and every sentence starts from there.
    """
    if len(paths) not in (2, 3):
        msg.fail(f"Expected two or three paths, got {len(paths)}", "See: python -m spacy elmo convert --help", exits=1)
    *source, target = paths
    if len(source) == 1 and source[0].is_file():
        msg.fail(
            "Could not convert the weights",
            f"{source[0]} is a file. Give the options, the weights and then where to write: SOURCE... OUT",
            exits=1,
        )
    try:
        bilm, settled = convert(source, target, to=to.value, warm_up=warm_up)
    except (ValueError, ImportError, OSError) as error:
        msg.fail("Could not convert the weights", str(error), exits=1)
    n_parameters = sum(parameter.numel() for parameter in bilm.parameters())
    msg.good(
        f"Wrote {target}",
        f"{n_parameters:,} parameters, {bilm.config.depth + 1} layers of width {bilm.config.width}, "
        f"initial state {'stored' if bilm.initial_hidden is not None else 'zero'}",
    )
    if not settled:
        msg.warn(
            "The text was over before the initial state had settled: it was stored as it was. A longer text is better"
        )
    if to is Form.bilm_tf and bilm.initial_hidden is not None:
        msg.warn("The form of bilm-tf has no place for the initial state: it was left out")


def convert(source: list[Path], target: Path, *, to: str, warm_up: Path | None = None) -> tuple["BiLM", bool]:
    """Convert weights.

    source (list[Path]): The options and the weights of a published model, or one weights directory.
    target (Path): The directory to write.
    to (str): The form to write: "spacy-elmo" or "bilm-tf".
    warm_up (Path | None): A text to find an initial state from, one tokenized sentence per line.
    RETURNS (tuple): The model, and whether its initial state has settled, if one was to be found.
    """
    from ..bilm.warm_up import find_initial_state
    from ..bilm.weights import load_weights, save_weights
    from ..corpora.read import read_corpus
    from ..formats.bilm_tf import read_bilm_tf, write_bilm_tf

    bilm = load_weights(source[0]) if len(source) == 1 else read_bilm_tf(*source)
    settled = True
    if warm_up is not None:
        _, settled = find_initial_state(bilm, list(read_corpus(warm_up, lang=None)))
    if to == "bilm-tf":
        write_bilm_tf(bilm, target)
    else:
        save_weights(bilm, target)
    return bilm, settled
