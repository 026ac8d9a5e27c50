"""The long run: python -m tests.fuzz --inputs 1000000"""

import argparse
import sys
from collections import Counter

import torch

from .runner import Fuzzer
from .targets import TARGETS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="How many inputs to run")
    parser.add_argument("--first", type=int, default=0, help="The number of the first input")
    parser.add_argument(
        "--targets", nargs="+", choices=TARGETS, default=list(TARGETS), metavar="NAME", help="The readers"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    fuzzer = Fuzzer(arguments.targets)
    counts: Counter[str] = Counter()
    for finding in fuzzer.run(arguments.first, arguments.inputs, show):
        counts[finding.target] += 1
        show(f"INPUT {finding.number} ({finding.target}): {finding.problem}")
    show(f"{arguments.inputs:,} inputs, {counts.total()} findings {dict(counts)}")
    sys.exit(bool(counts))


def show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
