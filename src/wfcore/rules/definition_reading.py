"""
Reading a tree of steps: each by the row of its kind, with what its templates can see.

A container hands its inner lists back to `read_steps`, with the names that are known in there.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from wfcore.model.json import Json
from wfcore.model.workflow import Step
from wfcore.rules.definition_checks import Field, Findings, known_or, list_of, read_object
from wfcore.rules.field_paths import below
from wfcore.rules.limits import MAX_DEPTH, MAX_STEPS

Fields = Mapping[str, Field]
TemplateProblems = Callable[[str, Mapping[str, Collection[str] | None]], Sequence[str]]
"""`Templates.problems`: what is wrong in a text, given the names that it may use."""


@frozen
class Kind:
    """
    A kind of step. *problems* sees the fields together: (path below the step, message).

    *nested*: the fields that hold steps. They are read last, and know the `Reading`.
    """

    build: Callable[..., Step]
    fields: Fields
    problems: Callable[[Mapping[str, Any]], Collection[tuple[str, str]]] = lambda values: ()
    nested: Callable[["Reading"], Fields] = lambda reading: {}


@frozen
class Names:
    """What templates see at a place: the steps before it, and the loops around it."""

    steps: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()

    def after(self, *steps: str) -> "Names":
        """The names that are known once those *steps* have ended."""
        return evolve(self, steps=self.steps + steps)


@define
class Reading:
    """
    What reading the steps goes by, and what it has met.

    `own_name` is the workflow's; `first` says where each step's name stands first.
    """

    kinds: Mapping[str, Kind]
    findings: Findings
    declared: Collection[str]
    template_problems: TemplateProblems
    own_name: Json = None
    names: Names = Names()
    first: dict[str, str] = field(factory=dict)
    count: int = 0
    depth: int = 0

    def check_templates(self) -> None:
        """Check the templates met so far against what they can see, and forget them."""
        loops = self.names.loops
        known: dict[str, Collection[str] | None] = {
            "variables": (*self.declared, *loops),
            "steps": self.names.steps,
            "execution": ("id", "workflowId"),
            **dict.fromkeys(loops),
            **({"loop": ("index",)} if loops else {}),
        }
        for path, written in self.findings.templates:
            for message in self.template_problems(written, known):
                self.findings.add(path, message)
        self.findings.templates.clear()


def read_steps(document: Json, path: str, reading: Reading) -> tuple[Step, ...]:
    """The steps of a list, in order; None stands for one with mistakes. FL-9."""
    if isinstance(document, list | tuple):
        before, reading.count = reading.count, reading.count + len(document)
        if reading.count > MAX_STEPS:
            with_others = f", {reading.count} with those before" if before else ""
            text = f"has {len(document)} steps{with_others}; at most {MAX_STEPS}"
            reading.findings.add(path, text)
            return ()
    if reading.depth == MAX_DEPTH:
        reading.findings.add(path, f"is nested too deep: steps at more than {MAX_DEPTH} levels")
        return ()
    read = list_of(lambda item, place, _: _read_step(item, place, reading), least=1)
    reading.depth += 1
    steps: tuple[Step, ...] = read(document, path, reading.findings)
    reading.depth -= 1
    return steps


def _read_step(document: Json, path: str, reading: Reading) -> Step | None:
    findings = reading.findings
    before = len(findings.problems)
    kind = _kind_of(document, path, reading)
    name = _note_name(document, path, reading)
    fields = {**kind.fields, **kind.nested(reading)} if kind else {}
    values = read_object(document, path, fields, findings) if kind else {}
    for wrong, message in kind.problems(values) if kind else ():
        findings.add(f"{path}.{wrong}", message)
    reading.check_templates()
    reading.names = reading.names.after(*name)
    values.pop("kind", None)
    return kind.build(**values) if kind and len(findings.problems) == before else None


def _kind_of(document: Json, path: str, reading: Reading) -> Kind | None:
    """The row of the step's kind; where there is none, that is the step's only mistake."""
    kinds, findings = reading.kinds, reading.findings
    where, wanted = below(path, "kind"), f"one of {', '.join(kinds)}"
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping):
        findings.wrong(path, "an object", document)
    elif "kind" not in document:
        findings.add(where, f"is required: {wanted}")
    elif not isinstance(kind, str):
        findings.wrong(where, wanted, kind)
    elif kind not in kinds:
        findings.add(where, f"kind {kind!r} is not supported; {known_or(kind, kinds)}")
    return kinds.get(kind) if isinstance(kind, str) else None


def _note_name(document: Json, path: str, reading: Reading) -> tuple[str, ...]:
    """The step's name, if it has one; it must be the first of that name. DF-2."""
    name = document.get("name") if isinstance(document, Mapping) else None
    if not isinstance(name, str):
        return ()
    first = reading.first.setdefault(name, path)
    if first != path:
        reading.findings.add(below(path, "name"), f"repeats {name!r} of {first}")
        return ()
    return (name,)
