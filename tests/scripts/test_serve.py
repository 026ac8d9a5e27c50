"""The service of docs/serving.md."""

import http.client
import json
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import spacy
from numpy.testing import assert_allclose

from scripts.serve import MAX_BYTES, Batcher, make_server, serve

from ..helpers import make_elmo_nlp
from .script_runner import run_in_one_line

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server(weights: str) -> Iterator[ThreadingHTTPServer]:
    """A running service."""
    found = make_server(make_elmo_nlp(weights), "127.0.0.1", 0)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    thread.join(timeout=20)
    found.server_close()


def ask(server: ThreadingHTTPServer, body: Any, path: str = "/", method: str = "POST") -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def test_many_clients_get_the_vectors_of_the_pipeline(server: ThreadingHTTPServer, weights: str) -> None:
    texts = [f"Ada wrote the note number {i} ." * (1 + i % 3) for i in range(60)] + ["", " ", "naïve 日本"]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda text: ask(server, {"text": text}), texts))
    nlp = make_elmo_nlp(weights)
    for text, (status, answer) in zip(texts, answers, strict=True):
        doc = nlp(text)
        assert status == 200
        assert answer["tokens"] == [token.text for token in doc]
        if len(doc):
            assert_allclose(answer["vectors"], doc.tensor, rtol=0, atol=1e-5)


def test_a_connection_stays_open(server: ThreadingHTTPServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    for word in ("one", "two"):
        connection.request("POST", "/", json.dumps({"text": word}))
        assert json.loads(connection.getresponse().read())["tokens"] == [word]
    connection.close()


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"{", b"[]", b'{"text": 1}', {"txt": "a"}, b"[" * 99_000, {"text": "[" * 501}]
)
def test_requests_that_are_refused(server: ThreadingHTTPServer, body: Any) -> None:
    status, answer = ask(server, body)
    assert status == 400
    assert 'expected {"text": ...}, with words of up to 500 characters' in answer["error"]


@pytest.mark.parametrize("length", [str(MAX_BYTES + 1), "9" * 5_000, "-1", ""])
def test_requests_that_are_too_large(server: ThreadingHTTPServer, length: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", length)
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read()) == {"error": "expected a Content-Length of up to 100,000 bytes"}
    connection.close()


def test_health_and_other_paths(server: ThreadingHTTPServer) -> None:
    assert ask(server, b"", "/health", "GET") == (200, {"status": "ok"})
    assert ask(server, b"", "/other", "GET")[0] == 404


def test_too_many_requests_are_refused_at_once(server: ThreadingHTTPServer) -> None:
    with patch.object(Batcher, "embed", side_effect=queue.Full):
        assert ask(server, {"text": "a"}) == (503, {"error": "too many requests are waiting"})


def test_a_text_that_takes_too_long(server: ThreadingHTTPServer) -> None:
    def embed(self: Batcher, texts: list[str]) -> list[dict[str, Any]]:
        assert answered.wait(60)
        return [{} for _ in texts]

    answered = threading.Event()
    with patch.object(Batcher, "_embed", embed), patch("scripts.serve.SECONDS", 0.6):
        assert ask(server, {"text": "a"}) == (503, {"error": "the answer took longer than 1 seconds"})
        answered.set()


def test_pipelines_without_vectors() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    with pytest.raises(ValueError, match=r"^The pipeline has no component 'elmo', .* only \['sentencizer'\]\.$"):
        make_server(nlp, "127.0.0.1", 0)


def test_what_cannot_be_served_is_reported(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    message = run_in_one_line(serve, "--pipeline", tmp_path / "nowhere", code=1)
    assert "Could not serve" in message
    assert "Can't find model directory" in message
    with patch("spacy_elmo.pipeline.Elmo.predict", side_effect=AssertionError("the weights were read")):
        message = run_in_one_line(serve, "--port", str(server.server_address[1]), code=1)
    assert f"Could not serve the bundled model on 127.0.0.1:{server.server_address[1]}" in message
    assert "Address already in use" in message
    assert "port must be 0-65535" in run_in_one_line(serve, "--port", "70000", code=1)


def test_a_client_that_reads_too_slowly_gets_no_second_answer(
    server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class HandlerOfSlowClients(server.RequestHandlerClass):  # type: ignore[misc, name-defined]
        def setup(self) -> None:
            super().setup()
            self.n_left, self.write = 200, self.wfile.write
            self.wfile.write = self.write_once

        def write_once(self, data: bytes) -> int:
            """Write what a client reads in the beginning. Then it stops for too long, and reads again."""
            part, self.n_left = data[: self.n_left], self.n_left - len(data)
            written: int = self.write(part)
            if self.n_left < 0:
                self.n_left = 10_000
                raise TimeoutError("timed out")
            return written

    monkeypatch.setattr(server, "RequestHandlerClass", HandlerOfSlowClients)
    body = json.dumps({"text": "They play a play ."}).encode()
    with socket.create_connection(server.server_address, timeout=60) as client:
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        received = b"".join(iter(lambda: client.recv(10_000), b""))
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert len(received) == 200


def test_a_text_that_nobody_waits_for_is_not_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    started, may_end = threading.Event(), threading.Event()
    batches: list[list[str]] = []

    def embed(self: Batcher, texts: list[str]) -> list[dict[str, Any]]:
        batches.append(texts)
        started.set()
        assert may_end.wait(60)
        return [{"tokens": texts} for _ in texts]

    monkeypatch.setattr(Batcher, "_embed", embed)
    batcher = Batcher(spacy.blank("en"))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(batcher.embed, "first")
        assert started.wait(60)
        with patch("scripts.serve.SECONDS", 0.05), pytest.raises(TimeoutError):
            batcher.embed("second")
        may_end.set()
    assert batcher.embed("third") == {"tokens": ["third"]}
    assert batches == [["first"], ["third"]]


def test_lone_surrogates_are_left_out(server: ThreadingHTTPServer) -> None:
    status, answer = ask(server, {"text": "a \ud800b"})
    assert (status, answer["tokens"]) == (200, ["a", "b"])


@pytest.mark.parametrize("error", [RuntimeError, OSError])
def test_a_text_that_fails_does_not_end_the_service(server: ThreadingHTTPServer, error: type[Exception]) -> None:
    with patch.object(Batcher, "_embed", side_effect=error("no such luck")):
        assert ask(server, {"text": "a"}) == (500, {"error": error.__name__})
    assert ask(server, {"text": "a"})[0] == 200


@pytest.mark.slow
def test_the_script_ends_when_it_is_told_to() -> None:
    command = [sys.executable, "-W", "ignore", "scripts/serve.py", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=None) as process:
        assert process.stdout is not None
        port = int(next(line for line in process.stdout if "Listening" in line).rsplit(":", 1)[1].split("\x1b")[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/", json.dumps({"text": "They play a play ."}))
        answer = json.loads(connection.getresponse().read())
        assert [len(vector) for vector in answer["vectors"]] == [384] * 5
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
