"""Routes, threads, start and stop.

The main thread builds the model and then waits for a signal. One thread
accepts connections, and each connection has a thread that reads its requests.
The events of a stream are sent by the scheduler's thread as it decodes them,
which saves a change of threads for each token; only where a client does not
keep up does the connection's own thread send the rest.
"""

import json
import signal
import socket
import sys
import threading
import time

from tinyserve import __version__
from tinyserve.engine import Engine, Sequence
from tinyserve.model import build_model
from tinyserve.protocol import Answer, BadRequest, Request, error_body
from tinyserve.wire import Connection, WireError
from tinyserve.writer import StreamWriter, WholeWriter

#: How long sequences at hand may still run after a stop was asked for.
STOP_GRACE_S = 0.4

#: How long the connections' threads get to send the last bytes.
FLUSH_GRACE_S = 0.2

#: The interpreter's thread switch interval. A new request should not wait long
#: for the scheduler to give way.
SWITCH_INTERVAL_S = 0.0005


class ServerOptions:
    """Where to listen and what to serve."""

    def __init__(self, host, port, model, max_num_seqs, max_model_len):
        self.host = host
        self.port = port
        self.model = model
        self.max_num_seqs = max_num_seqs
        self.max_model_len = max_model_len


class Server:
    """An OpenAI-compatible server around one engine."""

    def __init__(self, options):
        self._options = options
        self._created = int(time.time())
        self._engine = None
        self._answering = 0
        self._idle = threading.Condition()
        self._listener = socket.create_server((options.host, options.port), backlog=128)

    @property
    def port(self):
        """The port the server listens on."""
        return self._listener.getsockname()[1]

    def start(self):
        """Accepts connections; until a model is there, the answer is 503."""
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def load(self, model):
        """Starts the engine with ``model``; from now on the server is healthy."""
        engine = Engine(model, self._options.max_num_seqs)
        engine.start()
        self._engine = engine

    def stop(self):
        """Refuses new connections and ends the work at hand soon."""
        self._listener.close()
        if self._engine is not None:
            self._engine.stop(STOP_GRACE_S)
        with self._idle:
            self._idle.wait_for(lambda: self._answering == 0, FLUSH_GRACE_S)

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                if self._listener.fileno() < 0:
                    return
                time.sleep(0.01)
                continue
            threading.Thread(target=self._converse, args=(sock,), daemon=True).start()

    def _converse(self, sock):
        connection = Connection(sock)
        try:
            keep_alive = True
            while keep_alive:
                request = connection.read_request()
                if request is None:
                    break
                with self._idle:
                    self._answering += 1
                try:
                    keep_alive = self._answer(connection, request)
                finally:
                    with self._idle:
                        self._answering -= 1
                        self._idle.notify_all()
        except WireError as error:
            body = error_body(str(error), error.status, "BadRequestError")
            try:
                connection.send_json(error.status, body, keep_alive=False)
            except OSError:
                pass
        except OSError:
            pass  # the client has gone
        finally:
            connection.close()

    def _answer(self, connection, request):
        """Answers one request; returns whether the connection can be kept."""
        routes = {
            "/health": ("GET", self._health),
            "/version": ("GET", self._version),
            "/v1/models": ("GET", self._models),
            "/v1/completions": ("POST", self._completions),
            "/v1/chat/completions": ("POST", self._completions),
        }
        try:
            if request.path not in routes:
                raise BadRequest("there is no `{}`".format(request.path), 404, "NotFoundError")
            method, handler = routes[request.path]
            if request.method != method:
                raise BadRequest("use {} here".format(method), 405, "MethodNotAllowedError")
            if self._engine is None:
                raise BadRequest("the model is not built yet", 503, "ServiceUnavailableError")
            return handler(connection, request)
        except BadRequest as error:
            body = error_body(str(error), error.status, error.kind)
            connection.send_json(error.status, body, request.keep_alive)
            return request.keep_alive

    def _health(self, connection, request):
        connection.send_whole(200, "text/plain", b"", request.keep_alive)
        return request.keep_alive

    def _version(self, connection, request):
        connection.send_json(200, {"version": __version__}, request.keep_alive)
        return request.keep_alive

    def _models(self, connection, request):
        card = {
            "id": self._options.model,
            "object": "model",
            "created": self._created,
            "owned_by": "tinyserve",
            "root": self._options.model,
            "max_model_len": self._options.max_model_len,
            "vocab_size": self._engine.model.tokenizer.vocab_size,
        }
        connection.send_json(200, {"object": "list", "data": [card]}, request.keep_alive)
        return request.keep_alive

    def _completions(self, connection, request):
        try:
            body = json.loads(request.body)
        except (ValueError, RecursionError) as error:
            raise BadRequest("the body is not JSON: {}".format(error)) from error
        options = self._options
        tokenizer = self._engine.model.tokenizer
        chat = request.path == "/v1/chat/completions"
        wanted = Request(body, chat, tokenizer, options.model, options.max_model_len)
        answer = Answer(wanted, tokenizer, options.model)
        keep_alive = request.keep_alive
        if wanted.stream:
            keep_alive = connection.start_stream(request)
            writer = StreamWriter(connection, answer)
        else:
            writer = WholeWriter(connection, answer, keep_alive)
        self._engine.submit(Sequence(wanted.prompt, wanted.sampling, writer.emit))
        writer.finish()
        return keep_alive


def serve(options):
    """Serves until SIGTERM or SIGINT; returns the exit status."""
    started = time.monotonic()
    # Blocked in every thread and waited for below, so that a signal interrupts
    # nothing and none is lost while the model is built.
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    server = Server(options)
    server.start()
    server.load(build_model())
    print(
        "tinyserve {}: model `{}` on http://{}:{} after {:.0f} ms".format(
            __version__,
            options.model,
            options.host,
            server.port,
            (time.monotonic() - started) * 1000.0,
        ),
        flush=True,
    )
    signal.sigwait(signals)
    server.stop()
    return 0
