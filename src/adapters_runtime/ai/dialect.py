"""The port of wire protocols, which write questions and read answers, and their common parts."""

import json
from collections.abc import Mapping
from typing import ClassVar, Protocol

from attrs import evolve, frozen

from adapters_runtime.ai.providers import Provider
from wfcore.model.json import Json, JsonObject
from wfcore.ports.models import AnswerLost, ModelReply, ModelRequest
from wfcore.rules.limits import MAX_PROMPT_TOKENS


@frozen
class Manner:
    """
    The form of requests that a model accepts, which is learnt from its refusals.

    `completion_tokens`: use the newer name of the limit. `own_schema`: use the provider's own
    structured output; otherwise the schema is part of the prompt.
    """

    completion_tokens: bool = False
    own_schema: bool = True


class Dialect(Protocol):
    """One wire protocol."""

    models_path: ClassVar[str]

    def path(self, provider: Provider) -> str:
        """The path below the base URL."""

    def headers(self, provider: Provider) -> Mapping[str, str]:
        """The headers, with the key if there is one."""

    def body(self, question: ModelRequest, name: str, manner: Manner) -> JsonObject:
        """The request. *name* is the model's name at its provider."""

    def answer(self, document: Json) -> ModelReply:
        """The answer in a response. Raises `AnswerLost` if the response has another form."""


_ABOUT_SCHEMAS = ("response_format", "json_schema", "output_config", "schema", "structured")


def adapted(manner: Manner, refusal: str) -> Manner | None:
    """
    The manner that a refusal (400, 422) demands, or None if the refusal is about something else.
    """
    text = refusal.lower()
    if not manner.completion_tokens and "max_completion_tokens" in text:
        return evolve(manner, completion_tokens=True)
    if manner.own_schema and any(word in text for word in _ABOUT_SCHEMAS):
        return evolve(manner, own_schema=False)
    return None


def in_words(schema: JsonObject) -> str:
    """The part of a prompt that demands JSON, for providers without full structured output."""
    return (
        "\n\nAnswer with JSON only, without any other text around it. "
        f"It must fit this JSON Schema:\n{json_text(schema)}"
    )


def count(holder: Json, name: str) -> int:
    """A count of tokens. Raises `AnswerLost` if the count is missing or impossible."""
    value = holder.get(name) if isinstance(holder, dict) else None
    if value is None:
        raise AnswerLost(f"the answer does not say how many tokens were used ({name})")
    if isinstance(value, bool) or not isinstance(value, int):
        raise AnswerLost(f"the answer's count of tokens ({name}) is no whole number")
    if not 0 <= value <= MAX_PROMPT_TOKENS:
        raise AnswerLost(f"the answer's count of tokens ({name}) cannot be true: {value}")
    return value


def count_or_0(holder: Json, name: str) -> int:
    """A count of tokens that may be missing. Raises `AnswerLost` if the count is impossible."""
    value = holder.get(name) if isinstance(holder, dict) else None
    return 0 if value is None else count(holder, name)


def json_text(value: Json) -> str:
    """*value* as compact JSON. An invalid character (a lone surrogate) becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def json_bytes(value: Json) -> bytes:
    """`json_text` in UTF-8."""
    return json_text(value).encode()
