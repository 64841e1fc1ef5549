"""A scripted provider of models that connects to nothing."""

import asyncio
from collections import deque
from decimal import Decimal

from attrs import define, field

from wfcore.ports.models import (
    AnswerLost,
    Finish,
    ModelBusy,
    ModelFailed,
    ModelRefused,
    ModelReply,
    ModelRequest,
    NotAsked,
)

MODEL = "scripted:model"


@define
class ScriptedModels:
    """`Models` with one provider, `scripted`. Without a script every answer is "hello"."""

    questions: list[ModelRequest] = field(factory=list)
    calls: int = 0
    _script: deque[ModelReply | ModelFailed | None] = field(factory=deque)

    async def ask(self, question: ModelRequest) -> ModelReply:
        """Answer with the next item of the script."""
        if not question.model.startswith("scripted:"):
            provider = question.model.partition(":")[0]
            raise ModelRefused(f"provider {provider} is not configured")
        self.questions.append(question)
        self.calls += 1
        try:
            await asyncio.sleep(0)
            turn = self._script.popleft() if self._script else ModelReply("hello", 12, 3)
            if turn is None:
                await asyncio.Event().wait()
            if isinstance(turn, ModelFailed):
                raise turn
            assert isinstance(turn, ModelReply)
            return turn
        finally:
            self.calls -= 1

    def says(
        self, text: str, finish: Finish = Finish.DONE, used: tuple[int, int] = (12, 3)
    ) -> None:
        """Script the next answer: *text*, with *used* tokens."""
        self._script.append(ModelReply(text, *used, finish))

    def is_busy(self, retry_after_s: float | None = None) -> None:
        """Script that the next request is not accepted."""
        self._script.append(ModelBusy("busy", retry_after_s))

    def lacks(self, what: str) -> None:
        """Script that the next request is not sent, because this machine lacks *what*."""
        self._script.append(NotAsked(what))

    def refuses(self) -> None:
        """Script that the next request is refused for good."""
        self._script.append(ModelRefused("refused"))

    def breaks_off(self) -> None:
        """Script that the next answer is lost on its way."""
        self._script.append(AnswerLost("lost"))

    def hangs(self) -> None:
        """Script that the next request is never answered."""
        self._script.append(None)


@define
class FixedPrices:
    """`Prices` with one price per input and output token for every known model."""

    known: dict[str, tuple[str, str]] = field(factory=lambda: {MODEL: ("0.001", "0.002")})

    async def cost(self, model: str, answer: ModelReply) -> Decimal | None:
        """The numbers of tokens times their prices."""
        if model not in self.known:
            return None
        into, out = map(Decimal, self.known[model])
        return into * answer.input_tokens + out * answer.output_tokens
