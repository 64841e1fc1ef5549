"""The tables of fields of a definition below its steps: variables, groups, columns, retries."""

from collections.abc import Collection, Mapping
from typing import Any

from wfcore.model.json import Json
from wfcore.model.workflow import (
    APPROVAL_TIMEOUT,
    Column,
    ColumnType,
    GroupSpec,
    Retry,
    Variable,
    VariableType,
)
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    any_object,
    any_of,
    below,
    boolean,
    choice,
    duration,
    list_of,
    number,
    object_schema,
    read_object,
    record,
    text,
    whole_template,
)
from wfcore.rules.limits import MAX_ATTEMPTS, MAX_BACKOFF, MAX_NAME
from wfcore.rules.variables import NO_NUL, PRINTABLE, fits

filled: Check = text(
    least=1, most=MAX_NAME, pattern=PRINTABLE, wanted="text without control characters"
)
"""Text that is there, in one line."""

variable_name: Check = text(
    most=MAX_NAME,
    pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
    wanted="a name of letters, digits, _, - and .",
)


@accepting({"type": ["string", "number", "boolean"]})
def _scalar(document: Json, path: str, findings: Findings) -> Any:
    if document is None or isinstance(document, Mapping | list | tuple):
        return findings.wrong(path, "text, a number, true or false", document)
    return document


@accepting({})
def _anything(document: Json, path: str, findings: Findings) -> Any:
    return document


RETRY = {
    "attempts": Field(number(1, MAX_ATTEMPTS, whole=True), "attempts"),
    "delay": Field(duration, "delay_ms"),
    "backoff": Field(number(1, MAX_BACKOFF), "backoff"),
}

VARIABLE = {
    "type": Field(choice(VariableType), "type"),
    "required": Field(boolean, "required"),
    "default": Field(_anything, "default"),
    "secret": Field(boolean, "secret"),
    "description": Field(text(), "description"),
}

COLUMN = {
    "key": Field(filled, "key", required=True),
    "title": Field(text(), "title"),
    "type": Field(choice(ColumnType), "type"),
    "editable": Field(boolean, "editable"),
    "required": Field(boolean, "required"),
    "options": Field(list_of(_scalar), "options"),
}

retry: Check = record(Retry, RETRY)


@accepting(object_schema(COLUMN))
def column(document: Json, path: str, findings: Findings) -> Any:
    """A column; its title defaults to its key."""
    before = len(findings.problems)
    values = read_object(document, path, COLUMN, findings)
    if values.get("type") is ColumnType.ENUM and not values.get("options"):
        findings.add(below(path, "options"), "is required for a column of type enum")
    if len(findings.problems) > before:
        return None
    return Column(**{"title": values["key"], **values})


@accepting(any_of(whole_template.schema, {"type": "array", "items": any_object.schema}))
def rows(document: Json, path: str, findings: Findings) -> Any:
    """One template that yields the rows, or the rows themselves."""
    if isinstance(document, str):
        return whole_template(document, path, findings)
    if isinstance(document, list | tuple):
        list_of(any_object)(document, path, findings)
        return document
    return findings.wrong(path, "a template {{ … }} or a list of objects", document)


GROUP = {
    "name": Field(filled, "name", required=True),
    "title": Field(text(), "title"),
    "rows": Field(rows, "rows", required=True),
    "rowKey": Field(filled, "row_key"),
    "allowAdd": Field(boolean, "allow_add"),
    "columns": Field(list_of(column, unique="key"), "columns"),
}


@accepting(object_schema(GROUP))
def group(document: Json, path: str, findings: Findings) -> Any:
    """A group of rows; its title defaults to its name."""
    before = len(findings.problems)
    values = read_object(document, path, GROUP, findings)
    if len(findings.problems) > before:
        return None
    spec = GroupSpec(**{"title": values["name"], **values})
    keys = [one.key for one in spec.columns]
    if spec.row_key is not None and keys and spec.row_key not in keys:
        findings.add(below(path, "rowKey"), f"must be the key of a column: {', '.join(keys)}")
    if spec.row_key is None:
        _report_unguarded(spec, path, findings)
    return spec


def _report_unguarded(spec: GroupSpec, path: str, findings: Findings) -> None:
    """Without a row key nobody can tell whether a read-only column was changed. AP-25."""
    for at, one in enumerate(spec.columns):
        if not one.editable:
            where = below(below(below(path, "columns"), at), "editable")
            findings.add(where, "false needs a rowKey in the group, by which rows are told apart")


def approval_problems(values: Mapping[str, Any]) -> Collection[tuple[str, str]]:
    """A quorum that the named approvers cannot reach, or a reminder that comes too early. AP-21."""
    named = {str(name).strip().lower() for name in values.get("approvers") or ()}
    required = values.get("required_approvals") or 1
    timeout = values.get("timeout_ms") or APPROVAL_TIMEOUT
    found: list[tuple[str, str]] = []
    if named and required > len(named):
        there = f"approvers names {len(named)}"
        found.append(("requiredApprovals", f"is {required}, but {there}; nobody else may approve"))
    for at, before in enumerate(values.get("reminders") or ()):
        if before is not None and before >= timeout:
            found.append((below("reminders", at), "must be shorter than the step's timeout"))
    return found


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
    values.pop("description", None)
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
