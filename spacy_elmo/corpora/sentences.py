"""Sentences: the words of one, and those of a doc as a language model reads them."""

from collections.abc import Iterator

from spacy.tokens import Doc, Token

Sentence = list[str]  # its words


def doc_sentences(doc: Doc) -> Iterator[list[Token]]:
    """Yield the sentences of a doc, or the whole doc as one if no sentences are set.

    Whitespace is left out: no language model is trained on it, and a double space must not change its neighbours.

    doc (Doc): The doc.
    YIELDS (list[Token]): The tokens of a sentence, at least one.
    """
    for span in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
        # Not is_space, which a vocab without a language does not have.
        tokens = [token for token in span if not token.text.isspace()]
        if tokens:
            yield tokens
