"""
The state machines of the service, and their tables as text, Mermaid and JSON.

The command line, the documentation and the API description show the rows by which the service
decides.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from wfcore.machine import Machine, Row
from wfcore.model.json import JsonObject
from wfcore.rules.approval.machine import APPROVAL
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.step_machine import STEP
from wfcore.rules.webhooks.webhook import WEBHOOK

MACHINES: Mapping[str, Machine[Any]] = {
    machine.name: machine for machine in (EXECUTION, STEP, APPROVAL, WEBHOOK)
}
"""Every machine by its name."""

_HEADS = ("From", "Fact", "To", "Rule", "When")


def as_text(machine: Machine[Any]) -> str:
    """A sentence about the states, then the rows in columns."""
    rows = [_HEADS, *(_cells(row) for row in machine.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([f"{machine.name}: {sentence(machine)}", "", *lines])


def as_mermaid(machine: Machine[Any]) -> str:
    """A state diagram; facts with the same source and target share an arrow."""
    arrows = [f"[*] --> {machine.initial}"]
    at = machine.states.index
    ways = sorted(machine.rows, key=lambda row: (at(row.state), at(row.target)))
    for (state, target), rows in groupby(ways, key=lambda row: (row.state, row.target)):
        facts = "<br>".join(row.fact.__name__ for row in rows)
        arrows.append(f"{state} --> {target}: {facts}")
    arrows += [f"{state} --> [*]" for state in ends(machine)]
    return "\n".join(["stateDiagram-v2", *(f"    {arrow}" for arrow in arrows)])


def as_json(machine: Machine[Any]) -> JsonObject:
    """The whole table."""
    return {
        "name": machine.name,
        "initial": machine.initial.value,
        "final": [state.value for state in ends(machine)],
        "states": [state.value for state in machine.states],
        "rows": [
            dict(zip(map(str.lower, _HEADS), _cells(row), strict=True)) for row in machine.rows
        ],
    }


def sentence(machine: Machine[Any]) -> str:
    """
    A sentence about a record's first state, the states that it may reach, and its final states.
    """
    between = [s for s in machine.states if s is not machine.initial and s not in machine.final]
    parts = [f"{machine.initial} at first"]
    parts += [f"then {_listed(between)}"] if between else []
    parts += [f"{_listed(ends(machine))} for good"] if machine.final else []
    return "; ".join(parts)


def ends(machine: Machine[Any]) -> Sequence[Any]:
    """The final states, in the order of their enumeration."""
    return [state for state in machine.states if state in machine.final]


def meaning(fact: type) -> str:
    """The meaning of a fact: the first line of its docstring."""
    paragraph = (fact.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(paragraph.replace("`", "").split())


def _cells(row: Row[Any]) -> tuple[str, str, str, str, str]:
    return (str(row.state), row.fact.__name__, str(row.target), row.rule, meaning(row.fact))


def _listed(states: Sequence[Any]) -> str:
    *others, last = map(str, states)
    return f"{', '.join(others)} or {last}" if others else last
