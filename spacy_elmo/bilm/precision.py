"""The precision of products, which follows torch's autocast in our own autograd functions, too."""

import torch
from torch import Tensor


def product_dtype(x: Tensor) -> torch.dtype:
    """RETURNS (torch.dtype): The type of products with a tensor: autocast's if it is enabled, otherwise the tensor's."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
