"""The ports to AI models: sending prompts, and the prices of answers. AI-1, AI-3, AI-7."""

from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from attrs import define, frozen

from wfcore.errors import WfError
from wfcore.model.json import JsonObject


class Finish(StrEnum):
    """The reason why the model stopped."""

    DONE = "done"
    LENGTH = "length"
    """The model reached the limit of tokens; the text is cut."""
    DECLINED = "declined"
    """The model, or a filter of its provider, declined to answer."""


@frozen
class ModelRequest:
    """
    A prompt for a model. `model` is `provider:model`.

    With `schema` the answer should be JSON of that shape; the request uses the provider's own
    mechanism if there is one, and instructions in the prompt otherwise. The caller validates the
    answer. `traceparent`: the span that the request belongs to, sent with the request.
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
    A request without a usable answer. The message is meant for the author of the workflow and never
    contains a key.
    """

    message: str

    def __str__(self) -> str:
        return self.message


@define
class ModelBusy(ModelFailed):
    """
    A request that was not processed, according to the provider or because the connection failed.
    The request may be repeated, not before `retry_after_s` if that is known.
    """

    retry_after_s: float | None = None


@define
class NotAsked(ModelBusy):
    """
    A request that was not sent: this machine lacked a resource, which the message names. EX-27.
    """


@define
class ModelRefused(ModelFailed):
    """A request that the provider will never answer, even after many repetitions."""


@define
class AnswerLost(ModelFailed):
    """A request without a usable answer that the provider accepted and may have processed."""


class Models(Protocol):
    """The configured providers."""

    async def ask(self, question: ModelRequest) -> ModelReply:
        """
        Send one request. There is no time limit; a caller limits the time by cancelling.

        The connection is closed when the call returns, raises or is cancelled.

        Raises `ModelBusy`, `NotAsked`, `ModelRefused`, `AnswerLost`; for a provider that is not
        configured a `ModelRefused` that names the setting.
        """


class Prices(Protocol):
    """The prices of models, from a local table."""

    async def cost(self, model: str, answer: ModelReply) -> Decimal | None:
        """The exact price of an answer in USD; None if the model's price is unknown."""
