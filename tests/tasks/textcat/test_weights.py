"""A network to bytes, and back."""

import pytest
import srsly
import torch
from safetensors.torch import save

from spacy_elmo.tasks.textcat.weights import from_bytes, to_bytes

from .networks import random_network


def test_loading_draws_no_random_numbers() -> None:
    data, state = to_bytes(random_network(4, 2)), torch.get_rng_state()
    from_bytes(data)
    assert torch.equal(torch.get_rng_state(), state)


def test_damaged_weights() -> None:
    network = random_network(4)
    message = srsly.msgpack_loads(to_bytes(network))
    tensors = {name: tensor.detach() for name, tensor in network.state_dict().items()}
    with pytest.raises(ValueError, match="The data is not the serialized classifier, or a damaged one"):
        from_bytes(srsly.msgpack_dumps({**message, "tensors": message["tensors"][:-1]}))
    with pytest.raises(ValueError, match="The data is not the serialized classifier, or a damaged one.*input_width"):
        from_bytes(srsly.msgpack_dumps({name: part for name, part in message.items() if name != "input_width"}))
    with pytest.raises(ValueError, match=r"feedforward.weight is \(5, 4\), expected \(5, 3\)"):
        from_bytes(srsly.msgpack_dumps({**message, "input_width": 3}))
    broken = {**tensors, "attention.bias": torch.full((1,), torch.nan)}
    with pytest.raises(ValueError, match=r"not a number, in \['attention.bias'\]"):
        from_bytes(srsly.msgpack_dumps({**message, "tensors": save(broken)}))
    del tensors["attention.bias"]
    with pytest.raises(ValueError, match=r"missing \['attention.bias'\]"):
        from_bytes(srsly.msgpack_dumps({**message, "tensors": save(tensors)}))
