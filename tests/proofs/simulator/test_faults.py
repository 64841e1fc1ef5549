"""Each fault does what it is called, alone in a world, where it can be seen."""

import pytest
from attrs import evolve

from wfcore.testing.simulator import Act, FaultKind, InjectedFault, WorldResult, WorldScenario, play

STEP = {"name": "a", "kind": "code", "language": "bash", "source": "ok 500"}
FLOW = {"name": "one", "variables": {"tag": {"type": "string"}}, "steps": [STEP]}
START = Act(0, "start", 0, {"tag": "mine", "flow": 0, "keyed": True})
CALM = WorldScenario(seed=0, flows=(FLOW,), acts=(START,))


def with_fault(
    site: str, kind: FaultKind, amount: int = 0, scenario: WorldScenario = CALM
) -> WorldResult:
    played = play(evolve(scenario, faults={site: InjectedFault(kind, amount)}), traced=True)
    assert any(site in line for line in played.trace), "the fault met nobody"
    return played


def the_commit(scenario: WorldScenario = CALM) -> str:
    """The site at which the only start is committed."""
    for number in range(1, 20):
        site = f"n1.1/start0.1#{number}"
        played = play(
            evolve(scenario, faults={site: InjectedFault(FaultKind.DELAY, 1)}), traced=True
        )
        if said(played, f"{site}: commit"):
            return site
    raise AssertionError("no commit")


def said(played: WorldResult, words: str) -> list[str]:
    return [line for line in played.trace if words in line]


def test_a_calm_world_does_what_it_was_asked() -> None:
    """One start, one step, one end, and no fault."""
    played = play(CALM, traced=True)
    assert (played.broken, played.executions) == (None, 1)
    assert len(said(played, "start step")) == 1
    assert said(played, "COMPLETED")


def test_a_call_that_fails_did_nothing() -> None:
    """The client asks again, and that is the first that is stored."""
    played = with_fault(the_commit(), FaultKind.FAIL)
    assert said(played, "not answered: the store refused")
    (stored,) = said(played, "v1 PENDING")
    assert "start0.2" in stored
    assert played.executions == 1


def test_a_lost_answer_was_done() -> None:
    """The client hears an error and asks again; its key finds what was stored."""
    played = with_fault(the_commit(), FaultKind.LOSE)
    assert said(played, "not answered: the answer was lost")
    assert said(played, "accepted exec_001 for mine")
    assert (played.executions, played.broken) == (1, None)


@pytest.mark.parametrize(("kind", "stored"), [(FaultKind.CRASH, 0), (FaultKind.CRASH_AFTER, 1)])
def test_a_crash_comes_before_or_after(kind: FaultKind, stored: int) -> None:
    """The process is gone with the request; what it had stored is there."""
    scenario = evolve(CALM, acts=(evolve(START, what={"tag": "mine", "flow": 0}),))
    played = with_fault(the_commit(scenario), kind, 2_000, scenario)
    assert said(played, "n1.1: down")
    assert said(played, "n1: starts")
    assert played.expectations.unheard == 1
    assert played.executions == stored


@pytest.mark.parametrize("durable", [True, False])
def test_a_power_cut_takes_what_was_not_synced(durable: bool) -> None:
    """Durable commits survive it; others are lost, and the judge says so."""
    cut = {"n1.1/mine:1/a.1#1": InjectedFault(FaultKind.POWER_CUT, 100)}
    played = play(evolve(CALM, durable=durable, faults=cut))
    if durable:
        assert played.broken is None
    else:
        assert played.broken is not None
        assert played.broken.partition(":")[0] in {"unknown", "ghost", "not recorded"}


def test_a_delay_is_virtual() -> None:
    """A start that is held up for hours takes no longer than any other."""
    played = with_fault(the_commit(), FaultKind.DELAY, 3_600_000)
    assert played.virtual_ms >= 3_600_000
    assert played.broken is None


def test_while_the_store_is_down_nobody_is_answered() -> None:
    """The client tries until it is there again."""
    played = with_fault("n1.1/start0.1#1", FaultKind.STORE_DOWN, 1_500)
    assert len(said(played, "not answered: the store is down")) >= 2
    assert said(played, "accepted exec_")


def test_a_read_only_store_can_be_read() -> None:
    """Reads go on, writes are refused until it can be written."""
    played = with_fault("n1.1/start0.1#1", FaultKind.READ_ONLY, 600)
    assert len(said(played, "not answered: the store is down")) == 1
    assert said(played, "accepted exec_")


def test_a_frozen_process_loses_what_it_holds() -> None:
    """Frozen for longer than a lease: another node takes over, and the old one is refused."""
    scenario = evolve(CALM, nodes=2, locks=True)
    calm = play(scenario, traced=True)
    worker = said(calm, "start step")[0].split()[1].partition("/")[0]
    played = with_fault(f"{worker}/mine:1/a.1#1", FaultKind.FREEZE, 16_000, scenario)
    assert said(played, "INTERRUPTED")
    assert said(played, "FAILED")
    assert played.broken is None


def test_a_clock_that_jumps_forward_ends_leases_and_nothing_else() -> None:
    """What was accepted still ends, and nothing starts twice."""
    played = with_fault("n1.1/mine:1/a.1#3", FaultKind.CLOCK_JUMP, 400_000)
    assert played.broken is None
    assert len(said(played, "start step")) == 1


@pytest.mark.parametrize("kind", [FaultKind.HINT_LOST, FaultKind.HINT_TWICE])
def test_hints_are_only_hints(kind: FaultKind) -> None:
    """A start whose wake-up got lost, or came twice, is begun once all the same."""
    played = play(evolve(CALM, faults={"n1.1/hints#1": InjectedFault(kind)}), traced=True)
    assert said(played, f"{kind}: runner")
    assert len(said(played, "start step")) == 1
    assert played.broken is None
