"""A biLM that only predicts: its weights are in the form that is fastest for that."""

from .config import Precision
from .int8 import Int8Layer, PackedInt8Layer, find_int8_problem, pack_int8_layers, to_float32, to_int8
from .model import BiLM
from .packed import pack_layers


def precision_of(bilm: BiLM) -> Precision:
    """RETURNS (str): The precision of a model's weights."""
    return "int8" if isinstance(bilm.lstm.layers[0], Int8Layer | PackedInt8Layer) else "float32"


def freeze(bilm: BiLM, precision: Precision) -> BiLM:
    """Prepare a model for prediction.

    bilm (BiLM): The model, in any precision. It cannot be trained any more.
    precision (str): The precision to predict in.
    RETURNS (BiLM): The model, or a new one.
    """
    if precision == "float32":
        bilm = pack_layers(thaw(bilm))
    else:
        bilm = pack_int8_layers(bilm if precision_of(bilm) == precision else to_int8(bilm))
    return bilm.requires_grad_(False)


def thaw(bilm: BiLM) -> BiLM:
    """Prepare a model for training.

    bilm (BiLM): A model as it was stored, in any precision.
    RETURNS (BiLM): The model, or a new one, in float32.
    """
    return (to_float32(bilm) if precision_of(bilm) == "int8" else bilm).requires_grad_()


def find_problem(bilm: BiLM, precision: Precision) -> str | None:
    """Find out whether a model can be run in a precision.

    bilm (BiLM): The model.
    precision (str): The precision.
    RETURNS (str | None): Why not, or None.
    """
    if precision != "int8":
        return None
    return find_int8_problem() if bilm.device.type == "cpu" else f"the biLM is on the device {bilm.device}"
