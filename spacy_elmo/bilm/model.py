"""The bidirectional language model without its softmax: words to layers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args
from unicodedata import normalize

import numpy
import torch
from torch import Tensor, nn

from .char_cnn import CharCNN
from .characters import Alphabet, Mark, Word, encode_word, pad_spellings
from .config import BiLMConfig, InitialState
from .lstm import BiLSTM
from .state import State
from .threads import run_side_by_side
from .word_table import WordTable

# The number of words in a batch of the char CNN: large enough for fast products, and small enough that few short words
# are padded to the length of a long one.
WORDS_AT_ONCE = 256


class BiLM(nn.Module):
    """A token encoder under a stack of LSTMs in each direction (Peters et al. 2018, section 2).

    A new model has no usable weights: fill it with `initialize`, or load one with `weights.load_weights`.

    config (BiLMConfig): The sizes.
    """

    initial_hidden: Tensor | None
    initial_cell: Tensor | None

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.alphabet = Alphabet(config.characters)
        self.word_table = None if config.words is None else WordTable(config.words)
        self.char_cnn = CharCNN(config)
        self.lstm = BiLSTM(config)
        # The state at the start of a sentence, if the weights include one: (L, 2, P) and (L, 2, H).
        self.register_buffer("initial_hidden", None)
        self.register_buffer("initial_cell", None)

    @property
    def initial_state(self) -> State | None:
        """RETURNS (State | None): The stored state at the start of a sentence, hidden_LAP and cell_LAH."""
        hidden, cell = self.initial_hidden, self.initial_cell
        return None if hidden is None or cell is None else State(hidden, cell)

    @property
    def any_weight(self) -> Tensor:
        """RETURNS (Tensor): A weight that stays in full precision: new tensors get its device and type."""
        char_cnn = self.char_cnn
        return (char_cnn.embedding if self.config.char_dim else char_cnn.word_embedding).weight

    @property
    def device(self) -> torch.device:
        """RETURNS (torch.device): The device of the weights."""
        return self.any_weight.device

    def initialize(self, seed: int) -> "BiLM":
        """Fill the model with random weights. The same seed gives the same weights on every platform.

        seed (int): The seed.
        RETURNS (BiLM): The model itself.
        """
        random = numpy.random.RandomState(seed)
        with torch.no_grad():
            for parameter in self.parameters():
                # The number of summands in a product. LSTM weights are (direction, in, out), those of nn.Linear (out, in).
                fan_in = parameter.shape[-2 if parameter.dim() == 3 else -1]
                values = random.standard_normal(tuple(parameter.shape)) / numpy.sqrt(fan_in)
                parameter.copy_(torch.as_tensor(values))
        return self

    def encode_words(self, words: Sequence[Word]) -> Tensor:
        """Encode words without context.

        words (Sequence[Word]): The words. Repeated words are encoded repeatedly.
        RETURNS (Tensor): vectors_UP, in the order of the words.
        """
        config = self.config
        if config.normalize is not None:
            words = [word if isinstance(word, Mark) else normalize(config.normalize, word) for word in words]
        spellings = [encode_word(word, config.max_chars, self.alphabet) for word in words]
        order = sorted(range(len(words)), key=lambda i: len(spellings[i]))
        tasks: list[Callable[[], Tensor]] = []
        # If one batch is smaller than the others, it is that of the shortest words, so that long ones have fewer shapes.
        for stop in range(len(order) % WORDS_AT_ONCE or WORDS_AT_ONCE, len(order) + 1, WORDS_AT_ONCE):
            batch = order[max(0, stop - WORDS_AT_ONCE) : stop]
            chars_UC = words_U = None
            if config.char_dim:
                length = min(config.max_chars, _round_up(len(spellings[batch[-1]]) + config.widest_filter))
                chars = pad_spellings([spellings[i] for i in batch], length, self.alphabet)
                chars_UC = torch.as_tensor(chars).to(self.device)
            if self.word_table is not None:
                rows = self.word_table.find_rows([words[i] for i in batch], config.max_chars)
                words_U = torch.as_tensor(rows).to(self.device)
            tasks.append(partial(self.char_cnn, chars_UC, words_U))
        vectors = [task() for task in tasks] if torch.is_grad_enabled() else run_side_by_side(tasks)
        back = torch.as_tensor(numpy.argsort(order)).to(self.device)
        return torch.cat(vectors)[back]

    def start(self, n_sentences: int, initial_state: InitialState = "stored") -> State:
        """Make the state at the start of sentences.

        n_sentences (int): The number of sentences.
        initial_state (str): "stored" for the state that is stored with the weights, if any; "zero" for zeros.
        RETURNS (State): One state for each sentence.
        """
        if initial_state not in get_args(InitialState):
            raise ValueError(f"initial_state must be one of {get_args(InitialState)}, got {initial_state!r}.")
        config, like = self.config, self.any_weight
        state = self.initial_state if initial_state == "stored" else None
        if state is None:
            widths = (config.projection, config.cells)
            state = State(*(like.new_zeros(config.depth, 2, width) for width in widths))
        return State(*(part.unsqueeze(2).expand(-1, -1, n_sentences, -1) for part in state))

    def forward(self, types_UP: Tensor, types_AN: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        """Run encoded words through the LSTMs.

        types_UP (Tensor): The vectors of the batch's word types, sentence marks included.
        types_AN (Tensor): The type of each token of the packed batch, in the reading order of each direction.
        sizes (list[int]): The number of sentences that have a token at each step.
        state (State): The state at the start of each sentence.
        RETURNS (tuple): layers_LANP, packed as `types_AN`, and the state after each sentence. Layer 0 has the token vectors.
        """
        if not torch.is_grad_enabled():
            return self.lstm.predict(types_UP, types_AN, sizes, state)
        outputs, state = self.lstm(types_UP, types_AN, sizes, state)
        return torch.stack([types_UP[types_AN], *outputs]), state


def _round_up(length: int) -> int:
    """Round the length of padded words up to 8, 10, 12, 14, 16, 20, 24, 28, 32, 40 and so on. oneDNN, which multiplies in
    bfloat16, prepares itself for every new shape and keeps half a megabyte of each, for up to 1,024 shapes. Five filters
    have fifteen shapes for each length."""
    step = 1 << max(0, length.bit_length() - 3)
    return length + -length % step
