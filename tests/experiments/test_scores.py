"""Which scores a training optimizes."""

from spacy_elmo.experiments.scores import main_scores


def test_main_scores_are_those_with_weight() -> None:
    weights = {"ents_f": 0.4, "ents_p": 0.0, "cats_score": 0.6, "tag_acc": 1.0, "ents_per_type": None}
    scores = {"ents_f": 0.5, "ents_p": 0.5, "cats_score": 0.7, "cats_score_desc": "macro AUC", "tag_acc": None}
    assert main_scores({"scores": scores, "score_weights": weights}) == ["cats_macro_auc", "ents_f"]
    assert main_scores({"scores": {"cats_score": 0.5}, "score_weights": {"cats_score": 1.0}}) == ["cats_score"]
    # `cats_score` is a copy of another score, which may have a weight of its own.
    scores = {"cats_score": 0.5, "cats_score_desc": "macro F", "cats_macro_f": 0.5}
    weights = {"cats_macro_f": 0.5, "cats_score": 0.5}
    assert main_scores({"scores": scores, "score_weights": weights}) == ["cats_macro_f"]
