"""
Anthropic's protocol, Messages.

Structured output uses `output_config.format`, which the provider enforces. The older way, a tool
that the model must call, fails with models that always think.
"""

from collections.abc import Mapping
from typing import ClassVar

from adapters_runtime.ai.dialect import Manner, count, count_or_0, in_words
from adapters_runtime.ai.providers import Provider
from adapters_runtime.ai.reduced import reduced
from wfcore.model.json import Json, JsonObject
from wfcore.ports.models import AnswerLost, Finish, ModelReply, ModelRequest

VERSION = "2023-06-01"
MAX_TOKENS = 4_096
"""
The limit on tokens for steps without one. The protocol demands a limit, and every model allows this
number.
"""

_FINISHES = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.DECLINED,
}


class Anthropic:
    """The dialect of POST …/v1/messages. The base URL may end with /v1 or not."""

    models_path: ClassVar[str] = "/v1/models"

    def path(self, provider: Provider) -> str:
        return "/messages" if provider.base_url.endswith("/v1") else "/v1/messages"

    def headers(self, provider: Provider) -> Mapping[str, str]:
        key = {"x-api-key": provider.api_key} if provider.api_key else {}
        return {"anthropic-version": VERSION, **key}

    def body(self, question: ModelRequest, name: str, manner: Manner) -> JsonObject:
        """The request: system, one message, the limits, and the form of the answer."""
        form, words = _form(question, manner)
        settings: JsonObject = {
            "system": question.system or None,
            "temperature": question.temperature,
            **form,
        }
        given = {key: value for key, value in settings.items() if value is not None}
        return {
            "model": name,
            "max_tokens": question.max_tokens or MAX_TOKENS,
            "messages": [{"role": "user", "content": question.prompt + words}],
            **given,
        }

    def answer(self, document: Json) -> ModelReply:
        """The answer with the text of all blocks. Raises `AnswerLost`."""
        holder = document if isinstance(document, dict) else {}
        content = holder.get("content")
        if not isinstance(content, list):
            raise AnswerLost("the answer holds no content")
        texts = [one.get("text") for one in content if isinstance(one, dict)]
        text = "".join(one for one in texts if isinstance(one, str))
        usage = holder.get("usage")
        cached = count_or_0(usage, "cache_read_input_tokens")
        input = count(usage, "input_tokens") + cached
        input += count_or_0(usage, "cache_creation_input_tokens")
        finish = _FINISHES.get(str(holder.get("stop_reason")), Finish.DONE)
        return ModelReply(text, input, count(usage, "output_tokens"), finish, cached)


def _form(question: ModelRequest, manner: Manner) -> tuple[JsonObject, str]:
    """The schema in the protocol's own form, and what must be added to the prompt for it."""
    schema = question.schema
    if schema is None:
        return {}, ""
    simple = reduced(schema) if manner.own_schema else None
    if simple is None:
        return {}, in_words(schema)
    form: JsonObject = {"format": {"type": "json_schema", "schema": simple.schema}}
    return {"output_config": form}, "" if simple.whole else in_words(schema)
