"""Exhaustive exploration: small worlds keep every promise in every state, and planted bugs show."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve

from wfcore.memory import MemoryStore
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.testing.simulator import Tables, violation_kind
from wfcore.testing.simulator.command import main
from wfcore.testing.simulator.exploration import SCOPES, explore, replay_path

from . import planted, planted_requests, planted_starts

QUICK = ("once", "start")
ALL = bool(os.environ.get("SCOPES"))
"""`make scopes` explores every scope."""
Plant = Callable[[pytest.MonkeyPatch], None]
SHORT = 30
"""The most moves of a path: the shrunk worlds of the same bugs have traces of more lines."""

PLANTS: tuple[tuple[Plant, str, set[str]], ...] = (
    (planted.fence_unchecked, "frozen", {"started twice", "late result"}),
    (planted.claim_in_two_steps, "lost", {"lost update"}),
    (planted.requeued_after_death, "steps", {"started twice"}),
    (planted.resumed_for_everybody, "once", {"began again"}),
    (planted.recovery_is_forgotten, "once", {"no end"}),
    (planted.begun_is_not_recorded, "once", {"not recorded"}),
    (planted.end_recorded_again, "lost", {"result changed", "late result", "defect"}),
    (planted.beginning_forgotten, "lost", {"interrupted for nothing", "no end"}),
    (planted_requests.second_decision_acknowledged, "approval", {"decided twice"}),
    (planted_requests.approvals_outlive, "cancel", {"asks after the end"}),
    (planted_requests.events_get_lost, "cancel", {"events"}),
    (planted_requests.key_in_a_unit_of_its_own, "start", {"started twice", "another answer"}),
    (planted_requests.key_read_twice, "start", {"started twice", "another answer"}),
    (planted_starts.groups_are_ignored, "group", {"group too full"}),
)


@pytest.mark.parametrize("name", SCOPES if ALL else QUICK)
def test_every_state_of_a_scope_keeps_every_promise(name: str) -> None:
    """All states are visited, some are at rest, and from each a state at rest can be reached."""
    found = explore(SCOPES[name])
    assert (found.broken, found.path) == (None, ())
    assert found.complete
    assert found.ends > 0
    assert found.states > 50


@pytest.mark.parametrize(
    ("plant", "scope", "found_as"), PLANTS, ids=[plant.__name__ for plant, _, _ in PLANTS]
)
def test_a_planted_bug_is_found_by_a_short_path(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, scope: str, found_as: set[str]
) -> None:
    """The scope finds the bug, the path is short, and the same path shows the violation again."""
    plant(monkeypatch)
    found = explore(SCOPES[scope])
    assert violation_kind(found.broken) in found_as, found
    assert len(found.path) <= SHORT
    again = replay_path(SCOPES[scope], found.path, found.constants)
    assert again.broken == found.broken
    assert again.trace[-1].endswith(f"broken: {found.broken}")
    monkeypatch.undo()
    with suppress(ValueError):  # without the bug the path may not exist
        calm = replay_path(SCOPES[scope], found.path, found.constants)
        assert calm.broken is None


def test_the_reduction_changes_no_verdict() -> None:
    """Without the reduction there are more states, and the same promises hold."""
    scope = evolve(SCOPES["once"], faults={})
    reduced, whole = explore(scope), explore(scope, reduced=False)
    assert (reduced.broken, whole.broken) == (None, None)
    assert reduced.complete
    assert whole.complete
    assert reduced.states < whole.states
    assert reduced.ends == whole.ends


def test_the_reduction_hides_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug between two reads is found with the reduction and without."""
    planted_requests.key_read_twice(monkeypatch)
    kinds = {
        violation_kind(explore(SCOPES["start"], reduced=reduced).broken)
        for reduced in (True, False)
    }
    assert kinds <= {"started twice", "another answer"}


def test_an_invariant_of_ones_own_is_explored() -> None:
    """A failing `assert` is a violation with a shortest path."""

    def never_interrupted(tables: Tables) -> None:
        for run in tables[Execution].values():
            assert run.status is not ExecutionStatus.INTERRUPTED, run.id

    found = explore(SCOPES["once"], watch=never_interrupted)
    assert (found.broken or "").startswith("invariant: never_interrupted: exec_001")
    assert any(label.endswith(" dies") for label in found.path)


def test_a_store_of_ones_own_is_explored() -> None:
    """A store whose claim keeps nothing is found: nobody ever holds the execution."""

    class Forgetful(MemoryStore):
        """A claim that is answered and not stored."""

        def _claim(self, *given: Any, **named: Any) -> Any:
            before = dict(self.disk.tables["execution"])
            taken = super()._claim(*given, **named)
            cast("dict[Any, Any]", self.disk.tables["execution"]).update(before)
            return taken

    found = explore(SCOPES["once"], store=Forgetful)
    assert violation_kind(found.broken) == "no end"
    assert len(found.path) <= SHORT


def test_a_lost_continuation_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody goes on with is found over the whole graph, although nothing false is stored."""
    planted.recovery_is_forgotten(monkeypatch)
    found = explore(SCOPES["once"])
    assert violation_kind(found.broken) == "no end"
    assert found.path[-1].endswith(" dies")


def test_a_kept_path_is_played_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--exhaustive --keep` writes the path; `--replay` shows the same violation."""
    with monkeypatch.context() as patch:
        planted.resumed_for_everybody(patch)
        assert main(["--exhaustive", "once", "--keep", str(tmp_path)]) == 1
        file = tmp_path / "scope-once.json"
        assert f"again: wfcore simulate --replay {file}" in capsys.readouterr().out
        assert main(["--replay", str(file), "--json"]) == 1
        said = json.loads(capsys.readouterr().out)
        assert said["scope"] == "once"
        assert said["promise"]["id"] == "EX-14"


def test_scopes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """`--exhaustive` alone names each scope; an unknown scope is refused with the names."""
    assert main(["--exhaustive"]) == 0
    said = capsys.readouterr().out
    assert all(f"{one.name} " in said and one.about in said for one in SCOPES.values())
    assert main(["--exhaustive", "nothing"]) == 1
    assert "steps" in capsys.readouterr().err
