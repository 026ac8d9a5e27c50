"""Whether a vector depends on its sentence alone: fuzzed documents in other batches, orders, neighbours and processes.

    python benchmarks/purity.py --documents 1000000
    python benchmarks/purity.py --repetitions

All documents are compared in two batches, in another order and with other neighbours; one in ten also alone, in pairs and
in other processes, which takes ten times as long. It can be started and left: it prints the largest difference so far, and
where it was. Document number i is a function of its number alone.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy
import spacy
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc

DOCS_AT_ONCE, DOCS_OF_OTHER_BATCHES = 1000, 300
ALONE_EVERY = 10
LONG_EVERY = 1000  # one document in so many is long; every other one of these is one word many times
WORDS = [
    "the",
    "a",
    "of",
    "and",
    "to",
    "in",
    "was",
    "is",
    "that",
    "it",
    "on",
    "as",
    "for",
    "with",
    "he",
    "by",
    "at",
    "from",
    "cat",
    "dog",
    "play",
    "plays",
    "king",
    ",",
    ".",
    "!",
    "?",
    "(",
    ")",
    "-",
    "'",
]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789.,-_#@'\"äéßñç日本語한국어пример🦆👩\u200d🚀\u0301\u00a0"

Vectors = NDArray[Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000, help="How many documents to compare")
    parser.add_argument("--first", type=int, default=0, help="The number of the first one")
    parser.add_argument("--precision", choices=["float32", "int8"], default="float32")
    parser.add_argument("--processes", type=int, default=0, help="Compare also with this many processes")
    parser.add_argument("--repetitions", action="store_true", help="Compare repetitions of one word instead")
    arguments = parser.parse_args()
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"precision": arguments.precision})
    if arguments.repetitions:
        compare_repetitions(nlp)
    else:
        compare_documents(nlp, arguments.first, arguments.documents, arguments.processes)


def compare_documents(nlp: Language, first: int, count: int, n_processes: int) -> None:
    worst: dict[str, tuple[float, int]] = {}
    start = shown = time.monotonic()
    for done in range(0, count, DOCS_AT_ONCE):
        numbers = list(range(first + done, first + min(done + DOCS_AT_ONCE, count)))
        shuffled = Random(first + done).sample(numbers, len(numbers))
        some = shuffled[::ALONE_EVERY]
        expected = dict(embed(nlp, numbers, batch_size=DOCS_AT_ONCE))
        ways = {
            "another batch": embed(nlp, shuffled, batch_size=DOCS_OF_OTHER_BATCHES),
            "alone": ((i, vectors_of(nlp(make_doc(nlp, i)))) for i in some),
            "pairs": embed(nlp, some, batch_size=2),
        }
        if n_processes:
            ways["other processes"] = embed(nlp, some, batch_size=20, n_process=n_processes)
        for way, vectors_of_way in ways.items():
            for i, found in vectors_of_way:
                if not numpy.isfinite(found).all():
                    sys.exit(f"Document {i} has a value that is not finite")
                difference = float(abs(found - expected[i]).max()) if found.size else 0.0
                name = f"{way}, one word repeated" if is_repetition(i) else way
                if difference > worst.get(name, (-1.0, 0))[0]:
                    worst[name] = (difference, i)
        n_done = numbers[-1] - first + 1
        if time.monotonic() - shown > 30 or n_done == count:
            shown = time.monotonic()
            listed = ", ".join(f"{way} {difference:.1e} (document {i})" for way, (difference, i) in worst.items())
            print(f"{n_done:,} documents in {shown - start:.0f} s: {listed}", flush=True)


def embed(nlp: Language, numbers: list[int], *, batch_size: int, n_process: int = 1) -> Iterator[tuple[int, Vectors]]:
    """YIELDS (tuple): The number of each document, and its vectors."""
    docs = nlp.pipe([make_doc(nlp, i) for i in numbers], batch_size=batch_size, n_process=n_process)
    for i, doc in zip(numbers, docs, strict=True):
        yield i, vectors_of(doc)


def compare_repetitions(nlp: Language) -> None:
    """Compare one word 3,000 times, alone and beside others, in one window and in the usual ones; and with float64."""
    n_words, words = 3000, ["the", "duck", "!", ".", ",", "-"]
    others = [Doc(nlp.vocab, words=["cat"] * n) for n in (3000, 2999, 2000, 1000, 100)]
    elmo: Any = nlp.get_pipe("elmo")
    bilm = elmo.load()
    exact = spacy.blank("xx").add_pipe("elmo", config={"frozen": False, "window": 5000}).load().double()  # type: ignore[attr-defined]
    from spacy_elmo.bilm.embed import embed_sentences  # after the weights are read, as in the component

    print(
        "| word | one window: alone and in a batch | alone and in float64 | in a batch and in float64 | usual windows |"
    )
    print("|---|---|---|---|---|")
    for word in words:
        doc = Doc(nlp.vocab, words=[word] * n_words)
        sentences = [[word] * n_words, *([token.text for token in other] for other in others)]
        with torch.no_grad():
            alone = embed_sentences(bilm, sentences[:1], max_batch_items=10**6)[0].numpy()
            beside = embed_sentences(bilm, sentences, max_batch_items=10**6)[0].numpy()
            in_64 = embed_sentences(exact, sentences[:1], max_batch_items=10**6)[0].numpy()
        (usual,), (also, *_) = (elmo.predict(docs)[0] for docs in ([doc], [doc, *others]))
        pairs = ((alone, beside), (alone, in_64), (beside, in_64), (usual, also))
        print(f"| {word} | " + " | ".join(f"{abs(one - other).max():.1e}" for one, other in pairs) + " |", flush=True)


def make_doc(nlp: Language, number: int) -> Doc:
    """Make a document: usual and unusual words, in sentences or not, empty, long, or one word many times."""
    random = Random(number)
    n_words = random.choice([0, 1, 1, 2, 3, 5, 8, 12, 20, 30]) if number % LONG_EVERY else random.randint(100, 700)
    words = [_make_word(random) for _ in range(n_words)]
    if is_repetition(number):
        words = words[:1] * n_words
    starts: list[bool | int | None] | None = (
        [i == 0 or random.random() < 0.1 for i in range(len(words))] if random.random() < 0.5 else None
    )
    return Doc(nlp.vocab, words=words, sent_starts=starts)


def is_repetition(number: int) -> bool:
    """RETURNS (bool): Whether a document is one word many times, for which some models amplify rounding without bound."""
    return number % (2 * LONG_EVERY) == LONG_EVERY


def _make_word(random: Random) -> str:
    kind = random.random()
    if kind < 0.7:
        return random.choice(WORDS)
    if kind < 0.98:
        return "".join(random.choices(LETTERS, k=random.choice([1, 2, 4, 7, 12])))
    return random.choice(["x" * 60, " ", "\n", "<S>", "</S>", "a" * 3000, "\ufffd"])


def vectors_of(doc: Doc) -> Vectors:
    """RETURNS (NDArray): layers_LTW."""
    layers_LTW: Vectors = doc._.elmo_layers
    return layers_LTW


if __name__ == "__main__":
    main()
