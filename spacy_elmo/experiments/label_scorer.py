"""spaCy's scores, and the scores of single tags, which spaCy does not compute."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from spacy.scorer import PRFScore, Scorer
from spacy.training import Example

ATTRIBUTES = ("tag", "pos")


class LabelScorer(Scorer):
    """spaCy's scorer. Where there is an accuracy of tags, it adds scores of each tag as `tag_per_type` or `pos_per_type`."""

    def score(self, examples: Iterable[Example], *, per_component: bool = False) -> dict[str, Any]:
        """Score examples.

        examples (Iterable[Example]): Predicted and gold docs.
        per_component (bool): Whether to group the scores by component. There are no scores of single tags then.
        RETURNS (dict[str, Any]): The scores.
        """
        examples = list(examples)
        scores = super().score(examples, per_component=per_component)
        for attribute in ATTRIBUTES:
            if not per_component and scores.get(f"{attribute}_acc") is not None:
                scores[f"{attribute}_per_type"] = score_tags(examples, f"{attribute}_")
        return scores


def score_tags(examples: Iterable[Example], attribute: str) -> dict[str, dict[str, float]]:
    """Score each tag. Like spaCy's accuracy, it ignores tokens without a gold tag and tokens that are not aligned one to one.

    examples (Iterable[Example]): Predicted and gold docs.
    attribute (str): The attribute of the token, such as "tag_".
    RETURNS (dict[str, dict[str, float]]): Precision, recall and F of each tag.
    """
    scores: dict[str, PRFScore] = defaultdict(PRFScore)
    for example in examples:
        gold = {(token.i, getattr(token, attribute)) for token in example.reference if getattr(token, attribute)}
        tagged = {i for i, _ in gold}
        aligned = example.alignment.x2y
        predicted = {
            (int(aligned[token.i][0]), getattr(token, attribute))
            for token in example.predicted
            if not token.is_space and aligned.lengths[token.i] == 1 and int(aligned[token.i][0]) in tagged
        }
        for tag in {tag for _, tag in gold | predicted if tag}:
            scores[tag].score_set(
                {pair for pair in predicted if pair[1] == tag}, {pair for pair in gold if pair[1] == tag}
            )
    return {tag: score.to_dict() for tag, score in sorted(scores.items())}
