"""Fixtures of the experiments' tests."""

from pathlib import Path

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo.experiments.subsets import choose_docs

from .tagger import TAGGER_CONFIG, TAGS, before_update
from .written_trials import RARE, write_trials


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """Trials that were written and not run."""
    return write_trials(tmp_path / "baseline", {100.0: [0.40, 0.42, 0.47]}, labels={"PER": 0.5, RARE: 0.0})


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A config and docs with a tag that is missing in half of them."""
    before_update.clear()
    vocab = Vocab()
    docs = [Doc(vocab, words=["the", "cat", f"runs{i}"], tags=TAGS) for i in range(20)]
    rare = next(i for i in range(20) if i not in choose_docs(20, 50))
    docs[rare] = Doc(vocab, words=["the", "cat", "zzz"], tags=["DET", "NOUN", RARE])
    for name, part in {"train": docs, "dev": docs[:4], "test": docs}.items():
        DocBin(docs=part).to_disk(tmp_path / f"{name}.spacy")
    (tmp_path / "tagger.cfg").write_text(TAGGER_CONFIG, encoding="utf8")
    return tmp_path
