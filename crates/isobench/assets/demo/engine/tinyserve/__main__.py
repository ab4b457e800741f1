"""The command: ``python3 -m tinyserve --port 8000 --model NAME``."""

import argparse
import sys

from tinyserve.server import ServerOptions, serve


def parse_arguments(arguments):
    """Returns the server's options from the command line."""
    parser = argparse.ArgumentParser(
        prog="tinyserve", description="A tiny OpenAI-compatible text-generation engine."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on")
    parser.add_argument("--model", default="pump-house", help="name the model is served under")
    parser.add_argument(
        "--max-num-seqs", type=int, default=8, help="sequences decoded at the same time"
    )
    parser.add_argument(
        "--max-model-len", type=int, default=2048, help="most tokens of a prompt and its answer"
    )
    parsed = parser.parse_args(arguments)
    if parsed.max_num_seqs < 1:
        parser.error("--max-num-seqs must be at least 1")
    if parsed.max_model_len < 2:
        parser.error("--max-model-len must be at least 2")
    return ServerOptions(
        host=parsed.host,
        port=parsed.port,
        model=parsed.model,
        max_num_seqs=parsed.max_num_seqs,
        max_model_len=parsed.max_model_len,
    )


if __name__ == "__main__":
    sys.exit(serve(parse_arguments(sys.argv[1:])))
