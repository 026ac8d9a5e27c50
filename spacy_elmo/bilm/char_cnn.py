"""Words to token vectors, from their characters (filters, max-pooling, highways), from a table of words, or from both.

Shape suffixes in addition to those of lstm.py: V character id, C position in a word, D character embedding, F filter.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .compiled import compiled
from .config import BiLMConfig
from .precision import product_dtype


class CharCNN(nn.Module):
    """The context-free token encoder (Peters et al. 2018, section 2.4; Kim et al. 2016), with an optional table of words.

    config (BiLMConfig): The sizes.
    """

    embedding: nn.Embedding  # where the model reads characters
    word_embedding: nn.Embedding  # where it has a table of words

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.activation = config.activation
        if config.char_dim:
            self.embedding = _make_embedding(config.n_characters, config.char_dim)
        if config.word_dim:
            self.word_embedding = _make_embedding(config.n_words, config.word_dim)
        self.filters: nn.ModuleList = Filters(config)
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.highways))
        self.projection = nn.Linear(config.unprojected, config.projection) if config.projects_tokens else nn.Identity()

    def forward(self, chars_UC: Tensor | None, words_U: Tensor | None = None) -> Tensor:
        """Encode words without context.

        chars_UC (Tensor | None): Character ids, padded to the same length, if the model reads characters. The max-pool
            includes the padding: a word needs at least `widest_filter` padding characters, or `max_chars` in all, for the
            same vector in every batch.
        words_U (Tensor | None): Rows in the table of words, if the model has one.
        RETURNS (Tensor): vectors_UP.
        """
        parts = [] if words_U is None else [self.word_embedding(words_U)]
        if chars_UC is not None:
            parts.append(self._read_characters(chars_UC))
        vectors_UP: Tensor = self.projection(parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1))
        return vectors_UP

    def _read_characters(self, chars_UC: Tensor) -> Tensor:
        """RETURNS (Tensor): vectors_UF."""
        pooled_UF = self.filters(self.embedding(chars_UC))
        vectors_UF = torch.relu(pooled_UF) if self.activation == "relu" else torch.tanh(pooled_UF)
        for highway in self.highways:
            vectors_UF = highway(vectors_UF)
        return vectors_UF


def _make_embedding(n_rows: int, width: int) -> nn.Embedding:
    # Without given values, nn.Embedding on the meta device makes torch import its compiler, which takes two seconds.
    return nn.Embedding(n_rows, width, _weight=torch.empty(n_rows, width))


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


class Filters(nn.ModuleList):
    """Filters over the characters of words.

    A filter is a linear layer over the characters in its window. A matrix product is equally fast for any number of words,
    while conv1d has a set-up cost for each new batch shape.

    config (BiLMConfig): The sizes.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__(nn.Linear(width * config.char_dim, count) for width, count in config.filters)

    def forward(self, x_UCD: Tensor) -> Tensor:
        """Run the filters.

        x_UCD (Tensor): The embedded characters.
        RETURNS (Tensor): The maximum of each filter over the positions, pooled_UF.
        """
        weights = (weight for filter_ in self for weight in (filter_.weight, filter_.bias))
        pooled_UF: Tensor = _Filters.apply(x_UCD, *weights)  # type: ignore[no-untyped-call]
        return pooled_UF


class _Filters(torch.autograd.Function):
    """All filters, and the maximum of each over a word's positions. Equal maxima, which are frequent in padding, share the
    gradient equally. Autograd computes the same, but its gradients of windows and maxima are many times slower."""

    @staticmethod
    def forward(ctx: Any, x_UCD: Tensor, *weights: Tensor) -> Tensor:
        """Run the filters.

        x_UCD (Tensor): The embedded characters.
        weights (Tensor): Weight and bias of each filter.
        RETURNS (Tensor): maximum_UF.
        """
        dtype = product_dtype(x_UCD)
        x, matrices, biases = x_UCD.to(dtype), [w.to(dtype) for w in weights[::2]], [b.to(dtype) for b in weights[1::2]]
        windows, outputs, maxima = compiled(_run_filters)(x, matrices, biases)
        ctx.kept = (x, matrices, windows, outputs, maxima)
        return torch.cat(maxima, dim=-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_maximum_UF: Tensor) -> tuple[Tensor, ...]:
        """RETURNS (tuple): The gradients of the characters, and of weight and bias of each filter."""
        d_x_UCD, gradients = compiled(_differentiate_filters)(d_maximum_UF, *ctx.kept)
        return d_x_UCD, *gradients


def _run_filters(
    x_UCD: Tensor, matrices: list[Tensor], biases: list[Tensor]
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """RETURNS (tuple): For each filter, its windows, its output at each position, and the maximum of that."""
    windows: list[Tensor] = []
    outputs: list[Tensor] = []
    maxima: list[Tensor] = []
    for matrix, bias in zip(matrices, biases):  # noqa: B905 (TorchScript does not know `strict`)
        windows.append(unfold(x_UCD, matrix.shape[1] // x_UCD.shape[2]))
        y = torch.addmm(bias, windows[-1].flatten(0, 1), matrix.t())
        outputs.append(y.view(len(x_UCD), -1, y.shape[1]))
        maxima.append(outputs[-1].amax(dim=1))
    return windows, outputs, maxima


def _differentiate_filters(
    d_maximum_UF: Tensor,
    x_UCD: Tensor,
    matrices: list[Tensor],
    windows: list[Tensor],
    outputs: list[Tensor],
    maxima: list[Tensor],
) -> tuple[Tensor, list[Tensor]]:
    """RETURNS (tuple): The gradient of the characters, and those of weight and bias of each filter."""
    gradients: list[Tensor] = []
    # In full precision, because it is a sum over many windows.
    d_x_UCD = torch.zeros_like(x_UCD, dtype=torch.promote_types(x_UCD.dtype, torch.float32))
    start = 0
    for matrix, window, y_UCF, maximum_UF in zip(matrices, windows, outputs, maxima):  # noqa: B905
        d_maximum = d_maximum_UF[:, start : start + len(matrix)]
        start += len(matrix)
        # 1 at the maxima, 0 elsewhere.
        is_maximum = torch.empty_like(y_UCF)
        torch.eq(y_UCF, maximum_UF.unsqueeze(1), out=is_maximum)
        d_y = is_maximum.mul_((d_maximum / is_maximum.sum(dim=1)).unsqueeze(1)).flatten(0, 1)
        gradients.append(d_y.t().mm(window.flatten(0, 1)))
        gradients.append(d_maximum.sum(dim=0))
        d_windows = d_y.mm(matrix).view(window.shape)
        for offset, d_characters in enumerate(torch.split(d_windows, x_UCD.shape[2], dim=-1)):
            d_x_UCD[:, offset : offset + window.shape[1]] += d_characters
    return d_x_UCD, gradients


def unfold(x_UCD: Tensor, width: int) -> Tensor:
    """Concatenate the characters in the window of each position of a filter: (U, C - width + 1, width * D).

    The windows overlap in memory without the copy, and a product of such a tensor copies them word by word.
    """
    return x_UCD.unfold(1, width, 1).transpose(2, 3).flatten(2).contiguous()
