"""The config of a task whose words are read by a tok2vec of their own, which `spacy pretrain` can train: what one would do without ELMo.

    python benchmarks/pretrained_tok2vec.py configs/ner_baseline.cfg ner_pretrained.cfg
    python -m spacy pretrain ner_pretrained.cfg pretrained --paths.raw_text train.jsonl
    python -m spacy train ner_pretrained.cfg --output out --paths.init_tok2vec pretrained/model0.bin ...

The tok2vec is that of `configs/ner_baseline.cfg` for all tasks, so that it has to be pretrained only once.
"""

import argparse
from pathlib import Path

from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.util import load_config
from thinc.api import Config

CONFIGS = Path(__file__).parent.parent / "configs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", type=Path, help="config of the task, with one component that has a tok2vec")
    parser.add_argument("output", type=Path, help="where to write the config")
    args = parser.parse_args()
    separate_tok2vec(load_config(args.task)).to_disk(args.output)


def separate_tok2vec(config: Config) -> Config:
    """Give the only component of a pipeline a tok2vec component to listen to.

    config (Config): The config of the task, with references.
    RETURNS (Config): The same task with two components, and the settings of `spacy pretrain`.
    """
    (name,) = config["nlp"]["pipeline"]
    tok2vec = load_config(CONFIGS / "ner_baseline.cfg")["components"]["ner"]["model"]["tok2vec"]
    tok2vec["embed"]["width"] = tok2vec["encode"]["width"]  # was a reference into `ner`
    config["components"]["tok2vec"] = {"factory": "tok2vec", "model": tok2vec}
    config["components"][name]["model"]["tok2vec"] = {
        "@architectures": "spacy.Tok2VecListener.v1",
        "width": tok2vec["encode"]["width"],
        "upstream": "tok2vec",
    }
    config["nlp"]["pipeline"] = ["tok2vec", name]
    return load_config(DEFAULT_CONFIG_PRETRAIN_PATH).merge(config)


if __name__ == "__main__":
    main()
