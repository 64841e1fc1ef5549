"""Whether chains and schedules start what they must, each thing once. As in `proof.checker`."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.proofs.kills.flows import MOST_FEW, Ledger
from tests.proofs.kills.machine import GRACE_MS
from tests.proofs.kills.often import PERIOD_S
from tests.proofs.kills.world import Sight, World
from wfcore.time import EpochMs

CHAINS = {"after": ("work", None), "few": ("once", MOST_FEW)}
"""Chain -> the flow that it follows, and how often it may in all."""
SCHEDULES = {"tick": 1, "skip": 0}
"""Schedule -> how many starts make up for all that was missed while no server ran. SH-4."""


def wrong(world: World, sight: Sight) -> Iterator[str]:
    """Everything that holds at any moment: nothing starts twice, or for nothing."""
    for name, (watched, most) in CHAINS.items():
        origins = _origins(name, world, sight)
        causes = Counter(str(one["completedExecutionId"]) for one in origins.values())
        for cause, times in causes.items():
            run = sight.executions.get(cause)
            if times > 1:
                yield f"chain twice: {name} {times} times behind {cause}"
            if run is None or (run.workflow_name, run.status) != (watched, "COMPLETED"):
                yield f"chain for nothing: {name} behind {cause}, which is {run and run.status}"
        if most is not None and len(origins) > most:
            yield f"chain too often: {name} {len(origins)} times"
        if (runs := sight.triggers[world.triggers[name]].runs) < len(origins):
            yield f"chain uncounted: {name} has {len(origins)} starts, on record are {runs}"
    for name in SCHEDULES:
        for instant, times in Counter(_instants(name, world, sight).values()).items():
            if times > 1:
                yield f"schedule twice: {name} {times} times for {instant}"
            if instant % (PERIOD_S * 1_000):
                yield f"schedule for nothing: {name} at {instant}"
        if len(sight.timers[world.triggers[name]]) != 1:
            yield f"schedule lost: {name} has timers {sight.timers[world.triggers[name]]}"


def without_inputs(sight: Sight, ledger: Ledger) -> Iterator[str]:
    """A start by a chain has the inputs of its trigger: what it follows."""
    for id, told in ledger.follows.items():
        cause = sight.origins[id]["completedExecutionId"] if id in sight.origins else None
        if told != cause:
            yield f"started without its inputs: {id} follows {cause}, and was told {told}"


def not_followed(world: World, sight: Sight) -> Iterator[str]:
    """At rest each completion has its chained start, as many as there may be. CH-1, CH-3."""
    for name, (watched, most) in CHAINS.items():
        completed = {
            run.id
            for run in sight.executions.values()
            if (run.workflow_name, run.status) == (watched, "COMPLETED")
        }
        origins = _origins(name, world, sight).values()
        followed = {str(one["completedExecutionId"]) for one in origins}
        expected = len(completed) if most is None else min(most, len(completed))
        if len(followed) < expected:
            yield f"chain lost: {name} is missing behind {completed - followed}"


def not_started(world: World, before: Sight, sight: Sight) -> Iterator[str]:
    """Where the server makes up for what was missed, no instant goes by without a start."""
    first, then = (_due_at("tick", world, one) for one in (before, sight))
    instants = _instants("tick", world, sight).values()
    if first < then and not any(first <= instant < then for instant in instants):
        yield f"schedule lost: nothing was started from {first} on, next is {then}"


def missed(world: World, served_at: EpochMs, sight: Sight) -> Iterator[str]:
    """
    What a server that was started at *served_at* has made of instants that were over by then:
    nothing, or one start for all of them. SH-3, SH-4.
    """
    for name, most in SCHEDULES.items():
        late = [
            instant
            for id, instant in _instants(name, world, sight).items()
            if sight.executions[id].accepted_at > served_at and instant < served_at - GRACE_MS
        ]
        if len(late) > most:
            yield f"schedule late: {name} was started at {served_at} for {late}"


def _due_at(name: str, world: World, sight: Sight) -> EpochMs:
    timers = sight.timers[world.triggers[name]]
    return timers[0].due_at if timers else EpochMs(0)


def _origins(name: str, world: World, sight: Sight) -> Mapping[str, Any]:
    """What the first events say of all executions that the flow's trigger has started."""
    trigger = world.triggers[name]
    return {id: one for id, one in sight.origins.items() if one["triggerId"] == trigger}


def _instants(name: str, world: World, sight: Sight) -> Mapping[str, EpochMs]:
    """Execution -> the instant that the schedule started it for."""
    return {id: one["scheduledFor"] for id, one in _origins(name, world, sight).items()}
