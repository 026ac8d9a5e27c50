"""The segmenter of commands that use weights: vectors of words need words that are cut as in the training text."""


def choose_segmenter(weights: str | None, lang: str, segmenter: str | None) -> str | None:
    """Choose how raw text is cut into words.

    weights (str | None): A weights directory, the name of a bundled model, or None for that of the language.
    lang (str): The language of the text.
    segmenter (str | None): What the user asks for, if anything.
    RETURNS (str | None): That, or else the segmenter of the weights' training text, if it was in this language.
    """
    from ..bilm.weights import load_config
    from ..models import choose_model, find_existing_weights

    if segmenter is not None:
        return segmenter
    config = load_config(find_existing_weights(choose_model(weights, lang)))
    return config.segmenter if config.lang == lang else None
