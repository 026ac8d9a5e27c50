"""A service that computes vectors: a text in, its tokens and their vectors out. See docs/serving.md."""

import json
import queue
import signal
import threading
from concurrent.futures import Future, TimeoutError
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import spacy
import srsly
import typer
from spacy.language import Language
from wasabi import msg

from spacy_elmo.corpora.long_texts import LONG_WORD
from spacy_elmo.corpora.surrogates import drop_surrogates
from spacy_elmo.pipeline import Elmo

Answer = dict[str, Any]

MAX_BYTES = 100_000  # of a request
MAX_DIGITS = 10  # of its Content-Length: Python refuses to read thousands
MAX_WAITING = 256  # requests
MAX_BATCH = 64  # requests that run together
SECONDS = 30.0  # for a request to arrive, and again to be answered


class Batcher:
    """Runs a pipeline on all texts that wait, in a thread of its own.

    Texts that arrive together run together, which takes little longer than one of them. Only this thread uses the pipeline,
    so that spaCy can forget new words after each batch.

    nlp (Language): The pipeline.
    """

    def __init__(self, nlp: Language) -> None:
        self._nlp = nlp
        self._waiting: queue.Queue[tuple[str, Future[Answer]]] = queue.Queue(MAX_WAITING)
        threading.Thread(target=self._run, daemon=True).start()

    def embed(self, text: str) -> Answer:
        """Compute the vectors of a text.

        text (str): The text.
        RETURNS (dict): The tokens and their vectors. If too many texts wait, there is a `queue.Full` instead, and after
            `SECONDS` a `TimeoutError`.
        """
        future: Future[Answer] = Future()
        self._waiting.put_nowait((text, future))
        try:
            return future.result(timeout=SECONDS)
        except TimeoutError:
            future.cancel()  # nobody waits for it any more
            raise

    def _run(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while len(batch) < MAX_BATCH and not self._waiting.empty():
                batch.append(self._waiting.get())
            batch = [item for item in batch if item[1].set_running_or_notify_cancel()]
            if not batch:
                continue
            try:
                answers = self._embed([text for text, _ in batch])
            except Exception as error:
                for _, future in batch:
                    future.set_exception(error)
                continue
            for (_, future), answer in zip(batch, answers, strict=True):
                future.set_result(answer)

    def _embed(self, texts: list[str]) -> list[Answer]:
        with self._nlp.memory_zone():  # docs are not used outside
            docs = self._nlp.pipe(texts)
            return [{"tokens": [token.text for token in doc], "vectors": doc.tensor.tolist()} for doc in docs]


def make_server(nlp: Language, host: str, port: int) -> ThreadingHTTPServer:
    """Make a server that answers POST / with a JSON object {"text": ...}, and GET /health.

    nlp (Language): The pipeline, with a component `elmo`.
    host (str), port (int): Where to listen; port 0 for any that is free.
    RETURNS (ThreadingHTTPServer): The server, which listens already.
    """
    if not any(isinstance(component, Elmo) for _, component in nlp.pipeline):
        raise ValueError(f"The pipeline has no component 'elmo', which makes the vectors, only {nlp.pipe_names}.")
    batcher = Batcher(nlp)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open
        disable_nagle_algorithm = True
        timeout = SECONDS

        def do_GET(self) -> None:
            if self.path == "/health":
                self._answer(HTTPStatus.OK, {"status": "ok"})
            else:
                self._refuse(HTTPStatus.NOT_FOUND, "expected GET /health, or POST /")

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or len(length) > MAX_DIGITS or int(length) > MAX_BYTES:
                self._refuse(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected a Content-Length of up to {MAX_BYTES:,} bytes"
                )
                return
            text = _parse(self.rfile.read(int(length)))
            if text is None or LONG_WORD.search(text):
                self._refuse(HTTPStatus.BAD_REQUEST, 'expected {"text": ...}, with words of up to 500 characters')
                return
            try:
                answer = batcher.embed(text)
            except queue.Full:
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests are waiting")
            except TimeoutError:
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"the answer took longer than {SECONDS:.0f} seconds")
            except Exception as error:
                self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, type(error).__name__)
            else:
                self._answer(HTTPStatus.OK, answer)

        def _refuse(self, status: HTTPStatus, message: str) -> None:
            self.close_connection = True  # the rest of the request was perhaps not read
            self._answer(status, {"error": message})

        def _answer(self, status: HTTPStatus, answer: Answer) -> None:
            data = srsly.json_dumps(answer).encode()  # seven times as fast as json
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if self.close_connection:
                self.send_header("Connection", "close")
            try:
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the client has gone, or reads too slowly

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # clients that connect at the same moment

    server = Server((host, port), Handler, bind_and_activate=False)
    try:
        server.server_bind()  # fails at once if the port is in use
        nlp("The weights are read now.")
        server.server_activate()
    except BaseException:
        server.server_close()
        raise
    return server


def _parse(data: bytes) -> str | None:
    try:
        text = json.loads(data)["text"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return drop_surrogates(text) if isinstance(text, str) else None


def serve(pipeline: Path | None = None, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve the vectors of a pipeline.

    pipeline (Path | None): A saved pipeline with a component `elmo`; None for an English one with the bundled model.
    host (str), port (int): Where to listen.
    """
    try:
        if pipeline is None:
            nlp = spacy.blank("en")
            nlp.add_pipe("sentencizer")
            nlp.add_pipe("elmo", config={"keep_layers": False})
        else:
            nlp = spacy.load(pipeline)
        server = make_server(nlp, host, port)
    except (OSError, ValueError, OverflowError) as error:  # the last one is of ports
        msg.fail(f"Could not serve {pipeline or 'the bundled model'} on {host}:{port}", str(error), exits=1)
    # From another thread: the signal interrupts the loop that it is to end.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    msg.good(f"Listening on http://{host}:{server.server_address[1]}")
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    typer.run(serve)
