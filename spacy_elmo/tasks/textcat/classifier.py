"""Docs to the scores of classes: token vectors, the biattentive network, and what spaCy's textcat expects of a model."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from spacy.util import replace_model_node
from thinc.api import Linear, Logistic, Model, Softmax, chain
from thinc.layers.resizable import resize_linear_weighted
from thinc.types import Floats2d

from .layer import biattention
from .network import Sizes

InT = list[Doc]
OutT = Floats2d  # (nB, nO)

# What a class starts from that is added to a trained softmax: hardly any share, but one that it can learn to leave.
# A logistic class starts from 0, which is a score of a half.
NEW_CLASS_BIAS = -20.0


def biattentive_classifier(
    tok2vec: Model[InT, list[Floats2d]],
    output: Model[InT, list[Floats2d]] | None,
    sizes: Sizes,
    *,
    exclusive_classes: bool,
    dropout: float | None,
    nO: int | None,
) -> Model[InT, OutT]:
    """Build a classifier of docs.

    tok2vec (Model): Docs to the vectors that the network reads.
    output (Model | None): Docs to the vectors that go beside its integrator's output.
    sizes (Sizes): The sizes of the network.
    exclusive_classes (bool): Whether a doc is of exactly one class.
    dropout (float | None): The network's dropout; None for [training.dropout].
    nO (int | None): The number of classes; None if it is to be found at initialization.
    RETURNS (Model): Docs to scores.
    """
    network = biattention(sizes, dropout=dropout)
    classes: Model[Floats2d, Floats2d] = (Softmax if exclusive_classes else Linear)(nO, network.get_dim("nO"))
    # The gradient of spaCy's textcat is that of the scores, which Softmax takes for that of its logits: cross-entropy.
    head: Model[Any, OutT] = chain(network, classes) if exclusive_classes else chain(network, classes, Logistic())
    tok2vecs = [tok2vec] if output is None else [tok2vec, output]
    return Model(
        "biattentive_classifier",
        forward,
        init=init,
        layers=[*tok2vecs, head],
        dims={"nO": nO},
        refs={"tok2vec": tok2vec, "output": output, "output_layer": classes},
        attrs={"multi_label": not exclusive_classes, "resize_output": resize_output},
    )


def init(model: Model[InT, OutT], X: InT | None = None, Y: OutT | None = None) -> None:
    *tok2vecs, head = model.layers
    if not X:
        raise ValueError("A spacy_elmo.BiattentiveClassifier.v1 finds its widths in a sample of docs: give it one.")
    for tok2vec in tok2vecs:
        tok2vec.initialize(X)
    # The widths are all that counts, and the sample's docs may be empty.
    sources = [[model.ops.alloc2f(1, tok2vec.predict(X)[0].shape[1])] for tok2vec in tok2vecs]
    head.initialize(sources, None if Y is None else Y[:1])
    model.set_dim("nO", model.get_ref("output_layer").get_dim("nO"))


def forward(model: Model[InT, OutT], docs: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    *tok2vecs, head = model.layers
    sources, backprop_sources = zip(*(tok2vec(docs, is_train) for tok2vec in tok2vecs), strict=True)
    # spaCy scores a batch of empty docs as 0 without asking the model. Here an empty doc gets that in any batch.
    read = [i for i, doc in enumerate(docs) if len(doc)]
    scores_BO = model.ops.alloc2f(len(docs), model.get_dim("nO"))
    if read:
        scores_BO[read], backprop_head = head([[vectors[i] for i in read] for vectors in sources], is_train)

    def backprop(d_scores_BO: OutT) -> InT:
        if read:
            d_sources = backprop_head(d_scores_BO[read])
            for vectors, d_vectors, backprop_source in zip(sources, d_sources, backprop_sources, strict=True):
                gradients = dict(zip(read, d_vectors, strict=True))
                # No tokens, no gradients: the vectors of an empty doc have the shape of theirs.
                backprop_source([gradients.get(i, vectors_TI) for i, vectors_TI in enumerate(vectors)])
        return []

    return scores_BO, backprop


def resize_output(model: Model[InT, OutT], nO: int) -> Model[InT, OutT]:
    """Make room for classes that are added, also after training: those that are there keep their weights.

    model (Model): The classifier.
    nO (int): How many classes it is to have.
    RETURNS (Model): The classifier itself.
    """
    old, head = model.get_ref("output_layer"), model.layers[-1]
    bias = 0.0 if model.attrs["multi_label"] else NEW_CLASS_BIAS
    replace_model_node(model, old, resize_linear_weighted(old, nO, fill_defaults={"W": 0.0, "b": bias}))
    for node in (model, head):
        node.set_dim("nO", nO, force=True)
    return model
