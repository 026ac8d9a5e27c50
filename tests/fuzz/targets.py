"""Everything that reads files, with small files that it can read, to be damaged."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.util import load_config
from spacy.vocab import Vocab

from spacy_elmo.analysis.nearest_uses import USES_FILE, read_uses
from spacy_elmo.bilm import weights as weights_io
from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.bilm.int8 import to_int8
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.corpora.read import read_corpus
from spacy_elmo.embedding.extras import import_arrow, import_parquet
from spacy_elmo.embedding.plan import read_plan
from spacy_elmo.embedding.scan import make_plan, read_shard
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.experiments.comparison import compare_trial_sets
from spacy_elmo.experiments.pretraining_section import make_pretraining_section
from spacy_elmo.experiments.trial_set import read_trial_sets
from spacy_elmo.formats import bilm_tf, detect_format, elmoformanylangs
from spacy_elmo.formats.archives import unpacked
from spacy_elmo.pretraining.checkpoint import Checkpoint
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import load_language_model, save_language_model
from spacy_elmo.pretraining.prepare import find_prepared, prepare_corpus
from spacy_elmo.pretraining.settings import load_run_config, read_settings
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words
from spacy_elmo.tasks.textcat import weights as classifier_io
from spacy_elmo.tasks.textcat.network import BiattentiveNetwork, Sizes

from ..experiments.written_trials import write_trials
from ..helpers import published_arrays, published_options, random_bilm, write_published

ROOT = Path(__file__).parents[2]
LEGACY = ROOT / "tests" / "legacy" / "0.1.0"
MANY_LANGS = ROOT / "tests" / "golden" / "many_langs" / "both"
SENTENCES = [["the", "cat", "sees", "a", "fish"], ["a", "naïve", "日本"], ["the", "dog"]]
TEXT = "".join(f"{' '.join(words)}\n" for words in SENTENCES)
TINY: dict[str, Any] = {
    "filters": [[1, 2], [2, 3]],
    "projection": 3,
    "cells": 4,
    "depth": 1,
    "char_dim": 2,
    "max_chars": 10,
}

Write = Callable[[Path], None]
Read = Callable[[Path], object]


@dataclass(frozen=True, kw_only=True)
class Target:
    """A reader.

    write (Write): Writes files that it can read into a directory.
    read (Read): Reads them, and uses what was read.
    where (str | None): What an error has to name; None for the path of the directory.
    share (int): How many inputs it gets, compared with others. Slow readers get few.
    damaged (Iterable[str]): The files to damage, as patterns; the others are spaCy's or not read.
    foreign (bool): Whether spaCy reads the files as well: it may refuse them in its own way.
    """

    write: Write
    read: Read
    where: str | None = None
    share: int = 20
    damaged: Iterable[str] = ("*",)
    foreign: bool = False


def _run(bilm: BiLM) -> None:
    with torch.no_grad():
        embed_sentences(bilm, SENTENCES[:2], max_batch_items=100)


def _read_zip(directory: Path) -> None:
    with unpacked([directory / "a.zip"]) as paths:
        _run(detect_format(paths).read(paths))


def _write_language_model(directory: Path) -> None:
    vocabulary = count_words(SENTENCES, max_size=20)
    bilm = random_bilm(1, **TINY)
    softmax = Softmax(len(vocabulary), bilm.config.projection).initialize(1, vocabulary.counts)
    save_language_model(LanguageModel(bilm, softmax), vocabulary, directory / "lm")
    for path in (directory / "lm").iterdir():
        path.rename(directory / path.name)
    (directory / "lm").rmdir()


def _read_language_model(directory: Path) -> None:
    load_language_model(directory)


def _write_classifier(directory: Path) -> None:
    sizes = Sizes(
        feedforward_width=2, encoder_width=2, integrator_width=2, maxout_width=2, maxout_depth=2, maxout_pieces=2
    )
    (directory / "classifier").write_bytes(classifier_io.to_bytes(BiattentiveNetwork(sizes, 3)))


def _write_docs(path: Path) -> None:
    nlp = spacy.blank("en")
    docs = []
    for words in SENTENCES:
        doc = Doc(nlp.vocab, words=words, sent_starts=[i in (0, 2) for i in range(len(words))])
        doc.cats = {"a": 1.0}
        doc.user_data["b"] = 1
        docs.append(doc)
    heads = Doc(nlp.vocab, words=["a", "b", "c"], heads=[1, 1, 1], deps=["x", "ROOT", "y"], ents=["B-A", "I-A", "O"])
    heads.spans["all"] = [heads[0:2]]
    path.write_bytes(DocBin(docs=[*docs, heads], store_user_data=True).to_bytes())


def _write_jsonl(path: Path) -> None:
    rows = [{"id": i, "text": " ".join(words), "year": 2000 + i} for i, words in enumerate(SENTENCES)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")


def _write_parquet(path: Path) -> None:
    table = import_arrow().table(
        {"id": ["a", "b", "c"], "text": [" ".join(words) for words in SENTENCES], "n": [1, 2, None]}
    )
    import_parquet().write_table(table, path)


def _write_records(directory: Path) -> None:
    (directory / "a.txt").write_text(TEXT, encoding="utf8")
    _write_jsonl(directory / "b.jsonl")
    (directory / "c.jsonl.gz").write_bytes(gzip.compress((directory / "b.jsonl").read_bytes()))
    _write_docs(directory / "d.spacy")
    _write_parquet(directory / "e.parquet")


EMBEDDING = EmbeddingSettings(skip_bad_rows=True, shard_size=40)


def _read_records(directory: Path) -> None:
    plan = make_plan(directory, EMBEDDING, {}, lambda n_bytes: None)
    for shard in plan.shards:
        list(read_shard(directory, shard, EMBEDDING, Vocab()))


def _write_plan(directory: Path) -> None:
    (directory / "corpus").mkdir()
    (directory / "corpus" / "a.txt").write_text(TEXT, encoding="utf8")
    make_plan(directory / "corpus", EMBEDDING, {"torch": "2"}, lambda n_bytes: None).to_disk(directory)


def _corpus(name: str, write: Write, **options: Any) -> Target:
    def write_file(directory: Path) -> None:
        path = directory / name.removesuffix(".gz")
        write(path)
        if name.endswith(".gz"):
            (directory / name).write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()

    lang = options.pop("lang", None)
    return Target(write=write_file, read=lambda directory: list(read_corpus(directory, lang=lang)), **options)


def _write_text(path: Path) -> None:
    path.write_text(TEXT, encoding="utf8")


def _copy(*parts: str) -> Write:
    def write(directory: Path) -> None:
        source = LEGACY.joinpath(*parts)
        if source.is_dir():
            shutil.copytree(source, directory, dirs_exist_ok=True)
        else:
            shutil.copy(source, directory)

    return write


@cache
def _pipeline(name: str) -> Language:
    return spacy.load(LEGACY / "pipelines" / name)


def _component(pipeline: str, name: str) -> Target:
    return Target(
        write=_copy("pipelines", pipeline, name),
        read=lambda directory: _pipeline(pipeline).get_pipe(name).from_disk(directory, exclude=["vocab"]),
        damaged=("model", "cfg"),
        share=10,
    )


@cache
def _blank() -> Language:
    return spacy.blank("xx")


def _read_pipeline(directory: Path) -> None:
    spacy.load(directory)("the cat")


def _read_pipeline_config(directory: Path) -> None:
    spacy.util.load_model_from_config(load_config(directory / "config.cfg"), auto_fill=True, validate=True)


def _write_trials(directory: Path) -> None:
    for name in ("baseline", "elmo"):
        write_trials(directory / name, {50.0: [0.5], 100.0: [0.6, 0.7]}, labels={"A": 0.5})


def _read_trials(directory: Path) -> None:
    compare_trial_sets(read_trial_sets([directory / "baseline", directory / "elmo"]))


def _write_run(directory: Path) -> None:
    for name in ("metrics.jsonl", "scores.json"):
        _copy("pretraining", "whole", name)(directory)


def _write_prepared(directory: Path) -> None:
    (directory / "a.txt").write_text(TEXT, encoding="utf8")
    prepare_corpus(directory / "a.txt", directory / "prepared", lang=None)


def _read_prepared(directory: Path) -> None:
    list(prepare_corpus(directory / "a.txt", directory / "prepared", lang=None))
    find_prepared(directory / "prepared")


TARGETS: dict[str, Target] = {
    "weights": Target(
        write=lambda directory: weights_io.write_weights(random_bilm(1, **TINY), directory),
        read=lambda directory: _run(weights_io.load_stored(directory)),
        share=60,
    ),
    "weights in int8": Target(
        write=lambda directory: weights_io.write_weights(to_int8(random_bilm(1, **TINY)), directory),
        read=lambda directory: _run(weights_io.load_stored(directory)),
        share=5,
    ),
    "serialized biLM": Target(
        write=lambda directory: (directory / "bilm").write_bytes(weights_io.to_bytes(random_bilm(1, **TINY))) and None,
        read=lambda directory: _run(weights_io.from_bytes((directory / "bilm").read_bytes())),
        where="the serialized biLM",
    ),
    "published weights": Target(
        write=lambda directory: (
            write_published(directory, published_options(**TINY), published_arrays(published_options(**TINY))) and None
        ),
        read=lambda directory: _run(bilm_tf.read([directory / "options.json", directory / "weights.hdf5"])),
        share=60,
    ),
    "ELMoForManyLangs": Target(
        write=lambda directory: shutil.copytree(MANY_LANGS, directory, dirs_exist_ok=True) and None,
        read=lambda directory: _run(elmoformanylangs.read([directory])),
        damaged=("*.pkl", "*.dic", "*.json"),
    ),
    "ZIP": Target(
        write=lambda directory: shutil.make_archive(str(directory / "a"), "zip", MANY_LANGS) and None,
        read=_read_zip,
    ),
    "language model": Target(write=_write_language_model, read=_read_language_model),
    "vocabulary": Target(
        write=lambda directory: count_words(SENTENCES, max_size=20).to_disk(directory / "vocab.txt"),
        read=lambda directory: Vocabulary.from_disk(directory / "vocab.txt").unigram_perplexity,
        share=60,
    ),
    "checkpoint": Target(
        write=_copy("pretraining", "stopped", "checkpoint.safetensors"),
        read=lambda directory: Checkpoint.from_disk(directory / "checkpoint.safetensors"),
    ),
    "txt": _corpus("a.txt", _write_text, share=60),
    "txt, raw": _corpus("a.txt", _write_text, lang="en", share=20),
    "txt.gz": _corpus("a.txt.gz", _write_text, share=60),
    "jsonl": _corpus("a.jsonl", _write_jsonl, share=60),
    "jsonl.gz": _corpus("a.jsonl.gz", _write_jsonl, share=60),
    "spacy": _corpus("a.spacy", _write_docs, share=60),
    "spacy.gz": _corpus("a.spacy.gz", _write_docs),
    "rows to embed": Target(write=_write_records, read=_read_records),
    "plan of an embedding": Target(write=_write_plan, read=read_plan, damaged=("_plan.json",), share=60),
    "config of a pretraining": Target(
        write=lambda directory: shutil.copy(ROOT / "configs" / "pretrain_tiny.cfg", directory / "a.cfg") and None,
        read=lambda directory: read_settings(load_run_config(directory / "a.cfg", {})),
        foreign=True,
    ),
    "config of a pipeline": Target(
        write=_copy("pipelines", "listeners", "config.cfg"), read=_read_pipeline_config, foreign=True, share=1
    ),
    "component elmo": _component("listeners", "elmo"),
    "component crf_ner": _component("tasks", "crf_ner"),
    "classifier": Target(
        write=_write_classifier,
        read=lambda directory: classifier_io.from_bytes((directory / "classifier").read_bytes()),
        where="the serialized classifier",
    ),
    "pipeline": Target(
        write=_copy("pipelines", "listeners"),
        read=_read_pipeline,
        damaged=("config.cfg", "meta.json", "elmo/*"),
        foreign=True,
        share=1,
    ),
    "trials": Target(write=_write_trials, read=_read_trials, share=10),
    "metrics of a pretraining": Target(write=_write_run, read=make_pretraining_section),
    "tokenized corpus": Target(write=_write_prepared, read=_read_prepared, damaged=("prepared/corpus.json",)),
    "sentences with senses": Target(
        write=lambda directory: (
            (directory / "a.tsv").write_bytes(b"\n".join(USES_FILE.read_bytes().split(b"\n")[:3])) and None
        ),
        read=lambda directory: read_uses(_blank(), directory / "a.tsv"),
    ),
}
