"""What the paper reports, to show beside our numbers: Peters et al., NAACL 2018."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CITATION = (
    "Matthew E. Peters, Mark Neumann, Mohit Iyyer, Matt Gardner, Christopher Clark, Kenton Lee, Luke Zettlemoyer: Deep "
    "contextualized word representations. NAACL 2018. https://aclanthology.org/N18-1202/"
)


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    tasks (Sequence[str]): Its tasks.
    scores (Mapping[str, Sequence[float]]): For each variant, the score of each task, by the name of the variant in our grid.
    """

    tasks: Sequence[str]
    scores: Mapping[str, Sequence[float]]


# Tables 2 and 3: scores on development sets.
TABLES = {
    2: PaperTable(
        ("SQuAD", "SNLI", "SRL"),
        {
            "no_elmo": (80.8, 88.1, 81.6),
            "last": (84.7, 89.1, 84.1),
            "lambda_1": (85.0, 89.3, 84.6),
            "lambda_0_001": (85.2, 89.5, 84.8),
        },
    ),
    3: PaperTable(
        ("SQuAD", "SNLI", "SRL"),
        {"input": (85.1, 88.9, 84.7), "both": (85.6, 89.5, 84.3), "output": (84.8, 88.7, 80.9)},
    ),
}

# Table 5: F1 of word sense disambiguation. Table 6: accuracy of part-of-speech tagging on the Penn Treebank.
SENSES = {"first sense": 65.9, "LSTM layer 1": 67.4, "LSTM layer 2": 69.0}
TAGS = {"LSTM layer 1": 97.3, "LSTM layer 2": 96.8}

FRACTIONS = (
    "In the paper (figure 1), semantic role labelling with ELMo and 1% of the training data is about as good as without ELMo and "
    "10%."
)
MIXES = (
    "In the paper (figure 2), tasks favour the first LSTM layer at the input, question answering and coreference strongly. At the "
    "output the weights are balanced, slightly in favour of the lower layers."
)
LAYERS = "In the paper, the lower LSTM layer knows more of grammar, and the upper one more of meaning."
NEIGHBOURS = (
    "In the paper (table 4), the nearest neighbours of “play” in GloVe are verbs and nouns, mostly of its senses in sport. Those of "
    "ELMo have the same sense and the same part of speech as the word in its sentence."
)
