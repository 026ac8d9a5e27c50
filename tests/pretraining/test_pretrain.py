"""From a config to a run: corpora, vocabularies and weights to start from, and what can be wrong with them."""

import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from spacy_elmo.bilm.weights import load_config, save_weights
from spacy_elmo.pretraining.model_files import load_language_model, tokenizer_lang_of
from spacy_elmo.pretraining.perplexity import measure_likelihood
from spacy_elmo.pretraining.pretrain import pretrain
from spacy_elmo.pretraining.vocabulary import count_words

from ..helpers import random_bilm
from .runs import FINETUNE, TINY, resume_run, stop_run


def write_corpus(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"", "is empty: it has no sentence"),
        ("blank.txt", b"\n \n\n", "is empty: it has no sentence"),
        ("latin.txt", "caf\u00e9\n".encode("latin1"), "line 1: not UTF-8"),
        ("docs.spacy", b"no docs", "is not a file that spaCy's DocBin wrote"),
        ("lines.jsonl", b'{"txt": "no"}\n', 'expected an object with a "text"'),
        ("image.png", b"", "has an unsupported corpus format"),
    ],
)
def test_bad_corpora_are_in_the_message(
    tmp_path: Path, overrides: dict[str, Any], name: str, content: bytes, message: str
) -> None:
    overrides["paths.train"] = str(write_corpus(tmp_path / name, content))
    with pytest.raises(ValueError, match=message):
        pretrain(TINY, tmp_path / "out", overrides=overrides)


def test_mistakes_are_found_before_the_corpus_is_tokenized(tmp_path: Path, overrides: dict[str, Any]) -> None:
    adam = {"@optimizers": "Adam.v1", "learn_rate": 0.1}
    linear = {"@schedules": "constant.v1", "rate": 0.1}
    for changes, message in (
        (
            {"bilm_training.optimizer": adam},
            r"\[bilm_training\.optimizer\] does not return a torch optimizer",
        ),
        (
            {"bilm_training.schedule": linear},
            r"\[bilm_training\.schedule\] does not return a torch schedule",
        ),
        ({"bilm_training.optimizer.name": "AdamX"}, "'AdamX' is not a supported optimizer"),
        ({"paths.trian": "text.txt"}, r"\[paths\]: 'trian' is unknown \(did you mean 'train'\?\)"),
        ({"paths.dev": str(tmp_path / "no.txt")}, "There is no corpus at .*no.txt"),
        (
            {"paths.dev": str(Path(__file__))},
            "test_pretrain.py has an unsupported corpus format",
        ),
        ({"paths.vocab": str(tmp_path / "no.txt")}, "There is no vocabulary at .*no.txt. Make one with"),
        ({"corpus.lang": "xx_no"}, "xx_no"),
        ({"corpus.lang": "zh", "corpus.segmenter": "jeiba"}, "segmenter must be one of char, jieba, got 'jeiba'"),
        ({"corpus.segmenter": "jieba"}, "not for tokenized text"),
    ):
        with pytest.raises(ValueError, match=message):
            pretrain(TINY, tmp_path / "out", overrides={**overrides, **changes})
    finetuning = {name: value for name, value in overrides.items() if not name.startswith("bilm.")}
    with pytest.raises(ValueError, match="There is no weights directory at .*Bundled models: en_elmo_sm"):
        pretrain(FINETUNE, tmp_path / "out", overrides={**finetuning, "paths.weights": str(tmp_path / "no")})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("key", ["train", "dev"])
def test_runs_and_caches_inside_of_a_corpus(tmp_path: Path, overrides: dict[str, Any], key: str) -> None:
    (tmp_path / "corpus").mkdir()
    write_corpus(tmp_path / "corpus" / "a.txt", b"one line only .\n" * 20)
    overrides[f"paths.{key}"] = str(tmp_path / "corpus")
    with pytest.raises(
        ValueError, match=r"corpus/out is inside of the corpus .*/corpus, which would read its own output"
    ):
        pretrain(TINY, tmp_path / "corpus" / "out", overrides=overrides)
    overrides["paths.cache"] = str(tmp_path / "corpus" / "cache")
    with pytest.raises(
        ValueError, match=r"corpus/cache/corpus-.* is inside of the corpus .*/corpus, which would read its"
    ):
        pretrain(TINY, tmp_path / "out", overrides=overrides)
    assert [path.name for path in (tmp_path / "corpus").iterdir() if path.name != "cache"] == ["a.txt"]


@pytest.mark.parametrize("content", [b"one line only .\n", b"word " * 200_000, b"x" * 1_000_000])
def test_odd_corpora_are_fine(tmp_path: Path, overrides: dict[str, Any], content: bytes) -> None:
    overrides["paths.train"] = str(write_corpus(tmp_path / "odd.txt", content))
    result = pretrain(TINY, tmp_path / "out", overrides={**overrides, "vocabulary.min_count": 1})
    assert numpy.isfinite(list(result.likelihood.perplexities.values())).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<S>\t1\n</S>\t1\n<UNK>\t0\nrare\t1\nfrequent\t9\n", "is not sorted by frequency: 'frequent'"),
        ("<S>\t1\n</S>\t1\nthe\t5\n", "A vocabulary starts with <S>, </S>, <UNK>"),
        ("the\ncat\n", "line 1: expected a word, a tab and its frequency"),
    ],
)
def test_bad_vocabularies_are_in_the_message(
    tmp_path: Path, overrides: dict[str, Any], content: str, message: str
) -> None:
    (tmp_path / "vocab.txt").write_text(content)
    overrides["paths.vocab"] = str(tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match=message):
        pretrain(TINY, tmp_path / "out", overrides=overrides)


