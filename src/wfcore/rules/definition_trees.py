"""The fields of steps that hold steps, or start other workflows. FL-1, FL-2, FL-6, FL-9."""

from functools import partial
from typing import Any

from attrs import evolve

from wfcore.model.json import Json
from wfcore.model.workflow import Branch, Step
from wfcore.rules.definition_checks import (
    Field,
    Findings,
    any_object,
    list_of,
    read_object,
    templates_within,
    text,
    whole_template,
)
from wfcore.rules.definition_fields import filled
from wfcore.rules.definition_reading import Fields, Reading, read_steps
from wfcore.rules.limits import MAX_BRANCHES, MAX_NAME, MAX_ROUNDS

_TAKEN = ("variables", "steps", "execution", "loop")
_loop_name = text(
    most=MAX_NAME,
    pattern="[A-Za-z_][A-Za-z0-9_]*",
    wanted="letters, digits and _, beginning with a letter or _",
)


def branches(reading: Reading) -> Fields:
    """The branches of a `parallel`. None of them sees another's steps; what follows sees all."""
    return {"branches": Field(partial(_branches, reading), "branches", required=True)}


def _branches(reading: Reading, document: Json, path: str, findings: Findings) -> Any:
    reading.check_templates()
    before = reading.names
    met: list[str] = []

    def branch(item: Json, place: str, _: Findings) -> Branch | None:
        reading.names = before
        read = _branch(item, place, reading)
        met.extend(reading.names.steps[len(before.steps) :])
        return read

    read = list_of(branch, least=1, most=MAX_BRANCHES, unique="name")(document, path, findings)
    reading.names = before.after(*met)
    return read


def _branch(document: Json, path: str, reading: Reading) -> Branch | None:
    def steps(item: Json, place: str, _: Findings) -> tuple[Step, ...]:
        return read_steps(item, place, reading)

    findings = reading.findings
    before = len(findings.problems)
    fields = {
        "name": Field(filled, "name", required=True),
        "steps": Field(steps, "steps", required=True),
    }
    values = read_object(document, path, fields, findings)
    return Branch(**values) if len(findings.problems) == before else None


def rounds(reading: Reading) -> Fields:
    """The steps of a `loop`, and what the item is called in them."""
    variable: list[str] = []
    return {
        "as": Field(partial(_item_name, reading, variable), "variable", required=True),
        "steps": Field(partial(_rounds, reading, variable), "steps", required=True),
    }


def _item_name(
    reading: Reading, variable: list[str], document: Json, path: str, findings: Findings
) -> Any:
    before = len(findings.problems)
    name: Any = _loop_name(document, path, findings)
    if name in _TAKEN or name in reading.names.loops or name in reading.declared:
        findings.add(path, f"{name!r} is taken by something that is known here; use another name")
    if len(findings.problems) == before:
        variable.append(name)
    return name


def _rounds(
    reading: Reading, variable: list[str], document: Json, path: str, findings: Findings
) -> Any:
    reading.check_templates()
    before = reading.names
    reading.names = evolve(before, loops=(*before.loops, *variable))
    steps = read_steps(document, path, reading)
    reading.names = before
    return steps


def items(document: Json, path: str, findings: Findings) -> Any:
    """One template that gives the items, or the items themselves, which may hold templates."""
    if isinstance(document, str):
        return whole_template(document, path, findings)
    if not isinstance(document, list | tuple):
        return findings.wrong(path, "a template {{ … }} or a list", document)
    if len(document) > MAX_ROUNDS:
        return findings.add(path, f"has {len(document)} items; at most {MAX_ROUNDS}")
    return templates_within(document, path, findings)


def child(reading: Reading) -> Fields:
    """The workflow that a `workflow` step starts."""
    return {"workflow": Field(partial(_workflow, reading), "workflow", required=True)}


def _workflow(reading: Reading, document: Json, path: str, findings: Findings) -> Any:
    name = filled(document, path, findings)
    if isinstance(name, str) and "{{" in name:
        findings.add(path, "must be the name or id of a workflow; no template is applied here")
    elif isinstance(name, str) and name == reading.own_name:
        findings.add(path, "names this workflow itself, which would start itself without end")
    return name


inputs = any_object
"""The child's inputs by name, with templates anywhere in them."""
