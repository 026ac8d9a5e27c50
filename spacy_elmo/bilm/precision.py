"""The precision of products: torch's autocast decides, for our own functions as for torch's."""

import torch
from torch import Tensor


def product_dtype(x: Tensor) -> torch.dtype:
    """RETURNS (torch.dtype): What to multiply a tensor in: autocast's type where that is on, and its own otherwise."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
