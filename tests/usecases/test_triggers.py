"""Schedules and chains: every start once, whoever fires, and never without saying why."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest
from attrs import evolve

from usecases.conftest import World, code
from wfcore.errors import InvalidDefinition, StoreUnavailable
from wfcore.instants import DAY, HOUR, MINUTE, SECOND, EpochMs
from wfcore.model.access import AccountStatus, Permission, Plan, Principal
from wfcore.model.event import AuditEntry
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Chain, Missed, Refusal, Schedule, Shown, TriggerState
from wfcore.model.workflow import Variable
from wfcore.testing.builders import timer
from wfcore.usecases import accounts, auditing, executions, firing, starting, sweeping, workflows
from wfcore.usecases.services import Policy
from wfcore.usecases.triggers import list_triggers

PAGE = PageRequest(1, 200)
HOURLY = Schedule("0 * * * *")
STARTED_AT = 1_700_000_000_000
NEXT_HOUR = STARTED_AT - STARTED_AT % HOUR + HOUR


async def runs_of(world: World, workflow_id: str) -> Sequence[Execution]:
    """The executions of a workflow, oldest first."""
    found = await executions.list_executions(world.services, None, PAGE, workflow_id)
    return found.rows[::-1]


async def shown(world: World, workflow_id: str) -> Shown:
    """The only trigger of a workflow."""
    (one,) = (await workflows.read_workflow(world.services, None, workflow_id)).triggers
    return one


async def complete(world: World, who: Principal, workflow_id: str) -> str:
    """Start the workflow of one step and run it to its end."""
    run_id = await world.start(who, workflow_id)
    await run_one(world)
    return run_id


async def run_one(world: World) -> None:
    lease, (job,) = await world.take()
    await world.finish(lease, job.step_name)


async def skipped(world: World) -> list[AuditEntry]:
    entries = await auditing.read_audit(world.services, EpochMs(0), None, 1_000)
    return [entry for entry in entries if entry.event == "trigger.fire"]


def to(world: World, at: int) -> None:
    world.clock.advance(at - world.clock.now())


# Chains


async def test_a_chain_starts_its_workflow_after_the_delay(world: World) -> None:
    """Not before the delay is over, once, as the workflow's owner's. CH-1."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first", 60),))
    await workflows.share_workflow(world.services, first, bob.account.id, Permission.EXECUTE)
    cause = await complete(world, bob, first)
    assert (await shown(world, then)).standing.next_at == world.clock.now() + MINUTE
    world.clock.advance(MINUTE - 1)
    assert list(await sweeping.sweep(world.services)) == []
    world.clock.advance(1)
    (fired,) = await sweeping.sweep(world.services)
    (run,) = await runs_of(world, then)
    assert fired.execution_id == run.id
    assert run.trigger_source is TriggerSource.DELAYED_COMPLETION
    assert (run.owner_id, run.chain_depth) == (ann.account.id, 1)
    _, events = await executions.read_events(world.services, ann, run.id, 0)
    assert events[0].data["completedExecutionId"] == cause
    assert list(await sweeping.sweep(world.services)) == []
    one = await shown(world, then)
    assert (one.trigger.runs, one.standing.next_at) == (1, None)


async def test_only_a_completion_sets_a_timer(world: World) -> None:
    """An execution that failed or was cancelled starts nobody. CH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    await executions.cancel_execution(world.services, ann, await world.start(ann, first))
    await world.start(ann, first)
    lease, _ = await world.take()
    await world.finish(lease, "a", error="no")
    assert list(await sweeping.sweep(world.services)) == []
    assert not await runs_of(world, then)


async def test_a_completion_wakes_the_sweeper_only_where_a_timer_was_set(world: World) -> None:
    """The wake-up of a chain is pushed; other completions wake nobody. CH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    await complete(world, ann, first)
    assert ("timer", None) not in world.hints.told
    await world.workflow(ann, code("b"), name="then", triggers=(Chain("first", 7),))
    await complete(world, ann, first)
    assert ("timer", None) in world.hints.told
    assert await sweeping.next_deadline(world.services) == world.clock.now() + 7 * SECOND


