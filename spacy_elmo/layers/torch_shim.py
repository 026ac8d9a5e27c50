"""Thinc's PyTorch shim, with averaged weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from thinc.api import PyTorchShim, xp2torch
from thinc.types import FloatsXd


class TorchShim(PyTorchShim):
    """Lets [training.optimizer.use_averages] reach torch's weights. Thinc's shim looks up averages under names that no
    optimizer uses, so torch's weights would be evaluated and saved without averaging."""

    @contextmanager
    def use_params(self, params: dict[Any, FloatsXd]) -> Iterator[None]:
        """Use other weights inside a `with` block.

        params (dict): Weights by the id of the shim, and their name.
        """
        weights = dict(self._model.named_parameters()) if self._model is not None else {}
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
