"""From a config to a trained model: tokenize the corpora, find the vocabulary, make or load the model, and run."""

import json
from collections.abc import Iterator
from dataclasses import replace
from glob import escape
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from confection import Config
from spacy.util import dict_to_dot

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import load_config, load_weights
from ..corpora.files import check_outside, find_files
from ..corpora.language_check import find_language_problem
from ..corpora.read import make_splitter, read_corpus
from ..corpora.statistics import compute_statistics
from ..corpora.tokenizer import DEFAULT_SEGMENTERS
from ..files.atomic import recover_directory, remove_leftovers
from ..models import find_existing_weights
from .checkpoint import Checkpoint, RunIdentity
from .language_model import LanguageModel
from .length import LENGTH_SETTINGS
from .model_files import has_softmax, load_language_model, vocabulary_of
from .optimizers import check_makers
from .output import BEST, CHECKPOINT, CORPORA, LAST, check_output
from .prepare import ShowProgress, TokenizedCorpus, find_origin, find_prepared, prepare_corpus
from .processes import is_first_process, join_processes
from .run import PretrainingRun, Report, Result
from .settings import CorpusSettings, PretrainingSettings, fill_defaults, load_run_config, read_settings
from .softmax import Softmax
from .stopping import catch_signals
from .vocabulary import Vocabulary, count_words

# Settings that may differ when a run is resumed. Corpora and vocabulary are compared by their contents, not by their paths;
# the weights that the run started from are not read again. A run can be made longer, which `PretrainingRun.restore` checks.
MAY_DIFFER_ON_RESUME = (
    *("paths.", "corpus.", "vocabulary.", "bilm.weights", "bilm_training.logger.", "bilm_training.checkpoint_minutes"),
    *(f"bilm_training.{name}" for name in LENGTH_SETTINGS),
)


def ignore(line: str) -> None:
    """Report nothing."""