@contextmanager
def only_one_commit(world: World, kind: type) -> Iterator[None]:
    """The store dies right after its next commit."""
    commit, commits = kind.commit, []  # type: ignore[attr-defined]

    async def only_one(unit: object) -> None:
        if commits:
            raise StoreUnavailable
        commits.append(unit)
        await commit(unit)

    with pytest.MonkeyPatch.context() as patch, suppress(StoreUnavailable):
        patch.setattr(kind, "commit", only_one)
        yield


async def unit_type(world: World) -> type:
    async with world.services.store.unit() as unit:
        return type(unit)


async def test_a_completion_and_its_timer_are_one_commit(world: World) -> None:
    """A server that dies right after the commit of a completion has set the timer. CH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first", 9),))
    run_id = await world.start(ann, first)
    lease, _ = await world.take()
    with only_one_commit(world, await unit_type(world)):
        await world.finish(lease, "a")
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.status is ExecutionStatus.COMPLETED
    assert (await shown(world, then)).standing.next_at == world.clock.now() + 9 * SECOND


@pytest.mark.parametrize("trigger", [Chain("first"), HOURLY])
async def test_a_start_and_its_timer_are_one_commit(
    world: World, trigger: Chain | Schedule
) -> None:
    """A server that dies right after the commit of a start has consumed its timer. CH-1, SH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(trigger,))
    await complete(world, ann, first)
    to(world, NEXT_HOUR)
    with only_one_commit(world, await unit_type(world)):
        await sweeping.sweep(world.services)
    assert list(await sweeping.sweep(world.services)) == []
    assert len(await runs_of(world, then)) == (await shown(world, then)).trigger.runs == 1


async def test_each_completion_starts_once_whoever_fires(world: World) -> None:
    """Many sweepers at once start one execution for each completion. CH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    for _ in range(5):
        await complete(world, ann, first)
    fired = await asyncio.gather(*(sweeping.sweep(world.services) for _ in range(8)))
    started = [one.execution_id for ends in fired for one in ends]
    assert len(started) == len(set(started)) == 5
    assert {run.id for run in await runs_of(world, then)} == set(started)
    assert (await shown(world, then)).trigger.runs == 5


async def test_max_runs_counts_starts_in_all(world: World) -> None:
    """After so many starts it is exhausted, also for timers that were pending. CH-3."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    chain = Chain("first", 10, max_runs=2)
    then = await world.workflow(ann, code("b"), name="then", triggers=(chain,))
    for _ in range(3):
        await complete(world, ann, first)
    world.clock.advance(10 * SECOND)
    fired = await sweeping.sweep(world.services)
    assert [one.refusal for one in fired] == [None, None, Refusal.MAX_RUNS]
    assert len(await runs_of(world, then)) == 2
    assert (await shown(world, then)).standing.state is TriggerState.EXHAUSTED
    await complete(world, ann, first)
    world.clock.advance(10 * SECOND)
    assert await sweeping.next_deadline(world.services) is None
    assert [entry.reason for entry in await skipped(world)] == ["MAX_RUNS"]


async def test_a_chain_that_bites_its_tail_ends(world: World) -> None:
    """After twenty links the next start is refused, and everybody can see why. CH-4."""
    ann = await world.account()
    loop = await world.workflow(ann, code("a"), name="loop", triggers=(Chain("loop"),))
    await complete(world, ann, loop)
    fired = []
    while ends := await sweeping.sweep(world.services):
        fired += ends
        if ends[0].execution_id:
            await run_one(world)
    assert [run.chain_depth for run in await runs_of(world, loop)] == list(range(21))
    assert fired[-1].refusal is Refusal.CHAIN_TOO_DEEP
    (entry,) = await skipped(world)
    assert (entry.reason, entry.account_id) == ("CHAIN_TOO_DEEP", ann.account.id)
    one = await shown(world, loop)
    assert (one.trigger.refusal, one.trigger.runs) == (Refusal.CHAIN_TOO_DEEP, 20)
    await complete(world, ann, loop)
    assert (await sweeping.sweep(world.services))[0].execution_id


