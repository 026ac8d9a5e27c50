"""`spacy elmo init-vectors`, as typed, and a training that uses the vectors beside ELMo."""

from pathlib import Path

import pytest
import spacy

from ..command_line import run, run_spacy

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_task_reads_static_vectors_beside_elmo(tmp_path: Path) -> None:
    text = ROOT / "assets" / "sample" / "dev.txt"
    output = run("init-vectors", text, tmp_path / "vectors", "--lang", "en", "--width", "8", "--rows", "200")
    assert "200 rows of 8 values" in output
    assert "read 5 times" in output
    run_spacy("convert", ROOT / "assets" / "ner_sample" / "dev.conll", tmp_path, "--converter", "conll", "-n", "10")
    data = tmp_path / "dev.spacy"
    run_spacy(
        *("train", ROOT / "configs" / "ner.cfg", "--output", tmp_path / "out", "--training.max_steps", "2"),
        *("--training.eval_frequency", "2", "--paths.train", data, "--paths.dev", data),
        *("--paths.vectors", tmp_path / "vectors"),
        *("--components.ner.model.tok2vec.embed.include_static_vectors", "true"),
    )
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.vocab.vectors.shape == (200, 8)
    assert any(layer.name == "static_vectors" for layer in nlp.get_pipe("ner").model.walk())


def test_errors_are_reported(tmp_path: Path) -> None:
    assert "no corpus at" in run("init-vectors", tmp_path / "no.txt", tmp_path / "v", "--lang", "en", code=1)
    (tmp_path / "corpus.txt").write_text("Ada wrote it.\n", encoding="utf8")
    assert "xy" in run("init-vectors", tmp_path / "corpus.txt", tmp_path / "v", "--lang", "xy", code=1)
    assert not (tmp_path / "v").exists()
