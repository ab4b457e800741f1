"""The truth server: starts it, changes its settings while it runs, and reads its record."""

import http.client
import json
import os
import time
import urllib.parse
from dataclasses import dataclass

from machine import end

PORT = 18000
MODEL = "mock"
# Settings that every truth server has, by their values at rest. One that lists its settings, a
# `key=value` a line, may have more.
COMMON = {
    "ttft_us": "0", "itl_us": "0", "coalesce": "1", "deftok": "64", "role": "1", "empty": "0",
    "tpc": "1", "split_us": "0", "ka": "0", "errmid": "0", "abort": "0", "nodone": "0",
    "nousage": "0", "reason": "0", "crlf": "0", "utf8": "0",
}


class NoAnswer(Exception):
    """The truth server did not start or did not answer."""


@dataclass(frozen=True)
class Record:
    """One request as the server saw it; monotonic clock in ns."""

    connected: int
    arrived: int
    first: int
    last: int
    tokens: int


class TruthServer:
    """A running truth server on loopback; a context manager. What it prints goes to `log`."""

    def __init__(self, machine, program, words, log):
        self.machine, self.program, self.words, self.log = machine, program, words, log
        self.changed = set()
        self.url = f"http://127.0.0.1:{PORT}"

    def __enter__(self):
        command = [self.program, "--port", str(PORT), "--model", MODEL]
        if os.path.exists(self.words):
            command += ["--words", self.words]
        with open(self.log, "wb") as log:
            self.child, _ = self.machine.spawn(
                "server", command, [self.machine.server_core], stdout=log, stderr=log)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.get("/health")
                listed = (line.partition("=") for line in self.get("/ctl").splitlines())
                self.rest = COMMON | {key: value for key, is_set, value in listed if is_set}
                return self
            except NoAnswer:
                if time.monotonic() > deadline or self.child.poll() is not None:
                    end(self.child)
                    raise
                time.sleep(0.05)

    def __exit__(self, *_):
        end(self.child)

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(f"`{self.program}` does not answer `{path}`: {error}; what it printed "
                           f"is in `{self.log}`") from error
        finally:
            connection.close()

    def set(self, **settings):
        """Sets these, puts those of the trial before to rest, and clears the record."""
        at_rest = {key: self.rest[key] for key in self.changed}
        self.changed = set(settings)
        query = urllib.parse.urlencode({**at_rest, **settings})
        if query:
            self.get(f"/ctl?{query}")
        self.get("/ctl?reset=1")

    def statistics(self):
        return json.loads(self.get("/stats"))

    def records(self):
        """Returns the requests that were answered in full, by arrival."""
        rows = [line.split(",") for line in self.get("/log").splitlines()]
        found = [Record(*(int(x) for x in row[1:6])) for row in rows]
        return sorted(found, key=lambda record: record.arrived)