async def test_a_redrive_stays_in_its_chain(world: World) -> None:
    """What takes the place of a chained execution is as deep in the chain as that. CH-4."""
    ann = await world.account()
    loop = await world.workflow(ann, code("a"), name="loop", triggers=(Chain("loop"),))
    await complete(world, ann, loop)
    await sweeping.sweep(world.services)
    lease, _ = await world.take()
    await world.finish(lease, "a", error="no")
    old = (await runs_of(world, loop))[-1]
    again = await starting.redrive(world.services, ann, old.id)
    run = await executions.read_execution(world.services, ann, again.execution_id)
    assert run.chain_depth == old.chain_depth == 1


async def test_a_chain_behind_what_is_not_there_is_refused(world: World) -> None:
    """Unknown, invisible, or one workflow twice: all mistakes at once, nothing stored. CH-2."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    mine = await world.workflow(ann, code("a"), name="mine")
    hidden = await world.workflow(bob, code("a"), name="hidden")
    chains = (Chain("mine"), Chain("hidden"), Chain(hidden), Chain(mine))
    with pytest.raises(InvalidDefinition) as caught:
        await world.workflow(ann, code("b"), name="then", triggers=chains)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["triggers[1].workflow", "triggers[2].workflow", "triggers[3]"]
    found = await workflows.list_workflows(world.services, ann, PAGE)
    assert [one.workflow.name for one in found.rows] == ["mine"]


async def test_a_chain_follows_a_name_and_loses_what_it_cannot_see(world: World) -> None:
    """By name also one that was deleted and applied anew; by id while it is visible. CH-2, CH-5."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    first = await world.workflow(ann, code("a"), name="first")
    named = await world.workflow(ann, code("b"), name="named", triggers=(Chain("first"),))
    share = workflows.share_workflow
    await share(world.services, first, bob.account.id, Permission.VIEW)
    by_id = await world.workflow(bob, code("c"), name="by id", triggers=(Chain(first),))
    await share(world.services, first, bob.account.id, None)
    assert (await shown(world, by_id)).standing.state is TriggerState.BLOCKED
    await complete(world, ann, first)
    fired = {one.workflow_id: one for one in await sweeping.sweep(world.services)}
    assert fired[named].execution_id
    assert fired[by_id].refusal is Refusal.ACCESS_LOST
    await run_one(world)
    await workflows.delete_workflow(world.services, first)
    assert (await shown(world, named)).standing.state is TriggerState.BLOCKED
    again = await world.workflow(ann, code("a"), name="first")
    assert again != first
    await complete(world, ann, again)
    assert [one.workflow_id for one in await sweeping.sweep(world.services)] == [named]


async def test_a_completion_counts_though_its_workflow_was_deleted(world: World) -> None:
    """What completed before the deletion starts its chain all the same. CH-5."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain(first, 10),))
    await complete(world, ann, first)
    await workflows.delete_workflow(world.services, first)
    world.clock.advance(10 * SECOND)
    assert [one.workflow_id for one in await sweeping.sweep(world.services)] == [then]


# Schedules


async def test_a_schedule_starts_at_its_instants(world: World) -> None:
    """From the next instant after it was applied, once for each. SH-1."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    assert ("timer", None) in world.hints.told
    assert await sweeping.next_deadline(world.services) == NEXT_HOUR
    to(world, NEXT_HOUR - 1)
    assert list(await sweeping.sweep(world.services)) == []
    for number in range(3):
        to(world, NEXT_HOUR + number * HOUR)
        assert len(await sweeping.sweep(world.services)) == 1
        assert list(await sweeping.sweep(world.services)) == []
    runs = await runs_of(world, flow)
    assert [run.trigger_source for run in runs] == [TriggerSource.SCHEDULE] * 3
    assert [run.accepted_at for run in runs] == [NEXT_HOUR + n * HOUR for n in range(3)]
    one = await shown(world, flow)
    assert (one.trigger.runs, one.standing.next_at) == (3, NEXT_HOUR + 3 * HOUR)


