"""A world as data: its parts, the acts of clients, the faults, and the order of turns."""

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.testing.simulator.faults import FaultKind, InjectedFault, Site


@frozen
class Act:
    """
    An act of a client *at* a virtual instant, sent to node *node* first.

    `verb`: start, trigger, decide, review, delegate, cancel, redrive, look, wait, apply, hook,
    spend, stop.
    """

    at: int
    verb: str
    node: int = 0
    what: JsonObject = field(factory=dict)
    number: int = 0

    @property
    def label(self) -> str:
        """The name of the act in the trace. It stays the same when other acts are left out."""
        return f"{self.verb}{self.number}"


@frozen
class WorldScenario:
    """
    The complete description of a simulated world. The same scenario gives the same trace.

    `locks`: the store learns at once that a process died. `durable`: a commit is safe before it is
    answered. `storm`: the least time with faults. Faults occur until every act is over, too.
    `skews`: how far the clock of each node is ahead of the store's own clock, which never jumps. If
    `skews` is empty, all nodes share one clock, and the store uses the time of its process. `tick`:
    how long a call takes. `order`, `levels`: the order of tasks that are ready at the same time,
    see `scheduler.TurnOrder`. `faults`: the faults by site; empty before the first play. Times are
    in ms.
    """

    seed: int
    nodes: int = 1
    locks: bool = True
    durable: bool = True
    storm: int = 5_000
    tick: int = 1
    order: int = 0
    levels: int = 2
    flows: tuple[JsonObject, ...] = ()
    acts: tuple[Act, ...] = ()
    faults: Mapping[Site, InjectedFault] = field(factory=dict)
    skews: tuple[int, ...] = ()

    def to_json(self) -> str:
        """The scenario as a JSON document."""
        document = {
            "seed": self.seed,
            "nodes": self.nodes,
            "skews": self.skews,
            "locks": self.locks,
            "durable": self.durable,
            "storm": self.storm,
            "tick": self.tick,
            "order": self.order,
            "levels": self.levels,
            "flows": self.flows,
            "acts": [[a.at, a.verb, a.node, a.what, a.number] for a in self.acts],
            "faults": {site: [one.kind.value, one.amount] for site, one in self.faults.items()},
        }
        return json.dumps(document, indent=1, sort_keys=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "WorldScenario":
        """The scenario that `to_json` wrote. Raises `ValueError`, `KeyError` or `TypeError`."""
        document: dict[str, Any] = json.loads(text)
        document["flows"] = tuple(document["flows"])
        document["acts"] = tuple(Act(*act) for act in document["acts"])
        document["skews"] = tuple(document.get("skews", ()))
        faults: Mapping[str, Any] = document["faults"]
        document["faults"] = {
            site: InjectedFault(FaultKind(kind), amount) for site, (kind, amount) in faults.items()
        }
        return cls(**document)
