"""Run damaged files through readers, in processes with bounded memory, and report what should not have happened."""

import faulthandler
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from random import Random

from confection import ConfigValidationError

from spacy_elmo.files.versions import NewerFormatError

from .mutate import mutate
from .targets import TARGETS, Target

OUR_ERRORS = (ValueError, OSError, NewerFormatError, ConfigValidationError)  # and none of their other subclasses
MOST_MEMORY = 1 << 30  # bytes that reading may add to those of the process
MOST_SECONDS = 5.0  # of computing, for one input
MOST_WAITING = 600.0  # for one input, on a machine that may be busy; then it has hung
INPUTS_PER_PROCESS = 2_000  # spaCy keeps all words that it has seen
TEMPORARY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # no disk could write a million files in an hour

Files = dict[str, bytes]


@dataclass(frozen=True)
class Finding:
    """An input that was neither read nor refused as it should have been.

    number (int): The number of the input.
    target (str): The name of the reader.
    problem (str): What happened.
    """

    number: int
    target: str
    problem: str


class Fuzzer:
    """Makes inputs, and runs them.

    names (list[str]): The readers.
    """

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._shares = [TARGETS[name].share for name in names]
        with tempfile.TemporaryDirectory() as directory:
            self._seeds = {name: _write_seed(TARGETS[name], Path(directory, str(i))) for i, name in enumerate(names)}

    def make(self, number: int) -> tuple[str, Files]:
        """RETURNS (tuple): The reader and the files of an input, a function of its number."""
        random = Random(number)
        (name,) = random.choices(self._names, self._shares)
        files = dict(self._seeds[name])
        damaged = [path for path in files if any(fnmatch(path, pattern) for pattern in TARGETS[name].damaged)]
        for path in random.sample(damaged, 2 if len(damaged) > 1 and random.random() < 0.1 else 1):
            files[path] = mutate(files[path], random)
        return name, files

    def run(self, first: int, count: int, show: Callable[[str], None]) -> Iterator[Finding]:
        """Run inputs in forked processes: a crash ends one of them, and not the fuzzer.

        first, count (int): The numbers of the inputs.
        show (Callable): Gets a line now and then.
        YIELDS (Finding): What was found.
        """
        number, end, start = first, first + count, time.monotonic()
        while number < end:
            stop = min(number + INPUTS_PER_PROCESS, end)
            reached, findings = self._run_in_fork(number, stop)
            yield from findings
            number = reached
            show(f"{number - first:,} inputs, {time.monotonic() - start:.0f} s")

    def _run_in_fork(self, first: int, stop: int) -> tuple[int, list[Finding]]:
        shared = mmap.mmap(-1, 8)
        shared[:] = struct.pack("<q", first)
        report = tempfile.TemporaryFile("w+", encoding="utf8", errors="replace")  # noqa: SIM115
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for finding in self._run_here(first, stop, shared):
                    report.write(f"{finding.number}\t{finding.problem!r}\n")
                    report.flush()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        status = _wait(child, shared)
        report.seek(0)
        lines = [line.split("\t", 1) for line in report]
        findings = [Finding(int(number), self.make(int(number))[0], problem.strip()) for number, problem in lines]
        (reached,) = struct.unpack("<q", shared[:])
        if status != 0:
            findings.append(Finding(reached, self.make(reached)[0], f"the process ended with {status}"))
            reached += 1
        return reached, findings

    def _run_here(self, first: int, stop: int, shared: mmap.mmap) -> Iterator[Finding]:
        faulthandler.enable()
        warnings.simplefilter("ignore")
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_memory() + MOST_MEMORY, most))
        with tempfile.TemporaryDirectory(dir=TEMPORARY) as directory:
            for number in range(first, stop):
                shared[:] = struct.pack("<q", number)
                name, files = self.make(number)
                problem = check_input(TARGETS[name], files, Path(directory) / "input")
                if problem is not None:
                    yield Finding(number, name, problem)
            shared[:] = struct.pack("<q", stop)


def check_input(target: Target, files: Mapping[str, bytes], directory: Path) -> str | None:
    """Let a reader read files.

    target (Target): The reader.
    files (Mapping): Their contents, by their paths.
    directory (Path): The directory to write them to. It is removed afterwards.
    RETURNS (str | None): What was wrong, or None if they were read, or refused as they should be.
    """
    with _written(files, directory):
        start = time.process_time()
        try:
            target.read(directory)
        except Exception as error:
            if not _is_ours(error, target, directory):
                return "".join(traceback.format_exception(error)[-12:])[-3000:]
        seconds = time.process_time() - start
        return f"it took {seconds:.1f} s" if seconds > MOST_SECONDS else None


def _is_ours(error: Exception, target: Target, directory: Path) -> bool:
    if type(error) in OUR_ERRORS and (target.where or str(directory)) in str(error):
        return len(str(error)) < 10_000
    frames = traceback.extract_tb(error.__traceback__)
    is_from_package = any("spacy_elmo" in frame.filename for frame in frames[-1:])
    if target.foreign and type(error) in OUR_ERRORS:
        return True  # a config has no path when it is checked
    return target.foreign and not is_from_package


@contextmanager
def _written(files: Mapping[str, bytes], directory: Path) -> Iterator[None]:
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    try:
        yield
    finally:
        shutil.rmtree(directory)


def _write_seed(target: Target, directory: Path) -> Files:
    directory.mkdir()
    target.write(directory)
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def _wait(child: int, shared: mmap.mmap) -> int:
    """Wait for a process, and kill it if an input takes too long.

    RETURNS (int): 0, or minus the signal that ended it.
    """
    last, since, used = shared[:], time.monotonic(), 0.0
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if shared[:] != last:
            last, since, used = shared[:], time.monotonic(), _cpu_seconds(child)
        elif time.monotonic() - since > MOST_WAITING or _cpu_seconds(child) - used > 2 * MOST_SECONDS:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.2)


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