async def test_one_instant_starts_once_whoever_fires(world: World) -> None:
    """Many sweepers at one instant start one execution. SH-1."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    for number in range(5):
        to(world, NEXT_HOUR + number * HOUR)
        fired = await asyncio.gather(*(sweeping.sweep(world.services) for _ in range(8)))
        assert sum(map(len, fired)) == 1
    assert len(await runs_of(world, flow)) == 5


async def test_daylight_saving(world: World) -> None:
    """In the night of 31 March 2024 half past two comes at three, on 27 October once. SH-2."""
    ann = await world.account()
    schedule = Schedule("30 2 * * *", "Europe/Berlin")
    flow = await world.workflow(ann, code("a"), triggers=(schedule,))
    for day in ("2024-03-31", "2024-10-27"):
        runs_before = len(await runs_of(world, flow))
        midnight = _instant(day)
        to(world, midnight - 2 * HOUR)
        await sweeping.sweep(world.services)
        for minute in range(0, 8 * 60, 10):
            to(world, midnight - 2 * HOUR + minute * MINUTE)
            await sweeping.sweep(world.services)
        runs = (await runs_of(world, flow))[runs_before:]
        wanted = {"2024-03-31": 60, "2024-10-27": 30}[day]
        assert [run.accepted_at for run in runs] == [midnight + wanted * MINUTE]


def _instant(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000


@pytest.mark.parametrize(
    ("said", "policy", "starts"),
    [
        (None, Missed.SKIP, 0),
        (None, Missed.ONCE, 1),
        (Missed.SKIP, Missed.ONCE, 0),
        (Missed.ONCE, Missed.SKIP, 1),
    ],
)
async def test_what_was_missed(
    world: World, said: Missed | None, policy: Missed, starts: int
) -> None:
    """After a night without a server: nothing, or one start, as it is set. SH-4."""
    ann = await world.account()
    set_so = evolve(world, services=evolve(world.services, policy=Policy(missed=policy)))
    flow = await set_so.workflow(ann, code("a"), triggers=(evolve(HOURLY, missed=said),))
    to(world, NEXT_HOUR + 9 * HOUR + MINUTE + 1)
    await sweeping.sweep(set_so.services)
    assert len(await runs_of(world, flow)) == starts
    assert [one.reason for one in await skipped(world)] == ["MISSED"] * (1 - starts)
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + 10 * HOUR
    to(world, NEXT_HOUR + 10 * HOUR)
    await sweeping.sweep(set_so.services)
    assert len(await runs_of(world, flow)) == starts + 1


async def test_a_little_late_is_on_time(world: World) -> None:
    """Within the grace an instant counts, and of several only the latest. SH-3."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(Schedule("* * * * *"),))
    to(world, NEXT_HOUR + 30 * SECOND)
    await sweeping.sweep(world.services)
    (run,) = await runs_of(world, flow)
    _, (event,) = await executions.read_events(world.services, None, run.id, 0)
    assert event.data["scheduledFor"] == NEXT_HOUR


async def test_a_clock_that_jumps_fires_nothing_early(world: World) -> None:
    """Due is what is due by the clock of deadlines, which does not follow a jump at once. SH-8."""

    class Jumped:
        def now(self) -> EpochMs:
            return EpochMs(world.clock.now() + DAY)

        def deadline_now(self) -> EpochMs:
            return world.clock.now()

    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    jumped = evolve(world.services, clock=Jumped())
    assert list(await sweeping.sweep(jumped)) == []
    to(world, NEXT_HOUR)
    assert len(await sweeping.sweep(jumped)) == 1
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + HOUR


