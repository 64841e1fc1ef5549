"""
The contracts of a way to ask models, and of their prices, as test classes to inherit from.

    class TestMyModels(ModelsContract):
        model = "mine:some-model"

        @pytest.fixture
        def peer(self): ...      # a `ScriptedProvider`: the other side, told what to do next

        @pytest.fixture
        def models(self, peer): ...

    class TestMyPrices(PricesContract):
        known, unknown = "mine:some-model", "mine:no-such-model"

        @pytest.fixture
        def prices(self): ...

Needs pytest-asyncio in auto mode.
"""

import asyncio
import time
from decimal import Decimal
from typing import ClassVar, Protocol

import pytest

from wfcore.ports.models import (
    AnswerLost,
    Finish,
    ModelBusy,
    ModelFailed,
    ModelRefused,
    ModelReply,
    ModelRequest,
    Models,
    Prices,
)
from wfcore.testing.contracts.awaited import Awaited

_PATIENCE_S = 60


class ScriptedProvider(Protocol):
    """The provider. Each method scripts its reaction to one request, in the order of the calls."""

    @property
    def calls(self) -> int:
        """The number of requests that are open at the moment."""

    def says(
        self, text: str, finish: Finish = Finish.DONE, used: tuple[int, int] = (12, 3)
    ) -> None:
        """Answer the request."""

    def is_busy(self, retry_after_s: float | None = None) -> None:
        """Say that nothing was processed, and optionally when to retry."""

    def refuses(self) -> None:
        """Refuse the request for good."""

    def breaks_off(self) -> None:
        """Cut off the answer."""

    def hangs(self) -> None:
        """Never answer."""


class ModelsContract(Awaited):
    """
    Subclasses provide the fixtures `models` and `peer`, a `ScriptedProvider` that the models call,
    and name a `model` of it. Tests everything that `wfcore.ports.models.Models` promises.
    """

    model: ClassVar[str] = "scripted:model"

    def question(self, prompt: str = "Say it") -> ModelRequest:
        return ModelRequest(self.model, prompt, "Be brief.", max_tokens=50, temperature=0.5)

    async def test_an_answer_has_text_and_counts(
        self, models: Models, peer: ScriptedProvider
    ) -> None:
        """Text, input tokens and output tokens are returned as the provider reported them."""
        peer.says("Grüße ✓", used=(7, 5))
        answer = await models.ask(self.question())
        assert (answer.text, answer.input_tokens, answer.output_tokens) == ("Grüße ✓", 7, 5)
        assert answer.finish is Finish.DONE

    @pytest.mark.parametrize("given_finish", Finish)
    async def test_why_the_model_stopped(
        self, models: Models, peer: ScriptedProvider, given_finish: Finish
    ) -> None:
        """A truncated or refused answer is marked as such."""
        peer.says("So far", given_finish)
        assert (await models.ask(self.question())).finish is given_finish

    @pytest.mark.parametrize("given_seconds", [None, 7.0])
    async def test_busy(
        self, models: Models, peer: ScriptedProvider, given_seconds: float | None
    ) -> None:
        """If nothing was processed the error says so, and when to retry if the provider knows."""
        peer.is_busy(given_seconds)
        with pytest.raises(ModelBusy) as caught:
            await models.ask(self.question())
        assert caught.value.retry_after_s == given_seconds

    async def test_refused(self, models: Models, peer: ScriptedProvider) -> None:
        """A request that will never be answered is distinguished from one that may be repeated."""
        peer.refuses()
        with pytest.raises(ModelRefused):
            await models.ask(self.question())

    async def test_lost(self, models: Models, peer: ScriptedProvider) -> None:
        """An answer that was cut off is not an answer, and not a reason to repeat the request."""
        peer.breaks_off()
        with pytest.raises(AnswerLost):
            await models.ask(self.question())

    async def test_unknown_provider(self, models: Models) -> None:
        """The error for a provider that is not configured names it."""
        with pytest.raises(ModelRefused, match="nobody"):
            await models.ask(ModelRequest("nobody:model", "Say it"))

    async def test_after_a_failure(self, models: Models, peer: ScriptedProvider) -> None:
        """A failure has no effect on the next request."""
        for fail in (peer.is_busy, peer.refuses, peer.breaks_off):
            fail()
            with pytest.raises(ModelFailed):
                await models.ask(self.question())
            peer.says("fine")
            assert (await models.ask(self.question())).text == "fine"

    async def test_cancel_ends_the_call(self, models: Models, peer: ScriptedProvider) -> None:
        """A cancelled request ends at the provider, too. AI-4."""
        peer.hangs()
        asking = asyncio.ensure_future(models.ask(self.question()))
        await self._until_calls(peer, 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await self._until_calls(peer, 0)

    async def test_many_at_once(self, models: Models, peer: ScriptedProvider) -> None:
        """Concurrent requests are all answered, each once."""
        for number in range(10):
            peer.says(str(number))
        answers = await asyncio.gather(*(models.ask(self.question()) for _ in range(10)))
        assert sorted(int(answer.text) for answer in answers) == list(range(10))

    async def _until_calls(self, peer: ScriptedProvider, count: int) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while peer.calls != count:
            assert time.monotonic() < deadline, f"{peer.calls} calls, not {count}"
            await asyncio.sleep(0.01)


class PricesContract(Awaited):
    """Subclasses provide a fixture `prices`, and name a model with a price and one without."""

    known: ClassVar[str]
    unknown: ClassVar[str]

    async def price(self, prices: Prices, into: int, out: int, cached: int = 0) -> Decimal:
        """The price of that many tokens of the known model."""
        cost = await prices.cost(self.known, ModelReply("Well", into, out, cached_tokens=cached))
        assert isinstance(cost, Decimal)
        return cost

    async def test_an_unknown_price_is_none(self, prices: Prices) -> None:
        """None rather than an exception, for an unknown model and for an unknown provider."""
        for model in (self.unknown, "nobody:model", "nobody", ""):
            assert await prices.cost(model, ModelReply("Well", 10, 10)) is None

    @pytest.mark.parametrize(
        ("given_into", "given_out"), [(0, 1), (1, 0), (3, 2), (1_000_000, 999_999)]
    )
    async def test_a_price_is_the_same_again(
        self, prices: Prices, given_into: int, given_out: int
    ) -> None:
        """A finite number, never negative, the same at every call."""
        cost = await self.price(prices, given_into, given_out)
        assert cost.is_finite()
        assert cost >= 0
        assert await self.price(prices, given_into, given_out) == cost

    async def test_what_was_not_used_costs_nothing(self, prices: Prices) -> None:
        """No tokens cost nothing."""
        assert await self.price(prices, 0, 0) == 0

    async def test_more_costs_no_less(self, prices: Prices) -> None:
        """A further token never lowers the price; a cached token costs at most as much."""
        costs = [await self.price(prices, count, count) for count in (0, 1, 2, 1_000, 1_000_000)]
        assert costs == sorted(costs)
        assert await self.price(prices, 1_000, 0, 1_000) <= await self.price(prices, 1_000, 0)
