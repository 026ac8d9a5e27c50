"""A section about word senses: table 5 of the paper."""

from collections.abc import Sequence

from .formatting import format_count, format_layer, format_number
from .page import Block, Code, Paragraph, Section, Table
from .paper import SENSES
from .results import Result

QUESTION = "Which layer knows what a word means?"


def make_sense_section(results: Sequence[Result]) -> Section:
    """Show how often the nearest sense is the right one, layer by layer.

    results (Sequence[Result]): Results of `spacy elmo senses`.
    RETURNS (Section): The section.
    """
    blocks: list[Block] = [Paragraph(_find_best(result), "result") for result in results]
    blocks.append(
        Paragraph(
            "The vectors of all training examples of a sense are averaged. A word in a new sentence gets the sense of its lemma "
            "whose average is nearest, and its first sense in the dictionary if the training data do not have the lemma. “First sense” "
            "always takes the first sense of the dictionary, “most frequent sense” that of the training data."
        )
    )
    for result in results:
        names = [test["name"] for test in result["tests"]]
        rows = [
            [
                found["name"],
                *(format_number(score, 1) for score in (*map(found["f1"].get, names), SENSES.get(found["name"]))),
            ]
            for found in (*result["baselines"], *result["layers"])
        ]
        train, n_tests = result["train"], result["tests"][-1]["instances"]  # the last one is all of them together
        caption = (
            f"F1 in per cent with {result['weights']}: {format_count(train['instances'], 'training example')} of "
            f"{format_count(train['senses'], 'sense')}, {format_count(n_tests, 'test example')}. The last column is table 5 of the "
            f"paper, with SemCor and the five test sets of Raganato et al. (2017)"
        )
        blocks.append(Table(caption, ["Sense from", *names, "Paper"], rows))
    return Section(QUESTION, [*blocks, Code("\n".join(result["command"] for result in results))])


def _find_best(result: Result) -> str:
    test = result["tests"][-1]["name"]
    layers = [found for found in result["layers"] if len(found["layers"]) == 1]
    best = max(layers, key=lambda found: found["f1"][test])
    text = f"Of the single layers of {result['weights']}, {format_layer(best['name'])} finds the right sense most often: F1 {best['f1'][test]:.1f}"
    if not result["baselines"]:
        return f"{text}."
    baseline = max(result["baselines"], key=lambda found: found["f1"][test])
    difference = best["f1"][test] - baseline["f1"][test]
    above = "above" if difference > 0 else "below"
    return f"{text}, {abs(difference):.1f} points {above} the {baseline['name']} ({baseline['f1'][test]:.1f})."