CHINESE = "数学是利用符号语言研究数量的学科。《九章算术》很老！\n"


def test_chinese_from_raw_text(tmp_path: Path, overrides: dict[str, Any]) -> None:
    text = write_corpus(tmp_path / "text.txt", CHINESE.encode() * 20)
    overrides |= {"paths.train": str(text), "paths.dev": str(text), "corpus.lang": "zh", "bilm.max_chars": None}
    lines: list[str] = []
    for segmenter in (None, "jieba"):
        output = tmp_path / f"{segmenter}"
        pretrain(TINY, output, overrides={**overrides, "corpus.segmenter": segmenter}, report=lines.append)
        model, vocabulary = load_language_model(output / "model-best")
        assert tokenizer_lang_of(output / "model-best") == "zh"
        assert (model.bilm.config.lang, model.bilm.config.segmenter) == ("zh", segmenter or "char")
        assert ("数学" in vocabulary.words, "数" in vocabulary.words) == (segmenter == "jieba", segmenter is None)
        assert model.bilm.config.max_chars == 146
    assert [line for line in lines if "max_chars" in line] == ["max_chars = 146: no word is cut"] * 2


def test_words_are_cut_as_for_the_weights(
    tmp_path: Path, overrides: dict[str, Any], finetuning: dict[str, Any]
) -> None:
    text = str(write_corpus(tmp_path / "text.txt", CHINESE.encode() * 20))
    chinese = {"paths.train": text, "paths.dev": text, "corpus.lang": "zh"}
    pretrain(TINY, tmp_path / "first", overrides={**overrides, **chinese, "corpus.segmenter": "jieba"})
    finetuning |= {**chinese, "paths.weights": str(tmp_path / "first" / "model-best")}
    stop_run(4, FINETUNE, tmp_path / "out", finetuning)
    assert load_config(tmp_path / "out" / "model-last").segmenter == "jieba"
    shutil.rmtree(tmp_path / "first")
    resume_run(FINETUNE, tmp_path / "out")
    assert load_config(tmp_path / "out" / "model-last").segmenter == "jieba"


def test_words_that_are_cut_are_reported(tmp_path: Path, overrides: dict[str, Any]) -> None:
    overrides["paths.train"] = str(write_corpus(tmp_path / "long.txt", f"a {'b' * 19} .\n".encode() * 20))
    lines: list[str] = []
    pretrain(TINY, tmp_path / "out", overrides=overrides, report=lines.append)
    assert lines[0] == "max_chars = 20: 1 word is cut, 33.333% of the tokens: a larger max_chars would help"


def test_a_new_softmax_is_trained_first(tmp_path: Path, finetuning: dict[str, Any]) -> None:
    bilm = random_bilm(3)
    save_weights(bilm, tmp_path / "weights")
    finetuning["paths.weights"] = str(tmp_path / "weights")
    stop_run(4, FINETUNE, tmp_path / "out", finetuning)
    frozen, vocabulary = load_language_model(tmp_path / "out" / "model-last")
    for name, parameter in bilm.named_parameters():
        assert torch.equal(parameter, frozen.bilm.get_parameter(name)), name
    shutil.rmtree(tmp_path / "weights")  # what the run needs of them is in its checkpoint
    softmax_before = frozen.softmax.weight.clone()
    result = resume_run(FINETUNE, tmp_path / "out")
    trained, _ = load_language_model(tmp_path / "out" / "model-last")
    for name, parameter in bilm.named_parameters():
        assert not torch.equal(parameter, trained.bilm.get_parameter(name)), name
    assert not torch.equal(softmax_before, trained.softmax.weight)
    dev = [line.split() for line in Path(finetuning["paths.dev"]).read_text().splitlines()]
    assert result.initial_perplexity == pytest.approx(measure_likelihood(frozen, vocabulary, dev).perplexities["mean"])


def test_weights_here_with_the_name_of_a_bundled_model(
    tmp_path: Path, finetuning: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_weights(random_bilm(3, lang="de"), Path("en_elmo_sm"))
    with pytest.raises(ValueError, match="'en_elmo_sm' is a bundled model, and a directory here as well"):
        pretrain(FINETUNE, tmp_path / "out", overrides={**finetuning, "paths.weights": "en_elmo_sm"})
    pretrain(FINETUNE, tmp_path / "out", overrides={**finetuning, "paths.weights": "./en_elmo_sm"})
    assert load_config(tmp_path / "out" / "model-best") == random_bilm(3, lang="de").config


def test_a_model_with_its_softmax_is_trained_at_once(
    tmp_path: Path, overrides: dict[str, Any], finetuning: dict[str, Any]
) -> None:
    first = pretrain(TINY, tmp_path / "first", overrides=overrides)
    finetuning |= {"paths.weights": str(tmp_path / "first" / "model-best")}
    finetuning |= {"bilm_training.carry_state": False, "bilm_training.eval_tokens": 20}  # before and after are of all
    second = pretrain(FINETUNE, tmp_path / "second", overrides=finetuning)
    assert second.initial_perplexity == pytest.approx(first.likelihood.perplexities["mean"])
    assert second.initial_perplexity is not None
    assert second.likelihood.perplexities["mean"] < second.initial_perplexity
    # Another vocabulary wants another softmax.
    count_words([["the", "cat"]], max_size=10).to_disk(tmp_path / "words.txt")
    third = pretrain(FINETUNE, tmp_path / "third", overrides={**finetuning, "paths.vocab": str(tmp_path / "words.txt")})
    model, vocabulary = load_language_model(tmp_path / "third" / "model-best")
    assert len(model.softmax.bias) == len(vocabulary) == 5
    assert third.initial_perplexity != second.initial_perplexity
