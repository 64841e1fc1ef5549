"""
Triggers: the effect of a new definition on them, and whether a trigger may start its workflow now.

A trigger keeps its identity while it waits for the same workflow, or the same local times. Then it
keeps its number of runs and its pending timers. Of several chains behind one workflow, a chain with
the same ends as before is the same one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from wfcore.errors import Problem
from wfcore.model.access import Account, AccountStatus, Tier
from wfcore.model.execution import Execution
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.trigger import (
    Chain,
    Pause,
    Refusal,
    Schedule,
    Timer,
    Trigger,
    TriggerSpec,
    TriggerStanding,
    TriggerState,
)
from wfcore.model.workflow import Definition, Workflow
from wfcore.rules.paths import below
from wfcore.rules.phrase import phrase
from wfcore.rules.triggers.chain import MAX_DEPTH, exhausted
from wfcore.rules.triggers.identity import identity
from wfcore.time import EpochMs


@frozen
class DefinedTrigger:
    """A trigger in a definition, and the key of the workflow that it waits for."""

    spec: TriggerSpec
    watches: str | None = None


@frozen
class TriggerChange:
    """The effect of a definition on triggers: `begun` and `kept` are stored, `gone` deleted."""

    begun: tuple[Trigger, ...] = ()
    kept: tuple[Trigger, ...] = ()
    gone: tuple[Trigger, ...] = ()


def applied(
    workflow: Workflow,
    wanted: Sequence[DefinedTrigger],
    stored: Sequence[Trigger],
    new_id: Callable[[], str],
    now: EpochMs,
) -> TriggerChange:
    """
    The change from the *stored* triggers of *workflow* to the *wanted* triggers. CH-3, SH-5.

    A trigger with the same identity as before keeps its number of runs. A trigger that is no longer
    wanted is deleted with its pending timers.
    """
    left = {one.id: one for one in stored}
    same = _matched(dict(enumerate(wanted)), left, exactly=True)
    new = {at: one for at, one in enumerate(wanted) if at not in same}
    same |= _matched(new, left, exactly=False)
    begun: list[Trigger] = []
    kept: list[Trigger] = []
    for at, one in enumerate(wanted):
        old = same.get(at)
        if old is None:
            id = new_id()
            begun.append(Trigger(id, workflow.id, workflow.owner_id, one.spec, now, one.watches))
        elif old.spec != one.spec:
            kept.append(evolve(old, spec=one.spec))
    return TriggerChange(tuple(begun), tuple(kept), tuple(left.values()))


def _matched(
    wanted: Mapping[int, DefinedTrigger], left: dict[str, Trigger], *, exactly: bool
) -> dict[int, Trigger]:
    """
    The stored trigger of each wanted one, which is taken out of *left*. *exactly*: whether a chain
    must follow the same ends.
    """
    found: dict[int, Trigger] = {}
    for at, one in wanted.items():
        key = _identity(one.spec, one.watches, exactly)
        olds = (old for old in left.values() if _identity(old.spec, old.watches, exactly) == key)
        if old := next(olds, None):
            found[at] = left.pop(old.id)
    return found


def _identity(spec: TriggerSpec, watches: str | None, exactly: bool) -> tuple[str, ...]:
    if watches is None:
        return identity(spec)
    return (watches, *(sorted(spec.on) if exactly and isinstance(spec, Chain) else ()))


def needs_plan(spec: TriggerSpec, plan: Tier) -> bool:
    """
    Whether the trigger is beyond *plan*. Schedules need the plan PRO or above; chains do not. SH-7.
    """
    return isinstance(spec, Schedule) and plan is Tier.FREE


def beyond_plan(definition: Definition, plan: Tier) -> Iterator[Problem]:
    """The triggers of *definition* that an account of *plan* cannot have. SH-7."""
    for at, spec in enumerate(definition.triggers):
        if needs_plan(spec, plan):
            yield Problem(below("triggers", at), "schedules need the plan PRO or above")


def refusal(trigger: Trigger, timer: Timer, owner: Account | None, sees: bool) -> Refusal | None:
    """
    The reason why *trigger* starts nothing although *timer* is due; None if it may start.

    *sees*: whether the trigger's owner can still see the workflow that the trigger waits for. SH-7,
    CH-3 to CH-5.
    """
    if blocked := blocked_by(trigger.spec, owner):
        return blocked
    if trigger.pause is not None:
        return Refusal.PAUSED
    if exhausted(trigger):
        return Refusal.MAX_RUNS
    if timer.depth > MAX_DEPTH:
        return Refusal.CHAIN_TOO_DEEP
    return None if sees else Refusal.ACCESS_LOST


def blocked_by(spec: TriggerSpec, owner: Account | None) -> Refusal | None:
    """The condition of a trigger's owner that keeps the trigger from starting anything."""
    if owner is None or owner.status is not AccountStatus.ACTIVE:
        return Refusal.ACCOUNT_BLOCKED
    return Refusal.PLAN_LIMIT if needs_plan(spec, owner.plan) else None


