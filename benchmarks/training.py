"""Measure the speed of pretraining, and of a plain loop that does the same work, with one thread and with several, in one run.

    python benchmarks/training.py TEXT [--config configs/pretrain.cfg] [--steps 12] [--rounds 3]

TEXT has one tokenized sentence per line. The plain loop is a first implementation: torch's LSTMs, one direction after the
other, a convolution over the characters of every token, the scores of a whole batch at once, autograd and float32. Its
LSTM has no clipping, so it is not ELMo, but the amount of work is the same.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional

from spacy_elmo.bilm.characters import N_CHARACTERS, encode_word, pad_spellings
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.learner import Learner
from spacy_elmo.pretraining.loop import train_steps
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.settings import TrainingSettings, load_run_config, read_settings
from spacy_elmo.pretraining.softmax import Softmax, sample_words
from spacy_elmo.pretraining.streams import NO_TARGET, Batch, Streams
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

PLAIN, FLOAT32, BFLOAT16 = "plain loop", "spacy-elmo, float32", "spacy-elmo, bfloat16"


class PlainDirection(nn.Module):
    """Layers of torch's LSTM with projections, and residuals between them."""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.LSTM(config.projection, config.cells, proj_size=config.projection) for _ in range(config.depth)
        )

    def forward(self, x_TBP: Tensor, states: list[tuple[Tensor, Tensor]], dropout: float) -> Tensor:
        for i, layer in enumerate(self.layers):
            x_TBP = functional.dropout(x_TBP, dropout)
            y_TBP, (hidden, cell) = layer(x_TBP, states[i])
            states[i] = (hidden.detach(), cell.detach())
            x_TBP = x_TBP + y_TBP if i else y_TBP
        return functional.dropout(x_TBP, dropout)


class PlainModel(nn.Module):
    """A first implementation of a biLM."""

    def __init__(self, config: BiLMConfig, n_words: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(N_CHARACTERS, config.char_dim)
        self.convolutions = nn.ModuleList(nn.Conv1d(config.char_dim, count, width) for width, count in config.filters)
        width = config.n_filters
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(config.highways))
        self.transforms = nn.ModuleList(nn.Linear(width, width) for _ in range(config.highways))
        self.projection = nn.Linear(width, config.projection)
        self.directions = nn.ModuleList(PlainDirection(config) for _ in range(2))
        self.vectors = nn.Embedding(n_words, config.projection)
        self.biases = nn.Embedding(n_words, 1)

    def encode(self, chars_NC: Tensor) -> Tensor:
        x_NDC = self.embedding(chars_NC).transpose(1, 2)
        x_NF = torch.cat([convolution(x_NDC).max(dim=-1).values for convolution in self.convolutions], dim=-1).relu()
        for gate, transform in zip(self.gates, self.transforms, strict=True):
            opened = torch.sigmoid(gate(x_NF))
            x_NF = opened * transform(x_NF).relu() + (1 - opened) * x_NF
        encoded: Tensor = self.projection(x_NF)
        return encoded

    def loss(self, x_NP: Tensor, targets_N: Tensor, samples_S: Tensor, log_expected_V: Tensor) -> Tensor:
        predicted = targets_N != NO_TARGET
        x_NP, targets_N = x_NP[predicted], targets_N[predicted]
        right = (x_NP * self.vectors(targets_N)).sum(-1) + self.biases(targets_N)[:, 0] - log_expected_V[targets_N]
        others = x_NP @ self.vectors(samples_S).T + self.biases(samples_S)[:, 0] - log_expected_V[samples_S]
        others = others.masked_fill(targets_N[:, None] == samples_S[None, :], -torch.inf)
        scores = torch.cat([right[:, None], others], dim=1)
        return functional.cross_entropy(scores, torch.zeros_like(targets_N), reduction="sum")


def train_plainly(
    config: BiLMConfig, settings: TrainingSettings, vocabulary: Vocabulary, batches: Iterator[Batch]
) -> Iterator[int]:
    """Train a plain model. YIELDS (int): The number of words in a step."""
    model = PlainModel(config, len(vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    n_rows = settings.batch_size
    states = [
        [(torch.zeros(1, n_rows, config.projection), torch.zeros(1, n_rows, config.cells)) for _ in range(config.depth)]
        for _ in range(2)
    ]
    for step, batch in enumerate(batches):
        samples_S, log_expected_V = sample_words(len(vocabulary), settings.samples, numpy.random.default_rng(step))
        assert log_expected_V is not None
        spellings = pad_spellings([encode_word(word, config.max_chars) for word in batch.types], config.max_chars)
        loss = torch.zeros(())
        for direction, state, types_N, targets_N in zip(
            model.directions, states, batch.types_AN, batch.targets_AN, strict=True
        ):
            x_TBP = model.encode(torch.as_tensor(spellings[types_N])).view(-1, n_rows, config.projection)
            y_NP = direction(x_TBP, state, settings.dropout).flatten(0, 1)
            loss = loss + model.loss(
                y_NP, torch.as_tensor(targets_N), torch.as_tensor(samples_S), torch.as_tensor(log_expected_V)
            )
        optimizer.zero_grad()
        (loss / batch.targets_AN.size).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), settings.grad_clip)
        optimizer.step()
        yield batch.n_words


