"""`python -m spacy elmo ...`: one file a command."""

import typer
from spacy.cli._util import app as spacy_app

from .convert import convert_cli
from .debug_data import debug_data_cli
from .demo import demo_cli
from .init_vocab import init_vocab_cli

app = typer.Typer(name="elmo", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def elmo() -> None:
    """ELMo for spaCy: see what it does, read and write published weights, look at a corpus."""


app.command("demo")(demo_cli)
app.command("convert", no_args_is_help=True)(convert_cli)
app.command("debug-data", no_args_is_help=True)(debug_data_cli)
app.command("init-vocab", no_args_is_help=True)(init_vocab_cli)
spacy_app.add_typer(app, name="elmo")
