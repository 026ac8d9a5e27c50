"""Embed shards on this machine: in this process, or in several that have one thread each."""

import multiprocessing
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from ..corpora.worker_processes import start_worker
from .events import MAX_ATTEMPTS, Event, Failed, Finished, Observer, Progressed, describe_error
from .plan import Shard
from .shard import Job, ReportTokens, embed_shard

REPORT_SECONDS = 0.2  # between two messages of a process
KILLED = " (it was killed, as the system does when memory is short)"


def embed_here(job: Job, shards: Sequence[Shard], observe: Observer) -> None:
    """Embed shards in this process, one after the other.

    job (Job): The job.
    shards (Sequence[Shard]): The shards.
    observe (Observer): Gets what happens.
    """
    for shard in shards:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                observe(Finished(shard.name, embed_shard(job, shard, _reporter(shard, observe))))
                break
            except Exception as error:
                if attempt == MAX_ATTEMPTS:
                    observe(Failed(shard.name, describe_error(error)))


def embed_in_processes(job: Job, shards: Sequence[Shard], observe: Observer, *, n_workers: int) -> None:
    """Embed shards in processes of their own. If one is killed, another one takes its place, and its shard is tried again.

    job (Job): The job.
    shards (Sequence[Shard]): The shards.
    observe (Observer): Gets what happens.
    n_workers (int): The number of processes.
    """
    waiting, attempts = deque(shards), Counter[str]()
    workers: list[Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < n_workers:
                workers.append(Worker(job, waiting.popleft()))
            ready = wait([worker.connection for worker in workers])
            for worker in [worker for worker in workers if worker.connection in ready]:
                event = worker.receive()
                if isinstance(event, Progressed):
                    observe(event)
                    continue
                attempts[event.shard] += 1
                if isinstance(event, Failed) and attempts[event.shard] < MAX_ATTEMPTS:
                    waiting.append(worker.shard)
                else:
                    observe(event)
                if waiting and worker.process.is_alive():
                    worker.embed(waiting.popleft())
                else:
                    worker.stop()
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.process.kill()


class Worker:
    """A process that embeds one shard after the other.

    job (Job): The job.
    shard (Shard): The first shard.
    """

    def __init__(self, job: Job, shard: Shard) -> None:
        # Forked processes would inherit torch's threads, with locks that are never released.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_work, args=(job, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.embed(shard)

    def embed(self, shard: Shard) -> None:
        """Begin a shard."""
        self.shard = shard
        with suppress(ConnectionError):  # a process that has ended is noticed by `receive`
            self.connection.send(shard)

    def receive(self) -> Event:
        """RETURNS (Event): What happened to the shard."""
        try:
            event: Event = self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            return Failed(self.shard.name, f"its process ended with exit code {code}{KILLED if code == -9 else ''}")
        return event

    def stop(self) -> None:
        """Let the process end."""
        self.connection.close()
        self.process.join()


def _work(job: Job, connection: Connection) -> None:
    """Embed the shards that the main process sends, until it sends no more."""
    start_worker()
    with suppress(EOFError):
        while True:
            shard: Shard = connection.recv()
            try:
                connection.send(Finished(shard.name, embed_shard(job, shard, _reporter(shard, connection.send))))
            except Exception as error:
                connection.send(Failed(shard.name, describe_error(error)))


def _reporter(shard: Shard, observe: Observer) -> ReportTokens:
    """RETURNS (ReportTokens): Passes reports of a shard on, but not too many of them."""
    last = time.monotonic()

    def report(n_tokens: int, n_chars: int) -> None:
        nonlocal last
        if time.monotonic() - last > REPORT_SECONDS:
            last = time.monotonic()
            observe(Progressed(shard.name, n_tokens, n_chars))

    return report
