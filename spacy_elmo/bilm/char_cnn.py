"""Characters to token vectors: filters, max-pooling, highways, projection.

Shape suffixes beside those of lstm.py: V kind of character, C position in a word, D embedding of a character, F filter.
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
        # With values of its own, nn.Embedding has torch import its compiler, which takes two seconds, on the meta device.
        values_VD = torch.empty(N_CHARACTERS, config.char_dim)
        self.embedding = nn.Embedding(N_CHARACTERS, config.char_dim, _weight=values_VD)
        # A filter is a linear layer over the characters that it sees at once. As a matrix product it costs the same
        # for every number of words, where conv1d prepares itself anew for each batch shape.
        self.filters = nn.ModuleList(nn.Linear(width * config.char_dim, count) for width, count in config.filters)
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.highways))
        self.projection = (
            nn.Linear(config.n_filters, config.projection) if config.n_filters != config.projection else nn.Identity()
        )

    def forward(self, chars_UC: Tensor) -> Tensor:
        """Encode words by their spelling alone.

        chars_UC (Tensor): Character ids, padded to one length. Padding takes part in the max-pool; a word padded with
            `widest_filter` characters more than its own gives the same vector as one padded to `max_chars`.
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
    """Carry some of the input on, transform the rest (Srivastava et al. 2015).

    The gate opens for the *transformed* part, though the published files call it `carry`.

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
    """The maximum over a word. Its gradient goes to where the maximum is, in equal parts where it is more than once, as
    it often is in padding; amax would do the same, many times slower."""

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
    """Lay the characters that each position of a filter sees side by side: (U, C - width + 1, width * D)."""
    return x_UCD.unfold(1, width, 1).transpose(2, 3).flatten(2)
