"""A world as data: what there is, who does what when, what goes wrong, who runs next."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.testing.simulator.chance import Fault, Kind, Site


@frozen
class Act:
    """
    Something that somebody outside does *at* a virtual instant, first at node *node*.

    `verb`: start, trigger, decide, cancel, redrive, look, wait, apply, hook, spend, stop.
    """

    at: int
    verb: str
    node: int = 0
    what: JsonObject = field(factory=dict)


@frozen
class Recipe:
    """
    Everything that a simulated world is made of; the same recipe gives the same trace.

    `locks`: the store learns at once that a process died. `durable`: a commit is safe before
    it is answered. `tick`: how long a call takes, in ms. `turns` and `faults` are what chance
    decided (see `chance`); of a world that was never played they are None and empty.
    """

    seed: int
    nodes: int = 1
    locks: bool = True
    durable: bool = True
    tick: int = 1
    flows: tuple[JsonObject, ...] = ()
    acts: tuple[Act, ...] = ()
    turns: tuple[int, ...] | None = None
    faults: Mapping[Site, Fault] = field(factory=dict)

    def to_json(self) -> str:
        """The recipe as a document to keep."""
        document = {
            "seed": self.seed,
            "nodes": self.nodes,
            "locks": self.locks,
            "durable": self.durable,
            "tick": self.tick,
            "flows": self.flows,
            "acts": [[act.at, act.verb, act.node, act.what] for act in self.acts],
            "faults": {site: [one.kind.value, one.amount] for site, one in self.faults.items()},
            "turns": _packed(self.turns or ()),
        }
        return json.dumps(document, indent=1, sort_keys=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Recipe":
        """What `to_json` wrote. Raises `ValueError`, `KeyError`, `TypeError` for anything else."""
        document: dict[str, Any] = json.loads(text)
        document["flows"] = tuple(document["flows"])
        document["acts"] = tuple(Act(*act) for act in document["acts"])
        document["turns"] = _unpacked(document["turns"])
        faults: Mapping[str, Any] = document["faults"]
        document["faults"] = {
            site: Fault(Kind(kind), amount) for site, (kind, amount) in faults.items()
        }
        return cls(**document)


def _packed(turns: Sequence[int]) -> str:
    """Turns as short text: one character each, `+` and two digits above 9."""
    while turns and turns[-1] == 0:
        turns = turns[:-1]
    return "".join(str(turn) if turn < 10 else f"+{min(turn, 99):02d}" for turn in turns)


def _unpacked(text: str) -> tuple[int, ...]:
    found: list[int] = []
    at = 0
    while at < len(text):
        wide = text[at] == "+"
        found.append(int(text[at + 1 : at + 3] if wide else text[at]))
        at += 3 if wide else 1
    return tuple(found)
