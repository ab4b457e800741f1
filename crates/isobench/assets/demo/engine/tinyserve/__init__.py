"""tinyserve: a tiny text-generation engine with an OpenAI-compatible server.

The parts, from the inside out:

* ``tokenizer``: words to ids and back,
* ``model``: an interpolated n-gram language model over ``corpus.txt``,
* ``sampler``: greedy choice and seeded sampling,
* ``engine``: sequences and the continuous-batching scheduler,
* ``protocol``: what requests may say and what answers look like,
* ``wire``: HTTP/1.1 on a socket,
* ``writer``: from decoded tokens to the bytes of an answer,
* ``server``: routes, threads, start and stop.

Only the standard library is used.
"""

__version__ = "0.3.0"
