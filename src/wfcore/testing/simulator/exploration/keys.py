"""
The key of a state: equal for states from which the same can happen.

A key leaves out names and the clock. Ids are replaced by their rank among the ids of the state,
which keeps their order, the only thing that the rules compare. Future instants are replaced by
their distance from now. Past instants of records are replaced by their rank, since records are
compared with each other and with now; what a call has read from a clock keeps its distance. Left
out are tables that never change, the audit log, and the instants of events: nothing reads them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from hashlib import blake2b
from typing import Any

import attrs

from wfcore.memory.tables import AUDIT, CHAIN, SERVED
from wfcore.model.event import Event
from wfcore.ports.runtime import AiJob, StepJob
from wfcore.testing.simulator.exploration.states import (
    ExploredNode,
    PortAnswer,
    PortReading,
    WorldState,
)
from wfcore.testing.simulator.ports import BIRTH
from wfcore.time import DAY

_ID = re.compile(r"\b[a-z]+_[0-9]{3}\b")
_EARLIEST, _LATEST = BIRTH - 400 * DAY, BIRTH + 400 * DAY
_MOST_KEPT = 200_000
_UNREAD: Mapping[type[Any], frozenset[str]] = {Event: frozenset({"at"})}
"""The fields that no rule reads."""

_Code = tuple[str, tuple[Any, ...]]
"""A text with a mark for each reference, and the references: ids (text), instants (numbers), and
what a call has read from a clock (a tuple)."""


class StateKeys:
    """
    Makes keys. *constants*: tables that never change from *first* on. The key leaves them out,
    unless they hold a future instant, whose distance from now changes.
    """

    def __init__(self, constants: frozenset[str], first: WorldState) -> None:
        self._left_out = frozenset({AUDIT.name, CHAIN.name})
        self._kept: dict[int, tuple[Any, _Code]] = {}
        self._fields: dict[type[Any], tuple[str, ...]] = {}
        self._plain: Mapping[type[Any], Callable[[Any], _Code]] = {
            **_PLAIN,
            dict: self._mapping,
            frozenset: lambda value: _joined("(", sorted(map(self.code, value), key=str)),
            list: self._sequence,
            tuple: self._sequence,
        }
        now = BIRTH + first.now + first.jumped
        for name in constants:
            _, references = self._mapping(first.tables[name])
            if not any(isinstance(one, int) and one > now for one in references):
                self._left_out |= {name}

    def of(self, state: WorldState) -> bytes:
        """The key of *state*."""
        if len(self._kept) > _MOST_KEPT:
            self._kept.clear()
        codes: list[_Code] = []
        for name, rows in state.tables.items():
            if rows and name not in self._left_out and not (name == SERVED.name and len(rows) < 2):
                codes.append((name, ()))
                for key in sorted(rows, key=str):
                    codes += self.code(key), self.code(rows[key])
        for node in state.nodes.values():
            codes.append(self.code(node))
            if node.clock is not None:
                codes.append((str([number - state.now for number in node.clock]), ()))
        codes += (self.code(state.calls[name]) for name in sorted(state.calls))
        clients = sorted(state.answers), sorted(state.started), sorted(state.ended)
        codes.append(self.code((*clients, state.jumped, sorted(state.left.items()), state.acts)))
        return _digest(codes, BIRTH + state.now + state.jumped)

    def code(self, value: Any) -> _Code:
        """The code of any value of a record."""
        plain = self._plain.get(type(value))
        if plain is not None:
            return plain(value)
        kept = self._kept.get(id(value))
        if kept is None:
            kept = value, self._made(value)
            self._kept[id(value)] = kept
        return kept[1]

    def _mapping(self, value: Mapping[Any, Any]) -> _Code:
        return _joined("{", (self.code(part) for item in value.items() for part in item))

    def _sequence(self, value: Sequence[Any]) -> _Code:
        return _joined("[", map(self.code, value))

    def _made(self, value: Any) -> _Code:
        if isinstance(value, Enum):
            return str(value.value), ()
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, PortAnswer):
            return self.code(value.value if value.refusal is None else repr(value.refusal))
        if isinstance(value, PortReading):
            instant = type(value.value) is int
            return ("@", ((value.value,),)) if instant else self.code(value.value)
        if isinstance(value, StepJob | AiJob):
            seen = value.context.get("state") if isinstance(value, StepJob) else None
            return self.code((value.step_name, value.attempt, value.postponed, seen))
        if isinstance(value, ExploredNode):
            leases = tuple(value.leases[id] for id in sorted(value.leases))
            flags = value.up, value.frozen, value.disturbed
            return self.code((value.name, value.starts, *flags, *leases))
        return self._record(value)

    def _record(self, value: Any) -> _Code:
        kind = type(value)
        if not attrs.has(kind):
            return self.code(repr(value))
        names = self._fields.get(kind)
        if names is None:
            unread = _UNREAD.get(kind, frozenset())
            names = tuple(one.name for one in attrs.fields(kind) if one.name not in unread)
            self._fields[kind] = names
        return _joined(kind.__name__, [self.code(getattr(value, name)) for name in names])


def _text(value: str) -> _Code:
    if "_" not in value:
        return value, ()
    found = tuple(_ID.findall(value))
    return (_ID.sub("#", value), found) if found else (value, ())


def _number(value: int) -> _Code:
    return ("@", (value,)) if _EARLIEST < value < _LATEST else (str(value), ())


_PLAIN: Mapping[type[Any], Callable[[Any], _Code]] = {
    str: _text,
    int: _number,
    bool: lambda value: (str(value), ()),
    float: lambda value: (repr(value), ()),
    type(None): lambda value: ("-", ()),
}


def _joined(head: str, codes: Iterable[_Code]) -> _Code:
    texts: list[str] = [head]
    references: list[Any] = []
    for text, more in codes:
        texts.append(text)
        references += more
    return "\x1f".join(texts), tuple(references)


def _digest(codes: Iterable[_Code], now: int) -> bytes:
    text, references = _joined("", codes)
    distinct = set(references)
    ranks: dict[Any, str] = {}
    counts: Counter[str] = Counter()
    for id in sorted(one for one in distinct if isinstance(one, str)):
        prefix = id.partition("_")[0]
        counts[prefix] += 1
        ranks[id] = f"{prefix}{counts[prefix]}"
    instants = sorted(one for one in distinct if isinstance(one, int))
    ranks |= {at: f"{at - now}" if at > now else f"past {n}" for n, at in enumerate(instants)}
    ranks |= {one: f"read {one[0] - now}" for one in distinct if isinstance(one, tuple)}
    whole = f"{text}\x1e{' '.join(map(ranks.__getitem__, references))}"
    return blake2b(whole.encode(), digest_size=16).digest()
