"""The state of the LSTMs, which is an argument and a result of every function that runs them."""

from typing import NamedTuple

from torch import Tensor


class State(NamedTuple):
    """The state of the LSTMs between two tokens, for every layer and direction.

    hidden (Tensor): hidden_LABP, the projected outputs, which are inputs of the next step.
    cell (Tensor): cell_LABH, the memory cells.
    """

    hidden: Tensor
    cell: Tensor
