"""`spacy elmo pretrain`: train a language model on a text."""

import sys
import time
from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt, import_code, parse_config_overrides, show_validation_error
from wasabi import msg

from .progress import show_sentences


def pretrain_cli(
    ctx: typer.Context,  # the overrides
    config_path: Path = Arg(..., help="The config of the run", exists=True, dir_okay=False, allow_dash=False),
    output: Path = Arg(..., help="The directory for the models, the metrics and the checkpoint"),
    resume: bool = Opt(False, "--resume", "-r", help="Resume the run in the output directory, from its checkpoint"),
    overwrite: bool = Opt(False, "--overwrite", "-f", help="Replace an existing run in the output directory"),
    code_path: Path | None = Opt(
        None, "--code", "-c", help="Python file with registered functions that the config names"
    ),
) -> None:
    """Pretrain a language model.

    Any value of the config can be replaced on the command line:

        python -m spacy elmo pretrain configs/pretrain.cfg out --paths.train text.txt --paths.dev dev.txt

    The model with the lowest dev perplexity is out/model-best, ready for nlp.add_pipe("elmo", config={"weights": ...}). After a
    stop, --resume continues from the last checkpoint and ends with the same weights. With more epochs or max_steps it makes
    the run longer: --resume --bilm_training.epochs 3. On several processes or machines: torchrun ... -m spacy elmo pretrain ...
    """
    from ..pretraining.output import BEST, CURVE
    from ..pretraining.pretrain import pretrain
    from ..pretraining.processes import is_first_of_its_machine, is_first_process
    from ..pretraining.stopping import Stopped

    overrides = parse_config_overrides(ctx.args)
    import_code(code_path)
    since = 0.0 if resume else time.time()
    try:
        with show_validation_error(config_path, hint_fill=False):
            result = pretrain(
                config_path,
                output,
                overrides=overrides,
                resume=resume,
                overwrite=overwrite,
                show_progress=show_sentences if is_first_process() else None,
                report=msg.info,
                warn=msg.warn,
            )
    except (ValueError, OSError, FloatingPointError) as error:
        if not is_first_of_its_machine():
            sys.exit(1)  # that process reports the same error
        if isinstance(error, FloatingPointError):
            msg.fail("The training diverged", f"{error} {_advise(output, since)} A lower learn_rate may help.", exits=1)
        advice = f" {_advise(output, since)}" if isinstance(error, OSError) else ""
        msg.fail("Could not pretrain", f"{error}{advice}", exits=1)
    except Stopped as error:
        if is_first_of_its_machine():
            msg.warn("Stopped", _advise(output, since))
        sys.exit(error.exit_code)
    if not is_first_process():
        return
    scores = result.likelihood.perplexities
    msg.good(f"The best model is {output / BEST}")
    if result.initial_perplexity is not None:
        msg.text(f"Dev perplexity before training: {result.initial_perplexity:,.1f}")
    msg.text(
        f"Dev perplexity: {scores['mean']:,.1f} (forward {scores['forward']:,.1f}, backward {scores['backward']:,.1f}); "
        f"of a unigram model: {scores['unigram']:,.1f}"
    )
    msg.text(f"Learning curve: {output / CURVE}")
    msg.text(f'Use it: nlp.add_pipe("elmo", config={{"weights": "{output / BEST}"}})')


def _advise(output: Path, since: float) -> str:
    """Say how to resume. An older checkpoint is that of a run which was to be replaced."""
    from ..pretraining.output import CHECKPOINT

    path = output / CHECKPOINT
    if not path.exists() or path.stat().st_mtime < since:
        return "There is no checkpoint of this run yet to resume from."
    return f"Resume from the last checkpoint, {path}, with --resume."
