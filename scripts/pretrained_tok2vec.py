"""Write the config of a task with a separate tok2vec, which `spacy pretrain` can train: an alternative to ELMo.

python scripts/pretrained_tok2vec.py configs/ner_baseline.cfg ner_pretrained.cfg
python -m spacy pretrain ner_pretrained.cfg pretrained --paths.raw_text train.jsonl
python -m spacy train ner_pretrained.cfg --output out --paths.init_tok2vec pretrained/model0.bin ...
"""

from pathlib import Path

import typer
from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.util import load_config
from thinc.api import Config
from wasabi import msg

CONFIGS = Path(__file__).parent.parent / "configs"


def pretrained_tok2vec(task: Path, output: Path) -> None:
    """Write a config with a separate tok2vec. All tasks get the same one, so that it is pretrained only once.

    task (Path): The config of the task, with one component that has a tok2vec.
    output (Path): The config to write.
    """
    try:
        separate_tok2vec(load_config(task)).to_disk(output)
    except (OSError, ValueError) as error:
        msg.fail(f"Could not convert {task}", str(error), exits=1)


def separate_tok2vec(config: Config) -> Config:
    """Replace the tok2vec of the only component by a listener to a tok2vec component, as in `configs/ner_baseline.cfg`.

    config (Config): The config of the task, not interpolated.
    RETURNS (Config): The same task with two components, and the settings of `spacy pretrain`.
    """
    if len(config["nlp"]["pipeline"]) != 1:
        raise ValueError(f"Expected a pipeline of one component, got {config['nlp']['pipeline']}.")
    (name,) = config["nlp"]["pipeline"]
    if "tok2vec" not in config["components"][name].get("model", {}):
        raise ValueError(
            f"Expected a component with a tok2vec in its model, which is to be replaced; {name!r} has none."
        )
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
    typer.run(pretrained_tok2vec)
