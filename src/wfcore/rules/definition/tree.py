"""The tree of steps: how it is read, and the steps that contain steps. FL-1, FL-2, FL-6."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, evolve, field, frozen

from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import TRIGGER_NAMES
from wfcore.model.workflow import ApprovalStep, Branch, Case, Step
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    Schema,
    accepting,
    any_object,
    any_of,
    filled,
    known_or,
    list_of,
    named,
    object_schema,
    read_object,
    record,
    templates_within,
    text,
    whole_template,
)
from wfcore.rules.limits import MAX_BRANCHES, MAX_DEPTH, MAX_NAME, MAX_ROUNDS, MAX_STEPS
from wfcore.rules.paths import below

Fields = Mapping[str, Field]
STEP: Schema = {"$ref": "#/definitions/step"}
"""A reference to the schema of steps, which `definition_schema` defines: steps contain steps."""
STEPS: Schema = {"type": "array", "items": STEP, "minItems": 1, "maxItems": MAX_STEPS}
TemplateProblems = Callable[[str, Mapping[str, Collection[str] | None]], Sequence[str]]
"""`Templates.problems`: finds the mistakes in a text, given the names that the text may use."""


@frozen
class StepKind:
    """
    A kind of step. *problems* checks its fields together: (path below the step, message).

    *nested*: the fields that contain steps. These fields are read last, and receive the `Reading`.
    """

    build: Callable[..., Step]
    fields: Fields
    problems: Callable[[Mapping[str, Any]], Collection[tuple[str, str]]] = lambda values: ()
    nested: Callable[["Reading"], Fields] = lambda reading: {}


@frozen
class Names:
    """
    The names that templates see at a point: the names of earlier steps, and of the loops around the
    point.
    """

    steps: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()

    def after(self, *steps: str) -> "Names":
        """The names that are known once *steps* have ended."""
        new = tuple(name for name in steps if name not in self.steps)
        return evolve(self, steps=self.steps + new)


@define
class Reading:
    """
    The state of reading the steps: its tools, and the findings so far.

    `own_name`: the workflow's name. `first`: the path of the first use of each step name.
    `kinds_of`: the kind of the step with each name (None: an unknown kind). `listed`: the earlier
    steps in the same list. `later_approvals`: the approvals further down that go back to a step, by
    the name of that step. `state`: the declared names of state, of which `secret_state` are secret.
    `on_failure`: whether these are the steps of `onFailure`.
    """

    kinds: Mapping[str, StepKind]
    findings: Findings
    declared: Collection[str]
    template_problems: TemplateProblems
    own_name: Json = None
    names: Names = Names()
    first: dict[str, str] = field(factory=dict)
    listed: tuple[str, ...] = ()
    state: Collection[str] = ()
    secret_state: Collection[str] = ()
    later_approvals: dict[str, str] = field(factory=dict)
    kinds_of: dict[str, StepKind | None] = field(factory=dict)
    count: int = 0
    depth: int = 0
    on_failure: bool = False

    @property
    def public_state(self) -> Collection[str]:
        """The names of state that every template sees. SV-6."""
        return tuple(name for name in self.state if name not in self.secret_state)

    def check_templates(self) -> None:
        """
        Check the templates found so far against the names that they can see, then forget them.
        """
        loops = self.names.loops
        known: dict[str, Collection[str] | None] = {
            "variables": (*self.declared, *loops),
            "steps": self.names.steps,
            "execution": ("id", "workflowId"),
            "trigger": TRIGGER_NAMES,
            "state": self.state,
            **dict.fromkeys(loops),
            **({"loop": ("index",)} if loops else {}),
            **({"error": ()} if self.on_failure else {}),
        }
        for path, written in self.findings.templates:
            names = known if _COMMAND.search(path) else {**known, "state": self.public_state}
            for message in self.template_problems(written, names):
                self.findings.add(path, message)
        self.findings.templates.clear()


_COMMAND = re.compile(r"\.command\[\d+\]$")
"""The path of an argument of a code step, whose templates see secret state, too. SV-6."""


def read_steps(document: Json, path: str, reading: Reading) -> tuple[Step, ...]:
    """The steps of a list, in order; None for a step with mistakes. FL-9."""
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
    one = Check(lambda item, place, _: _read_step(item, place, reading), STEP)
    read = list_of(one, least=1)
    around, reading.listed = reading.listed, ()
    reading.later_approvals.update(_going_back(document))
    reading.depth += 1
    steps: tuple[Step, ...] = read(document, path, reading.findings)
    reading.depth -= 1
    reading.listed = around
    return steps


def _going_back(steps: Json) -> Iterator[tuple[str, str]]:
    """The approvals in *steps* that go back to an earlier step, by the name of that step. AP-32."""
    for step in steps if isinstance(steps, list | tuple) else ():
        match step:
            case {"name": str(name), "onRevise": {"goto": str(goto)}}:
                yield goto, name


def step_schema(kind: StepKind, reading: Reading) -> JsonObject:
    """The schema of a step of that kind."""
    return object_schema({**kind.fields, **kind.nested(reading)})


def _read_step(document: Json, path: str, reading: Reading) -> Step | None:
    findings = reading.findings
    before = len(findings.problems)
    kind = _kind_of(document, path, reading)
    name = _note_name(document, path, reading)
    for one in name:
        if one in reading.later_approvals:
            reading.names = reading.names.after(reading.later_approvals[one])
    reading.kinds_of.update(dict.fromkeys(name, kind))
    fields = {**kind.fields, **kind.nested(reading)} if kind else {}
    values = read_object(document, path, fields, findings) if kind else {}
    if kind is not None and kind.build is ApprovalStep and reading.on_failure:
        findings.add(below(path, "kind"), _NO_APPROVALS)
    for wrong, message in kind.problems(values) if kind else ():
        findings.add(f"{path}.{wrong}", message)
    reading.check_templates()
    reading.names = reading.names.after(*name)
    reading.listed += name
    values.pop("kind", None)
    return kind.build(**values) if kind and len(findings.problems) == before else None


_NO_APPROVALS = (
    "must not be manual_approval in `onFailure`: nothing that happens there changes how the "
    "execution ends"
)


def _kind_of(document: Json, path: str, reading: Reading) -> StepKind | None:
    """The row of the step's kind; an unknown kind is reported as the step's only mistake."""
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
    """The step's name, if it has one; names must be unique. DF-2."""
    name = document.get("name") if isinstance(document, Mapping) else None
    if not isinstance(name, str):
        return ()
    first = reading.first.setdefault(name, path)
    if first != path:
        reading.findings.add(below(path, "name"), f"repeats {name!r} of {first}")
        return ()
    return (name,)


