"""Tests of the engine: ``python3 -m unittest discover -s tests -t .``"""

import http.client
import json
import os
import signal
import subprocess
import sys
import unittest

from tinyserve.model import MAX_CONTEXT, build_model
from tinyserve.protocol import Answer, Request
from tinyserve.sampler import Sampler
from tinyserve.server import Server, ServerOptions
from tinyserve.tokenizer import END_OF_TEXT
from tinyserve.writer import StreamWriter

MODEL = build_model()
TOKENIZER = MODEL.tokenizer
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def scan(corpus, context):
    """Counts what follows ``context`` in the plainest way."""
    counts = {}
    for start in range(len(corpus) - len(context)):
        if tuple(corpus[start : start + len(context)]) == context:
            token = corpus[start + len(context)]
            counts[token] = counts.get(token, 0) + 1
    return counts


def generate(prompt, tokens, temperature=0.0, seed=None):
    """Generates with the model alone, without a server."""
    history = TOKENIZER.encode(prompt)
    sampler = Sampler(temperature, seed)
    for _ in range(tokens):
        history.append(sampler.choose(MODEL.probabilities(history), end_allowed=False))
    return history[-tokens:]


class TokenizerTest(unittest.TestCase):
    def test_every_token_is_one_word_of_the_text(self):
        ids = list(range(1, TOKENIZER.vocab_size))
        words = TOKENIZER.decode(ids).split()
        self.assertEqual(len(words), len(ids))
        self.assertEqual(TOKENIZER.encode(" ".join(words)), ids)

    def test_unknown_words_become_known_ones_in_a_stable_way(self):
        for word in ("zebra", "\u00e9t\u00e9", "<|im_start|>", "12345"):
            first, second = TOKENIZER.encode(word + " " + word)
            self.assertEqual(first, second)
            self.assertNotEqual(first, END_OF_TEXT)

    def test_case_and_punctuation_are_dropped_where_only_the_bare_word_is_known(self):
        self.assertEqual(TOKENIZER.encode("ENGINE!"), TOKENIZER.encode("engine"))


