"""
The prices of models: the operator's own prices first, then the table of genai-prices. AI-7.

The table is installed with the library, so no network is used. A thread imports the library at the
first lookup of a price that the operator has not set.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from attrs import frozen

from adapters_runtime.ai.providers import Provider
from wfcore.errors import InvalidInput
from wfcore.ports.models import ModelReply
from wfcore.rules.execution.budget import EXACT

_MILLION = 6
_MOST = Decimal(1_000_000)
_FINEST = -12

Calculate = Callable[[ModelReply, str, str], Decimal | None]


@frozen
class Price:
    """A price in USD per million tokens. `cached` None: cached input costs as much as input."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None

    def of(self, answer: ModelReply) -> Decimal:
        """The exact price of an answer."""
        cached = self.input if self.cached is None else self.cached
        fresh = answer.input_tokens - answer.cached_tokens
        cost = EXACT.multiply(self.input, fresh)
        cost = EXACT.fma(cached, answer.cached_tokens, cost)
        cost = EXACT.fma(self.output, answer.output_tokens, cost)
        return EXACT.scaleb(cost, -_MILLION)


class PriceList:
    """The `Prices` of models. *own*: the operator's prices, by `provider:model` or `provider:*`."""

    def __init__(self, own: Mapping[str, Price], providers: Mapping[str, Provider]) -> None:
        self._own = own
        self._providers = providers
        self._calculate: Calculate | None = None

    async def cost(self, model: str, answer: ModelReply) -> Decimal | None:
        """
        The exact price of *answer* in USD, or None if the model's price is unknown.

        The library's table is read by the provider's address rather than its name, because a
        gateway or a local server has other prices.
        """
        name, _, at_provider = model.partition(":")
        own = self._own.get(model) or self._own.get(f"{name}:*")
        if own is not None:
            return own.of(answer)
        provider = self._providers.get(name)
        if provider is None:
            return None
        if self._calculate is None:
            self._calculate = await asyncio.to_thread(_table)
        return self._calculate(answer, at_provider, provider.base_url)


def _table() -> Calculate:
    from genai_prices import Usage, calc_price

    def calculate(answer: ModelReply, model: str, url: str) -> Decimal | None:
        usage = Usage(
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cache_read_tokens=answer.cached_tokens,
        )
        try:
            return calc_price(usage, model, provider_api_url=url).total_price
        except LookupError:
            return None

    return calculate


def read_prices(path: Path, setting: str) -> Mapping[str, Price]:
    """
    The prices in a JSON file: `{"provider:model": {"input": "0.25", "output": "2"}}`.

    Raises `InvalidInput` that names *setting* and the mistake in the file.
    """
    import json

    try:
        text = path.read_text("utf-8")
        document = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except (OSError, ValueError, RecursionError) as problem:
        raise InvalidInput(setting, f"cannot read {path}: {problem}") from None
    if not isinstance(document, dict):
        raise InvalidInput(setting, f"{path} must hold an object of prices by provider:model")
    return {model: _price(model, entry, setting) for model, entry in document.items()}


_FIELDS = {"input", "output", "cachedInput"}


def _price(model: str, entry: Any, setting: str) -> Price:
    if not re.fullmatch(r"[a-z][a-z0-9_]*:[!-~]+", model):
        raise InvalidInput(setting, f"{model!r} must be provider:model or provider:*")
    if not isinstance(entry, dict) or not {"input", "output"} <= entry.keys() <= _FIELDS:
        raise InvalidInput(setting, f"{model} needs input and output, and may have cachedInput")
    values = {name: _amount(value, f"{model} {name}", setting) for name, value in entry.items()}
    return Price(values["input"], values["output"], values.get("cachedInput"))


def _amount(value: Any, what: str, setting: str) -> Decimal:
    try:
        amount = Decimal(value) if isinstance(value, str | Decimal) else Decimal("nan")
    except InvalidOperation:
        amount = Decimal("nan")
    exponent = amount.as_tuple().exponent
    if not amount.is_finite() or not 0 <= amount <= _MOST or int(exponent) < _FINEST:
        raise InvalidInput(setting, f"{what} must be USD for a million tokens, like 0.25")
    return amount
