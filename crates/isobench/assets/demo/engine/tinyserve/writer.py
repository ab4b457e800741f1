"""From the outputs of a sequence to the bytes of an answer.

``emit`` runs in the scheduler's thread and never waits. ``finish`` runs in the
connection's thread and returns when the answer has been sent.
"""

import queue

from tinyserve.protocol import BadRequest


class StreamWriter:
    """Sends each output as an event, at once."""

    def __init__(self, connection, answer):
        self._connection = connection
        self._answer = answer
        self._generated = 0
        self._error = None
        # What the client had no room for, and ``None`` at the end of the stream.
        self._left = queue.SimpleQueue()
        self._keeps_up = True
        for event in answer.opening_events():
            connection.send(connection.frame(event))

    def emit(self, token, finish_reason):
        """Sends one output; returns whether the client is still there."""
        if token is not None:
            self._generated += 1
        self._send(self._connection.frame(self._event(token, finish_reason)))
        if finish_reason is not None:
            closing = self._answer.closing_events(self._generated)
            self._send(b"".join([self._connection.frame(event) for event in closing]))
            self._send(self._connection.end_of_stream())
            self._left.put(None)
        return self._error is None

    def finish(self):
        """Sends what is left over, until the stream has ended."""
        try:
            for data in iter(self._left.get, None):
                self._connection.send(data)
        except OSError as error:
            self._error = error
        if self._error is not None:
            raise self._error

    def _event(self, token, finish_reason):
        if finish_reason == "error":
            return self._answer.error_event("the engine failed")
        return self._answer.token_event(token, finish_reason)

    def _send(self, data):
        if not self._keeps_up:
            self._left.put(data)
            return
        try:
            left = self._connection.send_now(data)
        except OSError as error:
            self._keeps_up = False
            self._error = error
            self._left.put(None)
            return
        if left:
            self._keeps_up = False
            self._left.put(left)


class WholeWriter:
    """Collects all outputs and sends them as one JSON object."""

    def __init__(self, connection, answer, keep_alive):
        self._connection = connection
        self._answer = answer
        self._keep_alive = keep_alive
        self._tokens = []
        self._finish_reason = queue.SimpleQueue()

    def emit(self, token, finish_reason):
        """Takes one output; more are always wanted."""
        if token is not None:
            self._tokens.append(token)
        if finish_reason is not None:
            self._finish_reason.put(finish_reason)
        return True

    def finish(self):
        """Sends the answer once it is whole."""
        finish_reason = self._finish_reason.get()
        if finish_reason == "error":
            raise BadRequest("the engine failed", 500, "InternalServerError")
        answer = self._answer.whole(self._tokens, finish_reason)
        self._connection.send_json(200, answer, self._keep_alive)
