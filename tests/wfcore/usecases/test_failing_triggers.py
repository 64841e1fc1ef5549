"""Triggers whose executions fail: how the last one ended, and when that pauses them. SH-10."""

import pytest
from attrs import evolve

from wfcore.errors import Forbidden, NotFound
from wfcore.model.access import OPERATOR, Permission, Principal
from wfcore.model.event import AuditEntry
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.notice import Notice, NoticeKind
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Chain, TriggerState
from wfcore.model.workflow import Variable
from wfcore.ports.runtime import StepEnd
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.accounts import accounts
from wfcore.usecases.audit import auditing
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.notices import sending
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import workflows
from wfcore.usecases.workflows.triggers import pause_trigger, resume_trigger

from .conftest import World, code
from .triggering import HOURLY, complete, runs_of, shown

NIGHTLY = evolve(HOURLY, pause_after=2)


async def fire(world: World, how: str = "fails") -> None:
    """Let the next hour come, and what it starts end."""
    world.clock.advance(HOUR - world.clock.now() % HOUR)
    await sweeping.sweep(world.services)
    lease, _ = await world.take()
    if how == "cancelled":
        await executions.cancel_execution(world.services, OPERATOR, lease.execution_id)
        return
    end = StepEnd() if how == "completes" else StepEnd(error="no disk", permanent=True)
    await worker.complete_step(world.services, lease, "one", end)


async def told(world: World, kind: NoticeKind) -> list[Notice]:
    async with world.services.store.view() as view:
        found = await view.notices.list((), PageRequest(size=50))
    return [one for one in found.rows if one.kind is kind]


async def audited(world: World) -> list[AuditEntry]:
    entries = await auditing.read_audit(world.services, EpochMs(0), None, 1_000)
    return [entry for entry in entries if entry.event.startswith("trigger.")]


async def nightly(world: World, *triggers: object, **more: object) -> tuple[Principal, str]:
    ann = await world.account()
    return ann, await world.workflow(ann, code("one"), triggers=triggers or (NIGHTLY,), **more)


async def test_a_trigger_says_how_its_last_execution_ended(world: World) -> None:
    """The result, the execution, and how many failed in a row; cancelling counts neither way."""
    _, flow = await nightly(world, HOURLY)
    seen = []
    for how in ("fails", "cancelled", "fails", "completes", "fails"):
        await fire(world, how)
        one = (await shown(world, flow)).trigger
        seen.append((one.last_result, one.failures))
    assert seen == [(S.FAILED, 1), (S.CANCELLED, 1), (S.FAILED, 2), (S.COMPLETED, 0), (S.FAILED, 1)]
    assert one.last_execution_id == (await runs_of(world, flow))[-1].id
    assert (await shown(world, flow)).standing.state is TriggerState.ACTIVE


async def test_failures_in_a_row_pause_a_schedule(world: World) -> None:
    """The second one pauses it, with an audit entry and a mail to its owner, once."""
    ann, flow = await nightly(world)
    services = evolve(
        world.services, policy=evolve(world.services.policy, channels=frozenset({"mail"}))
    )
    world = evolve(world, services=services)
    await fire(world)
    assert (await shown(world, flow)).standing.state is TriggerState.ACTIVE
    await fire(world)
    one = await shown(world, flow)
    assert (one.standing.state, one.standing.why) == (
        TriggerState.PAUSED,
        "Its last 2 starts in a row failed",
    )
    (entry,) = await audited(world)
    assert (entry.event, entry.reason, entry.target) == (
        "trigger.pause",
        "FAILURES",
        one.trigger.id,
    )
    (notice,) = await told(world, NoticeKind.TRIGGER_PAUSED)
    assert (notice.to, notice.about["failures"]) == (ann.account.email, 2)


async def test_a_paused_trigger_starts_nothing_and_says_so_quietly(world: World) -> None:
    """Nothing starts, nothing is audited each time, and the next instant stays in sight."""
    _, flow = await nightly(world)
    await fire(world)
    await fire(world)
    before = await audited(world)
    for _ in range(3):
        world.clock.advance(HOUR - world.clock.now() % HOUR)
        await sweeping.sweep(world.services)
    assert len(await runs_of(world, flow)) == 2
    assert await audited(world) == before
    assert (await shown(world, flow)).standing.next_at is not None