def pretrain(
    config_path: Path,
    output: Path,
    *,
    overrides: dict[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    show_progress: ShowProgress | None = None,
    report: Report = ignore,
    warn: Report = ignore,
) -> Result:
    """Pretrain a language model. A script that calls this needs a main guard if `n_process` is above 1.

    config_path (Path): The run's config.
    output (Path): The run's directory.
    overrides (dict[str, Any] | None): Values that replace those of the config. A resumed run has its earlier ones, too.
    resume (bool): Whether to resume the run in that directory, from its checkpoint.
    overwrite (bool): Whether an existing run may be replaced, once all is ready for the new one.
    show_progress (ShowProgress | None): Shows the progress of tokenizing.
    report (Report): Called with each line of a summary, before the training starts.
    warn (Report): Called with what may be wrong with the language of the text, before it is tokenized.
    RETURNS (Result): The result. SIGTERM and SIGINT end the run before that: it finishes its step, writes a checkpoint and raises
        `Stopped`.
    """
    checkpoint = Checkpoint.from_disk(output / CHECKPOINT) if resume else None
    overrides = {**(checkpoint.identity.overrides if checkpoint else {}), **(overrides or {})}
    config = load_run_config(config_path, overrides)
    settings = read_settings(config)
    if checkpoint is not None:
        bilm = checkpoint.bilm
    elif isinstance(settings.bilm, Path):
        bilm = load_config(find_existing_weights(config["bilm"]["weights"]))
    else:
        bilm = settings.bilm
    settings = _follow_segmenter(settings, bilm)
    check_output(output, resume=resume, overwrite=overwrite)
    if checkpoint is not None:
        _check_same_config(config, checkpoint, output)
    else:
        _check_inputs(settings, output)
        if is_first_process():
            for problem in _find_language_problems(settings, bilm):
                warn(problem)
    check_makers(settings.make_optimizer, settings.make_schedule)
    with catch_signals() as signals, join_processes() as processes:
        with processes.first_before_others():
            if resume:
                for name in (BEST, LAST):
                    recover_directory(output / name)
            train_corpus, dev_corpus = (
                _prepare_corpus(Path(source), settings.corpus, output, known_sha256, show_progress)
                for source, known_sha256 in (
                    (settings.corpus.train, checkpoint.identity.train_sha256 if checkpoint else None),
                    (settings.corpus.dev, checkpoint.identity.dev_sha256 if checkpoint else None),
                )
            )
            vocabulary = _find_vocabulary(settings, train_corpus, output, resume=resume)
        processes.check_same(train_corpus.sha256, "training text")
        processes.check_same(dev_corpus.sha256, "dev text")
        if checkpoint is None and (processes.is_first or _chooses_max_chars(settings)):
            settings = _fit_max_chars(settings, bilm, train_corpus, report if processes.is_first else ignore)
        model, softmax_is_new = _make_model(settings, vocabulary, checkpoint)
        corpus = settings.corpus
        model.bilm.config = replace(
            model.bilm.config,
            lang=bilm.lang or corpus.lang,
            segmenter=corpus.segmenter or bilm.segmenter or DEFAULT_SEGMENTERS.get(corpus.lang or ""),
        )
        run = PretrainingRun(
            settings=settings,
            identity=RunIdentity(
                config=config,
                overrides=overrides,
                train_sha256=train_corpus.sha256,
                dev_sha256=dev_corpus.sha256,
                vocabulary_sha256=sha256("\n".join(vocabulary.words).encode("utf8")).hexdigest(),
            ),
            output=output,
            processes=processes,
            signals=signals,
            train_corpus=train_corpus,
            dev_corpus=dev_corpus,
            vocabulary=vocabulary,
            model=model.to(processes.device),
            softmax_is_new=softmax_is_new,
        )
        if checkpoint is not None:
            run.restore(checkpoint)
            checkpoint = None  # frees the memory: it is as large as the model and the averages of its optimizer
        return run.execute(report)


def _follow_segmenter(settings: PretrainingSettings, bilm: BiLMConfig) -> PretrainingSettings:
    """Cut words as a model's training text was cut, unless the config says how. A run that is resumed does as before."""
    corpus = settings.corpus
    if corpus.segmenter is not None or bilm.segmenter is None or bilm.lang != corpus.lang:
        return settings
    return replace(settings, corpus=corpus.model_copy(update={"segmenter": bilm.segmenter}))


def _check_inputs(settings: PretrainingSettings, output: Path) -> None:
    """Find missing files and unsupported formats before hours of tokenizing."""
    make_splitter(settings.corpus.lang, settings.corpus.segmenter)
    for source in (settings.corpus.train, settings.corpus.dev):
        find_files(Path(source))
        check_outside(output, Path(source))
    vocabulary = settings.vocabulary.path
    if vocabulary is not None and not Path(vocabulary).is_file():
        raise ValueError(f"There is no vocabulary at {vocabulary}. Make one with: python -m spacy elmo init-vocab")


def _find_language_problems(settings: PretrainingSettings, bilm: BiLMConfig) -> Iterator[str]:
    """Compare the languages of the text, of the config and of the weights."""
    corpus = settings.corpus
    if corpus.lang not in (None, "xx", bilm.lang) and bilm.lang not in (None, "xx"):
        yield f"[corpus] lang is {corpus.lang!r}, but the weights are of {bilm.lang!r}. They keep that language."
    lang = corpus.lang or bilm.lang
    if lang is not None:
        sentences = read_corpus(Path(corpus.train), lang=corpus.lang, segmenter=corpus.segmenter)
        problem = find_language_problem(sentences, lang)
        if problem is not None:
            yield f"{problem} Is [corpus] lang right? It also decides how the text is tokenized."


def _prepare_corpus(
    source: Path,
    settings: CorpusSettings,
    output: Path,
    known_sha256: str | None,
    show_progress: ShowProgress | None,
) -> TokenizedCorpus:
    """Tokenize a corpus, or find it in the cache. The names there identify the source and its version, so that runs can
    share a cache and none loses its text. A resumed run takes the text with its checksum, even if the source has changed."""
    cache = Path(settings.cache) if settings.cache else output / CORPORA
    name = f"{source.name}-{_digest(str(source.resolve()))}"
    for directory in sorted(cache.glob(f"{escape(name)}-*")) if known_sha256 else []:
        prepared = find_prepared(directory)
        if prepared is not None and prepared[0].sha256 == known_sha256:
            return prepared[0]
    directory = cache / f"{name}-{_digest(json.dumps(find_origin(source, settings.lang, settings.segmenter)))}"
    if not settings.cache:
        remove_leftovers(directory)  # of a run that was killed while it tokenized
    return prepare_corpus(
        source,
        directory,
        lang=settings.lang,
        segmenter=settings.segmenter,
        n_process=settings.n_process,
        show_progress=show_progress,
    )


def _digest(text: str) -> str:
    return sha1(text.encode("utf8", "surrogateescape")).hexdigest()[:8]


def _find_vocabulary(
    settings: PretrainingSettings, train_corpus: TokenizedCorpus, output: Path, *, resume: bool
) -> Vocabulary:
    """Take the given vocabulary, or that of the run or of the weights, or count the words of the training text."""
    path = settings.vocabulary.path
    if path is not None and (Path(path).exists() or not resume):
        return Vocabulary.from_disk(Path(path))
    if resume:
        return vocabulary_of(output / LAST)
    if isinstance(settings.bilm, Path) and has_softmax(settings.bilm):
        return vocabulary_of(settings.bilm)
    return count_words(train_corpus, max_size=settings.vocabulary.max_size, min_count=settings.vocabulary.min_count)


def _chooses_max_chars(settings: PretrainingSettings) -> bool:
    return isinstance(settings.bilm, BiLMConfig) and settings.max_chars is None


def _fit_max_chars(
    settings: PretrainingSettings, bilm: BiLMConfig, train_corpus: TokenizedCorpus, report: Report
) -> PretrainingSettings:
    """Report how many words are cut, by the given `max_chars` or that of the weights. If none is given, choose one for the
    script of the training text."""
    if bilm.characters is not None or not bilm.char_dim:
        return settings  # it does not read bytes
    is_new = isinstance(settings.bilm, BiLMConfig)
    statistics = compute_statistics(train_corpus, max_chars=settings.max_chars if is_new else bilm.max_chars)
    report(f"max_chars = {statistics.max_chars}: {statistics.describe_cut()}")
    return replace(settings, bilm=replace(bilm, max_chars=statistics.max_chars)) if is_new else settings


def _make_model(
    settings: PretrainingSettings, vocabulary: Vocabulary, checkpoint: Checkpoint | None
) -> tuple[LanguageModel, bool]:
    """Make a new model, or load one and give it a new softmax if it has none for these words. A resumed run needs only a
    model of the right sizes: its weights are in the checkpoint."""
    seed, source = settings.training.seed, settings.bilm
    if checkpoint is not None:
        bilm, softmax_is_new = BiLM(checkpoint.bilm), checkpoint.softmax_is_new
    elif isinstance(source, BiLMConfig):
        bilm, softmax_is_new = BiLM(source).initialize(seed), False
    elif has_softmax(source) and vocabulary_of(source).words == vocabulary.words:
        return load_language_model(source)[0], False
    else:
        bilm, softmax_is_new = load_weights(source), True
    softmax = Softmax(len(vocabulary), bilm.config.projection).initialize(seed + 1, vocabulary.counts)
    return LanguageModel(bilm, softmax), softmax_is_new


def _check_same_config(config: Config, checkpoint: Checkpoint, output: Path) -> None:
    """Refuse to resume a run under another config."""
    now, then = (
        {key: value for key, value in dict_to_dot(sections).items() if not key.startswith(MAY_DIFFER_ON_RESUME)}
        for sections in (fill_defaults(config), fill_defaults(checkpoint.identity.config))
    )
    for each in (now, then):
        if each.get("bilm.max_chars", 0) is None:  # left open by a config, and chosen by the run
            each["bilm.max_chars"] = checkpoint.bilm.max_chars
    changed = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))
    if changed:
        listed = ", ".join(f"{key} was {then.get(key)!r} and is {now.get(key)!r}" for key in changed[:5])
        raise ValueError(
            f"The run in {output} has another config: {listed}. Resume it with its own config, or start a new run in another "
            f"directory: configs/finetune.cfg starts from the weights of a finished run."
        )
