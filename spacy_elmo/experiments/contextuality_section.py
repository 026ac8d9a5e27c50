"""A section about how much of a vector is context."""

from collections.abc import Sequence

from ..charts.heat_map import draw_heat_map
from .formatting import format_count, format_layer, format_number
from .page import Block, Code, Figure, Paragraph, Section, Table
from .results import Result

QUESTION = "How much does a vector depend on its sentence?"
MEASURES = {
    "same_word": "same word",
    "same_sentence": "same sentence",
    "random_words": "any two words",
}
EXPLANATION = "Same word: a word in different sentences. Same sentence: a word and the mean of its sentence. Darker is more alike."


def make_contextuality_section(results: Sequence[Result]) -> Section:
    """Show how alike the vectors of a word are in different sentences.

    results (Sequence[Result]): Results of `spacy elmo contextuality`.
    RETURNS (Section): The section.
    """
    blocks: list[Block] = [Paragraph(_describe(result), "result") for result in results]
    blocks.append(
        Paragraph(
            "The numbers are cosines: 1 is the same direction. If a vector did not depend on its sentence, all uses of a word would "
            "have the same vector, and a cosine of 1. Vectors of any two words are alike to some degree, more so in some layers than "
            "in others, so the other numbers must be compared with that (Ethayarajh 2019)."
        )
    )
    for number, result in enumerate(results):
        layers = result["layers"]
        caption = (
            f"Mean cosines with {result['weights']}: {format_count(result['sentences'], 'sentence')}, "
            f"{format_count(result['tokens'], 'token')}, {format_count(result['words'], 'word')} in enough sentences to be compared"
        )
        rows = [[layer["name"], *(format_number(layer[key], 2) for key in MEASURES)] for layer in layers]
        single = [layer for layer in layers if len(layer["layers"]) == 1]
        chart = draw_heat_map(
            f"How alike vectors are, {result['weights']}",
            [layer["name"] for layer in single],
            [(name, [layer[key] for layer in single]) for key, name in MEASURES.items() if single[0][key] is not None],
        )
        blocks += [
            Figure(f"contextuality-{number}", EXPLANATION, chart),
            Table(caption, ["Layer", *MEASURES.values()], rows),
        ]
    blocks += [
        Paragraph(
            "Which layer to use? A task that needs the meaning of a word in its sentence wants a layer where uses of one word differ. "
            "A task that needs the word itself, such as its spelling, wants a layer where they do not. A learned weighted sum of all "
            "layers leaves the choice to training."
        ),
        Code("\n".join(result["command"] for result in results)),
    ]
    return Section(QUESTION, blocks)


def _describe(result: Result) -> str:
    single = [layer for layer in result["layers"] if len(layer["layers"]) == 1]
    if single[0]["same_word"] is None:
        return (
            f"No word is in enough of the {format_count(result['sentences'], 'sentence')}: read more text to find out."
        )
    most = min(single, key=lambda layer: layer["same_word"] - layer["random_words"])
    least = max(single, key=lambda layer: layer["same_word"] - layer["random_words"])
    return (
        f"Most in {format_layer(most['name'])} of {result['weights']}: two uses of the same word have a cosine of {most['same_word']:.2f} "
        f"there, against {most['random_words']:.2f} of any two words. In {format_layer(least['name'])} they have {least['same_word']:.2f} "
        f"against {least['random_words']:.2f}."
    )
