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
    """Subclasses give a fixture `prices`, and name a model with a price and one without."""

    known: ClassVar[str]
    unknown: ClassVar[str]

    async def price(self, prices: Prices, into: int, out: int, cached: int = 0) -> Decimal:
        """What so many tokens of the known model cost."""
        cost = await prices.cost(self.known, Answer("Well", into, out, cached_tokens=cached))
        assert isinstance(cost, Decimal)
        return cost

    async def test_an_unknown_price_is_none(self, prices: Prices) -> None:
        """None, and no exception: neither for a model nor for a provider that nobody knows."""
        for model in (self.unknown, "nobody:model", "nobody", ""):
            assert await prices.cost(model, Answer("Well", 10, 10)) is None

    @pytest.mark.parametrize(("into", "out"), [(0, 1), (1, 0), (3, 2), (1_000_000, 999_999)])
    async def test_a_price_is_the_same_again(self, prices: Prices, into: int, out: int) -> None:
        """A finite number, never negative, whenever it is asked for."""
        cost = await self.price(prices, into, out)
        assert cost.is_finite()
        assert cost >= 0
        assert await self.price(prices, into, out) == cost

    async def test_what_was_not_used_costs_nothing(self, prices: Prices) -> None:
        """No tokens, no money."""
        assert await self.price(prices, 0, 0) == 0

    async def test_more_costs_no_less(self, prices: Prices) -> None:
        """With every token the price rises or stays; one from the cache is no dearer."""
        costs = [await self.price(prices, count, count) for count in (0, 1, 2, 1_000, 1_000_000)]
        assert costs == sorted(costs)
        assert await self.price(prices, 1_000, 0, 1_000) <= await self.price(prices, 1_000, 0)
