"""Docs to the scores of classes, for spaCy's `textcat`: a tok2vec, the biattentive network, and a softmax or logistic layer."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from spacy.util import registry, replace_model_node
from thinc.api import Linear, Logistic, Model, Softmax, chain
from thinc.layers.resizable import resize_linear_weighted
from thinc.types import Floats2d

InT = list[Doc]
OutT = Floats2d  # (nB, nO)

# The bias of a class that is added to a trained softmax: its probability is near 0, but training can still raise it.
# The bias of a new logistic class is 0, which is a score of 0.5.
NEW_CLASS_BIAS = -20.0


@registry.architectures("spacy_elmo.BiattentiveClassifier.v1")
def build_biattentive_classifier_v1(
    *,
    tok2vec: Model[InT, list[Floats2d]],
    exclusive_classes: bool,
    output: Model[InT, list[Floats2d]] | None = None,
    feedforward_width: int = 64,
    encoder_width: int = 64,
    integrator_width: int = 64,
    maxout_width: int = 64,
    maxout_depth: int = 2,
    maxout_pieces: int = 4,
    dropout: float | None = None,
    nO: int | None = None,
) -> Model[InT, OutT]:
    """Build a biattentive classification network (McCann et al. 2017), as the paper uses it for SST-5.

    tok2vec (Model): Docs to the vectors that the network reads: a listener, or any tok2vec.
    exclusive_classes (bool): Whether a doc has exactly one class: true for `textcat`, false for `textcat_multilabel`.
    output (Model | None): Docs to vectors that are concatenated with the integrator's output before pooling: another
        listener, for the paper's second mix.
    feedforward_width (int): Width of the layer that reads each token's vector.
    encoder_width (int): Hidden width of each direction of the LSTM below the attention.
    integrator_width (int): Hidden width of each direction of the LSTM above the attention.
    maxout_width, maxout_depth (int): Width and number of the maxout layers between pooling and scores.
    maxout_pieces (int): Each value of a maxout layer is the largest of this many candidates.
    dropout (float | None): The fraction of the network's values to drop while training; null for
        [training.dropout].
    nO (int | None): The number of classes; null to find it at initialization.
    RETURNS (Model): Docs to scores, one for each class. All scores of an empty doc are 0.
    """
    # spaCy imports every plugin at every start, so the torch modules are imported only where they are used.
    from .layer import biattention
    from .network import Sizes

    sizes = Sizes(
        feedforward_width=feedforward_width,
        encoder_width=encoder_width,
        integrator_width=integrator_width,
        maxout_width=maxout_width,
        maxout_depth=maxout_depth,
        maxout_pieces=maxout_pieces,
    )
    network = biattention(sizes, dropout=dropout)
    classes: Model[Floats2d, Floats2d] = (Softmax if exclusive_classes else Linear)(nO, network.get_dim("nO"))
    # spaCy's textcat passes scores minus gold. Softmax takes that as the gradient of its logits, which is cross-entropy.
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
        raise ValueError(
            "spacy_elmo.BiattentiveClassifier.v1 infers its widths from a sample of docs, but got none. Initialize it with docs."
        )
    for tok2vec in tok2vecs:
        tok2vec.initialize(X)
    # Only the widths matter, and the docs of the sample may be empty.
    sources = [[model.ops.alloc2f(1, tok2vec.predict(X)[0].shape[1])] for tok2vec in tok2vecs]
    head.initialize(sources, None if Y is None else Y[:1])
    model.set_dim("nO", model.get_ref("output_layer").get_dim("nO"))


def forward(model: Model[InT, OutT], docs: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    *tok2vecs, head = model.layers
    sources, backprop_sources = zip(*(tok2vec(docs, is_train) for tok2vec in tok2vecs), strict=True)
    # spaCy sets the scores of a batch of empty docs to 0 without calling the model. Here it is the same in any batch.
    read = [i for i, doc in enumerate(docs) if len(doc)]
    scores_BO = model.ops.alloc2f(len(docs), model.get_dim("nO"))
    if read:
        scores_BO[read], backprop_head = head([[vectors[i] for i in read] for vectors in sources], is_train)

    def backprop(d_scores_BO: OutT) -> InT:
        if read:
            d_sources = backprop_head(d_scores_BO[read])
            for vectors, d_vectors, backprop_source in zip(sources, d_sources, backprop_sources, strict=True):
                gradients = dict(zip(read, d_vectors, strict=True))
                # An empty doc has no gradients. Its vectors have the shape of its gradients.
                backprop_source([gradients.get(i, vectors_TI) for i, vectors_TI in enumerate(vectors)])
        return []

    return scores_BO, backprop


def resize_output(model: Model[InT, OutT], nO: int) -> Model[InT, OutT]:
    """Add classes to a classifier, even after training. Existing classes keep their weights.

    model (Model): The classifier.
    nO (int): The new number of classes.
    RETURNS (Model): The classifier itself.
    """
    old, head = model.get_ref("output_layer"), model.layers[-1]
    bias = 0.0 if model.attrs["multi_label"] else NEW_CLASS_BIAS
    replace_model_node(model, old, resize_linear_weighted(old, nO, fill_defaults={"W": 0.0, "b": bias}))
    for node in (model, head):
        node.set_dim("nO", nO, force=True)
    return model
