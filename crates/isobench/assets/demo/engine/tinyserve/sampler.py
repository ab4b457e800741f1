"""From the probabilities of all tokens to one token."""

import random
from bisect import bisect_right
from itertools import accumulate

from tinyserve.tokenizer import END_OF_TEXT


class Sampler:
    """Chooses tokens for one sequence; the same seed makes the same choices."""

    def __init__(self, temperature, seed):
        self._temperature = temperature
        self._random = random.Random(seed)

    def choose(self, probabilities, end_allowed):
        """Returns the next token; greedy where the temperature is zero.

        Of equal probabilities the lowest id wins. ``probabilities`` is used up.
        """
        if not end_allowed:
            probabilities[END_OF_TEXT] = 0.0
        if self._temperature == 0.0:
            return probabilities.index(max(probabilities))
        if self._temperature != 1.0:
            top = max(probabilities)
            power = 1.0 / self._temperature
            # Divided by the largest one first, so that no power underflows to
            # zero for all tokens together.
            probabilities = [(probability / top) ** power for probability in probabilities]
        sums = list(accumulate(probabilities))
        chosen = bisect_right(sums, self._random.random() * sums[-1])
        return min(chosen, len(sums) - 1)
