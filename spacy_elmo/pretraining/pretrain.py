"""From a config to a run: the corpora are tokenized, the vocabulary is found, the model is made or loaded."""

from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from confection import Config
from spacy.util import dict_to_dot

from ..atomic import recover_directory
from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import load_weights
from .checkpoint import Checkpoint
from .language_model import LanguageModel
from .model_files import has_softmax, load_language_model, vocabulary_of
from .prepare import ShowProgress, TokenizedCorpus, prepare_corpus
from .processes import join_processes
from .run import BEST, CHECKPOINT, CURVE, LAST, METRICS, SCORES, Result, Run
from .settings import CorpusSettings, Settings, read_config, read_settings
from .softmax import Softmax
from .vocabulary import Vocabulary, count_words

CONFIG, CORPORA, VOCABULARY = "config.cfg", "corpora", "vocab.txt"

# What may differ when a run goes on. Corpus and vocabulary are compared by what is in them, not by where they are.
FREE_TO_CHANGE = ("paths.", "corpus.", "vocabulary.", "bilm.weights", "bilm_training.logger.")


def pretrain(
    config_path: Path,
    output: Path,
    *,
    overrides: dict[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    show_progress: ShowProgress | None = None,
) -> Result:
    """Pretrain a language model.

    config_path (Path): The run's config.
    output (Path): The run's directory.
    overrides (dict[str, Any] | None): Values that replace those of the config. A run that goes on keeps its own.
    resume (bool): Whether to go on from the checkpoint in that directory.
    overwrite (bool): Whether a run that is there may be replaced.
    show_progress (ShowProgress | None): Shows how far the preparation is.
    RETURNS (Result): What came out.
    """
    checkpoint = Checkpoint.from_disk(output / CHECKPOINT) if resume else None
    overrides = {**(checkpoint.facts["overrides"] if checkpoint else {}), **(overrides or {})}
    config = read_config(config_path, overrides)
    settings = read_settings(config)
    if checkpoint is not None:
        _check_same_config(config, checkpoint.facts["config"], output)
    with join_processes() as processes:
        with processes.first_goes_ahead():
            if processes.is_first:
                _open_output(output, config, resume=resume, overwrite=overwrite)
            train, dev = (
                _prepare_corpus(Path(source), settings.corpus, output, show_progress)
                for source in (settings.corpus.train, settings.corpus.dev)
            )
            vocabulary = _find_vocabulary(settings, train, output)
        model, softmax_is_new = _make_model(settings, vocabulary)
        run = Run(
            settings=settings,
            identity={
                "config": config,
                "overrides": overrides,
                "corpus": train.sha256,
                "vocabulary": sha256("\n".join(vocabulary.words).encode("utf8")).hexdigest(),
            },
            output=output,
            processes=processes,
            train=train,
            dev=dev,
            vocabulary=vocabulary,
            model=model.to(processes.device),
            softmax_is_new=softmax_is_new,
        )
        if checkpoint is not None:
            run.restore(checkpoint)
        return run.go()


def _open_output(output: Path, config: Config, *, resume: bool, overwrite: bool) -> None:
    """Make the run's directory ready."""
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file; a directory is to be written there. Choose another place.")
    if (output / CHECKPOINT).exists() and not (resume or overwrite):
        raise ValueError(
            f"There is a run in {output} already. Go on with it (--resume), replace it (--overwrite), or choose another "
            f"place."
        )
    output.mkdir(parents=True, exist_ok=True)
    for name in (BEST, LAST):
        recover_directory(output / name)
    if not resume:
        for name in (CHECKPOINT, METRICS, SCORES, CURVE, VOCABULARY):
            (output / name).unlink(missing_ok=True)
        config.to_disk(output / CONFIG)


def _prepare_corpus(
    source: Path, settings: CorpusSettings, output: Path, show_progress: ShowProgress | None
) -> TokenizedCorpus:
    """Tokenize a corpus, or find that done. A cache serves many runs, so names say what is from where."""
    cache = Path(settings.cache) if settings.cache else output / CORPORA
    place = sha1(str(source.resolve()).encode("utf8", "surrogateescape")).hexdigest()[:8]
    return prepare_corpus(
        source,
        cache / f"{source.name}-{place}",
        lang=settings.lang,
        n_process=settings.n_process,
        show_progress=show_progress,
    )


def _find_vocabulary(settings: Settings, train: TokenizedCorpus, output: Path) -> Vocabulary:
    """Take the vocabulary that is given, or that of the weights, or count the words of the training text."""
    path = output / VOCABULARY
    if settings.vocabulary.path is not None:
        return Vocabulary.from_disk(Path(settings.vocabulary.path))
    if isinstance(settings.bilm, Path) and has_softmax(settings.bilm):
        return vocabulary_of(settings.bilm)
    if path.exists():  # written by the first process, or before the run was stopped
        return Vocabulary.from_disk(path)
    vocabulary = count_words(train, max_size=settings.vocabulary.max_size, min_count=settings.vocabulary.min_count)
    vocabulary.to_disk(path)
    return vocabulary


def _make_model(settings: Settings, vocabulary: Vocabulary) -> tuple[LanguageModel, bool]:
    """Make a new model, or load one and give it a new softmax if it has none for these words."""
    seed = settings.training.seed
    if isinstance(settings.bilm, BiLMConfig):
        bilm, softmax_is_new = BiLM(settings.bilm).initialize(seed), False
    elif has_softmax(settings.bilm) and vocabulary_of(settings.bilm).words == vocabulary.words:
        return load_language_model(settings.bilm)[0], False
    else:
        bilm, softmax_is_new = load_weights(settings.bilm), True
    softmax = Softmax(len(vocabulary), bilm.config.projection).initialize(seed + 1, vocabulary.counts)
    return LanguageModel(bilm, softmax), softmax_is_new


def _check_same_config(config: Config, before: dict[str, Any], output: Path) -> None:
    """Refuse to go on with a run under another config."""
    now, then = (
        {key: value for key, value in dict_to_dot(sections).items() if not key.startswith(FREE_TO_CHANGE)}
        for sections in (config, before)
    )
    changed = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))
    if changed:
        listed = ", ".join(f"{key} was {then.get(key)!r} and is {now.get(key)!r}" for key in changed[:5])
        raise ValueError(
            f"The run in {output} is another one: {listed}. Go on under its own config, or start anew in another place."
        )
