"""`python -m spacy elmo ...`: one file per command."""

import typer
from spacy.cli._util import app as spacy_app

from .compare import compare_cli
from .contextuality import contextuality_cli
from .convert import convert_cli
from .debug_data import debug_data_cli
from .demo import demo_cli
from .embed import embed_cli
from .evaluate import evaluate_cli
from .init_vectors import init_vectors_cli
from .init_vocab import init_vocab_cli
from .mixes import mixes_cli
from .neighbours import neighbours_cli
from .pretrain import pretrain_cli
from .probe import probe_cli
from .report import report_cli
from .senses import senses_cli
from .trials import trials_cli

# For commands that take settings of a config, such as --paths.train, as `spacy train` does.
WITH_OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(name="elmo", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def elmo() -> None:
    """ELMo for spaCy: try it, pretrain a model, convert weights, and compare pipelines with and without it."""


app.command("demo")(demo_cli)
app.command("neighbours", no_args_is_help=True)(neighbours_cli)
app.command("probe", no_args_is_help=True)(probe_cli)
app.command("senses", no_args_is_help=True)(senses_cli)
app.command("contextuality", no_args_is_help=True)(contextuality_cli)
app.command("embed", no_args_is_help=True)(embed_cli)
app.command("convert", no_args_is_help=True)(convert_cli)
app.command("pretrain", no_args_is_help=True, context_settings=WITH_OVERRIDES)(pretrain_cli)
app.command("evaluate", no_args_is_help=True)(evaluate_cli)
app.command("debug-data", no_args_is_help=True)(debug_data_cli)
app.command("init-vocab", no_args_is_help=True)(init_vocab_cli)
app.command("init-vectors", no_args_is_help=True)(init_vectors_cli)
app.command("trials", no_args_is_help=True, context_settings=WITH_OVERRIDES)(trials_cli)
app.command("mixes", no_args_is_help=True)(mixes_cli)
app.command("compare", no_args_is_help=True)(compare_cli)
app.command("report", no_args_is_help=True)(report_cli)
spacy_app.add_typer(app, name="elmo")
