"""
The failures that a provider's refusals mean: busy, refused, or answer lost. AI-3, AI-5.

A request is retried only if the provider reports that it did nothing. A gateway that stopped
waiting (504, 524) reports no such thing: the model behind it may have worked to the end.
"""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from adapters_runtime.ai.providers import Provider
from adapters_runtime.code.outputs import parse
from adapters_runtime.pinned_http import HttpReply
from wfcore.model.json import Json
from wfcore.ports.models import AnswerLost, ModelBusy, ModelFailed, ModelRefused
from wfcore.rules.masking import mask_text, secrets_of

_SHOWN = 500
SECRET_LENGTH = 16
"""The least length of a secret key. Shorter keys, such as "ollama", are for local servers."""
_WINDOW = 8
"""A text with so many characters of a secret key in a row is not shown at all."""
_GAVE_UP = frozenset({504, 524})
_BUSY = frozenset({408, 409, 425, 429})
_USED_UP = ("insufficient_quota", "billing", "credit balance")


def quote_of(provider: Provider, reply: HttpReply) -> str:
    """The provider's message as the end of a sentence, without the key, or an empty text."""
    message = message_in(reply)
    quote = f": {message}" if message and not shows(provider.api_key, message) else ""
    return mask_text(quote, secrets_of([provider.api_key]))


def failure_of(provider: Provider, model: str, reply: HttpReply) -> ModelFailed:
    """The failure for an answer other than 200."""
    status, message, quote = reply.status, message_in(reply), quote_of(provider, reply)
    who = f"provider {provider.name}"
    match status:
        case 401 | 403:
            return ModelRefused(f"{who} refused the key ({status}); check {provider.setting}")
        case 404:
            return ModelRefused(f"{who} knows no model {model} (404){quote}")
        case _ if 300 <= status < 400:
            return ModelRefused(f"{who} redirects ({status}), which is not followed")
        case _ if status in _GAVE_UP:
            return AnswerLost(f"a gateway of {who} gave up waiting ({status}){quote}")
        case 429 if any(word in message.lower() for word in _USED_UP):
            return ModelRefused(f"the quota at {who} is used up (429){quote}")
        case _ if status in _BUSY or status >= 500:
            return ModelBusy(f"{who} answered {status}{quote}", retry_after(reply))
        case _:
            return ModelRefused(f"{who} answered {status}{quote}")


def message_in(reply: HttpReply) -> str:
    """The message of a refusal, on one line, or an empty text."""
    try:
        document = parse(reply.body)
    except ValueError:
        return ""
    found = _message(document)
    line = re.sub(r"\s+", " ", re.sub(r"[^\x20-\U0010ffff]", " ", found)).strip()
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _message(document: Json) -> str:
    """The message in `{error: {message, code}}`, `{error: text}`, `{message}` or `{detail}`."""
    if not isinstance(document, dict):
        return ""
    inner = document.get("error", document)
    if isinstance(inner, str):
        return inner
    if not isinstance(inner, dict):
        return ""
    texts = [inner.get(name) for name in ("message", "detail")]
    code = inner.get("code")
    message = next((text for text in texts if isinstance(text, str)), "")
    return f"{message} ({code})" if isinstance(code, str) and code not in message else message


def shows(key: str, text: str) -> bool:
    """Whether *text* contains a secret *key* or a significant part of the key."""
    if len(key) < SECRET_LENGTH:
        return False
    return any(key[at : at + _WINDOW] in text for at in range(len(key) - _WINDOW + 1))


def retry_after(reply: HttpReply) -> float | None:
    """The seconds in `Retry-After`, given as a number or as a date."""
    text = reply.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