def steps_field(reading: Reading) -> Check:
    """A check for a list of steps."""
    return Check(lambda document, path, _: read_steps(document, path, reading), STEPS)


def on_failure_field(reading: Reading) -> Check:
    """A check for the steps of `onFailure`, which see all other steps, and the error. DF-14."""

    def check(document: Json, path: str, findings: Findings) -> Any:
        reading.check_templates()
        before, reading.on_failure = reading.names, True
        steps = read_steps(document, path, reading)
        reading.check_templates()
        reading.names, reading.on_failure = before, False
        return steps

    return Check(check, STEPS)


_TAKEN = ("variables", "steps", "execution", "loop", "trigger", "state", "files", "payload")
"""The names that templates know, and further reserved names."""
_WORDS = frozenset(
    "and or not is in if else true false none null True False None defined".split()  # noqa: SIM905
)
"""Words that an expression does not read as names."""
_loop_name = text(
    most=MAX_NAME,
    pattern="[A-Za-z_][A-Za-z0-9_]*",
    wanted="letters, digits and _, beginning with a letter or _",
)


def branches(reading: Reading) -> Fields:
    """The branches of a `parallel`. No branch sees another's steps; later steps see all of them."""
    before = reading.names
    met: list[str] = []
    one = record(
        Branch,
        {
            "name": Field(
                filled, "name", "The key of the branch in the step's output.", required=True
            ),
            "steps": Field(
                steps_field(reading),
                "steps",
                "What the branch does. A branch does not see the steps of another.",
                required=True,
            ),
        },
    )

    @accepting(one.schema)
    def branch(document: Json, path: str, findings: Findings) -> Any:
        reading.names = before
        read = one(document, path, findings)
        met.extend(reading.names.steps[len(before.steps) :])
        return read

    listed = list_of(branch, least=1, most=MAX_BRANCHES, unique="name")

    @accepting(listed.schema)
    def check(document: Json, path: str, findings: Findings) -> Any:
        reading.check_templates()
        read = listed(document, path, findings)
        reading.names = before.after(*met)
        return read

    return {"branches": Field(check, "branches", "What runs side by side.", required=True)}


