"""What a request costs does not depend on outputs that it does not show: none is opened."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from threading import get_ident
from typing import Any, cast

import orjson
import pytest

from adapters_store.sql.sealing import AeadSealer
from bench.payloads import Looker
from tests.support.postgres_server import emptied
from wfcore import (
    Principal,
    Services,
    apply_workflow,
    ensure_account,
    on_postgres,
    on_sqlite,
    start_execution,
)
from wfcore.model.access import OPERATOR, Scope, Tier
from wfcore.model.approval import DecisionSource
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.json import Json, JsonObject
from wfcore.model.webhook import Delivery, DeliveryKind
from wfcore.model.workflow import ApprovalStep, CodeStep, Definition, Language, LoopStep
from wfcore.ports.runtime import StepEnd, StepJob
from wfcore.rules.approval.machine import Approve
from wfcore.rules.execution import proceed
from wfcore.rules.execution.fold_steps import size_of
from wfcore.testing.builders import NOW
from wfcore.usecases.accounts.keys import create_key
from wfcore.usecases.approvals.approvals import approvals_of
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.executions.redriving import redrive

LARGE: Json = [{"id": number, "name": "x" * 20} for number in range(2_000)]
CODE = {"language": Language.COMMAND, "command": ("true",)}
FLOW = Definition(
    "flow",
    (
        CodeStep("one", **CODE),
        LoopStep("each", variable="it", items=[1, 2], steps=(CodeStep("two", **CODE),)),
        ApprovalStep("ask", "May it?"),
        CodeStep("three", **CODE),
        CodeStep("named", Language.COMMAND, command=("echo", "{{ steps.one.output[7].id }}")),
    ),
)


class Opened:
    """How often something large was opened, sealed or decoded, and how often in the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = self.sealed = self.decoded = self.in_loop = 0
        loop = get_ident()
        opens, seals, decodes = AeadSealer.open, AeadSealer.seal, orjson.loads

        def open(sealer: AeadSealer, sealed: str, place: str) -> str:
            self.opened += len(sealed) > 20_000
            self.in_loop += len(sealed) > 20_000 and get_ident() == loop
            return opens(sealer, sealed, place)

        def seal(sealer: AeadSealer, text: str, place: str) -> str:
            self.sealed += len(text) > 20_000
            self.in_loop += len(text) > 20_000 and get_ident() == loop
            return seals(sealer, text, place)

        def decode(text: bytes | str) -> Json:
            self.decoded += len(text) > 20_000
            return decodes(text)  # type: ignore[no-any-return]

        monkeypatch.setattr(AeadSealer, "open", open)
        monkeypatch.setattr(AeadSealer, "seal", seal)
        monkeypatch.setattr(orjson, "loads", decode)


Scene = tuple[Services, Principal, str]


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest) -> str | None:
    """The URL of a database; None: a file."""
    return request.getfixturevalue("database") if request.param == "postgres" else None


@pytest.fixture
async def scene(where: str | None, tmp_path: Path) -> AsyncIterator[Scene]:
    """Services that have just been opened, and an execution that awaits its approval."""

    def services() -> AbstractAsyncContextManager[Services]:
        return on_sqlite(tmp_path) if url is None else on_postgres(url, tmp_path)

    url = await emptied(where) if where else None
    async with services() as first:
        who = Principal(await ensure_account(first, "ann@example.org", Tier.ENTERPRISE))
        workflow = await apply_workflow(first, who.account.id, FLOW)
        started = await start_execution(first, who, workflow.id, {})
        (lease,) = await worker.claim(first, "test", 1)
        await worker.begin(first, lease)
        for key in ("one", "each.0.two", "each.1.two"):
            await worker.complete_step(first, lease, key, StepEnd(output=LARGE))
    async with services() as second:
        yield second, who, started.execution_id


DOORS = [
    ("GET", "/api/v1/executions"),
    ("GET", "/api/v1/executions/{}?outputs=none"),
    ("GET", "/api/v1/executions/{}?outputs=none&wait=1"),
    ("GET", "/api/v1/executions/{}/logs"),
    ("GET", "/api/v1/executions/{}/explain"),
    ("GET", "/api/v1/executions/{}/artifacts"),
    ("GET", "/api/v1/executions/{}/definition"),
    ("GET", "/api/v1/approvals"),
    ("POST", "/api/v1/executions/{}/cancel?outputs=none"),
]


