"""HTTP/1.1 on a socket: requests in, answers out.

Connections are kept open between requests. A streamed answer is sent in the
chunked encoding, one chunk for each event.
"""

import json
import socket

MAX_LINE = 16 * 1024
MAX_HEADERS = 128
MAX_BODY = 8 * 1024 * 1024

REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Payload Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


class WireError(Exception):
    """A request that breaks the protocol; the connection ends with ``status``."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class HttpRequest:
    """One request as it came in."""

    def __init__(self, method, path, version, headers, body):
        self.method = method
        self.path = path
        self.version = version
        self.body = body
        words = [word.strip() for word in headers.get("connection", "").lower().split(",")]
        if version == "HTTP/1.0":
            self.keep_alive = "keep-alive" in words
        else:
            self.keep_alive = "close" not in words


class Connection:
    """One client's connection."""

    def __init__(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self._reader = sock.makefile("rb")
        self._chunked = False

    def close(self):
        """Closes the connection."""
        self._reader.close()
        self._socket.close()

    def read_request(self):
        """Returns the next request, or ``None`` when the client has gone."""
        line = self._read_line()
        if line == "":
            # One empty line before a request is allowed; a second one is the end.
            line = self._read_line()
        if not line:
            return None
        parts = line.split(" ")
        if len(parts) != 3:
            raise WireError(400, "malformed request line")
        method, target, version = parts
        if version not in ("HTTP/1.0", "HTTP/1.1"):
            raise WireError(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
        headers = self._read_headers()
        body = self._read_body(headers)
        return HttpRequest(method, target.split("?", 1)[0], version, headers, body)

    def send_json(self, status, value, keep_alive):
        """Sends one JSON object as a whole answer."""
        self.send_whole(status, "application/json", json.dumps(value).encode("ascii"), keep_alive)

    def send_whole(self, status, content_type, body, keep_alive):
        """Sends a whole answer."""
        head = self._head(status, content_type, keep_alive)
        length = "Content-Length: {}\r\n\r\n".format(len(body))
        self._socket.sendall((head + length).encode("ascii") + body)

    def start_stream(self, request):
        """Sends the head of a streamed answer; returns whether the connection can be kept."""
        self._chunked = request.version == "HTTP/1.1"
        keep_alive = self._chunked and request.keep_alive
        head = self._head(200, "text/event-stream; charset=utf-8", keep_alive)
        head += "Cache-Control: no-cache\r\n"
        if self._chunked:
            head += "Transfer-Encoding: chunked\r\n"
        self._socket.sendall((head + "\r\n").encode("ascii"))
        return keep_alive

    def frame(self, event):
        """Returns the bytes that carry one event of a streamed answer."""
        return b"%x\r\n%b\r\n" % (len(event), event) if self._chunked else event

    def end_of_stream(self):
        """Returns the bytes that end a streamed answer."""
        return b"0\r\n\r\n" if self._chunked else b""

    def send(self, data):
        """Sends ``data``, however long the client takes to receive it."""
        self._socket.sendall(data)

    def send_now(self, data):
        """Sends what the client has room for, without waiting; returns what is left."""
        try:
            return data[self._socket.send(data, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            return data

    @staticmethod
    def _head(status, content_type, keep_alive):
        return (
            "HTTP/1.1 {} {}\r\nServer: tinyserve\r\nContent-Type: {}\r\nConnection: {}\r\n"
        ).format(status, REASONS[status], content_type, "keep-alive" if keep_alive else "close")

    def _read_line(self):
        line = self._reader.readline(MAX_LINE + 1)
        if not line:
            return None
        if not line.endswith(b"\n"):
            if len(line) > MAX_LINE:
                raise WireError(431, "a line of the request is too long")
            return None
        return line.rstrip(b"\r\n").decode("latin-1")

    def _read_headers(self):
        headers = {}
        for _ in range(MAX_HEADERS):
            line = self._read_line()
            if line is None:
                raise WireError(400, "the request ended inside its headers")
            if line == "":
                return headers
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise WireError(400, "malformed header")
            headers[name.lower()] = value.strip()
        raise WireError(431, "too many headers")

    def _read_body(self, headers):
        encoding = headers.get("transfer-encoding")
        length = headers.get("content-length")
        if encoding is None and length is None:
            return b""
        if headers.get("expect", "").lower() == "100-continue":
            self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if encoding is not None:
            if length is not None:
                raise WireError(400, "both Content-Length and Transfer-Encoding are given")
            if encoding.lower() != "chunked":
                raise WireError(501, "only the transfer encoding `chunked` is supported")
            return self._read_chunks()
        if not (length.isascii() and length.isdigit()):
            raise WireError(400, "Content-Length is not a number")
        if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
            raise WireError(413, "the body is too large")
        return self._read_exactly(int(length))

    def _read_chunks(self):
        body = b""
        while True:
            line = self._read_line()
            try:
                size = int((line or "").split(";", 1)[0].strip(), 16)
            except ValueError:
                size = -1
            if size < 0:
                raise WireError(400, "malformed chunk size")
            if len(body) + size > MAX_BODY:
                raise WireError(413, "the body is too large")
            if size == 0:
                self._read_headers()
                return body
            body += self._read_exactly(size)
            if self._read_line() != "":
                raise WireError(400, "malformed chunk")

    def _read_exactly(self, size):
        data = self._reader.read(size)
        if len(data) < size:
            raise WireError(400, "the request ended inside its body")
        return data
