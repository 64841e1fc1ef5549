"""
wfcore beside its neighbours: the same small task in each, and what an installation brings.

`python -m bench.peers` measures and writes `results.json`; `docs/comparison.md` shows it.
"""

from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PROGRAMS = HERE / "hello"


@frozen
class Peer:
    """
    One package. *requirement*: what is installed, None for this source tree. *needs*: what
    must run beside the program and is not measured here.
    """

    title: str
    distribution: str
    requirement: str | None
    program: str
    needs: str | None = None


PEERS: Mapping[str, Peer] = {
    "wfcore": Peer("wfcore", "wfcore", None, "with_wfcore.py"),
    "dbos": Peer("DBOS", "dbos", "dbos", "with_dbos.py"),
    "temporal": Peer(
        "Temporal's SDK", "temporalio", "temporalio", "with_temporal.py", "a Temporal server"
    ),
    "eventsourcing": Peer(
        "eventsourcing", "eventsourcing", "eventsourcing", "with_eventsourcing.py"
    ),
    "transitions": Peer("transitions", "transitions", "transitions", "with_transitions.py"),
    "statemachine": Peer(
        "python-statemachine",
        "python-statemachine",
        "python-statemachine",
        "with_statemachine.py",
    ),
}