async def test_what_shows_no_output_opens_none(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polls, waits, lists, logs and cancel open, seal and decode no large cell. ST-7."""
    services, who, id = scene
    key = await create_key(services, who.account.id, "key", Scope.ordinary())
    looker, count = Looker(services, key.text), Opened(monkeypatch)
    for method, path in DOORS:
        await looker.ask(method, path.format(id))
        assert (count.opened, count.sealed, count.decoded) == (0, 0, 0), path


async def test_a_redrive_decodes_no_output_that_it_keeps(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer seals kept outputs for their new place, and nothing is made of them. ST-7."""
    services, who, id = scene
    await executions.cancel_execution(services, who, id)
    count = Opened(monkeypatch)
    started = await redrive(services, who, id)
    assert (count.opened, count.sealed, count.decoded) == (4, 4, 0)
    (lease,) = await worker.claim(services, "test", 1)
    await worker.begin(services, lease)
    assert (count.opened, count.sealed, count.decoded) == (4, 4, 0)
    old, new = [await whole(services, one) for one in (id, started.execution_id)]
    assert new.status is ExecutionStatus.AWAITING_APPROVAL
    assert {**old.step_results, "ask": None} == {**new.step_results, "ask": None}
    assert new.outputs_size == old.outputs_size


async def test_a_large_output_is_sealed_aside_of_the_event_loop(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new output of some size is sealed by whoever writes it, and counted once. ST-7, FL-14."""
    services, who, _ = scene
    workflow = await apply_workflow(services, who.account.id, FLOW)
    started = await start_execution(services, who, workflow.id, {})
    (lease,) = await worker.claim(services, "test", 1, ids=[started.execution_id])
    await worker.begin(services, lease)
    count = Opened(monkeypatch)
    large: Json = ["x" * 100_000]
    end = StepEnd(output=large, size=size_of(large))
    monkeypatch.setattr(proceed, "size_of", None)
    await worker.complete_step(services, lease, "one", end)
    assert (count.sealed, count.in_loop) == (1, 0)
    assert (await whole(services, started.execution_id)).step_results["one"].output == large
    assert (await whole(services, started.execution_id)).outputs_size == end.size + len("[1,2]")


async def test_a_code_step_is_given_large_outputs_undecoded(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The context of a code step has the outputs that the step sees as text, opened aside of the event
    loop; an output is decoded if a template names it. ST-7, CS-2.
    """
    services, who, id = scene
    count = Opened(monkeypatch)
    (approval,) = await approvals_of(services, who, id)
    asked = Decide(approval.id, Approve(), DecisionSource.API, alone=True)
    await decide_approval(services, OPERATOR, asked)
    (lease,) = await worker.claim(services, "test", 1, ids=[id])
    (job,) = (await worker.begin(services, lease)).jobs
    assert isinstance(job, StepJob)
    assert (count.decoded, count.in_loop, {*job.outputs}) == (0, 0, {"one", "each"})
    outputs = {name: result["output"] for name, result in seen_by(job).items()}
    assert [outputs["one"], outputs["each"]] == [LARGE, [LARGE, LARGE]]
    count.decoded = 0
    (job,) = (await worker.complete_step(services, lease, "three", StepEnd(output=3))).jobs
    assert isinstance(job, StepJob)
    assert (job.argv, count.decoded, {*job.outputs}) == (("echo", "7"), 1, {"each"})
    assert seen_by(job)["each"]["output"] == [LARGE, LARGE]


def seen_by(job: StepJob) -> dict[str, Any]:
    """The results of steps in the context of the job."""
    return cast("dict[str, Any]", job.context["steps"])


async def test_deliveries_are_listed_aside_of_the_event_loop(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of deliveries to be replayed is opened by a thread. ST-7."""
    store, count = scene[0].store, Opened(monkeypatch)
    payload: JsonObject = {"text": "x" * 60_000}
    kept = [
        Delivery(f"dlv_{n}", "wh_1", NOW, DeliveryKind.SENDER, 409, True, payload=payload)
        for n in range(3)
    ]
    async with store.unit() as unit:
        for one in kept:
            unit.deliver(one)
        await unit.commit()
    count.in_loop = 0
    async with store.view() as view:
        assert await view.webhooks.deliveries("wh_1") == kept[::-1]
    assert (count.opened, count.in_loop) == (3, 0)


async def whole(services: Services, id: str) -> Execution:
    async with services.store.view() as view:
        found = await view.get(Execution, id)
    assert found is not None
    return found
