"""`spacy elmo trials`: train a config several times, and score what comes out."""

from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt, import_code, parse_config_overrides, setup_gpu, show_validation_error
from tqdm import tqdm
from wasabi import msg


def trials_cli(
    ctx: typer.Context,  # the overrides
    config_path: Path = Arg(..., help="The config to train", exists=True, dir_okay=False, allow_dash=False),
    output: Path = Arg(..., help="The directory for models and metrics"),
    test: Path = Opt(..., "--test", "-t", help="What the models are scored on: a .spacy file, or a directory of them"),
    n_seeds: int = Opt(3, "--seeds", "-s", help="How many seeds: 0, 1, 2 and so on", min=1),
    shares: str = Opt("100", "--shares", "-p", help="Per cent of the training data, such as 1,2,5,10,25,50,100"),
    drop_models: bool = Opt(False, "--drop-models", "-d", help="Of shares below 100, keep the metrics alone"),
    overwrite: bool = Opt(False, "--overwrite", "-f", help="Replace all trials that are in the output directory"),
    gold_preproc: bool = Opt(False, "--gold-preproc", "-G", help="Score on the test data's own tokens and sentences"),
    code_path: Path | None = Opt(None, "--code", "-c", help="Python file with functions that the config names"),
    use_gpu: int = Opt(-1, "--gpu-id", "-g", help="GPU ID or -1 for CPU"),
) -> None:
    """Train a config once for every seed and every share of its training data, and score each model.

    Any value of the config can be replaced on the command line:

        python -m spacy elmo trials configs/ner.cfg out/elmo --test test.spacy --paths.train train.spacy --paths.dev dev.spacy

    Models and scores are in out/elmo/SHARE/SEED. A command that was stopped goes on when it is repeated, without --overwrite:
    trials that are done are kept. `python -m spacy elmo compare` makes a page of two or more such directories.
    """
    from ..experiments.locks import lock
    from ..experiments.places import METRICS, parse_shares
    from ..experiments.scores import main_scores
    from ..experiments.trials import TrialError, Trials
    from ..models import find_weights

    advice = "Trials that are done are kept: repeat the command to go on."
    if overwrite:
        advice = "Repeat the command without --overwrite to go on: trials that are done are kept."
    overrides = parse_config_overrides(ctx.args)
    import_code(code_path)
    try:
        with show_validation_error(config_path, hint_fill=False):
            trials = Trials(
                config_path=config_path,
                output=output,
                test=test,
                seeds=range(n_seeds),
                shares=parse_shares(shares),
                find_weights=find_weights,
                overrides=overrides,
                code_path=code_path,
                gold_preproc=gold_preproc,
                drop_models=drop_models,
                overwrite=overwrite,
                use_gpu=use_gpu,
            )
            setup_gpu(use_gpu, silent=True)
            trials.find_todo()  # whatever is wrong is said before anything is made
            with lock(output):
                todo = trials.find_todo()  # another process may have been at work here until now
                n_done = len(trials.places) - len(todo)
                msg.info(
                    f"{len(trials.places)} trials" + (f", {n_done} of them done already: skipped" if n_done else "")
                )
                progress = tqdm(todo, unit=" trials", disable=None)
                for place in progress:
                    metrics = trials.run(place)
                    found = [f"{name} {100 * metrics['scores'][name]:.2f}" for name in main_scores(metrics)]
                    scores = ", ".join(found) or "no score, since the test data have nothing to score by"
                    progress.clear()
                    msg.good(
                        f"{place}: {scores} (training docs: {metrics['n_docs']:,}, {metrics['training_seconds']:.0f} s)"
                    )
    except ValueError as error:
        msg.fail("Could not run the trials", str(error), exits=1)
    except (OSError, TrialError) as error:
        msg.fail("Could not run the trials", f"{error} {advice}", exits=1)
    except KeyboardInterrupt:
        msg.warn("Stopped", advice, exits=130)
    msg.good(f"All trials are in {output}", f"The numbers of each are in SHARE/SEED/{METRICS}")
