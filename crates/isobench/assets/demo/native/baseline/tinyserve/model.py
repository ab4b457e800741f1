"""An interpolated n-gram language model.

The next word is predicted from the last one, two, three, four and five words. For
each of these contexts the model counts which words followed it in the corpus,
and blends the counts with the prediction of the next shorter context, down to
the frequencies of single words (Witten-Bell smoothing: the more different words
followed a context, the more the shorter one has to say). Words said a moment
ago are damped, so that the text does not turn in circles.

The counts of a context are collected when they are needed, by a walk through the
corpus in C (``csrc/continuations.c``).
"""

import ctypes
import os

from tinyserve.tokenizer import END_OF_TEXT, Tokenizer

#: The longest context in words.
MAX_CONTEXT = 5

#: How many of the last words are damped, and by what factor at each use.
DAMPED_WORDS = 24
DAMPING = 0.5

FOLDER = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(FOLDER, "corpus.txt")

_count_continuations = ctypes.CDLL(os.path.join(FOLDER, "_continuations.so")).count_continuations
_count_continuations.restype = None


class NgramModel:
    """A language model that has read one text."""

    def __init__(self, tokenizer, corpus):
        self.tokenizer = tokenizer
        self._corpus = tuple(corpus)
        counts = [0] * tokenizer.vocab_size
        for token in self._corpus:
            counts[token] += 1
        self._unigram = [count / len(self._corpus) for count in counts]
        self._c_corpus = (ctypes.c_int32 * len(self._corpus))(*self._corpus)

    def continuations(self, context):
        """Returns how often each token follows ``context`` in the corpus."""
        length = len(context)
        counts = (ctypes.c_int32 * self.tokenizer.vocab_size)()
        _count_continuations(
            self._c_corpus,
            ctypes.c_size_t(len(self._corpus)),
            (ctypes.c_int32 * length)(*context),
            ctypes.c_size_t(length),
            counts,
        )
        return {token: count for token, count in enumerate(counts) if count}

    def probabilities(self, history):
        """Returns the probability of every token as the next one after ``history``."""
        probabilities = self._unigram
        for length in range(1, min(MAX_CONTEXT, len(history)) + 1):
            counts = self.continuations(tuple(history[-length:]))
            if counts:
                total = sum(counts.values()) + len(counts)
                rest = len(counts) / total
                probabilities = [rest * probability for probability in probabilities]
                for token, count in counts.items():
                    probabilities[token] += count / total
        return self._damp(probabilities, history[-DAMPED_WORDS:])

    @staticmethod
    def _damp(probabilities, recent):
        weights = probabilities[:]
        for token in recent:
            weights[token] *= DAMPING
        total = sum(weights)
        return [weight / total for weight in weights]


def build_model(path=CORPUS):
    """Returns the model of the text at ``path``, whose paragraphs are separate texts."""
    with open(path, encoding="utf-8") as file:
        paragraphs = [paragraph.split() for paragraph in file.read().split("\n\n")]
    tokenizer = Tokenizer([word for words in paragraphs for word in words])
    corpus = [END_OF_TEXT]
    for words in paragraphs:
        corpus.extend(tokenizer.encode(" ".join(words)))
        corpus.append(END_OF_TEXT)
    return NgramModel(tokenizer, corpus)
