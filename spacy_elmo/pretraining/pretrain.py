"""From a config to a run: the corpora are tokenized, the vocabulary is found, the model is made or loaded."""

import json
from glob import escape
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from confection import Config
from spacy.util import dict_to_dot

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import load_config, load_weights
from ..files.atomic import recover_directory, remove_leftovers
from .checkpoint import Checkpoint
from .language_model import LanguageModel
from .model_files import has_softmax, load_language_model, vocabulary_of
from .optimizers import check_makers
from .output import BEST, CHECKPOINT, CORPORA, LAST, check_output
from .prepare import ShowProgress, TokenizedCorpus, find_kept, find_origin, prepare_corpus
from .processes import join_processes
from .run import Report, Result, Run
from .settings import CorpusSettings, Settings, read_config, read_settings
from .softmax import Softmax
from .vocabulary import Vocabulary, count_words

# What may differ when a run goes on. Corpora and vocabulary are compared by what is in them, not by where they are; the
# weights that it began with are not read again.
FREE_TO_CHANGE = ("paths.", "corpus.", "vocabulary.", "bilm.weights", "bilm_training.logger.")


def pretrain(
    config_path: Path,
    output: Path,
    *,
    overrides: dict[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    show_progress: ShowProgress | None = None,
    report: Report | None = None,
) -> Result:
    """Pretrain a language model. A script that calls this needs a main guard if `n_process` is above 1.

    config_path (Path): The run's config.
    output (Path): The run's directory.
    overrides (dict[str, Any] | None): Values that replace those of the config. A run that goes on keeps its own.
    resume (bool): Whether to go on from the checkpoint in that directory.
    overwrite (bool): Whether a run that is there may be replaced: when all is ready for the new one.
    show_progress (ShowProgress | None): Shows how far the preparation is.
    report (Report | None): Called with what is worth saying before the training starts.
    RETURNS (Result): What came out.
    """
    checkpoint = Checkpoint.from_disk(output / CHECKPOINT) if resume else None
    facts = checkpoint.facts if checkpoint else None
    overrides = {**(facts["overrides"] if facts else {}), **(overrides or {})}
    config = read_config(config_path, overrides)
    settings = read_settings(config)
    check_output(output, resume=resume, overwrite=overwrite)
    if facts is not None:
        _check_same_config(config, facts["config"], output)
    elif isinstance(settings.bilm, Path):
        load_config(settings.bilm)  # a mistyped path is better found out before hours of tokenizing
    check_makers(settings.make_optimizer, settings.make_schedule)
    with join_processes() as processes:
        with processes.first_goes_ahead():
            if resume:
                for name in (BEST, LAST):
                    recover_directory(output / name)
            corpora = {
                name: _prepare_corpus(
                    Path(source), settings.corpus, output, facts[name] if facts else None, show_progress
                )
                for name, source in (("training text", settings.corpus.train), ("dev text", settings.corpus.dev))
            }
            vocabulary = _find_vocabulary(settings, corpora["training text"], output, resume=resume)
        for name, corpus in corpora.items():
            processes.check_same(corpus.sha256, name)
        model, softmax_is_new = _make_model(settings, vocabulary, facts)
        run = Run(
            settings=settings,
            identity={
                "config": config,
                "overrides": overrides,
                **{name: corpus.sha256 for name, corpus in corpora.items()},
                "vocabulary": sha256("\n".join(vocabulary.words).encode("utf8")).hexdigest(),
            },
            output=output,
            processes=processes,
            train=corpora["training text"],
            dev=corpora["dev text"],
            vocabulary=vocabulary,
            model=model.to(processes.device),
            softmax_is_new=softmax_is_new,
        )
        if checkpoint is not None:
            run.restore(checkpoint)
            checkpoint = None  # which is as large as the model and all that the optimizer knows of it
        return run.go(report or (lambda text: None))


def _prepare_corpus(
    source: Path, settings: CorpusSettings, output: Path, began_with: str | None, show_progress: ShowProgress | None
) -> TokenizedCorpus:
    """Tokenize a corpus, or find that done. A cache serves many runs, so names say what is from where, and from which version of
    it; no run loses its text to another. A run that goes on takes the text that it kept, whatever became of the source."""
    cache = Path(settings.cache) if settings.cache else output / CORPORA
    name = f"{source.name}-{_digest(str(source.resolve()))}"
    for directory in sorted(cache.glob(f"{escape(name)}-*")) if began_with else []:
        kept = find_kept(directory)
        if kept is not None and kept[0].sha256 == began_with:
            return kept[0]
    directory = cache / f"{name}-{_digest(json.dumps(find_origin(source, settings.lang)))}"
    if not settings.cache:
        remove_leftovers(directory)  # of a run that was killed while it tokenized
    return prepare_corpus(
        source, directory, lang=settings.lang, n_process=settings.n_process, show_progress=show_progress
    )


def _digest(text: str) -> str:
    return sha1(text.encode("utf8", "surrogateescape")).hexdigest()[:8]


def _find_vocabulary(settings: Settings, train: TokenizedCorpus, output: Path, *, resume: bool) -> Vocabulary:
    """Take the vocabulary that is given, or that of the run or of the weights, or count the words of the training text."""
    path = settings.vocabulary.path
    if path is not None and (Path(path).exists() or not resume):
        return Vocabulary.from_disk(Path(path))
    if resume:
        return vocabulary_of(output / LAST)
    if isinstance(settings.bilm, Path) and has_softmax(settings.bilm):
        return vocabulary_of(settings.bilm)
    return count_words(train, max_size=settings.vocabulary.max_size, min_count=settings.vocabulary.min_count)


def _make_model(settings: Settings, vocabulary: Vocabulary, facts: dict[str, Any] | None) -> tuple[LanguageModel, bool]:
    """Make a new model, or load one and give it a new softmax if it has none for these words. For a run that goes on, only
    the sizes matter: the rest is in its checkpoint."""
    seed, source = settings.training.seed, settings.bilm
    if facts is not None:
        bilm, softmax_is_new = BiLM(BiLMConfig.from_dict(facts["bilm"])), facts["softmax_is_new"]
    elif isinstance(source, BiLMConfig):
        bilm, softmax_is_new = BiLM(source).initialize(seed), False
    elif has_softmax(source) and vocabulary_of(source).words == vocabulary.words:
        return load_language_model(source)[0], False
    else:
        bilm, softmax_is_new = load_weights(source), True
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
            f"The run in {output} is another one: {listed}. Go on under its own config, or start anew in another place: "
            f"configs/finetune.cfg starts from the weights of a run that is over."
        )
