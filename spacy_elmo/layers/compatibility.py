"""Whether weights fit a pipeline: its language, and how its tokenizer cuts words."""

from typing import TYPE_CHECKING

from spacy.language import Language

if TYPE_CHECKING:
    from ..bilm.config import BiLMConfig


def find_mismatch(config: "BiLMConfig", nlp: Language, name: str) -> str | None:
    """Compare the text that weights were trained on with the text of a pipeline.

    config (BiLMConfig): What is stored with the weights. What it does not say fits everything.
    nlp (Language): The pipeline.
    name (str): The component that has the weights.
    RETURNS (str | None): What does not fit, and what to do, or None.
    """
    if config.lang != nlp.lang and {None, "xx"}.isdisjoint((config.lang, nlp.lang)):
        return (
            f"The pipeline is for the language {nlp.lang!r}, but the weights of {name!r} are of {config.lang!r}, so its vectors "
            f"will be of little use. Set weights to a directory for {nlp.lang!r}: `python -m spacy elmo convert` makes one from "
            f"published weights, and `python -m spacy elmo pretrain` from text."
        )
    segmenter = getattr(nlp.tokenizer, "segmenter", config.segmenter)  # Chinese only
    if config.segmenter not in (None, segmenter):
        return (
            f"The weights of {name!r} were trained on words as {config.segmenter!r} cuts them, but the tokenizer of the pipeline "
            f'cuts by {segmenter!r}. Set segmenter = "{config.segmenter}" in [nlp.tokenizer]. If all docs come with words of '
            f"their own, such as those of a treebank, there is nothing to do."
        )
    return None
