"""
The contracts of a port to models, and of their prices, as test classes to inherit from.

    class TestMyModels(ModelsContract):
        model = "mine:some-model"

        @pytest.fixture
        def peer(self): ...      # a `ScriptedProvider`: the provider, with scripted reactions

        @pytest.fixture
        def models(self, peer): ...

    class TestMyPrices(PricesContract):
        known, unknown = "mine:some-model", "mine:no-such-model"

        @pytest.fixture
        def prices(self): ...

The contracts need pytest-asyncio in auto mode.
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
    """The provider of models. Each method scripts the reaction to one request, in call order."""

    @property
    def calls(self) -> int:
        """The number of requests that are open at the moment."""

    def says(
        self, text: str, finish: Finish = Finish.DONE, used: tuple[int, int] = (12, 3)
    ) -> None:
        """
        Answer the request with *text*, *finish* and the numbers of input and output tokens *used*.
        """

    def is_busy(self, retry_after_s: float | None = None) -> None:
        """Answer that nothing was processed, and optionally when to retry."""

    def refuses(self) -> None:
        """Refuse the request for good."""

    def breaks_off(self) -> None:
        """Cut off the answer."""

    def hangs(self) -> None:
        """Never answer."""


class ModelsContract(Awaited):
    """
    The promises of `wfcore.ports.models.Models`.

    Subclasses provide the fixtures `models` and `peer`, a `ScriptedProvider` that the models call,
    and name a `model` of that provider.
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
        """An answer that was truncated or refused is marked as such."""
        peer.says("So far", given_finish)
        assert (await models.ask(self.question())).finish is given_finish

    @pytest.mark.parametrize("given_seconds", [None, 7.0])
    async def test_busy(
        self, models: Models, peer: ScriptedProvider, given_seconds: float | None
    ) -> None:
        """
        If nothing was processed, the error says so, and says when to retry if the provider knows.
        """
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
        """
        A request whose answer was cut off raises an error that is no reason to repeat the request.
        """
        peer.breaks_off()
        with pytest.raises(AnswerLost):
            await models.ask(self.question())

    async def test_unknown_provider(self, models: Models) -> None:
        """The error for a provider that is not configured names the provider."""
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
    """
    The promises of `wfcore.ports.models.Prices`. Subclasses provide a fixture `prices`, and name a
    model with a price and a model without a price.
    """

    known: ClassVar[str]
    unknown: ClassVar[str]

    async def price(self, prices: Prices, into: int, out: int, cached: int = 0) -> Decimal:
        """
        The price of *into* input tokens, *cached* of them cached, and *out* output tokens of
        `known`.
        """
        cost = await prices.cost(self.known, ModelReply("Well", into, out, cached_tokens=cached))
        assert isinstance(cost, Decimal)
        return cost

    async def test_an_unknown_price_is_none(self, prices: Prices) -> None:
        """The price of an unknown model or provider is None, not an exception."""
        for model in (self.unknown, "nobody:model", "nobody", ""):
            assert await prices.cost(model, ModelReply("Well", 10, 10)) is None

    @pytest.mark.parametrize(
        ("given_into", "given_out"), [(0, 1), (1, 0), (3, 2), (1_000_000, 999_999)]
    )
    async def test_a_price_is_the_same_again(
        self, prices: Prices, given_into: int, given_out: int
    ) -> None:
        """A price is a finite number, never negative, and the same at every call."""
        cost = await self.price(prices, given_into, given_out)
        assert cost.is_finite()
        assert cost >= 0
        assert await self.price(prices, given_into, given_out) == cost

    async def test_what_was_not_used_costs_nothing(self, prices: Prices) -> None:
        """Zero tokens cost nothing."""
        assert await self.price(prices, 0, 0) == 0

    async def test_more_costs_no_less(self, prices: Prices) -> None:
        """
        A further token never lowers the price. A cached token costs at most as much as an ordinary
        one.
        """
        costs = [await self.price(prices, count, count) for count in (0, 1, 2, 1_000, 1_000_000)]
        assert costs == sorted(costs)
        assert await self.price(prices, 1_000, 0, 1_000) <= await self.price(prices, 1_000, 0)
