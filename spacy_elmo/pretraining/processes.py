"""The processes of one run, as torchrun starts them; without torchrun there is one."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

# The others wait while one process tokenizes a corpus. If one fails, torchrun ends them all, however long they may wait.
TIMEOUT = timedelta(days=1)


@dataclass(frozen=True)
class Processes:
    """This process among all.

    rank (int): Its number; 0 writes the files.
    count (int): How many there are.
    device (torch.device): Where it computes.
    """

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """RETURNS (bool): Whether this is the process that writes and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all have come here."""
        if self.count > 1:
            distributed.barrier()

    @contextmanager
    def first_goes_ahead(self) -> Iterator[None]:
        """Let the first process through, and the others when it is done: what it makes, they find. If it fails, it says why,
        and the others just end."""
        failed = torch.ones(1).to(self.device)
        if not self.is_first:
            distributed.broadcast(failed, src=0)
            if failed.item():
                sys.exit(1)
            yield
            return
        try:
            yield
            failed.zero_()
        finally:
            if self.count > 1:
                distributed.broadcast(failed, src=0)

    def sum(self, values: list[float]) -> list[float]:
        """RETURNS (list[float]): The sums of what the processes have."""
        if self.count == 1:
            return values
        tensor = torch.tensor(values, dtype=torch.float64).to(self.device)
        distributed.all_reduce(tensor)
        result: list[float] = tensor.tolist()
        return result

    def gather(self, tensor: Tensor, dim: int) -> Tensor:
        """RETURNS (Tensor): What all processes have, one after the other along a dimension."""
        if self.count == 1:
            return tensor
        tensors = [torch.empty_like(tensor) for _ in range(self.count)]
        distributed.all_gather(tensors, tensor.contiguous())
        return torch.cat(tensors, dim=dim)

    def share(self, tensor: Tensor, dim: int) -> Tensor:
        """RETURNS (Tensor): This process's part of what `gather` made."""
        return tensor.chunk(self.count, dim=dim)[self.rank].contiguous()

    def join_gradients(self, module: nn.Module) -> nn.Module:
        """RETURNS (nn.Module): The module, whose gradients will be the means over all processes."""
        return DistributedDataParallel(module) if self.count > 1 else module


def is_first_process() -> bool:
    """RETURNS (bool): Whether this is the process that writes and prints, or the only one."""
    return int(os.environ.get("RANK", 0)) == 0


@contextmanager
def join_processes() -> Iterator[Processes]:
    """Find the other processes by torchrun's environment variables.

    YIELDS (Processes): This one among them.
    """
    rank, count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    if count > 1:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    try:
        yield Processes(rank, count, device)
    finally:
        if count > 1:
            distributed.destroy_process_group()
