"""`spacy elmo trials`: train a config several times and score each model."""

from contextlib import ExitStack
from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt, import_code, parse_config_overrides, setup_gpu, show_validation_error
from tqdm import tqdm
from wasabi import msg


def trials_cli(
    ctx: typer.Context,  # the overrides
    config_path: Path = Arg(..., help="The config to train", exists=True, dir_okay=False, allow_dash=False),
    output: Path = Arg(..., help="The directory for models and metrics"),
    test: Path = Opt(..., "--test", "-t", help="The test data: a .spacy file, or a directory of them"),
    n_seeds: int = Opt(3, "--seeds", "-s", help="The number of seeds: 0, 1, 2 and so on", min=1),
    fractions: str = Opt(
        "100",
        "--fractions",
        "--shares",
        "-p",
        help="Fractions of the training data in per cent, such as 1,2,5,10,25,50,100",
    ),
    grid: Path | None = Opt(
        None,
        "--grid",
        help="A config with variants, such as configs/grid_layers.cfg: trains each variant of the config",
        exists=True,
        dir_okay=False,
    ),
    drop_models: bool = Opt(
        False, "--drop-models", "-d", help="Delete the models of fractions below 100; keep their metrics"
    ),
    overwrite: bool = Opt(False, "--overwrite", "-f", help="Replace all trials in the output directory"),
    reuse: list[Path] = Opt(
        [],
        "--reuse",
        help="A directory of other trials, or of a grid: its finished trials are copied where they are the same. Can be repeated",
        exists=True,
        file_okay=False,
    ),
    gold_preproc: bool = Opt(False, "--gold-preproc", "-G", help="Score on the test data's own tokens and sentences"),
    code_path: Path | None = Opt(None, "--code", "-c", help="Python file with functions that the config names"),
    use_gpu: int = Opt(-1, "--gpu-id", "-g", help="GPU ID or -1 for CPU"),
) -> None:
    """Train a config with several seeds.

    Trains the config once per seed and per fraction of the training data, and scores each model on the test data. Any value of the config can be replaced on the command line:

        python -m spacy elmo trials configs/ner.cfg out/elmo --test test.spacy --paths.train train.spacy --paths.dev dev.spacy

    Models and scores are written to out/elmo/FRACTION/SEED. To resume a command that was stopped, repeat it without --overwrite:
    finished trials are kept. With --reuse, equal trials of other directories are copied. `python -m spacy elmo compare` makes a page of two or more such directories.

    With --grid, the directories are out/elmo/VARIANT/FRACTION/SEED, and `python -m spacy elmo report` makes a table of
    out/elmo/grid.json.
    """
    from ..experiments.formatting import format_count
    from ..experiments.grid import GRID, prepare_grid
    from ..experiments.scores import main_scores
    from ..experiments.trial_id import TRIAL_METRICS, parse_fractions
    from ..experiments.trials import TrialError, Trials
    from ..files.atomic import write_file

    advice = "Finished trials are kept: repeat the command to resume."
    if overwrite:
        advice = "Finished trials are kept: repeat the command without --overwrite to resume."
    overrides = parse_config_overrides(ctx.args)
    import_code(code_path)
    try:
        with show_validation_error(config_path, hint_fill=False), ExitStack() as locks:
            trials = Trials(
                config_path=config_path,
                output=output,
                test_path=test,
                seeds=range(n_seeds),
                fractions=parse_fractions(fractions),
                overrides=overrides,
                code_path=code_path,
                gold_preproc=gold_preproc,
                drop_models=drop_models,
                overwrite=overwrite,
                reuse=reuse,
                use_gpu=use_gpu,
            )
            setup_gpu(use_gpu, silent=True)
            trials.check()  # before the output directory is made
            runs, files = ({"": trials}, {}) if grid is None else prepare_grid(grid, trials)
            for run in runs.values():
                locks.enter_context(run.lock())
            unfinished = [(name, trial_id) for name, run in runs.items() for trial_id in run.find_unfinished()]

            def write_files() -> None:
                """Write the files of a grid. With --overwrite, old trials go first: no score may be beside another config."""
                for run in runs.values():
                    run.remove_old_trials()
                for path, text in files.items():
                    write_file(path, text)
                files.clear()

            if not overwrite:
                write_files()  # now that no existing trial is refused
            unfinished.sort(key=lambda trial: trial[1].seed)  # a grid that is stopped has all variants of some seeds
            n_trials = len(trials.trial_ids) * len(runs)
            n_finished = n_trials - len(unfinished)
            finished = f", {n_finished} of them already finished" if n_finished else ""
            msg.info(format_count(n_trials, "trial") + finished)
            progress = tqdm(unfinished, unit=" trials", disable=None)
            for name, trial_id in progress:
                metrics = runs[name].run(trial_id, on_ready=write_files)
                found = [f"{key} {100 * metrics['scores'][key]:.2f}" for key in main_scores(metrics)]
                scores = ", ".join(found) or "no score, since the test data have no annotation to score"
                progress.clear()
                variant = f"{name}, " if name else ""
                source = metrics.get("copied_from")
                how = f"copied from {source}" if source else f"{metrics['training_seconds']:.0f} s"
                msg.good(f"{variant}{trial_id}: {scores} (training docs: {metrics['n_docs']:,}, {how})")
    except ValueError as error:
        msg.fail("Could not run the trials", str(error), exits=1)
    except (OSError, TrialError) as error:
        msg.fail("Could not run the trials", f"{error} {advice}", exits=1)
    except KeyboardInterrupt:
        msg.warn("Stopped", advice, exits=130)
    where = (
        f"VARIANT/FRACTION/SEED/{TRIAL_METRICS}, and {GRID} lists the variants"
        if grid
        else f"FRACTION/SEED/{TRIAL_METRICS}"
    )
    msg.good(f"All trials are in {output}", f"The metrics of each are in {where}")
