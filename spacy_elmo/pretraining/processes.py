"""The processes of a run, as torchrun starts them. Without torchrun there is one."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

# The others wait while one process tokenizes a corpus. If one fails, torchrun ends them all, however long this is.
TIMEOUT = timedelta(days=1)


@dataclass(frozen=True)
class Processes:
    """This process among all.

    rank (int): Its number; 0 writes the files.
    count (int): How many there are.
    device (torch.device): Its device.
    local_rank (int): Its number on its machine.
    """

    rank: int
    count: int
    device: torch.device
    local_rank: int = 0

    @property
    def is_first(self) -> bool:
        """RETURNS (bool): Whether this is the process that writes and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all processes have called this."""
        if self.count > 1:
            distributed.barrier()

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """Run a block in three turns: the first process, then the first process of each other machine, which may have another
        disk, then the rest. Later turns find the files that earlier ones wrote. If a process fails in one of the first
        two turns, it reports the error, and all others end."""
        turn = 0 if self.is_first else 1 if self.local_rank == 0 else 2
        for _ in range(turn):
            self._end_if_one_failed()
        try:
            yield
        except BaseException:
            if turn < 2:
                self.sum([1.0])
            raise
        for _ in range(turn, 2):
            self._end_if_one_failed()

    def _end_if_one_failed(self) -> None:
        if self.sum([0.0])[0]:  # which waits for all, and so ends the turn
            sys.exit(1)

    def check_same(self, sha256: str, name: str) -> None:
        """Refuse data that are not the same in all processes. All must take part.

        sha256 (str): The checksum of the data in this process, in hexadecimal digits.
        name (str): The name of the data, for the error.
        """
        start = int(sha256[:8], 16)
        if self.sum([start])[0] != start * self.count:
            raise ValueError(f"Not all processes have the same {name}. Give all machines the same files.")

    def sum(self, values: list[float]) -> list[float]:
        """RETURNS (list[float]): The sums of the values over all processes."""
        if self.count == 1:
            return values
        tensor = torch.tensor(values, dtype=torch.float64).to(self.device)
        distributed.all_reduce(tensor)
        result: list[float] = tensor.tolist()
        return result

    def gather(self, tensor: Tensor, dim: int) -> Tensor:
        """RETURNS (Tensor): The tensors of all processes, concatenated along a dimension."""
        if self.count == 1:
            return tensor
        tensors = [torch.empty_like(tensor) for _ in range(self.count)]
        distributed.all_gather(tensors, tensor.contiguous())
        return torch.cat(tensors, dim=dim)

    def own_part(self, tensor: Tensor, dim: int) -> Tensor:
        """RETURNS (Tensor): This process's part of a tensor that `gather` returned."""
        return tensor.chunk(self.count, dim=dim)[self.rank].contiguous()

    def join_gradients(self, module: nn.Module) -> nn.Module:
        """RETURNS (nn.Module): The module, whose gradients will be the means over all processes."""
        return DistributedDataParallel(module) if self.count > 1 else module


def is_first_process() -> bool:
    """RETURNS (bool): Whether this is the process that writes and prints, or the only one."""
    return int(os.environ.get("RANK", 0)) == 0


def is_first_of_its_machine() -> bool:
    """RETURNS (bool): Whether this is the process that reports errors on its machine."""
    return int(os.environ.get("LOCAL_RANK", 0)) == 0


@contextmanager
def join_processes() -> Iterator[Processes]:
    """Find the other processes by torchrun's environment variables.

    YIELDS (Processes): This one among them.
    """
    rank, count, local_rank = (
        int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
    )
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    if count > 1:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    try:
        yield Processes(rank, count, device, local_rank)
    finally:
        if count > 1:
            distributed.destroy_process_group()
