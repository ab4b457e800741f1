"""Sequences and the scheduler that decodes them together.

One thread owns the model. It takes waiting sequences in the order of their
arrival, decodes up to ``max_num_seqs`` of them side by side, and goes round the
table: one token for each running sequence, then the next round. A finished
sequence leaves its place to the next one in the queue at once.
"""

import sys
import threading
import traceback
from collections import deque

from tinyserve.sampler import Sampler
from tinyserve.tokenizer import END_OF_TEXT

#: How long the scheduler may take to tell all sequences that they were aborted.
ABORT_GRACE_S = 0.2


class Sequence:
    """One prompt and the tokens generated for it so far.

    ``emit(token, finish_reason)`` is called in the scheduler's thread for each
    output; the token is ``None`` where a sequence ends without a further one, and
    the reason is ``None`` until the last output. It must not block, and returns
    whether more outputs are wanted.
    """

    def __init__(self, prompt, sampling, emit):
        self.emit = emit
        self.history = list(prompt)
        self.max_tokens = sampling.max_tokens
        self.min_tokens = sampling.min_tokens
        self.ignore_eos = sampling.ignore_eos
        self.sampler = Sampler(sampling.temperature, sampling.seed)
        self.generated = 0
        self.cancelled = False


class Engine:
    """Decodes sequences with a model, many at a time."""

    def __init__(self, model, max_num_seqs):
        self.model = model
        self._max_num_seqs = max_num_seqs
        self._waiting = deque()
        self._running = []
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self):
        """Starts the scheduler's thread."""
        self._thread.start()

    def submit(self, sequence):
        """Queues a sequence; a stopping engine aborts it at once."""
        with self._changed:
            if not self._stopping:
                self._waiting.append(sequence)
                self._changed.notify()
                return
        sequence.emit(None, "abort")

    def stop(self, grace_s):
        """Lets the sequences at hand finish for at most ``grace_s``, then aborts them."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(grace_s)
        if self._thread.is_alive():
            for sequence in list(self._waiting) + list(self._running):
                sequence.cancelled = True
            self._thread.join(ABORT_GRACE_S)

    def _run(self):
        while self._admit():
            self._step()

    def _admit(self):
        """Fills free places from the queue; waits for work; false when it is time to end."""
        with self._changed:
            while not self._waiting and not self._running:
                if self._stopping:
                    return False
                self._changed.wait()
            while self._waiting and len(self._running) < self._max_num_seqs:
                self._running.append(self._waiting.popleft())
        return True

    def _step(self):
        """Decodes one token of every running sequence."""
        still_running = []
        for sequence in self._running:
            if sequence.cancelled:
                sequence.emit(None, "abort")
                continue
            try:
                token, finish_reason = self._decode(sequence)
            except Exception:  # one broken sequence must not end the others
                traceback.print_exc(file=sys.stderr)
                token, finish_reason = None, "error"
            if sequence.emit(token, finish_reason) and finish_reason is None:
                still_running.append(sequence)
        self._running = still_running

    def _decode(self, sequence):
        """Returns the next token of a sequence and, with its last one, why it ends."""
        probabilities = self.model.probabilities(sequence.history)
        end_allowed = not sequence.ignore_eos and sequence.generated >= sequence.min_tokens
        token = sequence.sampler.choose(probabilities, end_allowed)
        if token == END_OF_TEXT:
            return None, "stop"
        sequence.history.append(token)
        sequence.generated += 1
        if sequence.generated >= sequence.max_tokens:
            return token, "length"
        return token, None
