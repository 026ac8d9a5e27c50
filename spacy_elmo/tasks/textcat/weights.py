"""A biattentive network to bytes and back, without pickle."""

import dataclasses
from typing import Any

import srsly
import torch
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as format_tensors

from ...files.damage import refuse_damaged
from ...files.tensors import check_finite, check_fit
from .network import BiattentiveNetwork, Sizes

WHERE = "the serialized classifier"


def to_bytes(network: BiattentiveNetwork) -> bytes:
    """RETURNS (bytes): The sizes and the weights of a network."""
    message = {
        "sizes": dataclasses.asdict(network.sizes),
        "input_width": network.input_width,
        "output_width": network.output_width,
        "tensors": format_tensors(
            {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
        ),
    }
    data: bytes = srsly.msgpack_dumps(message)
    return data


def from_bytes(data: bytes, device: torch.device | str = "cpu") -> BiattentiveNetwork:
    """Read what `to_bytes` wrote.

    data (bytes): The sizes and the weights.
    device (torch.device | str): The device of the network.
    RETURNS (BiattentiveNetwork): The network.
    """
    with refuse_damaged("The data", WHERE):
        message: dict[str, Any] = srsly.msgpack_loads(data)
        sizes, tensors = Sizes(**message["sizes"]), parse_tensors(message["tensors"])
        widths = message["input_width"], message["output_width"]
        # On the meta device nothing is allocated and no random numbers are drawn. The tensors then replace the parameters.
        with torch.device("meta"):
            network = BiattentiveNetwork(sizes, *widths)
    found, expected = (
        {name: tuple(tensor.shape) for name, tensor in group.items()} for group in (tensors, network.state_dict())
    )
    check_fit(found, expected, WHERE, f"its sizes ({sizes}, reading {widths})")
    network.load_state_dict(tensors, assign=True)
    check_finite(network, WHERE)
    return network.to(device)
