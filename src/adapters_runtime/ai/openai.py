"""
Chat completions, the protocol of OpenAI, and of Ollama, vLLM, llama.cpp and many more.

The token limit has two names. Newer models of OpenAI accept only `max_completion_tokens`; many
other servers accept only `max_tokens` and ignore other names. So the host decides on the first
name, and a refusal that mentions the other name makes the next request use the other name.
"""

from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import urlsplit

from adapters_runtime.ai.dialect import Manner, count, count_or_0, in_words
from adapters_runtime.ai.providers import Provider
from adapters_runtime.ai.reduced import is_object, reduced
from wfcore.model.json import Json, JsonObject
from wfcore.ports.models import AnswerLost, Finish, ModelReply, ModelRequest

_NEWER = ("openai.com", "openai.azure.com")
_FINISHES = {"length": Finish.LENGTH, "content_filter": Finish.DECLINED}


def first_manner(provider: Provider) -> Manner:
    """The manner of the first request to a model of *provider*."""
    host = urlsplit(provider.base_url).hostname or ""
    newer = any(host == one or host.endswith(f".{one}") for one in _NEWER)
    return Manner(completion_tokens=newer)


class OpenAi:
    """The dialect of POST …/chat/completions."""

    models_path: ClassVar[str] = "/models"

    def path(self, provider: Provider) -> str:
        return "/chat/completions"

    def headers(self, provider: Provider) -> Mapping[str, str]:
        return {"authorization": f"Bearer {provider.api_key}"} if provider.api_key else {}

    def body(self, question: ModelRequest, name: str, manner: Manner) -> JsonObject:
        """The request: system and user message, the limits, and the form of the answer."""
        form, words = _form(question, manner)
        messages: list[JsonObject] = []
        if question.system:
            messages.append({"role": "system", "content": question.system})
        messages.append({"role": "user", "content": question.prompt + words})
        limit = "max_completion_tokens" if manner.completion_tokens else "max_tokens"
        settings = {limit: question.max_tokens, "temperature": question.temperature, **form}
        given = {key: value for key, value in settings.items() if value is not None}
        return {"model": name, "messages": messages, **given}

    def answer(self, document: Json) -> ModelReply:
        """The answer of the first choice. Raises `AnswerLost`."""
        holder = document if isinstance(document, dict) else {}
        choices = holder.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise AnswerLost("the answer holds no choices[0].message")
        text = _text_in(message.get("content"))
        if text is None:
            raise AnswerLost("the answer's choices[0].message.content is no text")
        finish = _FINISHES.get(str(choice.get("finish_reason")), Finish.DONE)
        if isinstance(message.get("refusal"), str) and message["refusal"]:
            finish = Finish.DECLINED
        usage = holder.get("usage")
        details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
        input = count(usage, "prompt_tokens")
        cached = min(input, count_or_0(details, "cached_tokens"))
        return ModelReply(text, input, count(usage, "completion_tokens"), finish, cached)


def _text_in(content: Json) -> str | None:
    """The text in *content*, which may be a list of parts or null; None if there is no text."""
    if isinstance(content, list):
        parts = [one.get("text") for one in content if isinstance(one, dict)]
        return "".join(one for one in parts if isinstance(one, str))
    return content if isinstance(content, str) else "" if content is None else None


def _form(question: ModelRequest, manner: Manner) -> tuple[JsonObject, str]:
    """The schema in the protocol's own form, and what must be added to the prompt for it."""
    schema = question.schema
    if schema is None:
        return {}, ""
    if not manner.own_schema or not is_object(schema):
        return {}, in_words(schema)
    simple = reduced(schema)
    strict = simple is not None and simple.strict
    sent = simple.schema if simple is not None and strict else schema
    own: JsonObject = {"name": "answer", "schema": sent, "strict": strict}
    words = "" if simple is None or simple.whole or not strict else in_words(schema)
    return {"response_format": {"type": "json_schema", "json_schema": own}}, words
