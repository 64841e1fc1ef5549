"""
The contract of prices of models, as a test class to inherit from.

    class TestMyPrices(PricesContract):
        known, unknown = "mine:some-model", "mine:no-such-model"

        @pytest.fixture
        def prices(self): ...
"""

from decimal import Decimal
from typing import ClassVar

import pytest

from wfcore.ports.models import Answer, Prices
from wfcore.testing.contracts.awaited import Awaited


class PricesContract(Awaited):
    """Subclasses provide a fixture `prices`, and name a model with a price and one without."""

    known: ClassVar[str]
    unknown: ClassVar[str]

    async def price(self, prices: Prices, into: int, out: int, cached: int = 0) -> Decimal:
        """The price of that many tokens of the known model."""
        cost = await prices.cost(self.known, Answer("Well", into, out, cached_tokens=cached))
        assert isinstance(cost, Decimal)
        return cost

    async def test_an_unknown_price_is_none(self, prices: Prices) -> None:
        """None rather than an exception, for an unknown model and for an unknown provider."""
        for model in (self.unknown, "nobody:model", "nobody", ""):
            assert await prices.cost(model, Answer("Well", 10, 10)) is None

    @pytest.mark.parametrize(("into", "out"), [(0, 1), (1, 0), (3, 2), (1_000_000, 999_999)])
    async def test_a_price_is_the_same_again(self, prices: Prices, into: int, out: int) -> None:
        """A finite number, never negative, the same at every call."""
        cost = await self.price(prices, into, out)
        assert cost.is_finite()
        assert cost >= 0
        assert await self.price(prices, into, out) == cost

    async def test_what_was_not_used_costs_nothing(self, prices: Prices) -> None:
        """No tokens cost nothing."""
        assert await self.price(prices, 0, 0) == 0

    async def test_more_costs_no_less(self, prices: Prices) -> None:
        """A further token never lowers the price; a cached token costs at most as much."""
        costs = [await self.price(prices, count, count) for count in (0, 1, 2, 1_000, 1_000_000)]
        assert costs == sorted(costs)
        assert await self.price(prices, 1_000, 0, 1_000) <= await self.price(prices, 1_000, 0)
