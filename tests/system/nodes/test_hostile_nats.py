"""A NATS server that others use, too: what they publish, and queues that they made."""

import asyncio
import logging
import math

import nats as client
import pytest
from nats.js import api

from adapters_runtime.engine import jetstream
from adapters_runtime.engine.jetstream import NatsDispatch
from tests.support.nats_server import Broker

from .conftest import AddNode, command
from .test_dispatch import NEVER, Functions, at_work

LONG_S = 60
FORGED = (b"", b"exec_none", b"\xff\xfe", b"exec_\0", b"x" * 900_000, "exec_\u202e".encode())


async def test_what_others_publish_is_settled(
    node: AddNode, nats: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Ids that no execution has, and bytes that are no text, are taken out of the queue; what is due
    is delivered all the same, and no loop fails.
    """
    dispatch = NatsDispatch.at(f"{nats.url}?name=forged", 0.25)
    other = await client.connect(nats.url)
    try:
        stream = other.jetstream()
        async with (
            at_work(await node(**NEVER), dispatch, Functions().runner()) as works,
            asyncio.timeout(LONG_S),
        ):
            for data in FORGED:
                await stream.publish("forged.due.any", data)
            assert await works.rests(await works.start(command("greet"))) == "COMPLETED"
            while (await stream.stream_info("forged")).state.messages:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    finally:
        await other.close()
    assert [one.getMessage() for one in caplog.records if one.name == "wfcore.loops"] == []


class _Waits:
    """Waits for nothing, and notes after how many losses in a row."""

    def __init__(self) -> None:
        self.lost: list[int] = []

    def wait(self, lost: int) -> float:
        self.lost.append(lost)
        return 0.0


async def test_a_queue_of_another_kind_is_told_and_tried_ever_more_seldom(
    nats: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Connections that end as soon as work is asked for count in a row, and the log says why."""
    waits = _Waits()
    monkeypatch.setattr(jetstream, "BACKOFF", waits)
    monkeypatch.setattr(jetstream, "STEADY_S", math.inf)
    caplog.set_level(logging.WARNING)
    dispatch = NatsDispatch.at(f"{nats.url}?name=other", 0.25)
    other = await client.connect(nats.url)
    running = asyncio.create_task(dispatch.run(lambda: None))
    try:
        async with asyncio.timeout(LONG_S):
            while not dispatch.up:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            pushes = api.ConsumerConfig(
                durable_name="any",
                deliver_subject="elsewhere",
                filter_subject="other.due.any",
                ack_policy=api.AckPolicy.EXPLICIT,
            )
            await other.jetstream().add_consumer("other", pushes)
            while len(waits.lost) < 3:
                await (dispatch.take(1) if dispatch.up else asyncio.sleep(0.01))
    finally:
        running.cancel()
        await asyncio.wait((running,))
        await other.close()
    assert waits.lost[:3] == [1, 2, 3]
    ours = [one for one in caplog.records if one.name == jetstream.log.name]
    details = [getattr(one, "detail", "") for one in ours]
    assert details
    assert [one for one in details if "consumer" in one] == details
