"""AI models: how a step sends a prompt, and what an answer costs. AI-1, AI-3, AI-7."""

from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from attrs import define, frozen

from wfcore.errors import WfError
from wfcore.model.json import JsonObject


class Finish(StrEnum):
    """Why the model stopped."""

    DONE = "done"
    LENGTH = "length"
    """It ran into the limit of tokens; the text is cut."""
    DECLINED = "declined"
    """It, or a filter of its provider, did not want to answer."""


@frozen
class ModelRequest:
    """
    One prompt. `model` is `provider:model`.

    With `schema` the answer should be JSON of that shape; the request uses the provider's own
    mechanism if there is one, and instructions in the prompt otherwise. The caller validates the
    answer. `traceparent`: of the span that the request is a part of, and is sent along.
    """

    model: str
    prompt: str
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    schema: JsonObject | None = None
    traceparent: str | None = None


@frozen
class ModelReply:
    """The response. `cached_tokens` are included in `input_tokens` and may cost less."""

    text: str
    input_tokens: int
    output_tokens: int
    finish: Finish = Finish.DONE
    cached_tokens: int = 0


@define
class ModelFailed(WfError):
    """
    There is no usable answer. The message is meant for the author of the workflow and never
    contains a key.
    """

    message: str

    def __str__(self) -> str:
        return self.message


@define
class ModelBusy(ModelFailed):
    """
    Nothing was processed, as the provider says or as a failed connection proves. The request may be
    repeated, not before `retry_after_s` if that is known.
    """

    retry_after_s: float | None = None


@define
class NotAsked(ModelBusy):
    """
    This machine lacked a resource needed for the request, which the message names. Nothing was
    sent. EX-27.
    """


@define
class ModelRefused(ModelFailed):
    """The provider will never answer this request, however often it is repeated."""


@define
class AnswerLost(ModelFailed):
    """
    The provider accepted the request and may have processed it, but there is no usable response.
    """


class Models(Protocol):
    """The configured providers."""

    async def ask(self, question: ModelRequest) -> ModelReply:
        """
        Send one request. There is no time limit; the caller sets one by cancelling.

        When this returns or raises, cancelled or not, its connection is closed.

        Raises `ModelBusy`, `NotAsked`, `ModelRefused`, `AnswerLost`; for a provider that is not
        configured a `ModelRefused` that names the setting.
        """


class Prices(Protocol):
    """What models cost, from a local table."""

    async def cost(self, model: str, answer: ModelReply) -> Decimal | None:
        """The exact price of an answer in USD; None if the model's price is unknown."""