async def test_a_schedule_needs_a_plan(world: World) -> None:
    """On FREE it cannot be applied; after a downgrade it does not fire and says why. SH-7."""
    ann = await world.account(plan=Plan.FREE)
    with pytest.raises(InvalidDefinition, match="plan PRO"):
        await world.workflow(ann, code("a"), triggers=(HOURLY,))
    await accounts.set_account(world.services, ann.account.id, plan=Plan.PRO)
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    await accounts.set_account(world.services, ann.account.id, plan=Plan.FREE)
    for number in range(3):
        to(world, NEXT_HOUR + number * HOUR)
        assert [one.refusal for one in await sweeping.sweep(world.services)] == ["PLAN_LIMIT"]
    one = await shown(world, flow)
    assert one.standing.state is TriggerState.BLOCKED
    assert "PRO" in (one.standing.why or "")
    assert [entry.reason for entry in await skipped(world)] == ["PLAN_LIMIT"]
    await accounts.set_account(world.services, ann.account.id, plan=Plan.TEAM)
    to(world, NEXT_HOUR + 3 * HOUR)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == [None]
    assert (await shown(world, flow)).standing.state is TriggerState.ACTIVE


async def test_a_chain_needs_no_plan(world: World) -> None:
    """Chains are for every plan. SH-7."""
    ann = await world.account(plan=Plan.FREE)
    first = await world.workflow(ann, code("a"), name="first")
    await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    await complete(world, ann, first)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == [None]


@pytest.mark.parametrize("status", [AccountStatus.DISABLED, AccountStatus.LOCKED])
async def test_a_blocked_account_starts_nothing(world: World, status: AccountStatus) -> None:
    """Neither by schedule nor by chain. AC-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    triggers = (HOURLY, Chain("first", 10))
    await world.workflow(ann, code("b"), name="then", triggers=triggers)
    await complete(world, ann, first)
    await accounts.set_account(world.services, ann.account.id, status=status)
    to(world, NEXT_HOUR)
    ends = await sweeping.sweep(world.services)
    assert [one.refusal for one in ends] == [Refusal.ACCOUNT_BLOCKED] * 2


# Applying again


async def test_applying_again_keeps_what_stays_the_same(world: World) -> None:
    """The number of runs, pending timers and the next instant stay; the new terms hold. SH-5."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    chain = Chain("first", 10, max_runs=2)
    then = await world.workflow(ann, code("b"), name="then", triggers=(chain, HOURLY))
    await complete(world, ann, first)
    world.clock.advance(10 * SECOND)
    await sweeping.sweep(world.services)
    await run_one(world)
    await complete(world, ann, first)
    before = {one.trigger.id for one in await _all(world, then)}
    changed = (evolve(HOURLY, missed=Missed.ONCE), Chain("first", 99, max_runs=3))
    await world.workflow(ann, code("c"), name="then", triggers=changed)
    after = await _all(world, then)
    assert {one.trigger.id for one in after} == before
    world.clock.advance(10 * SECOND)
    assert len(await sweeping.sweep(world.services)) == 1
    by_kind = {type(one.trigger.spec): one for one in await _all(world, then)}
    assert by_kind[Chain].trigger.runs == 2
    assert by_kind[Chain].trigger.spec == changed[1]
    assert by_kind[Schedule].standing.next_at == NEXT_HOUR


