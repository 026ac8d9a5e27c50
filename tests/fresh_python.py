"""What an import brings with it, in an interpreter that has not imported it yet.

Starting Python with spaCy takes seconds. So one interpreter imports spaCy, another one torch, and each is forked for every question.
"""

import subprocess
import sys
from contextlib import ExitStack

SERVER = """
import importlib, os, sys
importlib.import_module(sys.argv[1])
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(line.strip())
            print(*sys.modules, flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    print(flush=True)
"""


class FreshPython:
    """Interpreters to import modules into. To be closed."""

    def __init__(self) -> None:
        self._servers: dict[str, subprocess.Popen[str]] = {}
        self._stack = ExitStack()

    def modules_after_import(self, module: str, *, base: str) -> list[str]:
        """Import a module into a fresh interpreter.

        module (str): The module.
        base (str): What that interpreter has imported already: "spacy", "torch", or "sys" for nothing.
        RETURNS (list[str]): The names of all modules that are loaded then; none if the import failed.
        """
        if base not in self._servers:
            command = [sys.executable, "-c", SERVER, base]
            server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._servers[base] = self._stack.enter_context(server)
        server = self._servers[base]
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{module}\n")
        server.stdin.flush()
        lines = iter(server.stdout.readline, "\n")  # until the empty line that ends an answer
        return " ".join(lines).split()

    def close(self) -> None:
        """End the interpreters."""
        for server in self._servers.values():
            assert server.stdin is not None
            server.stdin.close()
        self._stack.close()