def cases(reading: Reading) -> Fields:
    """
    The cases of a `switch` and its `else`. No case sees another's steps; later steps see all of
    them.
    """
    before = reading.names
    met: list[str] = []

    def steps(document: Json, path: str, findings: Findings) -> Any:
        reading.check_templates()
        reading.names = before
        read = read_steps(document, path, reading)
        met.extend(reading.names.steps[len(before.steps) :])
        reading.names = before.after(*met)
        return read

    one = record(
        Case,
        {
            "when": Field(
                whole_template, "when", "A template that says whether the case is taken.", True
            ),
            "steps": Field(Check(steps, STEPS), "steps", "The steps of this case.", True),
        },
    )

    @accepting(one.schema)
    def case(document: Json, path: str, findings: Findings) -> Any:
        reading.check_templates()
        reading.names = before
        return one(document, path, findings)

    return {
        "cases": Field(
            list_of(case, least=1, most=MAX_BRANCHES),
            "cases",
            "The cases; the first one whose `when` is true is taken.",
            required=True,
        ),
        "else": Field(
            Check(steps, STEPS), "otherwise", "The steps if no case is taken. Default: none."
        ),
    }


def rounds(reading: Reading) -> Fields:
    """The steps of a `loop`, and the name of the item inside them."""
    variable: list[str] = []
    return {
        "as": Field(
            Check(partial(_item_name, reading, variable), _loop_name.schema),
            "variable",
            "The name of the item in templates, and in code steps as `WF_VAR_<name>`.",
            required=True,
        ),
        "steps": Field(
            Check(partial(_rounds, reading, variable), STEPS),
            "steps",
            "What each round does.",
            required=True,
        ),
    }


def _item_name(
    reading: Reading, variable: list[str], document: Json, path: str, findings: Findings
) -> Any:
    before = len(findings.problems)
    name: Any = _loop_name(document, path, findings)
    taken = (*_TAKEN, "error") if reading.on_failure else _TAKEN
    if name in _WORDS:
        findings.add(path, f"{name!r} is a word of the language of templates; use another name")
    if name in taken or name in reading.names.loops or name in reading.declared:
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


@accepting(any_of(whole_template.schema, {"type": "array", "maxItems": MAX_ROUNDS}))
def items(document: Json, path: str, findings: Findings) -> Any:
    """One template that yields the items, or the items themselves, which may contain templates."""
    if isinstance(document, str):
        return whole_template(document, path, findings)
    if not isinstance(document, list | tuple):
        return findings.wrong(path, "a template {{ … }} or a list", document)
    if len(document) > MAX_ROUNDS:
        return findings.add(path, f"has {len(document)} items; at most {MAX_ROUNDS}")
    return templates_within(document, path, findings)


def child(reading: Reading) -> Fields:
    """The workflow that a `workflow` step starts."""
    check = Check(partial(_workflow, reading), filled.schema)
    return {
        "workflow": Field(
            check,
            "workflow",
            "The name or id of another workflow, which the owner of this one may execute.",
            required=True,
        )
    }


def _workflow(reading: Reading, document: Json, path: str, findings: Findings) -> Any:
    name = named(document, path, findings)
    if isinstance(name, str) and "{{" in name:
        findings.add(path, "must be the name or id of a workflow; no template is applied here")
    elif isinstance(name, str) and name == reading.own_name:
        findings.add(path, "names this workflow itself, which would start itself without end")
    return name


value = templates_within
inputs = any_object
"""The child's inputs by name, with templates anywhere in them."""
