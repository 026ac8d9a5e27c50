"""The sentences of a doc, as a language model reads them."""

from collections.abc import Iterator

from spacy.tokens import Doc, Token


def doc_sentences(doc: Doc) -> Iterator[list[Token]]:
    """Give the sentences of a doc where they are set, and the whole doc as one otherwise.

    Whitespace is left out: no language model is trained on it, and a double space must not change its neighbours.

    doc (Doc): The doc.
    YIELDS (list[Token]): The tokens of a sentence, at least one.
    """
    for span in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
        # Not is_space, which a vocab without a language does not know.
        tokens = [token for token in span if not token.text.isspace()]
        if tokens:
            yield tokens