async def test_resuming_starts_it_again_and_counts_anew(world: World) -> None:
    """One further failure does not pause it; two do. What it missed is not made up for."""
    ann, flow = await nightly(world)
    await fire(world)
    await fire(world)
    world.clock.advance(3 * HOUR)
    await sweeping.sweep(world.services)
    id = (await shown(world, flow)).trigger.id
    resumed = await resume_trigger(world.services, ann, id)
    assert (resumed.standing.state, resumed.trigger.failures) == (TriggerState.ACTIVE, 0)
    await fire(world)
    assert (await shown(world, flow)).standing.state is TriggerState.ACTIVE
    await fire(world)
    assert (await shown(world, flow)).standing.state is TriggerState.PAUSED
    assert [entry.event for entry in await audited(world)] == [
        "trigger.pause",
        "trigger.resume",
        "trigger.pause",
    ]


async def test_applying_again_does_not_resume_it(world: World) -> None:
    """A definition says when a schedule fires, not that somebody has looked into its failures."""
    ann, flow = await nightly(world)
    await fire(world)
    await fire(world)
    await world.workflow(ann, code("one"), triggers=(evolve(NIGHTLY, pause_after=9),))
    assert (await shown(world, flow)).standing.state is TriggerState.PAUSED


async def test_somebody_pauses_any_trigger(world: World) -> None:
    """Chains, too: what completes meanwhile starts nothing; doing it twice changes nothing."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("one"), name="then", triggers=(Chain("first"),))
    id = (await shown(world, then)).trigger.id
    for _ in range(2):
        paused = await pause_trigger(world.services, ann, id, why="moving house")
    assert paused.trigger.pause is not None
    assert (paused.trigger.pause.by, paused.standing.why) == (ann.account.id, "moving house")
    assert len(await audited(world)) == 1
    await complete(world, ann, first)
    await sweeping.sweep(world.services)
    assert not await runs_of(world, then)


async def test_who_may_not_edit_the_workflow_may_not_pause_its_triggers(world: World) -> None:
    """403 for who sees it, 404 for who does not, and for a trigger that is not there."""
    _, flow = await nightly(world)
    bob, eve = [await world.account(f"{name}@example.org") for name in ("bob", "eve")]
    await workflows.share_workflow(
        world.services, OPERATOR, flow, bob.account.id, Permission.EXECUTE
    )
    id = (await shown(world, flow)).trigger.id
    with pytest.raises(Forbidden):
        await pause_trigger(world.services, bob, id)
    for who, which in ((eve, id), (bob, "trg_none")):
        with pytest.raises(NotFound):
            await resume_trigger(world.services, who, which)


async def test_account_and_server_are_told_of_every_failure(world: World) -> None:
    """In each channel once; the server's mail goes to its operators. NT-8."""
    policy = evolve(
        world.services.policy,
        channels=frozenset({"mail", "ops", "all"}),
        failure_channels=("all", "mail"),
        operators=frozenset({"root@example.org"}),
    )
    world = evolve(world, services=evolve(world.services, policy=policy))
    ann, _ = await nightly(world, HOURLY, notify_on_failure=("ops",))
    await accounts.set_account(
        world.services, OPERATOR, ann.account.id, failure_channels=["mail", "ops"]
    )
    await fire(world)
    found = await told(world, NoticeKind.EXECUTION_FAILED)
    assert sorted((one.channel, one.to) for one in found) == [
        ("all", ""),
        ("mail", "ann@example.org"),
        ("mail", "root@example.org"),
        ("ops", ""),
    ]


async def test_what_is_told_of_a_failure_masks_secret_variables(world: World) -> None:
    """A program that prints a secret into its error does not mail it. SC-1."""
    policy = evolve(world.services.policy, channels=frozenset({"ops"}), failure_channels=("ops",))
    world = evolve(world, services=evolve(world.services, policy=policy))
    secret = {"pin": Variable("pin", has_default=True, default="c4nary-77", secret=True)}
    ann = await world.account()
    await world.start(ann, await world.workflow(ann, code("one"), variables=secret))
    lease, _ = await world.take()
    end = StepEnd(error="no such pin: c4nary-77", permanent=True)
    await worker.complete_step(world.services, lease, "one", end)
    (begun,) = await sending.take_notices(world.services, 9)
    error = str(begun.message.lines[0].about["error"])
    assert "no such pin" in error
    assert "c4nary" not in error
