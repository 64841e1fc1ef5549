"""
How a document is checked: small checks of one value each, and tables of fields made of them.

A check takes a value, its path and the `Findings`, reports every mistake there, and returns the
value as the model needs it. What it returns after a mistake is never used. It also knows the JSON
Schema of what it takes, from which the schema for editors is made. DF-10.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, TypeAlias

from attrs import define, field, frozen

from wfcore.errors import Problem
from wfcore.model.json import Json, JsonObject
from wfcore.rules.limits import JSON_DEPTH
from wfcore.rules.paths import below

_QUOTED = re.compile(r"""(["'])(?:\\.?|(?!\1)[^\\])*(?:\1|\Z)""", re.DOTALL)
"""Text within an expression, in which braces are text. One without an end goes to the end."""


@define
class Findings:
    """
    The mistakes so far, the templates whose names must still be checked, and the JSON Schemas that
    a library must still check.
    """

    problems: list[Problem] = field(factory=list)
    templates: list[tuple[str, str]] = field(factory=list)
    schemas: list[tuple[str, JsonObject]] = field(factory=list)

    def add(self, path: str, message: str) -> None:
        self.problems.append(Problem(path or "definition", message))

    def wrong(self, path: str, wanted: str, value: Json) -> None:
        self.add(path, f"must be {wanted}, not {described(value)}")


Read: TypeAlias = Callable[[Json, str, Findings], Any]
Schema: TypeAlias = JsonObject | bool


@frozen
class Check:
    """
    How one value is read. `schema` accepts every value that `read` finds no mistake in, and as
    few others as a JSON Schema can tell; False: no value will do. DF-10.
    """

    read: Read
    schema: Schema

    def __call__(self, document: Json, path: str, findings: Findings) -> Any:
        return self.read(document, path, findings)


def accepting(schema: Schema) -> Callable[[Read], Check]:
    """Make a check of a function, whose values *schema* describes."""
    return lambda read: Check(read, schema)


def any_of(*schemas: Schema) -> JsonObject:
    """The schema of what one of *schemas* accepts."""
    return {"anyOf": [*schemas]}


def described(value: Json) -> str:
    """What a value is, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return type(value).__name__


@frozen
class Field:
    """
    A row of a table of fields: how to check it, the attribute it becomes, and what it is in a
    sentence, which editors show and `docs/definitions.md` lists.
    """

    check: Check
    into: str
    doc: str = ""
    required: bool = False

    @property
    def schema(self) -> Schema:
        """The schema of its values, with what it is."""
        schema = self.check.schema
        if isinstance(schema, bool) or not self.doc:
            return schema
        return {**schema, "description": self.doc}


def known_or(word: str, known: Collection[str]) -> str:
    """A suggestion for an unknown *word*, and the known ones."""
    close = get_close_matches(word, known)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}known: {', '.join(known)}"


def read_object(
    document: Json, path: str, fields: Mapping[str, Field], findings: Findings
) -> dict[str, Any]:
    """The given fields, by attribute; unknown and missing fields are reported."""
    if not isinstance(document, Mapping):
        findings.wrong(path, "an object", document)
        return {}
    for name in document:
        if name not in fields:
            findings.add(below(path, name), f"unknown field; {known_or(name, fields)}")
    for name, row in fields.items():
        if row.required and name not in document:
            findings.add(below(path, name), "is required")
    return {
        row.into: row.check(document[name], below(path, name), findings)
        for name, row in fields.items()
        if name in document
    }


def object_schema(fields: Mapping[str, Field]) -> JsonObject:
    """The schema of an object with those *fields*."""
    schemas = {name: row.schema for name, row in fields.items()}
    return {
        "type": "object",
        "properties": {name: schema for name, schema in schemas.items() if schema is not False},
        "required": [name for name, row in fields.items() if row.required],
        "additionalProperties": False,
    }


def by_kind(objects: Mapping[str, Schema]) -> JsonObject:
    """The schema of an object whose `kind` says which of *objects* it is."""
    return {
        "type": "object",
        "properties": {"kind": {"enum": [*objects]}},
        "required": ["kind"],
        "allOf": [
            {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": schema}
            for kind, schema in objects.items()
        ],
    }


def record(build: Callable[..., Any], fields: Mapping[str, Field]) -> Check:
    """A check for an object that becomes a record; None after a mistake."""

    @accepting(object_schema(fields))
    def check(document: Json, path: str, findings: Findings) -> Any:
        before = len(findings.problems)
        values = read_object(document, path, fields, findings)
        return build(**values) if len(findings.problems) == before else None

    return check


def list_of(check: Check, least: int = 0, most: int | None = None, unique: str = "") -> Check:
    """A check for a list; *unique* names a field of its objects that must not repeat."""
    bounds = {"minItems": least} | ({} if most is None else {"maxItems": most})

    @accepting({"type": "array", "items": check.schema, **bounds})
    def check_list(document: Json, path: str, findings: Findings) -> Any:
        if not isinstance(document, list | tuple):
            findings.wrong(path, "a list", document)
            return ()
        if len(document) < least:
            findings.add(path, f"must have at least {least} item" + "s" * (least > 1))
        if most is not None and len(document) > most:
            findings.add(path, f"has {len(document)} items; at most {most}")
            return ()
        _report_repeats(document, path, unique, findings)
        return tuple(check(item, below(path, at), findings) for at, item in enumerate(document))

    return check_list


def _report_repeats(items: Collection[Json], path: str, key: str, findings: Findings) -> None:
    seen: dict[str, int] = {}
    for at, item in enumerate(items):
        value = item.get(key) if isinstance(item, Mapping) else None
        if isinstance(value, str) and seen.setdefault(value, at) != at:
            where = below(below(path, at), key)
            findings.add(where, f"repeats {value!r} of {below(path, seen[value])}")


def text(least: int = 0, most: int | None = None, pattern: str = "", wanted: str = "") -> Check:
    """A check for text, with optional length and form; *wanted* puts the form in words."""
    schema: dict[str, Json] = {"type": "string"}
    schema |= ({"minLength": least} if least else {}) | (
        {} if most is None else {"maxLength": most}
    )
    schema |= {"pattern": f"^(?:{pattern})$"} if pattern else {}

    @accepting(schema)
    def check(document: Json, path: str, findings: Findings) -> Any:
        if not isinstance(document, str):
            return findings.wrong(path, "text", document)
        if len(document.strip()) < least:
            findings.add(path, "must not be empty")
        elif most is not None and len(document) > most:
            findings.add(path, f"is {len(document)} characters long; at most {most}")
        elif pattern and not re.fullmatch(pattern, document):
            findings.add(path, f"must be {wanted}")
        return document

    return check


def choice(options: type[StrEnum]) -> Check:
    """A check for one of the values of an enumeration."""

    @accepting({"enum": [option.value for option in options]})
    def check(document: Json, path: str, findings: Findings) -> Any:
        names = [option.value for option in options]
        if isinstance(document, str) and document in names:
            return options(document)
        if isinstance(document, str):
            return findings.add(path, f"unknown value {document!r}; {known_or(document, names)}")
        return findings.wrong(path, f"one of {', '.join(names)}", document)

    return check


def number(least: float, most: float, whole: bool = False) -> Check:
    """A check for a number in a range."""
    wanted = f"a {'whole ' * whole}number from {_plain(least)} to {_plain(most)}"

    @accepting({"type": "integer" if whole else "number", "minimum": least, "maximum": most})
    def check(document: Json, path: str, findings: Findings) -> Any:
        fits = isinstance(document, int if whole else int | float)
        if not fits or isinstance(document, bool):
            return findings.wrong(path, wanted, document)
        if not least <= document <= most:  # type: ignore[operator]
            return findings.add(path, f"must be {wanted}")
        return document if whole else float(document)  # type: ignore[arg-type]

    return check


def _plain(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


@accepting({"type": "boolean"})
def boolean(document: Json, path: str, findings: Findings) -> Any:
    """true or false."""
    if not isinstance(document, bool):
        return findings.wrong(path, "true or false", document)
    return document


@accepting(
    any_of(
        {"type": "integer", "minimum": 1, "maximum": MAX_DURATION},
        {"type": "string", "pattern": f"^{WRITTEN.pattern}$"},
    )
)
def duration(document: Json, path: str, findings: Findings) -> Any:
    """A duration, read by `parse_duration`."""
    if isinstance(document, bool) or not isinstance(document, int | str):
        return findings.wrong(path, "a duration like 30s", document)
    try:
        return parse_duration(document)
    except ValueError as error:
        return findings.add(path, str(error))


@accepting({"type": "string"})
def template(document: Json, path: str, findings: Findings) -> Any:
    """Text that may contain templates."""
    if not isinstance(document, str):
        return findings.wrong(path, "text", document)
    findings.templates.append((path, document))
    return document


@accepting({"type": "string", "pattern": r"\{\{[\s\S]*\}\}"})
def whole_template(document: Json, path: str, findings: Findings) -> Any:
    """Text that is exactly one template, so that its value keeps its type."""
    if not isinstance(document, str):
        return findings.wrong(path, "a template {{ … }}", document)
    stripped = document.strip()
    if not _is_one_template(stripped):
        findings.add(path, "must be exactly one template {{ … }} with nothing around it")
    return template(stripped, path, findings)


def _is_one_template(written: str) -> bool:
    """Whether the braces that open *written* close at its very end and not before."""
    if not (written.startswith("{{") and written.endswith("}}")):
        return False
    depth = 0
    for brace in re.findall("[{}]", _QUOTED.sub("", written[2:-2])):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


@accepting({})
def templates_within(document: Json, path: str, findings: Findings) -> Any:
    """Any JSON value, whose texts may contain templates."""
    return _templates_within(document, path, findings, 0)


def _templates_within(document: Json, path: str, findings: Findings, depth: int) -> Any:
    if depth > JSON_DEPTH:
        return findings.add(path, f"is nested deeper than {JSON_DEPTH}")
    if isinstance(document, str):
        return template(document, path, findings)
    if isinstance(document, Mapping):
        for key, item in document.items():
            _templates_within(item, below(path, key), findings, depth + 1)
    elif isinstance(document, list | tuple):
        for at, item in enumerate(document):
            _templates_within(item, below(path, at), findings, depth + 1)
    elif isinstance(document, float) and not math.isfinite(document):
        findings.add(path, "is no number that JSON can hold")
    return document


@accepting({"type": "object"})
def any_object(document: Json, path: str, findings: Findings) -> Any:
    """An object that may contain templates anywhere."""
    if not isinstance(document, Mapping):
        return findings.wrong(path, "an object", document)
    row: JsonObject = document
    return templates_within(row, path, findings)
