"""Words to token ids and back.

A token is one word with one leading space, so the text of N tokens always
splits at white space into exactly N words. Id 0 ends a text and has no text.
"""

import zlib

END_OF_TEXT = 0


class Tokenizer:
    """Maps the words of a corpus to ids and back."""

    def __init__(self, words):
        vocabulary = sorted(set(words))
        self._text_of_id = [""] + [" " + word for word in vocabulary]
        self._id_of_word = {word: index for index, word in enumerate(vocabulary, start=1)}

    @property
    def vocab_size(self):
        """The number of ids, the end of text included."""
        return len(self._text_of_id)

    def encode(self, text):
        """Returns one id for each white-space separated word of ``text``."""
        return [self._encode_word(word) for word in text.split()]

    def decode(self, ids):
        """Returns the text of ``ids``."""
        return "".join([self._text_of_id[token] for token in ids])

    def text_of(self, token):
        """Returns the text of one id."""
        return self._text_of_id[token]

    def _encode_word(self, word):
        token = self._id_of_word.get(word)
        if token is None:
            token = self._id_of_word.get(word.strip(".,:;?!\"'()").lower())
        if token is None:
            # A word that the corpus lacks still needs a stable meaning: its
            # checksum picks a known word, the same one in every process.
            token = 1 + zlib.crc32(word.encode("utf-8", "replace")) % (self.vocab_size - 1)
        return token
