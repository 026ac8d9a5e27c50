"""What each layer of a biLM knows about the words' classes: the accuracy of a linear classifier that sees nothing else.

    python -m spacy convert en_ewt-ud-train.conllu corpus --converter conllu
    python benchmarks/probes.py corpus/en_ewt-ud-train.spacy corpus/en_ewt-ud-dev.spacy corpus/en_ewt-ud-test.spacy

A probe is one matrix, from a token's vector to the scores of the parts of speech (`token.pos`). The one of the mix also learns
the mix, as a listener does. Each is trained for some epochs, and the one that does best on the dev data is scored on the test
data: all words, and those that are not in the training data.
"""

import argparse
import copy
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

BATCH = 512
LEARN_RATE = 0.002


class Words(NamedTuple):
    """The words of a text.

    texts (list[str]): The words.
    tags_N (Tensor): What class each is.
    layers_LNW (Tensor): Their vectors in each layer.
    """

    texts: list[str]
    tags_N: Tensor
    layers_LNW: Tensor


def main() -> None:
    arguments = parse_arguments()
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": arguments.weights})
    tags: dict[int, int] = {}
    train, dev, test = (read_words(nlp, path, tags) for path in (arguments.train, arguments.dev, arguments.test))
    known = set(train.texts)
    new_N = torch.tensor([text not in known for text in test.texts])
    print(
        f"{len(train.texts):,} words to train on, {len(test.texts):,} to test on ({new_N.float().mean():.1%} new), ",
        end="",
    )
    print(f"{len(tags)} classes\n")
    print("| probe of | accuracy | all seeds | of new words | weights of the mix |")
    print("|---|---|---|---|---|")
    right_N = guess_by_word(train, test) == test.tags_N
    print(f"| the word alone: its most frequent class | {percent(right_N)} | | {percent(right_N[new_N])} | |")
    n_layers = train.layers_LNW.shape[0]
    for name, layers in [(layer_name(i), [i]) for i in range(n_layers)] + [("the mix", list(range(n_layers)))]:
        accuracies, of_new = [], []
        for seed in range(arguments.seeds):
            probe = train_probe(train, dev, layers, n_tags=len(tags), n_epochs=arguments.epochs, seed=seed)
            right_N = predict(probe, test.layers_LNW[layers]) == test.tags_N
            accuracies.append(100 * float(right_N.float().mean()))
            of_new.append(100 * float(right_N[new_N].float().mean()))
        shares = ", ".join(f"{share:.2f}" for share in probe.w_L.softmax(0)) if len(layers) > 1 else ""
        print(f"| {name} | {statistics.mean(accuracies):.2f} | {', '.join(f'{a:.2f}' for a in accuracies)} ", end="")
        print(f"| {statistics.mean(of_new):.2f} | {shares} |", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("dev", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--weights", help="a weights directory instead of the default weights")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def read_words(nlp: Language, path: Path, tags: dict[int, int]) -> Words:
    """Read docs and run the biLM on their words, a sentence at a time. New classes are added to the tags."""
    sentences = [sentence for doc in DocBin().from_disk(path).get_docs(nlp.vocab) for sentence in doc.sents]
    docs = (Doc(nlp.vocab, words=[token.text for token in sentence]) for sentence in sentences)
    layers = [doc._.elmo_layers for doc in tqdm(nlp.pipe(docs), total=len(sentences), desc=path.name, disable=None)]
    tokens = [token for sentence in sentences for token in sentence]
    return Words(
        [token.text for token in tokens],
        torch.tensor([tags.setdefault(token.pos, len(tags)) for token in tokens]),
        torch.from_numpy(numpy.concatenate(layers, axis=1)),
    )


def guess_by_word(train: Words, test: Words) -> Tensor:
    """RETURNS (Tensor): The class that each word has most often; for new words, the most frequent class."""
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for text, tag in zip(train.texts, train.tags_N.tolist(), strict=True):
        counts[text][tag] += 1
    default = Counter(train.tags_N.tolist())
    return torch.tensor([(counts.get(text) or default).most_common(1)[0][0] for text in test.texts])


class Probe(nn.Module):
    """A linear classifier of a mix of layers.

    layers_LNW (Tensor): What it will be trained on, for the scale of each layer.
    n_tags (int): The classes.
    """

    def __init__(self, layers_LNW: Tensor, n_tags: int) -> None:
        super().__init__()
        self.scale_L11 = nn.Buffer(layers_LNW.std(dim=(1, 2), keepdim=True))
        self.w_L = nn.Parameter(torch.zeros(len(layers_LNW)))
        self.output = nn.Linear(layers_LNW.shape[-1], n_tags)

    def forward(self, layers_LNW: Tensor) -> Tensor:
        shares_L11 = self.w_L.softmax(0)[:, None, None]
        scores_NK: Tensor = self.output((shares_L11 * (layers_LNW / self.scale_L11)).sum(0))
        return scores_NK


def train_probe(train: Words, dev: Words, layers: list[int], *, n_tags: int, n_epochs: int, seed: int) -> Probe:
    """RETURNS (Probe): The probe of these layers that was best on the dev data."""
    torch.manual_seed(seed)
    layers_LNW = train.layers_LNW[layers]
    probe = Probe(layers_LNW, n_tags)
    optimizer = torch.optim.Adam(probe.parameters(), lr=LEARN_RATE)
    best, best_score = probe, 0.0
    for _ in range(n_epochs):
        for batch in torch.split(torch.randperm(len(train.texts)), BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(probe(layers_LNW[:, batch]), train.tags_N[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        score = float((predict(probe, dev.layers_LNW[layers]) == dev.tags_N).float().mean())
        if score > best_score:
            best, best_score = copy.deepcopy(probe), score
    return best


@torch.no_grad()
def predict(probe: Probe, layers_LNW: Tensor) -> Tensor:
    scores_NK: Tensor = probe(layers_LNW)
    return scores_NK.argmax(1)


def layer_name(i: int) -> str:
    return f"LSTM layer {i}" if i else "the token layer"


def percent(right_N: Tensor) -> str:
    return f"{100 * float(right_N.float().mean()):.2f}"


if __name__ == "__main__":
    main()
