"""What answers cost: exactly, offline, and unknown where it is unknown."""

import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.ai.prices import Price, PriceList, read_prices
from adapters_runtime.ai.providers import providers_from
from wfcore.errors import InvalidInput
from wfcore.ports.models import ModelReply
from wfcore.rules.numbers import cost_text

PROVIDERS = providers_from(
    {
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
        "WFCORE_AI_GROQ_BASE_URL": "https://api.groq.com/openai/v1",
        "WFCORE_AI_LOCAL_BASE_URL": "http://localhost:11434/v1",
    }
)
LISTED = PriceList({}, PROVIDERS)
counts = st.integers(0, 100_000_000)
money = st.decimals(0, 1_000_000, allow_nan=False, places=12)


@given(money, money, st.none() | money, counts, counts, st.data())
def test_own_prices_are_exact(
    into: Decimal, out: Decimal, cached: Decimal | None, asked: int, said: int, data: st.DataObject
) -> None:
    """No digit of a cost is rounded away, however many there are. AI-7."""
    known = data.draw(st.integers(0, asked))
    cost = Price(into, out, cached).of(ModelReply("", asked, said, cached_tokens=known))
    reduced = into if cached is None else cached
    exact = Fraction(into) * (asked - known) + Fraction(reduced) * known + Fraction(out) * said
    assert Fraction(cost_text(cost)) == exact / 1_000_000
    assert "E" not in cost_text(cost)


@given(counts, counts)
async def test_listed_prices_are_exact(asked: int, said: int) -> None:
    """A listed model costs its list price, to the last digit. AI-7."""
    cost = await LISTED.cost("openai:gpt-4o-mini", ModelReply("", asked, said))
    assert cost is not None
    assert Fraction(cost_text(cost)) == Fraction(15 * asked + 60 * said, 100 * 1_000_000)


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", "anthropic:claude-sonnet-4-5"])
async def test_known_models(model: str) -> None:
    """The models that everybody uses have a price; no tokens cost nothing. AI-7."""
    assert await LISTED.cost(model, ModelReply("", 1_000, 1_000))
    assert await LISTED.cost(model, ModelReply("", 0, 0)) == 0


async def test_cached_input_costs_less() -> None:
    """Input that the provider had cached is counted at its own price."""
    model = "openai:gpt-5-mini"
    fresh = await LISTED.cost(model, ModelReply("", 10_000, 0))
    cached = await LISTED.cost(model, ModelReply("", 10_000, 0, cached_tokens=10_000))
    assert fresh
    assert cached is not None
    assert cached < fresh


@pytest.mark.parametrize("model", ["openai:nonsense-1", "local:gpt-4o-mini", "nobody:gpt-4o-mini"])
async def test_unknown_prices(model: str) -> None:
    """A model that is not listed has no price, nor has a listed name on another host. AI-7."""
    assert await LISTED.cost(model, ModelReply("", 1, 1)) is None


async def test_a_provider_is_known_by_where_it_is() -> None:
    """Another name for a listed host has that host's prices."""
    assert await LISTED.cost("groq:llama-3.3-70b-versatile", ModelReply("", 1_000, 1_000))


async def test_own_prices_win(tmp_path: Path) -> None:
    """The operator's price counts before the list, for a model or for all of a provider."""
    path = tmp_path / "prices.json"
    path.write_text(
        '{"openai:gpt-4o-mini": {"input": 7, "output": "0.10"},'
        ' "local:*": {"input": 0, "output": 0.0}}'
    )
    prices = PriceList(read_prices(path, "P"), PROVIDERS)
    assert await prices.cost("openai:gpt-4o-mini", ModelReply("", 1_000_000, 10)) == Decimal(
        "7.000001"
    )
    assert await prices.cost("local:anything", ModelReply("", 9, 9)) == 0
    assert await prices.cost("openai:gpt-5-mini", ModelReply("", 1_000, 0)) == Decimal("0.00025")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "cannot read"),
        ("[]", "must hold an object"),
        ('{"gpt": {"input": 1, "output": 1}}', "'gpt' must be provider:model"),
        ('{"a:b": 3}', "a:b needs input and output"),
        ('{"a:b": {"input": 1}}', "a:b needs input and output"),
        ('{"a:b": {"input": 1, "output": 1, "x": 1}}', "a:b needs input and output"),
        ('{"a:b": {"input": -1, "output": 1}}', "a:b input must be USD"),
        ('{"a:b": {"input": "1e9", "output": 1}}', "a:b input must be USD"),
        ('{"a:b": {"input": "x", "output": 1}}', "a:b input must be USD"),
        ('{"a:b": {"input": NaN, "output": 1}}', "a:b input must be USD"),
        ('{"a:b": {"input": true, "output": 1}}', "a:b input must be USD"),
        ('{"a:b": {"input": 1, "output": "0.0000000000001"}}', "a:b output must be USD"),
    ],
)
def test_a_price_file_that_cannot_be_right(tmp_path: Path, content: str, says: str) -> None:
    """What is wrong in the file is named, with the setting that led there."""
    path = tmp_path / "prices.json"
    path.write_text(content)
    with pytest.raises(InvalidInput, match="WFCORE_AI_PRICES") as caught:
        read_prices(path, "WFCORE_AI_PRICES")
    assert says in str(caught.value)


OFFLINE = """
import asyncio, socket, sys
def refused(*args, **more): raise SystemExit("the network was used")
socket.socket.connect = socket.getaddrinfo = refused
from adapters_runtime.ai.prices import PriceList
from adapters_runtime.ai.providers import providers_from
from wfcore.ports.models import ModelReply
assert not {"genai_prices", "httpx2", "jsonschema_rs"} & sys.modules.keys()
prices = PriceList({}, providers_from({"OPENAI_API_KEY": "k"}))
print(asyncio.run(prices.cost("openai:gpt-4o-mini", ModelReply("", 1_000_000, 0))))
"""


def test_the_table_is_read_offline_and_only_when_needed() -> None:
    """Nothing is downloaded, and the libraries for AI steps are imported at the first step."""
    done = subprocess.run([sys.executable, "-c", OFFLINE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Decimal(done.stdout) == Decimal("0.15")
