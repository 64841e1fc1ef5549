"""The tables of fields of a definition below its steps: variables and retries."""

from collections.abc import Mapping
from typing import Any
from unicodedata import normalize

from wfcore.model.json import Json
from wfcore.model.workflow import (
    Retry,
    Variable,
    VariableType,
)
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    boolean,
    choice,
    duration,
    list_of,
    number,
    object_schema,
    read_object,
    record,
    text,
)
from wfcore.rules.limits import MAX_ATTEMPTS, MAX_BACKOFF, MAX_CHANNELS, MAX_NAME
from wfcore.rules.paths import below
from wfcore.rules.variables import NO_NUL, PRINTABLE, fits


def workflow_name(text: str) -> str:
    """
    A workflow's name in the form in which it is stored and compared: NFC, without blanks around it,
    with one blank where there are several. DF-15.
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

retry: Check = record(Retry, RETRY)

CHANNELS = list_of(
    text(
        most=MAX_NAME,
        pattern="[a-z][a-z0-9_]*",
        wanted="small letters, digits and _, beginning with a letter",
    ),
    most=MAX_CHANNELS,
)
"""Names of channels: `mail`, or those that the operator set up. NT-2."""


@accepting(
    {
        "type": "object",
        "propertyNames": variable_name.schema,
        "additionalProperties": object_schema(VARIABLE),
    }
)
def variables(document: Json, path: str, findings: Findings) -> Any:
    """The declarations, by name."""
    if not isinstance(document, Mapping):
        return findings.wrong(path, "an object of declarations by name", document)
    return {
        name: _variable(name, declared, below(path, name), findings)
        for name, declared in document.items()
    }


def _variable(name: str, document: Json, path: str, findings: Findings) -> Any:
    before = len(findings.problems)
    variable_name(name, path, findings)
    values = read_object(document, path, VARIABLE, findings)
    type = values.get("type", VariableType.STRING)
    if type is not None and "default" in values and not fits(type, values["default"]):
        where = below(path, "default")
        findings.wrong(where, f"of the declared type {type}", values["default"])
    default = values.get("default")
    if isinstance(default, str) and "\0" in default:
        findings.add(below(path, "default"), NO_NUL)
    if len(findings.problems) > before:
        return None
    return Variable(name, has_default="default" in values, **values)
