"""`spacy elmo convert`: weights from one format to another."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from spacy.cli._util import Arg, Opt
from spacy.util import get_lang_class
from wasabi import msg

from ..bilm.config import NormalForm
from ..formats import FORMATS, detect_format, get_format
from ..formats.archives import unpacked

if TYPE_CHECKING:
    from ..bilm.model import BiLM

READABLE = ", ".join(FORMATS)
PRECISIONS = FORMATS["spacy-elmo"].precisions
WRITABLE = ", ".join(name for name, found in FORMATS.items() if found.can_write)


def convert_cli(
    paths: list[Path] = Arg(
        ...,
        metavar="SOURCE... OUT",
        help="The weights to convert (the two files of a published model, the directory of a model, a ZIP file, or the name of a bundled model), then the directory to write. Existing weights in it are replaced",
    ),
    source_format: str | None = Opt(
        None, "--from", "-f", help=f"The format to read: {READABLE}. By default it is detected"
    ),
    target_format: str = Opt("spacy-elmo", "--to", "-t", help=f"The format to write: {WRITABLE}"),
    precision: str = Opt(
        "float32",
        "--precision",
        "-p",
        help=f"The precision to store the weights in: {', '.join(PRECISIONS)}. Float16 makes the file half as large, int8 a quarter",
    ),
    lang: str | None = Opt(
        None,
        "--lang",
        "-l",
        help="The language of the model, such as de. It is stored with the weights, and a pipeline of another language warns",
    ),
    normalize: str | None = Opt(
        None,
        "--normalize",
        "-n",
        help=f"The Unicode normal form that the model reads words in: {', '.join(get_args(NormalForm))}, or none. It is stored with the weights",
    ),
    warm_up: Path | None = Opt(
        None,
        "--warm-up",
        "-w",
        help="A text to compute an initial state from: a few hundred lines, one tokenized sentence per line",
        exists=True,
        dir_okay=False,
    ),
) -> None:
    """Convert ELMo weights.

    Reads any model that was published in the format of bilm-tf or AllenNLP, and writes a weights directory for
    nlp.add_pipe("elmo", config={"weights": OUT}):

        python -m spacy elmo convert options.json weights.hdf5 OUT

    Models of ELMoForManyLangs are directories or ZIP files. Their vectors need words in the form of their training text:

        python -m spacy elmo convert 142.zip OUT --lang de --normalize NFKC

    With --precision int8 the directory is a quarter as large. It is meant for precision = "int8" of the component, but runs
    in float32, too.

    And back, to an options.json and a weights.hdf5 that AllenNLP loads:

        python -m spacy elmo convert WEIGHTS_DIR OUT --to bilm-tf

    Published models were trained with the LSTM's state carried over from sentence to sentence, never from zeros. With
    --warm-up, the average state of the model over a text is stored, and every sentence starts from it.
    """
    if len(paths) < 2:
        msg.fail("Expected at least two paths: SOURCE... OUT", "See: python -m spacy elmo convert --help", exits=1)
    *source, target = paths
    try:
        bilm, settled = convert(
            source,
            target,
            from_=source_format,
            to=target_format,
            precision=precision,
            warm_up=warm_up,
            lang=lang,
            normalize=normalize,
        )
    except (ValueError, ImportError, OSError) as error:
        msg.fail("Could not convert the weights", str(error), exits=1)
    written = get_format(target_format)
    n_parameters = sum(parameter.numel() for parameter in bilm.parameters())
    msg.good(
        f"Wrote {target}",
        f"{n_parameters:,} parameters in {precision}, {bilm.config.depth + 1} layers of width {bilm.config.width}, "
        f"language {bilm.config.lang or 'not given'}, initial state {'zero' if bilm.initial_state is None else 'stored'}",
    )
    if lang is not None and not _is_known(lang):
        msg.warn(
            f"spaCy has no language {lang!r}",
            "If that is a mistake, convert again with spaCy's code, such as 'de' for German: a pipeline with another code "
            "warns. If spaCy does not support the language, use spacy.blank('xx').",
        )
    if not settled:
        msg.warn("The text was too short: the stored initial state had not settled yet. Use a longer text")
    if bilm.initial_state is not None and not written.has_initial_state:
        msg.warn(f"The format {target_format} cannot store the initial state: it was left out")
    if bilm.config.lang is not None and not written.has_lang:
        msg.warn(f"The format {target_format} cannot store the language {bilm.config.lang!r}: it was left out")


def _is_known(lang: str) -> bool:
    try:
        get_lang_class(lang)
    except ImportError:
        return False
    return True


def convert(
    source: Sequence[Path],
    target: Path,
    *,
    from_: str | None = None,
    to: str,
    precision: str = "float32",
    warm_up: Path | None = None,
    lang: str | None = None,
    normalize: str | None = None,
) -> tuple["BiLM", bool]:
    """Convert weights.

    source (Sequence[Path]): The weights to read, such as the options and the weights of a published model, or the name of a
        bundled one.
    target (Path): The directory to write.
    from_ (str | None): The format to read; None to detect it.
    to (str): The format to write.
    precision (str): The precision to store the weights in.
    warm_up (Path | None): A text to find an initial state from, one tokenized sentence per line.
    lang (str | None): The language of the model; None to keep the one that is stored, if any.
    normalize (str | None): The normal form that the model reads words in; "none" for none, None to keep the one that is stored.
    RETURNS (tuple[BiLM, bool]): The model, and whether its initial state had settled at the end of the text; true
        without a text.
    """
    from ..bilm.initial_state import find_initial_state
    from ..corpora.read import read_corpus
    from ..models import find_weights

    writer = get_format(to, to_write=True)
    with unpacked([find_weights(str(path)) for path in source]) as paths:
        reader = detect_format(paths) if from_ is None else get_format(from_)
        bilm = reader.read(paths)
    if lang is not None:
        bilm.config = replace(bilm.config, lang=lang)
    if normalize is not None:
        bilm.config = replace(bilm.config, normalize=None if normalize == "none" else cast(NormalForm, normalize))
    settled = True
    if warm_up is not None:
        _, settled = find_initial_state(bilm, list(read_corpus(warm_up, lang=None)))
    writer.write(bilm, target, precision=precision)
    return bilm, settled
