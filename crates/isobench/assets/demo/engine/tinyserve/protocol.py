"""What a request may say, and what an answer looks like.

The formats are those of the OpenAI API with the extensions of common engines:
``min_tokens``, ``ignore_eos``, ``return_token_ids`` and prompts as token ids.
A known parameter that this engine does not support is refused; names that it
does not know are passed over.
"""

import json
import time
import uuid

#: Parameters that are understood only at the value that changes nothing.
NEUTRAL = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "logprobs": (False, 0),
    "top_logprobs": (0,),
    "prompt_logprobs": (),
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "stop": ([], ""),
    "stop_token_ids": ([],),
    "suffix": ("",),
    "tools": ([],),
}


class BadRequest(Exception):
    """A request that cannot be served; the text says why."""

    def __init__(self, message, status=400, kind="BadRequestError"):
        super().__init__(message)
        self.status = status
        self.kind = kind


class Sampling:
    """How many tokens are wanted and how they are chosen."""

    def __init__(self, body, room, default_max_tokens):
        self.max_tokens = _integer(body, ("max_completion_tokens", "max_tokens"), 1)
        if self.max_tokens is None:
            self.max_tokens = min(default_max_tokens, room)
        if self.max_tokens > room:
            raise BadRequest(
                "`max_tokens` is {}, but the prompt leaves room for {} tokens".format(
                    self.max_tokens, room
                )
            )
        self.min_tokens = _integer(body, ("min_tokens",), 0) or 0
        if self.min_tokens > self.max_tokens:
            raise BadRequest("`min_tokens` is larger than `max_tokens`")
        self.ignore_eos = _boolean(body, "ignore_eos")
        self.temperature = _number(body, "temperature", 1.0)
        self.seed = _integer(body, ("seed",), None)


class Request:
    """A checked request for a completion of either kind."""

    def __init__(self, body, chat, tokenizer, model, max_model_len):
        if not isinstance(body, dict):
            raise BadRequest("the body must be a JSON object")
        _refuse_unsupported(body)
        asked = body.get("model")
        if asked is not None and asked != model:
            raise BadRequest("the model `{}` does not exist".format(asked), 404, "NotFoundError")
        self.chat = chat
        self.prompt = _chat_prompt(body, tokenizer) if chat else _prompt(body, tokenizer)
        room = max_model_len - len(self.prompt)
        if room < 1:
            raise BadRequest(
                "the prompt has {} tokens, but the most is {}".format(
                    len(self.prompt), max_model_len - 1
                )
            )
        self.sampling = Sampling(body, room, room if chat else 16)
        self.stream = _boolean(body, "stream")
        self.return_token_ids = _boolean(body, "return_token_ids")
        options = body.get("stream_options")
        if options is None:
            options = {}
        elif not isinstance(options, dict):
            raise BadRequest("`stream_options` must be an object")
        elif not self.stream:
            raise BadRequest("`stream_options` needs `stream`")
        self.include_usage = _boolean(options, "include_usage")


