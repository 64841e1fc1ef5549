"""
The checks of a document: small checks of one value each, and tables of fields made of them.

A check takes a value, its path and the `Findings`, reports every mistake there, and returns the
value as the model needs it. After a mistake, the returned value is never used. A check also has the
JSON Schema of its values, from which the schema for editors is made. DF-10.

At the end are the checks and tables that several kinds of objects share: names, channels, retries
and variables.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias
from unicodedata import normalize

from attrs import define, field, frozen

from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Retry, Variable, VariableType
from wfcore.rules.limits import (
    JSON_DEPTH,
    MAX_ATTEMPTS,
    MAX_BACKOFF,
    MAX_CHANNELS,
    MAX_MISTAKES,
    MAX_NAME,
)
from wfcore.rules.paths import below
from wfcore.rules.suggestions import listed, nearest
from wfcore.rules.variables import NO_NUL, PRINTABLE, fits
from wfcore.time import DAY, HOUR, MINUTE, SECOND, DurationMs

_QUOTED = re.compile(r"""(["'])(?:\\.?|(?!\1)[^\\])*(?:\1|\Z)""", re.DOTALL)
"""Text within an expression, in which braces are plain text. An unclosed text goes to the end."""


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
        """Add a mistake. Raises `InvalidDefinition` for one too many, so that nothing follows."""
        self.problems.append(Problem(path or "definition", message))
        if len(self.problems) > MAX_MISTAKES:
            self.problems[MAX_MISTAKES:] = [Problem("definition", "has more mistakes")]
            raise InvalidDefinition(tuple(self.problems))

    def wrong(self, path: str, wanted: str, value: Json) -> None:
        self.add(path, f"must be {wanted}, not {described(value)}")


Read: TypeAlias = Callable[[Json, str, Findings], Any]
Schema: TypeAlias = JsonObject | bool


@frozen
class Check:
    """
    A check of one value. `schema` accepts every value in which `read` finds no mistake, and as few
    other values as a JSON Schema can; the schema False accepts nothing. DF-10.
    """

    read: Read
    schema: Schema

    def __call__(self, document: Json, path: str, findings: Findings) -> Any:
        return self.read(document, path, findings)


def accepting(schema: Schema) -> Callable[[Read], Check]:
    """Makes a check of a function whose values *schema* describes."""
    return lambda read: Check(read, schema)


def any_of(*schemas: Schema) -> JsonObject:
    """The schema of the values that at least one of *schemas* accepts."""
    return {"anyOf": [*schemas]}


def described(value: Json) -> str:
    """The kind of a value, for messages."""
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
    A row of a table of fields: its check, the attribute that it becomes, and a sentence about it,
    which editors show and `docs/definitions.md` lists.
    """

    check: Check
    into: str
    doc: str = ""
    required: bool = False

    @property
    def schema(self) -> Schema:
        """The schema of the field's values, with its sentence."""
        schema = self.check.schema
        if isinstance(schema, bool) or not self.doc:
            return schema
        return {**schema, "description": self.doc}


def known_or(word: str, known: Collection[str]) -> str:
    """A suggestion for an unknown *word*, and the known words."""
    close = nearest(word, known)
    meant = f"did you mean {close}? " if close else ""
    return f"{meant}known: {listed(known)}"


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
    """A check for true or false."""
    if not isinstance(document, bool):
        return findings.wrong(path, "true or false", document)
    return document


MAX_DURATION = DurationMs(365 * DAY)

_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
WRITTEN = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(ms|s|m|h|d)")


def parse_duration(written: str | int, *, zero: bool = False) -> DurationMs:
    """
    The milliseconds of `500ms`, `30s`, `1.5m`, `24h`, `7d`; a bare integer is milliseconds. *zero*:
    0 is allowed.

    Raises `ValueError` with a message for the author: another form, a negative duration, a duration
    over 365 days, or a fraction of a millisecond.
    """
    ms = written if isinstance(written, int) else _in_ms(written)
    if ms != int(ms):
        raise ValueError("must be a whole number of milliseconds")
    if zero and ms == 0:
        return DurationMs(0)
    if not 0 < ms <= MAX_DURATION:
        raise ValueError("must be more than 0 and at most 365d")
    return DurationMs(int(ms))


def _in_ms(written: str) -> Decimal:
    match = WRITTEN.fullmatch(written)
    if match is None:
        raise ValueError(
            "must be a duration: a number with ms, s, m, h or d (like 30s), "
            "or a whole number of milliseconds"
        )
    return Decimal(match[1]) * _UNITS[match[2]]


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
    if not is_one_template(stripped):
        findings.add(path, "must be exactly one template {{ … }} with nothing around it")
    return template(stripped, path, findings)


def is_one_template(written: str) -> bool:
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


def workflow_name(text: str) -> str:
    """
    The form in which a workflow's name is stored and compared: NFC, without blanks around it, with
    single blanks inside. DF-15.
    """
    return " ".join(normalize("NFC", text).split())


filled: Check = text(
    least=1, most=MAX_NAME, pattern=PRINTABLE, wanted="text without control characters"
)


@accepting(filled.schema)
def named(document: Json, path: str, findings: Findings) -> Any:
    """The name of a workflow, see `workflow_name`."""
    name = filled(document, path, findings)
    return workflow_name(name) if isinstance(name, str) else name


"""Text that is there, in one line."""

variable_name: Check = text(
    most=MAX_NAME,
    pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
    wanted="a name of letters, digits, _, - and .",
)


@accepting({})
def _anything(document: Json, path: str, findings: Findings) -> Any:
    return document


RETRY = {
    "attempts": Field(
        number(1, MAX_ATTEMPTS, whole=True),
        "attempts",
        "How many attempts in total, the first one included.",
    ),
    "delay": Field(
        duration, "delay_ms", "The wait before the second attempt, plus up to a quarter."
    ),
    "backoff": Field(
        number(1, MAX_BACKOFF), "backoff", "Each further wait is longer by this factor."
    ),
}

VARIABLE = {
    "type": Field(choice(VariableType), "type", "The type of its values. Default: string."),
    "required": Field(boolean, "required", "`true`: every start must give it. Default: false."),
    "default": Field(_anything, "default", "Its value if a start gives none."),
    "secret": Field(boolean, "secret", "`true`: its value is masked wherever it would be shown."),
    "description": Field(text(), "description", "What it is for, for people."),
}

STATE = {
    "type": VARIABLE["type"],
    "default": Field(_anything, "default", "Its value until somebody sets one. Default: null."),
    "secret": Field(
        boolean, "secret", "`true`: only code steps read it, and its value is shown nowhere."
    ),
    "description": VARIABLE["description"],
}

retry: Check = record(Retry, RETRY)

CHANNELS = list_of(
    text(
        most=MAX_NAME,
        pattern="[a-z][a-z0-9_]*",
        wanted="small letters, digits and _, beginning with a letter",
    ),
    most=MAX_CHANNELS,
)
"""Names of channels: `mail`, or channels that the operator set up. NT-2."""


def _declarations(fields: Mapping[str, Field]) -> Check:
    """A check for declarations by name, each with *fields*."""

    def check(document: Json, path: str, findings: Findings) -> Any:
        if not isinstance(document, Mapping):
            return findings.wrong(path, "an object of declarations by name", document)
        return {
            name: _declaration(fields, name, declared, below(path, name), findings)
            for name, declared in document.items()
        }

    schema: Schema = {
        "type": "object",
        "propertyNames": variable_name.schema,
        "additionalProperties": object_schema(fields),
    }
    return Check(check, schema)


variables, state = _declarations(VARIABLE), _declarations(STATE)


def _declaration(
    fields: Mapping[str, Field], name: str, document: Json, path: str, findings: Findings
) -> Any:
    before = len(findings.problems)
    variable_name(name, path, findings)
    values = read_object(document, path, fields, findings)
    type = values.get("type", VariableType.STRING)
    if type is not None and "default" in values and not fits(type, values["default"]):
        where = below(path, "default")
        findings.wrong(where, f"of the declared type {type}", values["default"])
    default = values.get("default")
    if isinstance(default, str) and "\0" in default:
        findings.add(below(path, "default"), NO_NUL)
    if fields is STATE and values.get("secret") and default:
        findings.add(below(path, "default"), "must be empty: the definition's text is no secret")
    if len(findings.problems) > before:
        return None
    return Variable(name, has_default="default" in values, **values)
