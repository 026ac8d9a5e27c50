"""A biLM with a softmax that predicts the next word, in both directions."""

import torch
from torch import Tensor, nn

from ..bilm.characters import Mark, Word
from ..bilm.lstm import Dropout
from ..bilm.model import WORDS_AT_ONCE, BiLM
from ..bilm.state import State
from .pieces import run_pieces
from .softmax import Candidates, Softmax
from .streams import NO_TARGET, Batch


class LanguageModel(nn.Module):
    """A biLM and its softmax.

    bilm (BiLM): The biLM.
    softmax (Softmax): The softmax.
    """

    def __init__(self, bilm: BiLM, softmax: Softmax) -> None:
        super().__init__()
        self.bilm = bilm
        self.softmax = softmax

    def forward(
        self, batch: Batch, state: State, candidates: Candidates, *, carry_state: bool, dropout: Dropout | None = None
    ) -> tuple[Tensor, State]:
        """Predict the next word at each token of a batch, in both directions.

        batch (Batch): The batch.
        state (State): The state that each row starts from.
        candidates (Candidates): The words that the softmax compares.
        carry_state (bool): Whether a sentence starts from the state at the end of the one before, and not from the biLM's
            initial state.
        dropout (Dropout | None): Dropout on the input of each LSTM layer and of the softmax.
        RETURNS (tuple): The sum of the cross-entropies over both directions, and the state after the batch.
        """
        bilm = self.bilm
        n_steps, n_rows = batch.starts_TB.shape
        types_AN = torch.as_tensor(batch.types_AN).to(bilm.device)
        targets = torch.as_tensor(batch.targets_AN).to(bilm.device).flatten()
        keep = None if carry_state else self._keep(batch)
        # A biLM that is not trained runs in full precision, as it does in use, and keeps nothing for gradients.
        is_trained = torch.is_grad_enabled() and bilm.any_weight.requires_grad
        device = bilm.device.type
        is_cast = torch.is_autocast_enabled(device) and is_trained
        with (
            torch.set_grad_enabled(is_trained),
            torch.autocast(device, torch.get_autocast_dtype(device), enabled=is_cast),
        ):
            types_UP = self._encode_types(batch.types)
            sizes = [n_rows] * n_steps
            outputs, state = bilm.lstm(
                types_UP, types_AN, sizes, state, keep=keep, initial=bilm.initial_state, dropout=dropout
            )
            x_NP = outputs[-1].flatten(0, 1)
        if dropout is not None:
            x_NP = dropout(x_NP)
        predicted = targets != NO_TARGET
        loss: Tensor = self.softmax(x_NP[predicted], targets[predicted], candidates)
        return loss, State(state.hidden.detach(), state.cell.detach())

    def _encode_types(self, types: list[Word]) -> Tensor:
        """RETURNS (Tensor): types_UP, with rows of padding at the end."""
        # Padded with short words, batches have few shapes, for the reason that `bilm.encode_words` has few lengths of words.
        padded = [*types, *[Mark.BEGIN_SENTENCE] * (-len(types) % WORDS_AT_ONCE)]
        halves = run_pieces(self.bilm.encode_words, [padded[::2], padded[1::2]], list(self.bilm.char_cnn.parameters()))
        return torch.stack(halves, dim=1).flatten(0, 1)

    def _keep(self, batch: Batch) -> list[Tensor | None]:
        like = self.bilm.any_weight
        return [
            torch.as_tensor(~starts_B).to(like).unsqueeze(-1) if starts_B.any() else None
            for starts_B in batch.starts_TB
        ]
