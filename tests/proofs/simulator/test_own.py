"""What users bring into simulated worlds, and how a broken promise is told."""

import re
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from wfcore.memory import MemoryStore
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import Workflow
from wfcore.testing import simulator
from wfcore.testing.simulator import (
    Tables,
    law_of,
    play,
    shrink_scenario,
    simulate,
    summarize_trace,
    violation_kind,
)
from wfcore.testing.simulator.catalogue import LAWS

from . import planted

ROOT = Path(__file__).parents[3]
SEEDS = range(1, 61)


def test_a_watcher_sees_every_change() -> None:
    """It is given everything stored as it will be: what was there stays, what changes is new."""
    seen: list[tuple[int, int]] = []

    def watch(tables: Tables) -> None:
        seen.append((len(tables[Execution]), len(tables[Workflow])))

    (summary,) = [simulate(SEEDS[:3], watch=watch)]
    assert not summary.failures
    assert len(seen) > 3 * 10
    assert max(seen) > (0, 0)
    assert {workflows for _, workflows in seen if workflows} != set()


def never_two_failures(tables: Tables) -> None:
    """An invariant that the service does not promise: worlds break it soon."""
    failed = [one.id for one in tables[Execution].values() if one.status is ExecutionStatus.FAILED]
    assert len(failed) < 2, f"{failed[0]} and {failed[1]} have failed"


def test_an_invariant_of_ones_own_is_found_broken_and_made_small() -> None:
    """A failing `assert` is a broken promise: with its name, its words, and a small world."""
    (failure,) = simulate(SEEDS, watch=never_two_failures).failures
    assert failure.broken.startswith("invariant: never_two_failures: exec_")
    small = shrink_scenario(failure.scenario, failure.broken, 60, watch=never_two_failures)
    assert len(small.acts) < len(failure.scenario.acts)
    played = play(small, traced=True, watch=never_two_failures)
    assert violation_kind(played.broken) == "invariant"
    assert play(small).broken is None


def test_a_store_of_ones_own_is_judged() -> None:
    """Worlds run on whatever store passes their gate; a bug of it is found, ours has none."""
    made: list[set[str]] = []

    def honest(gate: Any, disk: Any, *, now: Any, ended: set[str]) -> MemoryStore:
        made.append(ended)
        return MemoryStore(gate, disk, now=now, ended=ended)

    assert not simulate(SEEDS[:5], store=honest).failures
    assert len(made) > 5


def test_a_bug_of_an_own_store_is_found() -> None:
    """A store that gives an execution to two workers at once is found within few worlds."""

    class Generous(MemoryStore):
        """Whoever asks gets what another one holds."""

        def _claim(self, *given: Any, **named: Any) -> Any:
            held = self.disk.tables["execution"]
            before = dict(held)
            for id, run in before.items():
                if run.worker is not None and run.status is ExecutionStatus.RUNNING:
                    held[id] = evolve(run, worker=None, due_at=run.accepted_at)
            taken = super()._claim(*given, **named)
            for id in before.keys() - {one.id for one in taken}:
                held[id] = before[id]
            return taken

    (failure,) = simulate(range(1, 301), store=Generous).failures
    assert violation_kind(failure.broken) in LAWS


@pytest.mark.parametrize("kind", sorted(LAWS))
def test_a_promise_is_one_of_the_rules(kind: str) -> None:
    """Its sentence is that of the rule in docs/rules.md, word for word; but for one's own."""
    law = law_of(f"{kind}: whatever")
    rules = (ROOT / "docs" / "rules.md").read_text()
    assert kind == "invariant" or f"| {law.id} | {law.sentence} |" in rules


def test_every_violation_has_its_promise() -> None:
    """Each kind that the simulator's judges can say is in the table, and no other."""
    folder = Path(simulator.__file__).parent
    said_to_people = ("command.py", "trace_summary.py")
    judges = (path for path in folder.glob("*.py") if path.name not in said_to_people)
    text = "".join(path.read_text() for path in judges)
    required = r'require\((?:[^()]|\([^()]*\))*?, "([a-z ]+)",'
    said = {
        *re.findall(required, text),
        *re.findall(r'(?:yield|Violation\()\s*f?"([a-z ]+):', text),
    }
    assert said == set(LAWS) - {"defect"} | ({"defect"} & said)


def test_a_trace_is_told_in_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats are counted, lines about others too; the promise with its rule comes last."""
    planted.requeued_after_death(monkeypatch)
    (failure,) = simulate(range(1, 501)).failures
    played = play(shrink_scenario(failure.scenario, failure.broken), traced=True)
    lines = summarize_trace(played.trace, played.broken)
    assert len(lines) < len(played.trace)
    assert any(re.search(r"claim n1\.\d+ \(\d+ times\)", line) for line in lines)
    assert "broken: started twice" in lines[-2]
    assert lines[-1].lstrip().startswith("the promise: EX-3: The beginning of a step is recorded")


def test_what_concerns_others_is_counted() -> None:
    """Of a long trace only what the violation names, faults, and counts are left."""
    trace = [
        "        1  start1: accepted exec_001 for t1",
        "        2  start2: accepted exec_002 for t2",
        "        3  n1.1/t2:1: commit execution exec_002 v2 RUNNING",
        *(f"{at:>9}  n1.1/claims: claim n1.1" for at in range(4, 8)),
        "        8  n1.1/t1:1: commit execution exec_001 v2 RUNNING",
        "        9  n1.1/heart#3: extend meets: crash 50 ms",
        "       10  broken: fence: exec_001 stays 1",
    ]
    assert summarize_trace(trace, "fence: exec_001 stays 1") == [
        "        1  start1: accepted exec_001 for t1",
        "        4  n1.1/claims: claim n1.1 (4 times), (2 lines about others)",
        "        8  n1.1/t1:1: commit execution exec_001 v2 RUNNING",
        "        9  n1.1/heart#3: extend meets: crash 50 ms",
        "       10  broken: fence: exec_001 stays 1",
        f"           the promise: {LAWS['fence']}",
    ]