class ModelTest(unittest.TestCase):
    def test_continuations_are_those_of_a_plain_scan(self):
        corpus = MODEL._corpus
        for start in range(0, len(corpus), 211):
            for length in range(1, MAX_CONTEXT + 1):
                context = corpus[start : start + length]
                self.assertEqual(MODEL.continuations(context), scan(corpus, context))

    def test_a_context_the_corpus_lacks_has_no_continuation(self):
        self.assertEqual(MODEL.continuations((1, 1, 1)), {})

    def test_probabilities_sum_to_one(self):
        for prompt in ("the engine", "zebra", "waiting for the table to be full."):
            self.assertAlmostEqual(sum(MODEL.probabilities(TOKENIZER.encode(prompt))), 1.0)

    def test_greedy_text_is_pinned(self):
        text = TOKENIZER.decode(generate("The keeper asks what the engine is", 16))
        self.assertEqual(text, GREEDY)

    def test_sampled_text_is_pinned_by_its_seed(self):
        prompt = "In the garden behind the"
        self.assertEqual(generate(prompt, 24, 0.8, 7), generate(prompt, 24, 0.8, 7))
        self.assertNotEqual(generate(prompt, 24, 0.8, 7), generate(prompt, 24, 0.8, 8))
        self.assertEqual(TOKENIZER.decode(generate(prompt, 10, 1.2, 7)), SAMPLED)


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(ServerOptions("127.0.0.1", 0, "test", 2, 64))
        cls.server.start()
        cls.server.load(MODEL)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.client = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)

    def tearDown(self):
        self.client.close()

    def ask(self, path, body=None):
        """Returns status and body of one request; the connection is kept."""
        data = None if body is None else json.dumps(body)
        self.client.request("GET" if body is None else "POST", path, data)
        response = self.client.getresponse()
        return response.status, response.read().decode("utf-8")

    def events(self, path, **body):
        """Returns the events of one streamed answer, without the closing one."""
        status, text = self.ask(path, dict(body, stream=True))
        self.assertEqual(status, 200)
        events = text.split("\n\n")
        self.assertEqual(events[-2:], ["data: [DONE]", ""])
        return [json.loads(event[len("data: ") :]) for event in events[:-2]]

    def test_health_version_and_models(self):
        self.assertEqual(self.ask("/health"), (200, ""))
        self.assertIn("version", json.loads(self.ask("/version")[1]))
        self.assertEqual(json.loads(self.ask("/v1/models")[1])["data"][0]["id"], "test")

    def test_a_stream_has_one_event_for_each_token_and_ends_with_usage(self):
        *chunks, last = self.events(
            "/v1/completions",
            prompt="The keeper asks what the engine is",
            max_tokens=16,
            ignore_eos=True,
            temperature=0,
            return_token_ids=True,
            stream_options={"include_usage": True},
        )
        self.assertEqual("".join(chunk["choices"][0]["text"] for chunk in chunks), GREEDY)
        self.assertEqual([len(chunk["choices"][0]["token_ids"]) for chunk in chunks], [1] * 16)
        reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
        self.assertEqual(reasons, [None] * 15 + ["length"])
        self.assertEqual(last["choices"], [])
        usage = {"prompt_tokens": 7, "completion_tokens": 16, "total_tokens": 23}
        self.assertEqual(last["usage"], usage)

    def test_a_whole_answer_says_the_same_as_a_stream(self):
        for path, prompt in (
            ("/v1/completions", {"prompt": "the river was"}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "the river was"}]}),
        ):
            body = dict(prompt, max_tokens=9, min_tokens=9, temperature=0.7, seed=11)
            whole = json.loads(self.ask(path, body)[1])
            choice = whole["choices"][0]
            text = choice["text"] if "text" in choice else choice["message"]["content"]
            streamed = ""
            for event in self.events(path, **body):
                choice = event["choices"][0]
                streamed += choice["text"] if "text" in choice else choice["delta"]["content"]
            self.assertEqual(streamed, text)
            self.assertEqual(len(text.split()), 9)
            self.assertEqual(whole["usage"]["completion_tokens"], 9)

    def test_token_ids_are_a_prompt(self):
        words, ids = "the tank was", TOKENIZER.encode("the tank was")
        answers = [
            json.loads(self.ask("/v1/completions", {"prompt": prompt, "temperature": 0})[1])
            for prompt in (words, ids)
        ]
        self.assertEqual(answers[0]["choices"], answers[1]["choices"])

    def test_a_text_ends_by_itself_unless_told_otherwise(self):
        prompt = "the engine finishes it in a steady stream, like a river."
        body = {"prompt": prompt, "max_tokens": 20, "temperature": 0}
        answer = json.loads(self.ask("/v1/completions", body)[1])
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertEqual(answer["usage"]["completion_tokens"], 0)
        for extra, reason in (({"min_tokens": 20}, "length"), ({"ignore_eos": True}, "length")):
            answer = json.loads(self.ask("/v1/completions", dict(body, **extra))[1])
            self.assertEqual(answer["choices"][0]["finish_reason"], reason)
            self.assertEqual(len(answer["choices"][0]["text"].split()), 20)

    def test_more_sequences_than_places_are_all_served(self):
        clients = [http.client.HTTPConnection("127.0.0.1", self.server.port) for _ in range(5)]
        body = {"prompt": "the queue", "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        for client in clients:
            client.request("POST", "/v1/completions", json.dumps(body))
        texts = set()
        for client in clients:
            texts.add(json.loads(client.getresponse().read())["choices"][0]["text"])
            client.close()
        self.assertEqual(len(texts), 1)

    def test_bad_requests_are_refused_as_json(self):
        for body, status in (
            ({}, 400),
            ({"prompt": ""}, 400),
            ({"prompt": [10 ** 6]}, 400),
            ({"prompt": "a", "max_tokens": 0}, 400),
            ({"prompt": "a", "max_tokens": 64}, 400),
            ({"prompt": "a", "min_tokens": 17}, 400),
            ({"prompt": "a", "temperature": -1}, 400),
            ({"prompt": "a", "n": 2}, 400),
            ({"prompt": "a", "model": "another"}, 404),
        ):
            with self.subTest(body=body):
                answered, text = self.ask("/v1/completions", body)
                self.assertEqual(answered, status)
                self.assertIn("message", json.loads(text)["error"])
        self.assertEqual(self.ask("/nowhere")[0], 404)
        self.assertEqual(self.ask("/v1/completions")[0], 405)


class SlowConnection:
    """A client that has room for a few bytes, and then only for those who wait."""

    def __init__(self, room):
        self.room = room
        self.received = b""

    def frame(self, event):
        return event

    def end_of_stream(self):
        return b"end"

    def send(self, data):
        self.received += data

    def send_now(self, data):
        self.received += data[: self.room]
        left = data[self.room :]
        self.room = max(0, self.room - len(data))
        return left


class GoneConnection(SlowConnection):
    """A client that has gone."""

    def send(self, data):
        raise BrokenPipeError

    def send_now(self, data):
        raise BrokenPipeError


class WriterTest(unittest.TestCase):
    def answer(self):
        body = {"prompt": "the river was", "stream": True}
        request = Request(body, False, TOKENIZER, "test", 64)
        return Answer(request, TOKENIZER, "test")

    def test_a_slow_client_gets_every_byte_in_order(self):
        answer = self.answer()
        whole = answer.token_event(1, None) * 3 + answer.token_event(2, "length")
        whole += b"data: [DONE]\n\nend"
        for room in range(0, len(whole) + 1, 7):
            connection = SlowConnection(room)
            writer = StreamWriter(connection, answer)
            for token, reason in ((1, None), (1, None), (1, None), (2, "length")):
                self.assertTrue(writer.emit(token, reason))
            writer.finish()
            self.assertEqual(connection.received, whole)

    def test_a_client_that_has_gone_ends_the_sequence(self):
        writer = StreamWriter(GoneConnection(0), self.answer())
        self.assertFalse(writer.emit(1, None))
        self.assertRaises(BrokenPipeError, writer.finish)


class CommandTest(unittest.TestCase):
    def test_a_signal_ends_the_command_cleanly(self):
        command = [sys.executable, "-B", "-m", "tinyserve", "--port", "0"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        try:
            self.assertIn(b"http://127.0.0.1:", process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=30), 0)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


GREEDY = (
    " busy, and a good keeper tries to stay in that narrow place. It is not"
    " easy"
)
SAMPLED = " from cache must at once. The board stay a morning"

if __name__ == "__main__":
    unittest.main()