async def test_a_trigger_that_is_left_out_takes_its_timers_along(world: World) -> None:
    """Pending starts of a removed trigger do not happen, new instants begin anew. SH-5."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    triggers = (Chain("first", 10), HOURLY)
    then = await world.workflow(ann, code("b"), name="then", triggers=triggers)
    await complete(world, ann, first)
    later = Schedule("5 * * * *")
    await world.workflow(ann, code("b"), name="then", triggers=(later,))
    to(world, NEXT_HOUR)
    assert list(await sweeping.sweep(world.services)) == []
    (one,) = await _all(world, then)
    assert (one.trigger.spec, one.standing.next_at) == (later, NEXT_HOUR + 5 * MINUTE)
    await workflows.delete_workflow(world.services, then)
    assert await sweeping.next_deadline(world.services) is None
    assert not (await list_triggers(world.services, None, PAGE)).rows


async def test_a_timer_without_a_trigger_is_dropped(world: World) -> None:
    """A completion that raced with the removal of a trigger starts nothing. SH-5."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    await world.start(ann, first)
    lease, _ = await world.take()
    async with world.services.store.unit() as late:
        (trigger,) = await late.triggers.of_workflow(then)
        await world.workflow(ann, code("b"), name="then")
        late.timers.put(timer("x", trigger_id=trigger.id, due_at=world.clock.now()))
        await late.commit()
    await world.finish(lease, "a")
    assert list(await sweeping.sweep(world.services)) == []
    assert await sweeping.next_deadline(world.services) is None


async def _all(world: World, workflow_id: str) -> Sequence[Shown]:
    return (await list_triggers(world.services, None, PAGE, workflow_id)).rows


async def test_what_cannot_start_is_told(world: World) -> None:
    """A start whose variables are no good is refused with its reason, not for ever tried. SH-6."""
    ann = await world.account()
    needed = {"v": Variable("v", required=True)}
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,), variables=needed)
    to(world, NEXT_HOUR)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == ["INVALID_INPUT"]
    assert [entry.reason for entry in await skipped(world)] == ["INVALID_INPUT"]
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + HOUR


async def test_a_schedule_that_cannot_be_read_here_waits(world: World) -> None:
    """It is tried again, by whoever can, and keeps no other trigger from starting. SH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    flow = await world.workflow(ann, code("b"), triggers=(HOURLY,))
    await world.workflow(ann, code("c"), name="then", triggers=(Chain("first", 2_805),))
    await complete(world, ann, first)
    to(world, NEXT_HOUR + 10 * SECOND)
    without = evolve(world.services, calendar=None)
    ends = [one.refusal for one in await sweeping.sweep(without)]
    assert sorted(map(str, ends)) == ["None", "UNREADABLE"]
    assert list(await sweeping.sweep(world.services)) == []
    world.clock.advance(MINUTE)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == [None]
    assert len(await runs_of(world, flow)) == 1
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + HOUR


async def test_very_many_due_timers_leave_room_for_other_duties(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sweep fires a batch, the next one the rest; the sweeper is told to come again. CH-1."""
    monkeypatch.setattr(firing, "BATCH", 2)
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    for _ in range(5):
        await complete(world, ann, first)
    assert [len(await sweeping.sweep(world.services)) for _ in range(4)] == [2, 2, 1, 0]


async def test_a_crash_between_firing_and_its_commit_loses_and_doubles_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start and its timer are one unit: cut off before the commit, both are as before. SH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    triggers = (Chain("first"), HOURLY)
    then = await world.workflow(ann, code("b"), name="then", triggers=triggers)
    await complete(world, ann, first)
    to(world, NEXT_HOUR)

    class Crash(Exception):
        pass

    async def crashing(services: object, unit: object, *rest: object) -> object:
        await accepted(services, unit, *rest)  # type: ignore[arg-type]
        raise Crash

    accepted = firing.accepted
    monkeypatch.setattr(firing, "accepted", crashing)
    for _ in range(3):
        with pytest.raises(Crash):
            await sweeping.sweep(world.services)
    monkeypatch.undo()
    assert not await runs_of(world, then)
    assert len(await sweeping.sweep(world.services)) == 2
    assert len(await runs_of(world, then)) == 2
