"""
What must hold after chaos, of what is stored, what clients were told, and what steps wrote down.

Pure: three records of what happened go in, what is wrong comes out, in words that begin with the
kind of the violation. Most laws are those of the simulator; here is what only a run of real
processes can break.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from attrs import field, frozen

from tests.proofs.kills.flows import Ledger as Lines
from wfcore.memory.tables import APPROVALS, EVENTS, EXECUTIONS, LIMITS
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.testing.simulator import Violation
from wfcore.testing.simulator.expectations import Expectations
from wfcore.testing.simulator.final_checks import unfinished
from wfcore.testing.simulator.final_checks import wrong as verdict
from wfcore.testing.simulator.invariants import Invariants, Tables
from wfcore.testing.simulator.runner import StartedAttempts


class Page(Enum):
    """
    What happened to a live page that is open all the time: TOLD a mark of what is stored, something
    went wrong around it (FAULT) and was over, or nothing moved any more (REST) at some mark.
    """

    TOLD, FAULT, REST = range(3)


Pages = Mapping[str, Sequence[tuple[Page, str]]]
"""What happened to each live page, by its node: with a mark, or what went wrong."""


@frozen
class Seen:
    """
    `tables`: what is stored. `promises`: what clients were told; `admitted` of it: what the
    service counted of each key and minute. `counted`: how many requests of each key were answered
    as admitted. `lines`: what steps wrote, in that order. `unharmed`: executions during which no
    worker was killed, stopped or cut off. `pages`: live pages that were open all the time.
    """

    tables: Tables
    promises: Expectations
    lines: Lines
    counted: Mapping[str, int] = field(factory=dict)
    unharmed: frozenset[str] = frozenset()
    pages: Pages = field(factory=dict)


def wrong(seen: Seen) -> Iterator[str]:
    """Everything that breaks a promise."""
    ledger, twice = _ledger(seen.lines)
    yield from twice
    yield from _judged(seen.tables)
    yield from verdict(seen.tables, seen.promises, ledger)
    yield from _groups(seen.tables, seen.lines)
    yield from _uncounted(seen)
    yield from _interrupted(seen)
    yield from silent(seen.pages)


def unsettled(tables: Tables) -> list[str]:
    """What has not come to its end or its rest, in words."""
    return list(unfinished(tables, StartedAttempts()))


def silent(pages: Pages) -> Iterator[str]:
    """
    After whatever went wrong each live page was told of a change, and at rest it knew what was
    stored.
    """
    for node, happened in pages.items():
        known = fault = ""
        for what, about in happened:
            if what is Page.TOLD:
                known, fault = about, ""
                continue
            if fault:
                yield f"live page silent: {node} after {fault}"
            fault = about if what is Page.FAULT else ""
            if what is Page.REST and about != known:
                yield f"live page behind: {node}"
        if fault:
            yield f"live page silent: {node} after {fault}"


def _ledger(lines: Lines) -> tuple[StartedAttempts, list[str]]:
    """What steps wrote, as the simulator's ledger; and what was begun twice."""
    ledger, twice = StartedAttempts(), []
    for attempt, times in lines.begun.items():
        for _ in range(times):
            try:
                ledger.start((attempt.execution_id, attempt.step, attempt.number))
            except Violation as found:
                twice.append(str(found))
    return ledger, twice


class _Afterwards:
    """What the judge may ask when all is over: nobody acts, and nothing was taken from anybody."""

    turn = 0

    def lost(self, worker: str) -> bool:
        return False

    def acts(self, worker: str) -> bool:
        return False

    def lives(self, worker: str) -> bool:
        return False

    def lease_time(self) -> int:
        return 0


def _judged(tables: Tables) -> Iterator[str]:
    """
    Every record by itself, as if all had been stored at once: events without gaps, each change of
    status by a row of the machine, enough approvals, nothing forgotten.
    """
    for kind in (EXECUTIONS.name, APPROVALS.name):
        for id, record in tables[kind].items():
            before: defaultdict[str, dict[Any, Any]] = defaultdict(dict, dict(tables))
            before[kind] = {other: one for other, one in tables[kind].items() if other != id}
            judge = Invariants(1 << 30, _Afterwards())
            try:
                judge(before, {kind: {id: record}})
            except Violation as found:
                yield str(found)


def _groups(tables: Tables, lines: Lines) -> Iterator[str]:
    """
    Of a group, no more executions were at work at one moment than its limit allows. CC-1.

    From its first line to its last one an execution that was COMPLETED without an interruption has
    held its slot.
    """
    spans = _spans(tables, lines)
    for group, members in spans.items():
        workflow_id = group[0]
        most = tables[LIMITS.name].get(workflow_id)
        starts, ends = zip(*members, strict=True)
        moments = sorted([*((at, 1) for at in starts), *((at, -1) for at in ends)])
        inside = peak = 0
        for _, step in moments:
            inside += step
            peak = max(peak, inside)
        if most is not None and peak > most:
            yield f"group too full: {group[1]} {peak} of {most}"


def _spans(tables: Tables, lines: Lines) -> Mapping[tuple[str, str], list[tuple[int, int]]]:
    """By workflow and group: the places in the ledger between which each execution was at work."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(lines.lines):
        places[line.attempt.execution_id].append(place)
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for id, at in places.items():
        run: Execution | None = tables[EXECUTIONS.name].get(id)
        if run is None or run.concurrency_group is None or len(at) < 2:
            continue
        if run.status is ExecutionStatus.COMPLETED and not _was_interrupted(tables, id):
            found[run.workflow_id, run.concurrency_group].append((at[0], at[-1]))
    return found


def _was_interrupted(tables: Tables, id: str) -> bool:
    log: tuple[Event, ...] = tables[EVENTS.name].get(id, ())
    return any(event.kind is EventKind.EXECUTION_INTERRUPTED for event in log)


def _uncounted(seen: Seen) -> Iterator[str]:
    """Every request that was answered as admitted is in the counts. RL-4."""
    stored: Counter[str] = Counter()
    for (subject, _), count in seen.promises.admitted.items():
        stored[subject] += count
    for subject, count in seen.counted.items():
        if count > stored[subject]:
            yield f"quota overrun: {count} were admitted for {subject}, {stored[subject]} counted"


def _interrupted(seen: Seen) -> Iterator[str]:
    """Nothing is INTERRUPTED while all workers live, whatever their clocks show. EX-11."""
    for id in sorted(seen.unharmed):
        if _was_interrupted(seen.tables, id):
            yield f"interrupted for nothing: {id}"
