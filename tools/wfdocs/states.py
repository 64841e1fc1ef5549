"""The tables of the state machines for a page, narrow enough for a phone."""

from collections.abc import Sequence
from typing import Any

from wfcore.machine import Machine, Row
from wfcore.rules.states import ends
from wfdocs.markdown import code, first_paragraph, table


def tables(machine: Machine[Any]) -> str:
    """A sentence on the machine, and a table for each state that can be left."""
    parts = [f"{_sentence(machine)}\n"]
    for state in machine.states:
        if state not in ends(machine):
            rows = [row for row in machine.rows if row.state is state]
            rows.sort(key=lambda row: row.target is state)  # what leads elsewhere comes first
            parts.append(table((f"From {state}, by", "What it means"), map(_cells, rows)))
    return "\n".join(parts)


def _sentence(machine: Machine[Any]) -> str:
    """The sentence on a machine: its first state, its other states, and its ends."""
    last = ends(machine)
    between = [one for one in machine.states if one not in (machine.initial, *last)]
    end = f", and ends as {_either(last)}" if last else ""
    then = f", may become {_either(between)}" if between else ""
    return f"It begins as {machine.initial}{then}{end}."


def _either(states: Sequence[Any]) -> str:
    *others, last = map(str, states)
    return f"{', '.join(others)} or {last}" if others else last


def _cells(row: Row[Any]) -> tuple[str, str]:
    """The cells of a fact: its target, and its meaning with the rule."""
    leads = "stays" if row.target is row.state else f"→ {row.target}"
    rule = f"[{row.rule}](#rule-{row.rule.lower()})"
    return f"{code(row.fact.__name__)} {leads}", f"{first_paragraph(row.fact.__doc__)} {rule}"
