"""The memory of a server: what its start leaves over, and what it gives back after a load."""

import asyncio
import ctypes
import gc
import linecache
import weakref
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define

from adapters_http.request import Context
from adapters_http.responses import ResponseCache
from adapters_runtime.engine import loops
from wfcore.errors import StoreUnavailable
from wfcore.rules.backoff import Backoff
from wfserver.serving import memory, server
from wfserver.serving.memory import Trimming, collecting_once, return_memory, trimming

BUSY_S = memory.MEASURE_EVERY_S
"""Of a whole processor between two looks."""
DEADLINE_S = 30


class Cyclic:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.myself = self


def test_a_start_frees_what_it_leaves_over() -> None:
    """Garbage of a start is collected while it goes on, so that its memory is used again."""
    with collecting_once():
        left = [weakref.ref(Cyclic()) for _ in range(2 * gc.get_threshold()[0])]
        assert left[0]() is None


def test_a_start_looks_at_nothing_twice() -> None:
    """Only young objects are looked at: all that is loaded would be scanned again and again."""
    looked: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        looked.append(info["generation"])

    with collecting_once():
        gc.callbacks.append(note)
        kept = [[n] for n in range(20 * gc.get_threshold()[0])]
        gc.callbacks.remove(note)
    assert kept
    assert set(looked) == {0}


def test_sources_that_attrs_makes_are_not_kept() -> None:
    """The lines of generated methods would take up as much as their code, for debuggers alone."""
    with collecting_once():
        define(type("OfAStart", (), {"__annotations__": {"x": int}}))
        assert not [name for name in linecache.cache if "OfAStart" in name]


def test_a_start_that_fails_leaves_collecting_as_it_was() -> None:
    """Whatever becomes of a start, the program around it collects and debugs as before."""
    before = gc.get_threshold(), linecache.cache
    with suppress(KeyError), collecting_once():
        assert gc.get_threshold() != before[0]
        raise KeyError
    assert gc.get_threshold() == before[0]
    assert linecache.cache is before[1]


@pytest.mark.parametrize(
    ("work", "due"),
    [
        ((), []),
        ((0, 0, 0), [False] * 3),
        ((BUSY_S, 0, 0), [False, True, False]),
        ((BUSY_S, BUSY_S, 0), [False, False, True]),
        ((BUSY_S, 0, BUSY_S, 0), [False, True, False, True]),
    ],
    ids=["unasked", "idle", "one load", "a longer one", "two"],
)
def test_memory_is_given_back_once_after_each_load(work: Sequence[float], due: list[bool]) -> None:
    """Never under a load, which needs it, and not again and again by a server that is idle."""
    when, so_far, found = Trimming(0), 0.0, []
    for part in work:
        so_far += part
        found.append(when.due(so_far))
    assert found == due


async def test_a_server_looks_until_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a load what is kept is given back, then free memory is returned to the system."""
    monkeypatch.setattr(memory, "MEASURE_EVERY_S", 0)
    monkeypatch.setattr(Trimming, "due", lambda self, busy_s: True)
    told, done = list[str](), asyncio.Event()

    async def give_back() -> None:
        told.append("given back")

    def returned() -> None:
        told.append("returned")
        done.set()

    monkeypatch.setattr(memory, "return_memory", returned)
    async with asyncio.timeout(DEADLINE_S), trimming(give_back):
        await done.wait()
    assert told[:2] == ["given back", "returned"]


async def test_a_failure_to_give_back_does_not_end_the_looking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is raised is logged, and the next load is looked at as well."""
    monkeypatch.setattr(memory, "MEASURE_EVERY_S", 0)
    monkeypatch.setattr(Trimming, "due", lambda self, busy_s: True)
    monkeypatch.setattr(loops, "BACKOFF", Backoff(first=0, longest=0))
    told, again = list[str](), asyncio.Event()

    async def give_back() -> None:
        told.append("asked")
        if len(told) == 1:
            raise KeyError
        again.set()

    async with asyncio.timeout(DEADLINE_S), trimming(give_back):
        await again.wait()


def test_garbage_goes_where_the_c_library_cannot_return_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only glibc knows how; elsewhere the rest is done all the same."""
    left = weakref.ref(Cyclic())
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    return_memory()
    assert left() is None


def context(store: object) -> Context:
    """One with an answer that is kept, before a store."""
    kept = ResponseCache()
    kept.keep("e1", 1, b"{}")
    return cast("Context", SimpleNamespace(responses=kept, services=SimpleNamespace(store=store)))


def store_that(drop_caches: Callable[[], Awaitable[None]]) -> object:
    return SimpleNamespace(drop_caches=drop_caches)


async def test_a_store_that_cannot_let_go_now_ends_nothing() -> None:
    """Answers are forgotten, and the server goes on looking."""

    async def refuse() -> None:
        raise StoreUnavailable

    for store in (store_that(refuse), object()):
        shared: Any = context(store)
        await server._drop_caches(shared)
        assert shared.responses.known("e1", 1) is None