def standing(
    trigger: Trigger, owner: Account | None, watched: bool, next_at: EpochMs | None
) -> TriggerStanding:
    """
    The present state of *trigger*. *watched*: whether the workflow that *trigger* waits for exists
    and is visible to the trigger's owner.
    """
    if blocked := blocked_by(trigger.spec, owner):
        return TriggerStanding(TriggerState.BLOCKED, SAYS[blocked], next_at)
    if trigger.pause is not None:
        return TriggerStanding(TriggerState.PAUSED, why_paused(trigger.pause), next_at)
    if exhausted(trigger):
        return TriggerStanding(TriggerState.EXHAUSTED, SAYS[Refusal.MAX_RUNS], next_at)
    if isinstance(trigger.spec, Chain) and not watched:
        why = phrase(
            "The workflow '{workflow}' is not there, or not visible any more",
            workflow=trigger.spec.workflow,
        )
        return TriggerStanding(TriggerState.BLOCKED, why, next_at)
    if isinstance(trigger.spec, Schedule) and next_at is None:
        return TriggerStanding(TriggerState.EXHAUSTED, phrase("The schedule names no further time"))
    return TriggerStanding(TriggerState.ACTIVE, None, next_at)


SAYS: Mapping[str, str] = {
    Refusal.PAUSED: phrase("It is paused"),
    Refusal.MAX_RUNS: phrase("It has started as often as `maxRuns` allows"),
    Refusal.CHAIN_TOO_DEEP: phrase(
        "The chain of workflows would be deeper than {most}", most=MAX_DEPTH
    ),
    Refusal.PLAN_LIMIT: phrase("Schedules need the plan PRO or above"),
    Refusal.ACCOUNT_BLOCKED: phrase("The account of its owner is disabled or locked"),
    Refusal.ACCESS_LOST: phrase("Its owner cannot see the workflow any more that it waits for"),
    Refusal.LIMIT_REACHED: phrase("As many executions as `concurrency` allows had not ended"),
    Refusal.INVALID_INPUT: phrase("Its inputs do not make a valid start"),
    Refusal.UNREADABLE: phrase("The server does not know the expression or the time zone"),
    Refusal.MISSED: phrase("It was due while no server ran, and missed starts are skipped"),
}
"""The text for people of each refusal."""


def pause_of(triggers: Iterable[Trigger]) -> Pause | None:
    """
    The pause of a workflow by the pauses of its *triggers*, the latest of them; None if a trigger
    may start the workflow, or if it has no trigger. SH-10.
    """
    pauses = [one.pause for one in triggers]
    if not pauses or None in pauses:
        return None
    return max((one for one in pauses if one), key=lambda one: one.at)


def why_paused(pause: Pause) -> str:
    """The reason of a pause: the failures that caused it, or the words of the person."""
    if pause.failures == 1:
        return phrase("Its last start failed")
    if pause.failures:
        return phrase("Its last {failures} starts in a row failed", failures=pause.failures)
    return pause.why or SAYS[Refusal.PAUSED]


def ran(trigger: Trigger, now: EpochMs) -> Trigger:
    """The trigger after one more start. CH-3."""
    return evolve(trigger, runs=trigger.runs + 1, last_run_at=now)


def ended(trigger: Trigger, run: Execution) -> Trigger:
    """
    The trigger after the end of an execution that it started. Only FAILED counts as a failure; a
    cancelled execution leaves the number unchanged. SH-10.
    """
    failures = {S.COMPLETED: 0, S.FAILED: trigger.failures + 1}.get(run.status, trigger.failures)
    return evolve(trigger, last_result=run.status, last_execution_id=run.id, failures=failures)


def paused_by_failures(trigger: Trigger, now: EpochMs) -> Trigger | None:
    """The trigger, paused because of its failures; None if they are too few. SH-10."""
    most = trigger.spec.pause_after if isinstance(trigger.spec, Schedule) else None
    if most is None or trigger.failures < most or trigger.pause is not None:
        return None
    return evolve(trigger, pause=Pause(now, failures=trigger.failures))


def resumed(trigger: Trigger) -> Trigger:
    """The trigger after a resumption: its failures count from now on. SH-10."""
    return evolve(trigger, pause=None, failures=0)


def refused(trigger: Trigger, why: Refusal, now: EpochMs, detail: str | None = None) -> Trigger:
    """
    The trigger after it was due and started nothing. Only wrong inputs count as a failure.
    *detail*: the mistake in the inputs. SH-10, SH-12.
    """
    failures = trigger.failures + (why is Refusal.INVALID_INPUT)
    return evolve(trigger, refusal=why, refused_at=now, refusal_detail=detail, failures=failures)


def why_refused(why: Refusal, detail: str | None) -> str:
    """The reason in words, with the mistake in the inputs."""
    return SAYS[why] if detail is None else f"{SAYS[why]}: {detail}"


_STANDING = frozenset({Refusal.PLAN_LIMIT, Refusal.ACCOUNT_BLOCKED, Refusal.UNREADABLE})


def is_news(trigger: Trigger, why: Refusal) -> bool:
    """
    Whether this refusal belongs in the audit log. A lasting reason is recorded once, and again only
    after the trigger has started something. A pause is recorded when it begins, and not here.
    """
    since = trigger.last_run_at or 0
    if why is Refusal.PAUSED:
        return False
    told = trigger.refusal is why and (trigger.refused_at or 0) >= since
    return not (told and why in _STANDING)
