"""A task's own embedding and encoder, with ELMo before the encoder, after it, or both (Peters et al. 2018, section 2.3)."""

from typing import Any

from spacy.tokens import Doc
from thinc.api import Maxout, Model, chain, concatenate, with_array
from thinc.types import Floats2d

InT = list[Doc]
OutT = list[Floats2d]  # for each doc: (nT, nO)

# spaCy's own embeddings end in three pieces; a third of this layer's work, on inputs as wide as ELMo's, is saved with two.
MAXOUT_PIECES = 2


def tok2vec(
    embed: Model[InT, OutT] | None,
    elmo_in: Model[InT, OutT] | None,
    encode: Model[OutT, OutT] | None,
    elmo_out: Model[InT, OutT] | None,
) -> Model[InT, OutT]:
    """Compute h_k = encode([x_k; ELMo_k]), and [h_k; ELMo'_k] if ELMo is wanted at the output, too.

    spaCy's encoders expect an input of their output's width, so a maxout layer brings the input to that width.

    embed (Model | None): Gives x_k; None to encode ELMo alone.
    elmo_in (Model | None): Gives ELMo_k; None to encode x_k alone.
    encode (Model | None): The encoder; None to leave [x_k; ELMo_k] as it is, for a task that has its own encoder.
    elmo_out (Model | None): Gives ELMo'_k, with its own mix; None for no ELMo at the output.
    RETURNS (Model): Docs to vectors.
    """
    inputs = [layer for layer in (embed, elmo_in) if layer is not None]
    if not inputs:
        raise ValueError(
            "spacy_elmo.Tok2Vec.v1 has nothing to encode: both embed and elmo_in are null. Give at least one of them, "
            "such as spacy.MultiHashEmbed.v2 as embed or spacy_elmo.ElmoListener.v1 as elmo_in."
        )
    encoded: Model[InT, OutT] = concatenate(*inputs)
    if encode is not None:
        layers: list[Model[Any, Any]] = [encoded]
        if elmo_in is not None:
            layers.append(with_array(Maxout(nO=_input_width(encode), nP=MAXOUT_PIECES, normalize=True, dropout=0.0)))
        encoded = chain(*layers, encode)
        if encode.has_dim("nO"):
            encoded.set_dim("nO", encode.get_dim("nO"))
    model: Model[InT, OutT] = encoded if elmo_out is None else concatenate(encoded, elmo_out)
    for name, layer in (("embed", embed), ("elmo_in", elmo_in), ("encode", encode), ("elmo_out", elmo_out)):
        if layer is not None:
            model.set_ref(name, layer)
    return model


def _input_width(encode: Model[OutT, OutT]) -> int:
    for dim in ("nI", "nO"):
        if encode.has_dim(dim):
            return encode.get_dim(dim)
    raise ValueError(
        f"The encoder {encode.name!r} of a spacy_elmo.Tok2Vec.v1 does not say how wide its input is. Use one whose width "
        f"is set, such as spacy.MaxoutWindowEncoder.v2 or spacy.TorchBiLSTMEncoder.v1 with a depth of 1 or more."
    )