def train_ours(
    config: BiLMConfig, settings: TrainingSettings, vocabulary: Vocabulary, streams: Streams
) -> Iterator[int]:
    """Train as the package does. YIELDS (int): The number of words in a step."""
    model = LanguageModel(
        BiLM(config).initialize(0), Softmax(len(vocabulary), config.projection).initialize(1, vocabulary.counts)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    learner = Learner(model, optimizer, schedule, streams, model.bilm.start(settings.batch_size))
    processes = Processes(0, 1, torch.device("cpu"))
    for step in train_steps(learner, settings, processes, n_steps=10**9, n_softmax_steps=0):
        yield step.n_words


def measure(
    text: Path, config_path: Path, n_steps: int, n_rounds: int, contestants: list[tuple[str, int]]
) -> dict[tuple[str, int], list[float]]:
    """Measure loops in turns, so that other load on the machine affects all of them.

    text (Path): Tokenized sentences.
    config_path (Path): The config of a pretraining.
    n_steps (int): The steps of a loop in a round.
    n_rounds (int): The number of rounds.
    contestants (list[tuple]): The names of loops, each with a number of threads.
    RETURNS (dict): Words per second of each contestant in each round.
    """
    settings = read_settings(load_run_config(config_path, {"paths.train": str(text), "paths.dev": str(text)}))
    config, training = settings.bilm, settings.training
    assert isinstance(config, BiLMConfig), "a config with sizes is needed"
    with text.open(encoding="utf8") as file:
        vocabulary = count_words((line.split() for line in file), max_size=settings.vocabulary.max_size)

    def make_streams() -> Streams:
        n_rows = training.batch_size
        return Streams(
            text, vocabulary, n_rows=n_rows, rows=range(n_rows), unroll=training.unroll, with_end=training.carry_state
        )

    def ours(precision: str) -> Iterator[int]:
        changed = TrainingSettings(**{**vars(training), "precision": precision})
        return train_ours(config, changed, vocabulary, make_streams())

    loops: dict[str, Iterator[int]] = {
        PLAIN: train_plainly(config, training, vocabulary, iter(make_streams())),
        FLOAT32: ours("float32"),
        BFLOAT16: ours("bfloat16"),
    }
    for name in dict.fromkeys(name for name, _ in contestants):
        list(islice(loops[name], 3))  # the first steps are slower
    speeds: dict[tuple[str, int], list[float]] = {contestant: [] for contestant in contestants}
    for _ in range(n_rounds):
        for (name, n_threads), found in speeds.items():
            torch.set_num_threads(n_threads)
            start = time.perf_counter()
            n_words = sum(islice(loops[name], n_steps))
            found.append(n_words / (time.perf_counter() - start))
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--config", type=Path, default=Path("configs/pretrain.cfg"))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    thread_counts = [1, torch.get_num_threads()]
    names = (PLAIN, FLOAT32, BFLOAT16)
    contestants = [(name, n) for name in names for n in thread_counts]
    speeds = measure(arguments.text, arguments.config, arguments.steps, arguments.rounds, contestants)
    print(f"| loop, words per second | 1 thread | {thread_counts[-1]} threads | ratio | to the plain loop |")
    print("|---|---|---|---|---|")
    plain = speeds[PLAIN, thread_counts[-1]]
    for name in names:
        one, several = (speeds[name, n] for n in thread_counts)
        cells = [f"{statistics.median(one):,.0f}", f"{statistics.median(several):,.0f}"]
        ratios = [f"{median_ratio(several, others):.2f}x" for others in (one, plain)]
        print(f"| {' | '.join([name, *cells, *ratios])} |")


def median_ratio(ones: list[float], others: list[float]) -> float:
    """RETURNS (float): The median of the ratios within a round: the speed of the machine changes between rounds."""
    return statistics.median(one / other for one, other in zip(ones, others, strict=True))


if __name__ == "__main__":
    main()
