"""The biattentive classification network (McCann et al. 2017, section 5), from token vectors to one vector for each doc.

Shape suffixes: B doc, T token, S token that is attended to, I input, E vectors that are concatenated with the
integrator's output, H both directions of the encoder, G input of the pooling (both directions of the integrator, and
E), P pooled, O output.
"""

from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

EPSILON = 1e-5
MIN_BATCH_WEIGHT = 0.02

# Far above any network, and low enough that a damaged or hostile file is refused at once.
MOST_UNITS = 2**20
MOST_LAYERS = 64


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a network, without the widths of its inputs.

    feedforward_width (int): Width of the layer that reads each token's vector.
    encoder_width, integrator_width (int): Hidden width of each direction of the two LSTMs.
    maxout_width, maxout_depth (int): Width and number of the maxout layers.
    maxout_pieces (int): Each value of a maxout layer is the largest of this many candidates.
    """

    feedforward_width: int
    encoder_width: int
    integrator_width: int
    maxout_width: int
    maxout_depth: int
    maxout_pieces: int

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            most = MOST_LAYERS if name == "maxout_depth" else MOST_UNITS
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(f"{name} must be a whole number from 1 to {most}, got {value!r:.80}.")


class BiattentiveNetwork(nn.Module):
    """An LSTM reads a doc, each token attends to all tokens, a second LSTM reads the result, and it is pooled.

    The paper's network compares two sentences; here both are the same doc. The paper has batch normalization in the
    maxout layers. Instead, the pooled vectors are standardized with statistics of the docs in training: the vector of
    a doc does not depend on its batch, and is computed the same way in training and in prediction.

    Whether it is training is an argument. Nothing here may depend on torch's `training` and `eval()`: Thinc sets them at
    each prediction, on the module that all threads share.

    sizes (Sizes): The sizes.
    input_width (int): Width of the input vectors.
    output_width (int): Width of the vectors that are concatenated with the integrator's output; 0 for none.
    """

    def __init__(self, sizes: Sizes, input_width: int, output_width: int = 0) -> None:
        super().__init__()
        self.sizes, self.input_width, self.output_width = sizes, input_width, output_width
        self.feedforward = nn.Linear(input_width, sizes.feedforward_width)
        self.encoder = _bilstm(sizes.feedforward_width, sizes.encoder_width)
        self.integrator = _bilstm(3 * 2 * sizes.encoder_width, sizes.integrator_width)
        pooled_width = 2 * sizes.integrator_width + output_width
        self.attention = nn.Linear(pooled_width, 1)
        self.standardize = Standardize(4 * pooled_width)
        self.maxouts = nn.ModuleList(
            nn.Linear(width, sizes.maxout_width * sizes.maxout_pieces)
            for width in [4 * pooled_width, *[sizes.maxout_width] * (sizes.maxout_depth - 1)]
        )

    def forward(
        self,
        x_BTI: Tensor,
        lengths_B: Tensor,
        output_BTE: Tensor | None = None,
        *,
        dropout: float = 0.0,
        is_train: bool = False,
    ) -> Tensor:
        """Run the network over a padded batch.

        x_BTI (Tensor): The vectors of each doc's tokens.
        lengths_B (Tensor): The number of tokens of each doc, at least 1, on the CPU.
        output_BTE (Tensor | None): The vectors to concatenate with the integrator's output, if the network has them.
        dropout (float): The fraction of values to drop while training, in the output of the feed-forward layer and in
            the input of each maxout layer.
        is_train (bool): Whether this is a step of training, with dropout and new statistics.
        RETURNS (Tensor): vectors_BO, one for each doc.
        """
        drop = partial(functional.dropout, p=dropout, training=is_train)
        mask_BT = torch.arange(x_BTI.shape[1], device=x_BTI.device) < lengths_B.to(x_BTI.device).unsqueeze(1)
        x_BTH = _run(self.encoder, drop(functional.relu(self.feedforward(x_BTI))), lengths_B)
        context_BTH = attend(x_BTH, mask_BT)
        y_BTG = _run(self.integrator, torch.cat([x_BTH, x_BTH - context_BTH, x_BTH * context_BTH], dim=-1), lengths_B)
        if output_BTE is not None:
            y_BTG = torch.cat([y_BTG, output_BTE], dim=-1)
        pooled_BP = pool(y_BTG, self.attention(y_BTG).squeeze(-1), mask_BT)
        vectors: Tensor = self.standardize(pooled_BP, is_train=is_train)
        for layer in self.maxouts:
            pieces = layer(drop(vectors)).unflatten(-1, (self.sizes.maxout_width, self.sizes.maxout_pieces))
            vectors = pieces.amax(dim=-1)
        return vectors


class Standardize(nn.Module):
    """Standardizes each value to a mean of 0 and a variance of 1 over the docs in training.

    A maximum over tokens is far from 0 in every doc, and the differences between docs are small in comparison. Without
    standardization the maxout layers would have to learn that.

    width (int): Width of the vectors.
    """

    mean: Tensor
    square: Tensor
    n_batches: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("square", torch.ones(width))
        self.register_buffer("n_batches", torch.zeros(()))

    def forward(self, x_BP: Tensor, *, is_train: bool = False) -> Tensor:
        """Standardize vectors. In training, update the statistics first.

        x_BP (Tensor): The vectors.
        is_train (bool): Whether this is a step of training.
        RETURNS (Tensor): y_BP.
        """
        if is_train:
            self.n_batches += 1
            # At first the mean over all batches, so that the initial values have no influence, then a moving average.
            weight = max(1 / self.n_batches.item(), MIN_BATCH_WEIGHT)
            self.mean.lerp_(x_BP.detach().mean(dim=0), weight)
            self.square.lerp_(x_BP.detach().square().mean(dim=0), weight)
        variance_P = (self.square - self.mean.square()).clamp(min=0)
        return (x_BP - self.mean) * (variance_P + EPSILON).rsqrt()


def attend(x_BTH: Tensor, mask_BT: Tensor) -> Tensor:
    """Compute the self-attention of tokens by their dot products: softmax(X X^T) X.

    x_BTH (Tensor): The tokens.
    mask_BT (Tensor): True for tokens, false for padding.
    RETURNS (Tensor): context_BTH. Its padding is not masked.
    """
    affinity_BTS = torch.bmm(x_BTH, x_BTH.transpose(1, 2)).masked_fill(~mask_BT.unsqueeze(1), -torch.inf)
    return torch.bmm(affinity_BTS.softmax(dim=-1), x_BTH)


def pool(y_BTG: Tensor, attention_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Pool the vectors of a doc: their maximum, mean, minimum, and sum weighted by attention, concatenated.

    y_BTG (Tensor): The vectors.
    attention_BT (Tensor): The attention of each vector, before the softmax.
    mask_BT (Tensor): True for tokens, false for padding.
    RETURNS (Tensor): pooled_BP, four times as wide.
    """
    padding_BT1 = ~mask_BT.unsqueeze(-1)
    weight_BT = attention_BT.masked_fill(~mask_BT, -torch.inf).softmax(dim=-1)
    parts = [
        y_BTG.masked_fill(padding_BT1, -torch.inf).amax(dim=1),
        y_BTG.masked_fill(padding_BT1, 0.0).sum(dim=1) / mask_BT.sum(dim=1, keepdim=True),
        y_BTG.masked_fill(padding_BT1, torch.inf).amin(dim=1),
        torch.bmm(weight_BT.unsqueeze(1), y_BTG).squeeze(1),
    ]
    return torch.cat(parts, dim=-1)


def _bilstm(input_width: int, hidden_width: int) -> nn.LSTM:
    return nn.LSTM(input_width, hidden_width, batch_first=True, bidirectional=True)


def _run(lstm: nn.LSTM, x_BTI: Tensor, lengths_B: Tensor) -> Tensor:
    """Run an LSTM over a padded batch. The backward direction starts at the end of each doc. Padding becomes zero."""
    packed = pack_padded_sequence(x_BTI, lengths_B, batch_first=True, enforce_sorted=False)
    y_BTH, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=x_BTI.shape[1])
    return y_BTH
