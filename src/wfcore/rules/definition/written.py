"""
Definitions from programs, as documents and back. DF-12.

A program may build a `Definition` from records, a mapping or JSON. The same checker reads them all:
records are first written as the document that a person would have written, by the tables that read
such a document. So there is one set of rules, and one set of words.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import NOTHING, evolve, fields_dict, frozen

from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import FOLLOWED, TRIGGER_NAMES
from wfcore.model.workflow import (
    Branch,
    Budget,
    Case,
    CodeStep,
    Column,
    Concurrency,
    Definition,
    DefinitionSnapshot,
    Escalation,
    GroupSpec,
    Listen,
    OnRevise,
    Retry,
    Stage,
    Variable,
)
from wfcore.rules.definition.ai import BUDGET
from wfcore.rules.definition.check import check_definition, fields_of
from wfcore.rules.definition.packages import replaced
from wfcore.rules.definition.review import COLUMN, ESCALATE, GROUP, ON_REVISE, STAGE
from wfcore.rules.definition.steps import KINDS
from wfcore.rules.definition.tree import Reading, TemplateProblems
from wfcore.rules.definition.triggers import CONCURRENCY, TRIGGER_KINDS, ScheduleProblems
from wfcore.rules.definition.values import RETRY, VARIABLE, Field, Findings
from wfcore.rules.json_values import Repeated, json_problems, too_large
from wfcore.rules.limits import JSON_DEPTH, SOURCE_BYTES
from wfcore.rules.masking import MASK
from wfcore.rules.numbers import decimal_of, integer_of
from wfcore.rules.paths import below


def believed_template(text: str, known: object) -> Sequence[str]:
    """`TemplateProblems` for callers without templates: accepts every text."""
    return ()


def believed_schedule(cron: str, timezone: str) -> Mapping[str, str]:
    """`ScheduleProblems` for callers without a calendar: accepts every schedule."""
    return {}


def read_definition(
    document: object,
    template_problems: TemplateProblems = believed_template,
    schedule_problems: ScheduleProblems = believed_schedule,
) -> Definition:
    """
    The definition in *document*, which comes from a program and may hold anything.

    Raises `InvalidDefinition`: first for a value that is not JSON, then with every mistake. DF-12.
    """
    if problems := tuple(json_problems(document)):
        raise InvalidDefinition(problems)
    known: Any = document
    return check_definition(known, template_problems, schedule_problems)


def read_definition_json(text: str | bytes, source: str = "") -> Definition:
    """
    The definition in JSON *text*; *source* is its name in errors.

    Raises `InvalidDefinition`, with the line if the text is not JSON, otherwise with paths, and
    `TypeError` if *text* is not text.
    """
    given: object = text
    if not isinstance(given, str | bytes):
        what = f"text must be of type str | bytes, not {type(given).__name__}"
        raise TypeError(f"read_definition_json: {what}; read_definition takes a mapping")
    try:
        return read_definition(_parsed(text))
    except InvalidDefinition as error:
        raise InvalidDefinition(error.problems, source) from None


def _parsed(text: str | bytes) -> object:
    problem = Problem("", f"is nested deeper than {JSON_DEPTH}")
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        if len(decoded.encode("utf-8", "surrogatepass")) > SOURCE_BYTES:
            raise InvalidDefinition((Problem("definition", too_large(SOURCE_BYTES)),))
        return json.loads(
            decoded, object_pairs_hook=_object_of, parse_int=integer_of, parse_float=decimal_of
        )
    except UnicodeDecodeError:
        problem = Problem("", "the text is not UTF-8")
    except json.JSONDecodeError as error:
        problem = Problem("", f"the text is not JSON: {error.msg}", error.lineno)
    except RecursionError:
        pass
    raise InvalidDefinition((problem,))


def _object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        found[key] = Repeated() if key in found else value
    return found


# From records to the document


@frozen
class _Shape:
    """How a record is written: `names` maps fields of the document to attributes."""

    names: Mapping[str, str]
    kind: str | None = None


def _shape(fields: Mapping[str, Field], kind: str | None = None) -> _Shape:
    return _Shape({name: row.into for name, row in fields.items() if name != "kind"}, kind)


_NOWHERE = Reading(KINDS, Findings(), (), believed_template)
"""A reading for tables of which only the names matter here."""

_SHAPES: Mapping[object, _Shape] = {
    Definition: _shape(fields_of(_NOWHERE)),
    Variable: _shape(VARIABLE),  # and `state`, which has fewer fields
    Retry: _shape(RETRY),
    Column: _shape(COLUMN),
    GroupSpec: _shape(GROUP),
    OnRevise: _shape(ON_REVISE),
    Stage: _shape(STAGE),
    Escalation: _shape(ESCALATE),
    Budget: _shape(BUDGET),
    Concurrency: _shape(CONCURRENCY),
    Branch: _Shape({"name": "name", "steps": "steps"}),
    Case: _Shape({"when": "when", "steps": "steps"}),
    **{
        kind.build: _shape({**kind.fields, **kind.nested(_NOWHERE)}, name)
        for name, kind in KINDS.items()
    },
    **{kind.build: _shape(kind.fields, name) for name, kind in TRIGGER_KINDS.items()},
}


def document_of(definition: Definition) -> JsonObject:
    """
    The document of *definition*, without fields that have their default.

    Never fails: a value without a place in a document stays as it is, for `read_definition` to
    name.
    """
    document: dict[str, Any] = _written(definition, 0)
    return document


_DEEP = 4 * JSON_DEPTH
"""A depth that no tree of steps reaches, and that the interpreter's stack allows."""


