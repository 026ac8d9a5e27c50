"""Characters to token vectors: filters, max-pooling, highways, projection.

Shape suffixes in addition to those of lstm.py: V character id, C position in a word, D character embedding, F filter.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .characters import N_CHARACTERS
from .config import BiLMConfig
from .precision import product_dtype


class CharCNN(nn.Module):
    """The context-free token encoder (Peters et al. 2018, section 2.4; Kim et al. 2016).

    config (BiLMConfig): The sizes.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        # Without given values, nn.Embedding on the meta device makes torch import its compiler, which takes two seconds.
        values_VD = torch.empty(N_CHARACTERS, config.char_dim)
        self.embedding = nn.Embedding(N_CHARACTERS, config.char_dim, _weight=values_VD)
        # A filter is a linear layer over the characters in its window. A matrix product is equally fast for any number
        # of words, while conv1d has a set-up cost for each new batch shape.
        self.filters = nn.ModuleList(nn.Linear(width * config.char_dim, count) for width, count in config.filters)
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.highways))
        self.projection = (
            nn.Linear(config.n_filters, config.projection) if config.n_filters != config.projection else nn.Identity()
        )

    def forward(self, chars_UC: Tensor) -> Tensor:
        """Encode words from their characters, without context.

        chars_UC (Tensor): Character ids, padded to the same length. The max-pool includes the padding: a word needs at
            least `widest_filter` padding characters, or `max_chars` in all, for the same vector in every batch.
        RETURNS (Tensor): vectors_UP.
        """
        embedded_UCD = self.embedding(chars_UC)
        embedded_UCD = embedded_UCD.to(product_dtype(embedded_UCD))
        pooled_UF = torch.cat(
            [
                _MaxPool.apply(filter_(_unfold(embedded_UCD, width)))  # type: ignore[no-untyped-call]
                for filter_, (width, _) in zip(self.filters, self.config.filters, strict=True)
            ],
            dim=-1,
        )
        vectors_UF = torch.relu(pooled_UF) if self.config.activation == "relu" else torch.tanh(pooled_UF)
        for highway in self.highways:
            vectors_UF = highway(vectors_UF)
        vectors_UP: Tensor = self.projection(vectors_UF)
        return vectors_UP


class Highway(nn.Module):
    """A highway layer: a gate between the input and a transformation of it (Srivastava et al. 2015).

    The published files call the gate `carry`, but it is the weight of the *transformed* part.

    width (int): Width of input and output.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.carry = nn.Linear(width, width)
        self.transform = nn.Linear(width, width)

    def forward(self, x_UF: Tensor) -> Tensor:
        """RETURNS (Tensor): y_UF."""
        return torch.lerp(x_UF, functional.relu(self.transform(x_UF)), torch.sigmoid(self.carry(x_UF)))


class _MaxPool(torch.autograd.Function):
    """The maximum over a word's positions. Equal maxima, which are frequent in padding, share the gradient equally.
    torch's amax computes the same, but its gradient is many times slower."""

    @staticmethod
    def forward(ctx: Any, x_UCF: Tensor) -> Tensor:
        """RETURNS (Tensor): maximum_UF."""
        maximum_UF = x_UCF.amax(dim=1)
        ctx.save_for_backward(x_UCF, maximum_UF)
        return maximum_UF

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_maximum_UF: Tensor) -> Tensor:
        """RETURNS (Tensor): d_x_UCF."""
        x_UCF, maximum_UF = ctx.saved_tensors
        # 1 at the maxima, 0 elsewhere.
        is_maximum_UCF = (x_UCF - maximum_UF.unsqueeze(1)).sign_().add_(1)
        d_x_UCF: Tensor = is_maximum_UCF.mul_((d_maximum_UF / is_maximum_UCF.sum(dim=1)).unsqueeze(1))
        return d_x_UCF


def _unfold(x_UCD: Tensor, width: int) -> Tensor:
    """Concatenate the characters in the window of each position of a filter: (U, C - width + 1, width * D).

    The windows overlap in memory without the copy, and a product of such a tensor copies them word by word.
    """
    return x_UCD.unfold(1, width, 1).transpose(2, 3).flatten(2).contiguous()
