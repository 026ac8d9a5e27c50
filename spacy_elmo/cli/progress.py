"""Progress bars that several commands show."""

from collections.abc import Iterable

from tqdm import tqdm


def show_sentences(sentences: Iterable[list[str]], title: str) -> Iterable[list[str]]:
    """Show how many sentences were read.

    sentences (Iterable[list[str]]): The sentences.
    title (str): What is done with them.
    RETURNS (Iterable[list[str]]): The same sentences.
    """
    return tqdm(sentences, unit=" sentences", desc=title, disable=None)  # type: ignore[no-any-return]