def _written(value: Any, depth: int) -> Any:
    shape = _SHAPES.get(type(value))
    if shape is not None:
        return _record(value, shape, depth)
    if value is Listen.LOOPBACK:
        return True
    if isinstance(value, StrEnum):
        return value.value
    if depth > _DEEP:
        return value
    if isinstance(value, Mapping):
        return {key: _written(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_written(item, depth + 1) for item in value]
    return value


def _record(record: Any, shape: _Shape, depth: int) -> dict[str, Any]:
    """The fields of *record* that differ from their defaults, by their names in the document."""
    kind = {} if shape.kind is None else {"kind": shape.kind}
    defaults = {name: one.default for name, one in fields_dict(type(record)).items()}
    said = {
        name: getattr(record, attribute)
        for name, attribute in shape.names.items()
        if attribute in defaults and _says(record, attribute, defaults[attribute])
    }
    written = {name: _written(value, depth + 1) for name, value in said.items()}
    return {"name": written.pop("name"), **kind, **written} if "name" in written else kind | written


def _says(record: Any, attribute: str, default: Any) -> bool:
    if getattr(record, f"has_{attribute}", False):
        return True
    value = getattr(record, attribute)
    if default is NOTHING:
        return True
    return bool(value != (default.factory() if hasattr(default, "factory") else default))


def check_built(
    definition: Definition,
    template_problems: TemplateProblems,
    schedule_problems: ScheduleProblems,
) -> Definition:
    """
    *definition* as the checker reads it, however it was built. DF-12.

    `steps_as_written` stays if it describes the same steps; otherwise it is derived from them.
    Parts that no document holds (packages' locks, TypeScript without its types) are kept.

    Raises `InvalidDefinition`, as for the text of the same definition.
    """
    document = document_of(definition)
    checks = template_problems, schedule_problems
    read = _as_shown(definition, document, *checks) or read_definition(document, *checks)
    return _with_derived(read, definition)


def _as_shown(
    definition: Definition,
    document: JsonObject,
    template_problems: TemplateProblems,
    schedule_problems: ScheduleProblems,
) -> Definition | None:
    """`steps_as_written` if it describes the steps; otherwise None."""
    shown = {**document, "steps": definition.steps_as_written}
    try:
        read = read_definition(shown, template_problems, schedule_problems)
    except InvalidDefinition:
        return None
    return read if document_of(read)["steps"] == document["steps"] else None


def _with_derived(read: Definition, built: Definition) -> Definition:
    """*read* with the parts of *built* that no document holds, by the name of the step."""
    known = {step.name: step for step in built.walk() if isinstance(step, CodeStep)}

    def change(path: str, step: CodeStep) -> CodeStep:
        given = known.get(step.name)
        return evolve(step, javascript=given.javascript, lock=given.lock) if given else step

    return replaced(read, change)


def text_of(snapshot: DefinitionSnapshot) -> str:
    """
    The text of the definition as its author wrote it. If a program built the definition, or if the
    text holds the default of a secret: JSON with the secret values masked.
    """
    if snapshot.source and not withheld(snapshot.definition):
        return snapshot.source
    return json.dumps(masked_document(snapshot.definition), indent=2, ensure_ascii=False) + "\n"


def masked_document(definition: Definition) -> JsonObject:
    """The document of *definition* with the defaults of secret variables masked."""
    document: dict[str, Any] = {**document_of(definition)}
    declared = document.get("variables")
    if isinstance(declared, dict):
        for name in definition.secrets:
            if isinstance(one := declared.get(name), dict) and "default" in one:
                declared[name] = {**one, "default": MASK}
    return document


def withheld(definition: Definition) -> bool:
    """Whether the text holds the default of a secret variable and is therefore shown to nobody."""
    return any(one.secret and one.has_default for one in definition.variables.values())


def unseen_names(
    definition: Definition, problems_of: TemplateProblems, followed: str
) -> Iterator[Problem]:
    """
    A problem for each template that uses the `FOLLOWED` names of `trigger`. *followed*: a workflow
    whose executions the owner of the definition does not see. CH-7.
    """
    visible = tuple(name for name in TRIGGER_NAMES if name not in FOLLOWED)
    message = f"says more of an execution of {followed!r} than the owner of this workflow sees"
    for path, text in _texts(document_of(definition), ""):
        if "trigger" in text:
            known = problems_of(text, {"trigger": TRIGGER_NAMES})
            if {*problems_of(text, {"trigger": visible})} - {*known}:
                yield Problem(path, message)


def _texts(value: Json, path: str) -> Iterator[tuple[str, str]]:
    """The texts in *value* that may contain templates, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name != "source":
                yield from _texts(item, below(path, name))
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _texts(item, below(path, at))
