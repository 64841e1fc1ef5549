"""Models: how an AI step asks its question, and what an answer costs. AI-1, AI-3, AI-7."""

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
class Question:
    """
    One question. `model` is `provider:model`.

    With `schema` the answer is to be JSON of that shape: asked for in the provider's own way, or
    in words; whether it is, the caller checks.
    """

    model: str
    prompt: str
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    schema: JsonObject | None = None


@frozen
class Answer:
    """What came back. `cached_tokens` are among `input_tokens` and may cost less."""

    text: str
    input_tokens: int
    output_tokens: int
    finish: Finish = Finish.DONE
    cached_tokens: int = 0


@define
class ModelFailed(WfError):
    """No usable answer. The words are for the workflow's author; they never show a key."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class ModelBusy(ModelFailed):
    """
    The provider says, or the missing connection does, that nothing was done: ask again, not
    before `retry_after_s` where that is known.
    """

    retry_after_s: float | None = None


@define
class NotAsked(ModelBusy):
    """This machine lacked what it takes to ask; the message says what. Nothing was sent. EX-27."""


@define
class ModelRefused(ModelFailed):
    """The provider will not answer this, however often it is asked."""


@define
class AnswerLost(ModelFailed):
    """The question was taken, and may have been worked on; what came back is unusable."""


class Models(Protocol):
    """The providers that the operator configured."""

    async def ask(self, question: Question) -> Answer:
        """
        Ask once. However long it takes: the caller sets the limit by cancelling.

        When it has returned or raised, cancelled or not, its connection is closed.

        Raises:
            ModelBusy, NotAsked, ModelRefused, AnswerLost: see there. A provider that is not
                configured is a `ModelRefused` that names the setting.
        """


class Prices(Protocol):
    """What models cost, without asking anybody."""

    async def cost(self, model: str, answer: Answer) -> Decimal | None:
        """The exact price of an answer in USD; None where the model's price is unknown."""
