"""Thinc's bridge to torch, mended: averaged weights reach torch's parameters."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from thinc.api import PyTorchShim, xp2torch
from thinc.types import FloatsXd


class TorchShim(PyTorchShim):
    """Thinc's shim looks for averaged weights under names that no optimizer uses, so that a pipeline would be evaluated and
    saved with averages in one half and the last weights in the other."""

    @contextmanager
    def use_params(self, params: dict[Any, FloatsXd]) -> Iterator[None]:
        """Run with other weights for a while: [training.optimizer.use_averages].

        params (dict): Weights by the id of the shim, and their name.
        """
        weights = self._model.state_dict() if self._model is not None else {}
        backup = {name: tensor.clone() for name, tensor in weights.items() if (self.id, name) in params}
        with torch.no_grad():
            for name in backup:
                weights[name].copy_(xp2torch(params[self.id, name], device=self.device))
        try:
            yield
        finally:
            with torch.no_grad():
                for name, tensor in backup.items():
                    weights[name].copy_(tensor)
