"""Throughput and latency of the service of docs/serving.md, on loopback.

    python benchmarks/serving.py --seconds 10

The service runs in a process of its own, with the bundled model. Each client sends sentences of 20 words, one after the
other, on one connection; the clients are threads of this process, and take part of the processor's time.
"""

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
SENTENCE_WORDS = 20
CLIENTS = (1, 8, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="Time for each number of clients")
    arguments = parser.parse_args()
    command = [sys.executable, "-W", "ignore", str(ROOT / "scripts" / "serve.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "Listening" in line)
        port = int(line.rsplit(":", 1)[1].split("\x1b")[0])
        print(
            "| clients | requests per second | tokens per second | median | 99% | failed |\n|---|---|---|---|---|---|"
        )
        for n_clients in CLIENTS:
            run_clients(port, 1, 0.5)  # what was compiled and cached for other numbers does not count
            seconds, n_failed = run_clients(port, n_clients, arguments.seconds)
            rate = len(seconds) / arguments.seconds
            median, slow = statistics.median(seconds), sorted(seconds)[int(0.99 * len(seconds))]
            print(
                f"| {n_clients} | {rate:.0f} | {rate * SENTENCE_WORDS:,.0f} | {1000 * median:.0f} ms | {1000 * slow:.0f} ms "
                f"| {n_failed} |",
                flush=True,
            )
        process.terminate()


def run_clients(port: int, n_clients: int, seconds: float) -> tuple[list[float], int]:
    """RETURNS (tuple): The seconds that each request took, and the number of requests that failed."""
    stop = time.perf_counter() + seconds
    taken: list[float] = []
    failed: list[int] = []

    def run(seed: int) -> None:
        random = Random(seed)
        words = (ROOT / "assets" / "sample" / "train.txt").read_text(encoding="utf8").split()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while (start := time.perf_counter()) < stop:
            connection.request("POST", "/", json.dumps({"text": " ".join(random.choices(words, k=SENTENCE_WORDS))}))
            response = connection.getresponse()
            response.read()
            if response.status == 200:
                taken.append(time.perf_counter() - start)
            else:
                failed.append(response.status)
        connection.close()

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(n_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken, len(failed)


if __name__ == "__main__":
    main()
