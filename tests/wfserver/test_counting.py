"""What a server counts beside its commits, and how often it asks the store."""

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest
from attrs import evolve

from tests.wfcore.usecases.conftest import a_world, code
from wfcore.errors import StoreUnavailable
from wfcore.model.access import Window
from wfcore.ports.models import ModelReply
from wfcore.time import EpochMs
from wfserver.doctor.machine import CheckResult
from wfserver.serving.metrics import (
    MOST_MODELS,
    OTHER,
    CountedPrices,
    ServerMetrics,
    StoreGauges,
    counted_quotas,
)
from wfserver.serving.server import MachineChecks
from wfserver.settings.record import Settings, settings_from

ANSWER = ModelReply("yes", 10, 5)


class Known:
    """Prices of everything but the free ones."""

    async def cost(self, model: str, answer: ModelReply) -> Decimal | None:
        return None if "free" in model else Decimal("0.25")


def value(metrics: ServerMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


async def test_models_are_bounded() -> None:
    """However many names users invent, the first ones keep theirs and the others share one."""
    metrics = ServerMetrics()
    prices = CountedPrices(Known(), metrics)
    for number in range(MOST_MODELS + 10):
        await prices.cost(f"local:m{number}", ANSWER)
    await prices.cost("local:m0", ANSWER)
    tokens = "wfcore_ai_tokens_total"
    assert value(metrics, tokens, model="local:m0", direction="input") == 20
    assert value(metrics, tokens, model=OTHER, direction="output") == 50
    assert value(metrics, "wfcore_ai_cost_usd_total", model=OTHER) == 2.5
    assert value(metrics, tokens, model=f"local:m{MOST_MODELS}", direction="input") is None


async def test_a_look_at_a_price_is_no_answer_and_unknown_prices_are_counted() -> None:
    """Asking whether there is a price counts nothing."""
    metrics = ServerMetrics()
    prices = CountedPrices(Known(), metrics)
    assert await prices.cost("a:paid", ModelReply("", 0, 0)) == Decimal("0.25")
    assert value(metrics, "wfcore_ai_cost_usd_total", model="a:paid") is None
    assert await prices.cost("a:free", ANSWER) is None
    assert value(metrics, "wfcore_ai_unpriced_answers_total", model="a:free") == 1


async def test_refusals_of_quota_are_counted_by_window(tmp_path: Path) -> None:
    """Only what was refused, under the window that was full."""
    async with a_world(None, tmp_path) as world:
        metrics = ServerMetrics()
        counters = counted_quotas(world.services.counters, metrics)
        windows = (
            Window("minute", EpochMs(0), EpochMs(60_000), 1),
            Window("day", EpochMs(0), EpochMs(86_400_000), None),
        )
        taken = [await counters.take("ann", windows, EpochMs(1)) for _ in range(3)]
        assert [one.admitted for one in taken] == [True, False, False]
        assert await counters.peek_counts("ann", windows) == (1, 1)
        assert value(metrics, "wfcore_quota_refusals_total", window="minute") == 2
        assert value(metrics, "wfcore_quota_refusals_total", window="day") == 0


class Viewed:
    """A store that counts how often it is looked at, and can be down."""

    def __init__(self, store: object) -> None:
        self._store = store
        self.views = 0
        self.down = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def view(self) -> object:
        self.views += 1
        if self.down:
            raise StoreUnavailable(detail="gone")
        return self._store.view()  # type: ignore[attr-defined]


async def test_many_collectors_cost_one_look(tmp_path: Path) -> None:
    """Whoever asks within a few seconds gets what was read; a store that is down is said to be."""
    async with a_world(None, tmp_path) as world:
        viewed = Viewed(world.services.store)
        services = evolve(world.services, store=viewed)  # type: ignore[arg-type]
        gauges = StoreGauges(services)
        found = await asyncio.gather(*(gauges.read() for _ in range(20)))
        assert viewed.views == 1
        assert {one["wfcore_store_up"] for one in found} == {1.0}
        viewed.down = True
        assert await StoreGauges(services).read() == {"wfcore_store_up": 0.0}


async def test_a_store_that_cannot_write_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may answer all that is read, but nothing can be started: its gauge is 0."""

    async def full() -> None:
        raise StoreUnavailable(detail="disk is full")

    async with a_world(None, tmp_path) as world:
        monkeypatch.setattr(world.services.store, "ping", full)
        assert await StoreGauges(world.services).read() == {"wfcore_store_up": 0.0}


async def test_many_views_of_the_machine_cost_one_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking starts programs: for a minute everybody gets what was found, then it is anew."""
    looks = []

    def look(settings: Settings) -> list[CheckResult]:
        looks.append(settings)
        return [CheckResult("disk", True, f"{len(looks)} GiB free")]

    monkeypatch.setattr("wfserver.doctor.machine.of_the_machine", look)
    machine = MachineChecks(settings_from({}, data=str(tmp_path)))
    found = await asyncio.gather(*(machine.checks() for _ in range(20)))
    assert len(looks) == 1
    assert [one.detail for (one,) in found] == ["1 GiB free"] * 20
    monkeypatch.setattr("wfserver.serving.server.CHECKED_FOR_S", 0)
    machine = MachineChecks(settings_from({}, data=str(tmp_path)))
    assert [(await machine.checks())[0].detail for _ in range(2)] == ["2 GiB free", "3 GiB free"]


async def test_gauges_say_how_many_there_are_and_how_long_they_wait(tmp_path: Path) -> None:
    """By status; half of those that have not begun have waited longer than the median."""
    async with a_world(None, tmp_path) as world:
        ann = await world.account()
        flow = await world.workflow(ann, code("one"))
        for _ in range(10):
            await world.start(ann, flow)
            world.clock.advance(1_000)
        await world.take()
        found = await StoreGauges(world.services).read()
    assert found['wfcore_executions_kept{status="PENDING"}'] == 9
    assert found['wfcore_executions_kept{status="RUNNING"}'] == 1
    assert found['wfcore_executions_kept{status="FAILED"}'] == 0
    assert (found["wfcore_queue_p50_seconds"], found["wfcore_queue_p99_seconds"]) == (5, 9)
