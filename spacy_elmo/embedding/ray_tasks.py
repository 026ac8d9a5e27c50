"""Embed shards on Ray: on a cluster, or on this machine. Ray schedules; what makes shards correct is in `shard.py`."""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from .events import MAX_ATTEMPTS, Failed, Finished, Observer, describe_error
from .extras import import_ray
from .plan import Shard
from .shard import Job, embed_shard

SUBMITTED_PER_CORE = 2  # so that no core waits for the next task
CONNECT_SECONDS = 10


def find_cluster(address: str | None) -> str | None:
    """Find out where Ray runs. Ray itself would wait for minutes if nothing answers there.

    address (str | None): The address of a cluster, or None for the one in RAY_ADDRESS, if it is set.
    RETURNS (str | None): The address, or None to start Ray on this machine.
    """
    import_ray()
    address = address or os.environ.get("RAY_ADDRESS")
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            raise ConnectionError(_explain(address, error)) from error
    return address


def embed_on_ray(job: Job, shards: Sequence[Shard], observe: Observer, *, address: str | None, n_workers: int) -> None:
    """Embed shards as tasks of Ray. A worker of Ray loads the pipeline once.

    job (Job): The job. Its paths must be the same on all machines.
    shards (Sequence[Shard]): The shards.
    observe (Observer): Gets what happens.
    address (str | None): What `find_cluster` found.
    n_workers (int): The number of processes, if Ray is started on this machine.
    """
    ray = import_ray()
    with _connect(ray, address, n_workers):
        task = ray.remote(num_cpus=1, max_retries=MAX_ATTEMPTS - 1, retry_exceptions=True)(embed_shard)
        waiting, running = iter(shards), dict[Any, Shard]()
        while True:
            # A cluster may grow and shrink. One without CPUs may get some for tasks that wait.
            most = SUBMITTED_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 0)))
            n_free = max(0, most - len(running))
            running |= {task.remote(job, shard): shard for shard in islice(waiting, n_free)}
            if not running:
                return
            (done,), _ = ray.wait(list(running))
            shard = running.pop(done)
            try:
                observe(Finished(shard.name, ray.get(done)))
            except ray.exceptions.RayError as error:
                observe(Failed(shard.name, describe_error(getattr(error, "cause", None) or error)))


@contextmanager
def _connect(ray: Any, address: str | None, n_workers: int) -> Iterator[None]:
    local = {"num_cpus": n_workers, "include_dashboard": False} if address is None else {}
    try:
        ray.init(address, log_to_driver=False, logging_level="error", **local)
    except ConnectionError as error:
        raise ConnectionError(_explain(address, error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _explain(address: str | None, error: Exception) -> str:
    return (
        f"Ray does not answer at {address}: {error}. Is the cluster running? `ray status` shows that. Without an address, "
        f"Ray runs on this machine."
    )
