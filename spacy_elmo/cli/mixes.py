"""`spacy elmo mixes`: how a trained pipeline weights ELMo's layers."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg


def mixes_cli(
    model: str = Arg(..., help="A trained pipeline: a directory, or the name of an installed package"),
    output: Path | None = Opt(None, "--output", "-o", help="An SVG file (.svg) for a chart of the weights"),
) -> None:
    """Print learned layer weights.

    Prints, for each listener, the weight of each of ELMo's layers, and gamma. With --output, draws them as in figure 2 of
    the paper.
    """
    import spacy

    from ..analysis.mixes import draw_mixes, layer_names, learned_mixes
    from .results import check_output, write_output

    try:
        if output is not None and output.suffix != ".svg":
            raise ValueError(f"The chart is an SVG file: its name must end in .svg, got {output.name!r}.")
        check_output(output)
        mixes = learned_mixes(spacy.load(model))
        if not mixes:
            raise ValueError(f"No component of {model} has learned a mix of ELMo's layers.")
    except (ValueError, OSError, ImportError) as error:
        msg.fail("Could not show the mixes", str(error), exits=1)
    names = layer_names(mixes)
    rows = []
    for mix in mixes:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        rows.append((mix.name, *weights, *[""] * (len(names) - len(weights)), f"{mix.gamma:.3f}"))
    msg.table(rows, header=("Mix", *names, "Gamma"), divider=True, aligns=("l", *"r" * len(names), "r"))
    if output is not None:
        write_output(output, draw_mixes(mixes))
        msg.good(f"Drew the weights to {output}")
