"""What a step writes while it runs: kept soon, and with its end where that comes first. EX-28."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from adapters_runtime.engine import live_lines
from adapters_runtime.engine.live_lines import Lines, LiveLines
from wfcore.usecases.executions.step_jobs import MOST_LOGGED, NO_MORE


class Kept:
    """A store of lines, and what tells it."""

    def __init__(self) -> None:
        self.stored: list[Lines] = []
        self.came = asyncio.Event()
        self.told = LiveLines(self.keep, self.spawn, asyncio.Lock())

    async def keep(self, lines: Lines) -> None:
        self.stored.append(lines)
        self.came.set()

    @staticmethod
    def spawn(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return asyncio.create_task(work)


async def test_lines_of_a_step_that_goes_on_are_stored(monkeypatch: pytest.MonkeyPatch):
    """Though it writes nothing more; what is of one stream is one text."""
    monkeypatch.setattr(live_lines, "LIVE_S", 0)
    kept = Kept()
    for stream, text in (("stdout", "a\n"), ("stdout", "b\n"), ("stderr", "c\n")):
        await kept.told.say(stream, text)
    await kept.came.wait()
    assert kept.stored == [(("stdout", "a\nb\n"), ("stderr", "c\n"))]
    kept.came.clear()
    await kept.told.say("stdout", "d\n")
    await kept.came.wait()
    assert kept.stored[1:] == [(("stdout", "d\n"),)]
    kept.told.stop()


async def test_lines_of_a_step_that_ends_soon_come_with_its_end():
    """They cost no unit of their own."""
    kept = Kept()
    await kept.told.say("stdout", "a\n")
    assert kept.told.rest() == (("stdout", "a\n"),)
    assert not kept.told.stored
    kept.told.stop()


async def test_more_than_is_kept_is_said_once():
    """1 MiB of an attempt, then that there was more."""
    kept = Kept()
    for _ in range(3):
        await kept.told.say("stdout", "x" * (MOST_LOGGED - 1))
    ((_, text),) = kept.told.rest()
    assert text == "x" * MOST_LOGGED + NO_MORE
    kept.told.stop()
