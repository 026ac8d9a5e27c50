"""Dropout with its own rate."""

from collections.abc import Callable
from functools import partial

from thinc.api import Model
from thinc.types import Floats2d

InT = list[Floats2d]  # for each doc: (nT, nO)
OutT = list[Floats2d]


def dropout(rate: float) -> Model[InT, OutT]:
    """Drop a fraction of the values in training, and scale up the rest.

    Thinc's own Dropout keeps its rate as `dropout_rate`, which spaCy sets to [training.dropout] in every layer before
    every update. The paper gives ELMo a higher rate than the rest of the task's model.

    rate (float): The fraction to drop, from 0 to below 1.
    """
    return Model("elmo_dropout", partial(forward, rate=rate))


def forward(
    model: Model[InT, OutT], vectors: InT, is_train: bool, *, rate: float
) -> tuple[OutT, Callable[[OutT], InT]]:
    if not is_train or rate == 0:
        return vectors, lambda d_vectors: d_vectors
    masks = [model.ops.get_dropout_mask(vectors_TO.shape, rate) for vectors_TO in vectors]

    def backprop(d_vectors: OutT) -> InT:
        return [dY_TO * mask for dY_TO, mask in zip(d_vectors, masks, strict=True)]

    return [vectors_TO * mask for vectors_TO, mask in zip(vectors, masks, strict=True)], backprop