class Answer:
    """Renders the answer to one request, whole or as events."""

    def __init__(self, request, tokenizer, model):
        self._request = request
        self._tokenizer = tokenizer
        self._header = {
            "id": ("chatcmpl-" if request.chat else "cmpl-") + uuid.uuid4().hex,
            "object": "chat.completion" if request.chat else "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        if request.stream and request.chat:
            self._header["object"] = "chat.completion.chunk"
        # An event differs from the next one only in a few places, so the rest
        # of it is rendered once.
        head = json.dumps(self._header)[:-1] + ', "choices": [{"index": 0, '
        self._before_text = head + ('"delta": {"content": ' if request.chat else '"text": ')
        self._after_text = ("}" if request.chat else "") + ', "logprobs": null, "finish_reason": '

    def opening_events(self):
        """Returns the events that come before the first token."""
        if not self._request.chat:
            return []
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        return [_event(json.dumps(dict(self._header, choices=[choice])))]

    def token_event(self, token, finish_reason):
        """Returns the event of one token; ``None`` stands for an end without a token."""
        text = "" if token is None else self._tokenizer.text_of(token)
        reason = "null" if finish_reason is None else '"' + finish_reason + '"'
        ids = ""
        if self._request.return_token_ids:
            ids = ', "token_ids": [' + ("" if token is None else str(token)) + "]"
        return _event(
            self._before_text + json.dumps(text) + self._after_text + reason + ids + "}]}"
        )

    def closing_events(self, generated):
        """Returns the events that come after the last token."""
        events = []
        if self._request.include_usage:
            usage = self._usage(generated)
            events.append(_event(json.dumps(dict(self._header, choices=[], usage=usage))))
        events.append(_event("[DONE]"))
        return events

    def error_event(self, message):
        """Returns the event that says why the stream cannot go on."""
        return _event(json.dumps(error_body(message, 500, "InternalServerError")))

    def whole(self, tokens, finish_reason):
        """Returns the answer as one JSON object."""
        text = self._tokenizer.decode(tokens)
        choice = {"index": 0, "logprobs": None, "finish_reason": finish_reason}
        if self._request.chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        if self._request.return_token_ids:
            choice["token_ids"] = tokens
        return dict(self._header, choices=[choice], usage=self._usage(len(tokens)))

    def _usage(self, generated):
        prompt = len(self._request.prompt)
        return {
            "prompt_tokens": prompt,
            "total_tokens": prompt + generated,
            "completion_tokens": generated,
        }


def error_body(message, status, kind):
    """Returns the JSON object of an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def _event(data):
    return ("data: " + data + "\n\n").encode("ascii")


def _prompt(body, tokenizer):
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (str, list)):
        prompt = prompt[0]
    if isinstance(prompt, str):
        tokens = tokenizer.encode(prompt)
    elif isinstance(prompt, list) and all(_is_integer(token) for token in prompt):
        for token in prompt:
            if not 0 <= token < tokenizer.vocab_size:
                raise BadRequest(
                    "token id {} is outside the vocabulary of {} ids".format(
                        token, tokenizer.vocab_size
                    )
                )
        tokens = prompt
    else:
        raise BadRequest("`prompt` must be one string or one list of token ids")
    if not tokens:
        raise BadRequest("`prompt` is empty")
    return tokens


def _chat_prompt(body, tokenizer):
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("`messages` must be a list of at least one message")
    tokens = []
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadRequest("each message must be an object with a `role`")
        content = message.get("content")
        if isinstance(content, list):
            parts = [part.get("text") if isinstance(part, dict) else None for part in content]
            if not all(isinstance(part, str) for part in parts):
                raise BadRequest("only parts of type `text` are supported in `content`")
            content = " ".join(parts)
        if not isinstance(content, str):
            raise BadRequest("`content` must be a string or a list of text parts")
        tokens.extend(tokenizer.encode(content))
    if not tokens:
        raise BadRequest("`messages` have no text")
    return tokens


def _refuse_unsupported(body):
    for name, neutral in NEUTRAL.items():
        value = body.get(name)
        if value is not None and value not in neutral:
            raise BadRequest("`{}` is not supported at `{}`".format(name, json.dumps(value)))


def _is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(body, names, least):
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if not _is_integer(value):
            raise BadRequest("`{}` must be an integer".format(name))
        if least is not None and value < least:
            raise BadRequest("`{}` must be at least {}".format(name, least))
        return value
    return None


def _number(body, name, default):
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise BadRequest("`{}` must be a number".format(name))
    # Below 0.01 a power of the weights leaves only the largest one.
    if value != 0 and not 0.01 <= value <= 2.0:
        raise BadRequest("`{}` must be 0, or from 0.01 to 2".format(name))
    return float(value)


def _boolean(body, name):
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise BadRequest("`{}` must be true or false".format(name))
    return value
