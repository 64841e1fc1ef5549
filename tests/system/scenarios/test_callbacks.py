"""Callers that are told of the end of what they started."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from attrs import evolve

from tests.support.receiver import Receiver, a_receiver
from wfcore.model.execution import Callback, CallbackStatus
from wfcore.rules.callback import signed
from wfcore.time import EpochMs

from .flows import ECHO, REVIEW
from .process import until
from .site import ApiCaller, Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = {"WFCORE_ALLOW_PRIVATE_CALLBACKS": "1"}
    made = Site(tmp_path_factory.mktemp("site") / "data", settings)
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with a_receiver() as made:
        yield made


def _start(ann: ApiCaller, text: str, url: str) -> httpx.Response:
    path = f"/api/v1/workflows/{ann.workflow(text)}/executions"
    return ann.post(path, {"inputs": {}, "callbackUrl": url})


def test_told_and_signed(ann: ApiCaller, receiver: Receiver) -> None:
    """The end of an execution is posted once, signed with the key's secret. CB-1, CB-2."""
    execution_id = _start(ann, ECHO, receiver.url).json()["executionId"]
    ((path, headers, body),) = receiver.wait_for(1)
    told = json.loads(body)
    assert path == "/told?for=me"
    assert told["type"] == "execution.completed"
    assert told["data"]["executionId"] == execution_id
    assert told["data"]["status"] == "COMPLETED"
    given = {name.lower(): value for name, value in headers.items()}
    at = EpochMs(1_000 * int(given["webhook-timestamp"]))
    assert ann.key.callback_secret is not None
    wanted = signed(ann.key.callback_secret, execution_id, at, body)
    assert {name: given[name] for name in wanted} == wanted
    assert ann.view(execution_id)["status"] == "COMPLETED"


def test_cancelled(ann: ApiCaller, receiver: Receiver) -> None:
    """Every terminal state is told, not only success. CB-1."""
    execution_id = _start(ann, REVIEW, receiver.url).json()["executionId"]
    assert ann.rested(execution_id)["status"] == "AWAITING_APPROVAL"
    assert receiver.received == []
    ann.post(f"/api/v1/executions/{execution_id}/cancel")
    ((_, _, body),) = receiver.wait_for(1)
    assert json.loads(body)["type"] == "execution.cancelled"


@pytest.mark.parametrize("url", ["ftp://example.org", "https://ann:pw@example.org", "nowhere"])
def test_refused(ann: ApiCaller, url: str) -> None:
    """An address that cannot be called is refused by name, and nothing is started. CB-4."""
    answer = _start(ann, ECHO, url)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("callbackUrl: ")
    assert ann.get("/api/v1/executions").json()["total"] == 0


def test_kept_over_a_kill(tmp_path: Path, receiver: Receiver) -> None:
    """A callback that was not delivered when the server was killed is delivered later. CB-3."""
    settings = {"WFCORE_ALLOW_PRIVATE_CALLBACKS": "1"}
    site = Site(tmp_path / "data", settings)
    try:
        ann = site.caller()
        receiver.answers = [0]
        execution_id = _start(ann, ECHO, receiver.url).json()["executionId"]
        receiver.wait_for(1)
        site.kill()
        stored = site.do(lambda services: _callback(services, execution_id))
        assert (stored.status, stored.attempts) == (CallbackStatus.PENDING, 1)
        site.do(lambda services: _due_now(services, execution_id))
        site.serve()
        first, second = receiver.wait_for(2)
        assert first.body == second.body
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        settled = "DELIVERED"
        until(lambda: site.do(lambda s: _callback(s, execution_id)).status == settled)
    finally:
        site.close()


def test_private_by_default(tmp_path: Path, receiver: Receiver) -> None:
    """Without the operator's word nothing private is called. CB-4."""
    site = Site(tmp_path / "data")
    try:
        answer = _start(site.caller(), ECHO, receiver.url)
        assert (answer.status_code, "private" in answer.json()["error"]) == (400, True)
    finally:
        site.close()


async def _callback(services, execution_id):
    async with services.store.view() as view:
        return await view.get(Callback, execution_id)


async def _due_now(services, execution_id):
    """Instead of waiting for half a minute: the next attempt is due."""
    async with services.store.unit() as unit:
        stored = await unit.get(Callback, execution_id)
        unit.put(evolve(stored, due_at=services.clock.now()))
        await unit.commit()
