"""spaCy's scores, and those of single tags, which spaCy leaves out."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from spacy.scorer import PRFScore, Scorer
from spacy.training import Example

ATTRIBUTES = ("tag", "pos")


class LabelScorer(Scorer):
    """Score as spaCy does; where tags are right or wrong, tag by tag as well, under `tag_per_type` or `pos_per_type`."""

    def score(self, examples: Iterable[Example], *, per_component: bool = False) -> dict[str, Any]:
        """Score examples.

        examples (Iterable[Example]): Predictions beside what is right.
        per_component (bool): Whether scores are grouped by component. Tags are then not scored one by one.
        RETURNS (dict[str, Any]): The scores.
        """
        examples = list(examples)
        scores = super().score(examples, per_component=per_component)
        for attribute in ATTRIBUTES:
            if not per_component and scores.get(f"{attribute}_acc") is not None:
                scores[f"{attribute}_per_type"] = score_tags(examples, f"{attribute}_")
        return scores


def score_tags(examples: Iterable[Example], attribute: str) -> dict[str, dict[str, float]]:
    """Score each tag. What spaCy leaves out of its accuracy is left out here: tokens that are not those of the gold standard,
    and those whose tag is not known.

    examples (Iterable[Example]): Predictions beside what is right.
    attribute (str): The token's attribute, such as "tag_".
    RETURNS (dict[str, dict[str, float]]): Precision, recall and F of each tag that there is.
    """
    scores: dict[str, PRFScore] = defaultdict(PRFScore)
    for example in examples:
        gold = {(token.i, getattr(token, attribute)) for token in example.reference if getattr(token, attribute)}
        known = {i for i, _ in gold}
        aligned = example.alignment.x2y
        predicted = {
            (int(aligned[token.i][0]), getattr(token, attribute))
            for token in example.predicted
            if not token.is_space and aligned.lengths[token.i] == 1 and int(aligned[token.i][0]) in known
        }
        for tag in {tag for _, tag in gold | predicted if tag}:
            scores[tag].score_set(
                {pair for pair in predicted if pair[1] == tag}, {pair for pair in gold if pair[1] == tag}
            )
    return {tag: score.to_dict() for tag, score in sorted(scores.items())}
