"""The checker of chaos runs finds what only a run of real processes can break, and nothing else."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.proofs.kills.flows import Ledger
from wfcore.memory import tables as names
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.testing import builders as make
from wfcore.testing.simulator import violation_kind
from wfcore.testing.simulator.expectations import Expectations
from wfcore.time import EpochMs

from .checker import Page, Seen, unsettled, wrong

NOW = EpochMs(1_000)
WHOLE = (
    EventKind.EXECUTION_PENDING,
    EventKind.EXECUTION_RUNNING,
    EventKind.STEP_STARTED,
    EventKind.STEP_COMPLETED,
    EventKind.EXECUTION_COMPLETED,
)


def execution(id: str, **changes: Any) -> Execution:
    """A finished one of the group `g`, started under its own id as a tag."""
    about = {
        "id": id,
        "variables": {"tag": id},
        "status": ExecutionStatus.COMPLETED,
        "due_at": None,
        "concurrency_group": "g",
        "step_results": {"first": StepResult(StepStatus.COMPLETED, 1, NOW, NOW)},
        "events": len(WHOLE),
        "fence": 1,
    }
    return make.execution(**{**about, **changes})


def log(id: str, *kinds: EventKind, first: int = 1) -> tuple[Event, ...]:
    data = {"step": "first", "attempt": 1}
    return tuple(Event(id, number, NOW, kind, data) for number, kind in enumerate(kinds, first))


def seen(folder: Path, *lines: str) -> Seen:
    """Three good executions; *lines* are what their steps wrote: a moment and a number."""
    ledger = folder / "ledger"
    words = (line.split() for line in lines)
    ledger.write_text("".join(f"{moment} e{n} first 1 e{n}\n" for moment, n in words))
    tables: dict[str, dict[Any, Any]] = defaultdict(dict)
    for id in ("e1", "e2", "e3"):
        tables[names.EXECUTIONS.name][id] = execution(id)
        tables[names.EVENTS.name][id] = log(id, *WHOLE)
    definition = make.definition(make.code_step("first"))
    tables[names.DEFINITIONS.name]["wf_1", 1] = make.snapshot(definition=definition)
    tables[names.WORKFLOWS.name]["wf_1"] = make.workflow("wf_1", revision=1)
    tables[names.LIMITS.name]["wf_1"] = 2
    promises = Expectations(started={id: id for id in ("e1", "e2", "e3")})
    return Seen(tables, promises, Ledger(ledger), {"key": 3}, frozenset({"e1"}))


GOOD = ("begun 1", "begun 2", "ended 1", "begun 3", "ended 2", "ended 3")


def good(folder: Path) -> Seen:
    found = seen(folder, *GOOD)
    found.promises.admitted["key", 0] = 3
    told = (Page.TOLD, "a"), (Page.FAULT, "kills"), (Page.TOLD, "b"), (Page.REST, "b")
    return evolve(found, pages={"one": told, "two": told})


def kinds(found: Seen) -> set[str]:
    return {violation_kind(one) for one in wrong(found)}


def test_a_good_run_has_nothing_wrong(tmp_path: Path) -> None:
    """Each step once, two of a group at a time, every request counted."""
    assert list(wrong(good(tmp_path))) == []


def test_a_step_that_begins_twice_is_found(tmp_path: Path) -> None:
    """One attempt wrote two lines."""
    assert kinds(seen(tmp_path, *GOOD, "begun 1")) >= {"started twice"}


def test_a_group_that_is_too_full_is_found(tmp_path: Path) -> None:
    """Three were at work at one moment where two may be."""
    found = seen(tmp_path, "begun 1", "begun 2", "begun 3", "ended 1", "ended 2", "ended 3")
    assert kinds(found) >= {"group too full"}


@pytest.mark.parametrize(
    ("numbers", "found_as"),
    [(WHOLE[:-1], "events"), ((*WHOLE[:2], WHOLE[0], *WHOLE[2:4]), "no such move")],
)
def test_a_log_with_a_gap_or_a_step_back_is_found(
    tmp_path: Path, numbers: tuple[EventKind, ...], found_as: str
) -> None:
    """Events are numbered without gaps, and a status never goes back."""
    found = good(tmp_path)
    found.tables[names.EVENTS.name]["e1"] = log("e1", *numbers)
    assert kinds(found) >= {found_as}


def test_an_uncounted_request_is_found(tmp_path: Path) -> None:
    """More were answered as admitted than were counted."""
    found = good(tmp_path)
    found.promises.admitted["key", 0] = 2
    assert kinds(found) == {"quota overrun"}


def test_an_interruption_without_a_kill_is_found(tmp_path: Path) -> None:
    """Only where something was killed may an execution be interrupted."""
    found = good(tmp_path)
    again = (*WHOLE[:3], EventKind.EXECUTION_INTERRUPTED, EventKind.EXECUTION_FAILED)
    run = found.tables[names.EXECUTIONS.name]["e1"]
    failed = evolve(run, status=ExecutionStatus.FAILED)
    found.tables[names.EXECUTIONS.name]["e1"] = failed
    found.tables[names.EVENTS.name]["e1"] = log("e1", *again)
    assert kinds(found) == {"interrupted for nothing"}


def test_an_accepted_execution_that_is_gone_is_found(tmp_path: Path) -> None:
    """Every 202 stands."""
    found = good(tmp_path)
    del found.tables[names.EXECUTIONS.name]["e3"]
    assert kinds(found) >= {"unknown"}


def test_two_executions_of_one_key_are_found(tmp_path: Path) -> None:
    """A tag belongs to one idempotency key."""
    found = good(tmp_path)
    found.tables[names.EXECUTIONS.name]["e2"] = execution("e2", variables={"tag": "e1"})
    assert kinds(found) >= {"started twice"}


@pytest.mark.parametrize(
    ("happened", "found_as"),
    [
        (((Page.TOLD, "b"), (Page.FAULT, "kills"), (Page.REST, "b")), "live page silent"),
        (((Page.FAULT, "kills"), (Page.FAULT, "again"), (Page.TOLD, "b")), "live page silent"),
        (((Page.TOLD, "b"), (Page.FAULT, "kills")), "live page silent"),
        (((Page.FAULT, "kills"), (Page.TOLD, "a"), (Page.REST, "b")), "live page behind"),
    ],
)
def test_a_live_page_that_stands_still_is_found(
    tmp_path: Path, happened: tuple[tuple[Page, str], ...], found_as: str
) -> None:
    """A page of which nothing is heard after a fault, or that does not know the end of it."""
    found = good(tmp_path)
    assert kinds(evolve(found, pages={**found.pages, "two": happened})) == {found_as}


def test_what_still_has_to_happen_is_named(tmp_path: Path) -> None:
    """An execution that is due, or is held, has not come to rest."""
    found = good(tmp_path)
    assert unsettled(found.tables) == []
    found.tables[names.EXECUTIONS.name]["e2"] = make.execution("e2")
    assert len(unsettled(found.tables)) == 1
