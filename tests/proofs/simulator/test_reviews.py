"""Reviews of people in a storm: an answer that is lost between deciding and telling so."""

import pytest

from wfcore.testing.simulator import Act, FaultKind, InjectedFault, WorldScenario, play

FLOW = {
    "name": "flow 0",
    "variables": {"tag": {"type": "string"}},
    "steps": [
        {
            "name": "ask",
            "kind": "manual_approval",
            "timeout": 60_000,
            "approvers": ["acc_bob@example.org"],
            "notify": ["mail"],
        }
    ],
}
ACTS = (
    Act(0, "start", 0, {"tag": "t", "flow": 0}, 0),
    Act(2_000, "review", 0, {"which": 0, "by": 0, "how": "approve", "link": True}, 1),
    Act(9_000, "review", 0, {"which": 0, "by": 0, "how": "reject"}, 2),
)


@pytest.mark.parametrize(
    "kind", [FaultKind.CRASH, FaultKind.CRASH_AFTER, FaultKind.LOSE, FaultKind.POWER_CUT]
)
def test_a_page_tells_the_truth_after_a_crash(kind: FaultKind) -> None:
    """
    Wherever the process dies between POST and answer: when the page is loaded again it says what
    became of it, and that stands; it is decided once, or still open.
    """
    shown = set[str]()
    for call in range(1, 12):
        site = f"n1.1/review1.3#{call}"
        scenario = WorldScenario(
            1, flows=(FLOW,), acts=ACTS, faults={site: InjectedFault(kind, 2_000)}
        )
        played = play(scenario, traced=True)
        assert played.broken is None, played.broken
        assert len(played.expectations.decided) <= 1
        shown |= {line.split(": ", 1)[1] for line in played.trace if "is shown as" in line}
    before = kind in (FaultKind.CRASH, FaultKind.POWER_CUT)
    assert shown == {f"appr_001 is shown as {'PENDING' if before else 'APPROVED'}"}
