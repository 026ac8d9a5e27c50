"""The component `cjk_sentencizer`: sentences of languages that are written without spaces, as Chinese and Japanese are."""

from collections.abc import Iterable

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

# Not the full stop of Latin script: in such texts it is the point of a number or of an abbreviation, and a tokenizer that
# cuts characters makes a token of it. Nor "…" and "；", after which a sentence often continues.
ENDS = list("。｡︒！？!?︕︖﹗﹖‼⁇⁈⁉")

# Marks that belong to what follows. There is no space that would show it.
OPENING = frozenset("“‘「『《〈（【〔［｛〖〘〝﹁﹃﹙﹛﹝([{")


class CjkSentencizer(Sentencizer):  # type: ignore[misc]
    """spaCy's sentencizer with other marks at the ends of sentences, and with opening marks at their starts."""

    def predict(self, docs: Iterable[Doc]) -> list[list[bool]]:
        """Find the starts of sentences.

        docs (Iterable[Doc]): The docs.
        RETURNS (list[list[bool]]): For each token of each doc, whether a sentence starts there.
        """
        docs = list(docs)
        starts: list[list[bool]] = super().predict(docs)
        for doc, starts_T in zip(docs, starts, strict=True):
            for i in range(len(doc) - 1, 0, -1):
                if starts_T[i] and doc[i - 1].text in OPENING and not starts_T[i - 1]:
                    starts_T[i - 1], starts_T[i] = True, False
        return starts


@Language.factory(
    "cjk_sentencizer",
    assigns=["token.is_sent_start", "doc.sents"],
    default_config={"punct_chars": ENDS, "overwrite": False},
    default_score_weights={"sents_f": 1.0, "sents_p": 0.0, "sents_r": 0.0},
)
def make_cjk_sentencizer(nlp: Language, name: str, punct_chars: list[str], overwrite: bool) -> CjkSentencizer:
    """Make the component.

    nlp (Language): The pipeline.
    name (str): The name of the component.
    punct_chars (list[str]): The tokens that end a sentence.
    overwrite (bool): Whether existing sentence boundaries are replaced.
    RETURNS (CjkSentencizer): The component.
    """
    return CjkSentencizer(name, punct_chars=punct_chars, overwrite=overwrite)
