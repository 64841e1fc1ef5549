"""
The kinds of steps: for each a table of fields and a function that makes the step.

A new kind is a new row of `KINDS`. A kind that holds steps calls `read_steps` for them.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attrs import define, frozen

from wfcore.model.json import Json
from wfcore.model.workflow import ApprovalStep, CodeStep, Language, Step
from wfcore.rules.definition_checks import (
    Field,
    Findings,
    boolean,
    choice,
    duration,
    known_or,
    list_of,
    number,
    read_object,
    template,
    text,
    whole_template,
)
from wfcore.rules.definition_fields import approval_problems, filled, group, retry
from wfcore.rules.field_paths import below
from wfcore.rules.limits import MAX_NAME, MAX_REMINDERS, MAX_REQUIRED_APPROVALS, SOURCE_BYTES

Fields = Mapping[str, Field]


@frozen
class Kind:
    """A kind of step. *problems* sees the fields together: (path below the step, message)."""

    build: Callable[..., Step]
    fields: Fields
    problems: Callable[[Mapping[str, Any]], Collection[tuple[str, str]]] = lambda values: ()


@define
class Reading:
    """What reading the steps goes by, and what it has met."""

    findings: Findings
    check_templates: Callable[[Collection[str]], None]
    seen: dict[str, str]


def source(document: Json, path: str, findings: Findings) -> Any:
    """Code. Never a template: data reach code through its environment and files."""
    if not isinstance(document, str):
        return findings.wrong(path, "text", document)
    if not document.strip():
        findings.add(path, "must not be empty")
    if len(document.encode("utf-8", "surrogatepass")) > SOURCE_BYTES:
        findings.add(path, f"is over {SOURCE_BYTES // 1_024} KiB")
    _refuse_nul(document, path, findings)
    return document


def command(document: Json, path: str, findings: Findings) -> Any:
    """An argument vector of templates; the program comes first."""
    vector = list_of(_argument, least=1)(document, path, findings)
    if vector and vector[0] == "":
        findings.add(below(path, 0), "must name a program")
    return vector


def _argument(document: Json, path: str, findings: Findings) -> Any:
    if isinstance(document, str):
        _refuse_nul(document, path, findings)
    return template(document, path, findings)


def _refuse_nul(written: str, path: str, findings: Findings) -> None:
    if "\0" in written:
        findings.add(path, "must not have NUL characters")


def _code_problems(values: Mapping[str, Any]) -> Collection[tuple[str, str]]:
    """`command` for language command, `source` for all others."""
    language = values.get("language")
    if language is None:
        return ()
    is_command = language is Language.COMMAND
    wanted, refused = ("command", "source") if is_command else ("source", "command")
    found = [(wanted, f"is required for language {language}")] if wanted not in values else []
    if refused in values:
        found.append((refused, f"is not for language {language}; use {wanted}"))
    return found


_STEP_NAME = text(
    most=MAX_NAME,
    pattern="[A-Za-z_][A-Za-z0-9_-]*",
    wanted="letters, digits, _ and -, beginning with a letter or _",
)

_COMMON: Fields = {
    "name": Field(_STEP_NAME, "name", required=True),
    "kind": Field(text(), "kind", required=True),
    "when": Field(whole_template, "when"),
    "timeout": Field(duration, "timeout_ms"),
    "continueOnError": Field(boolean, "continue_on_error"),
}

KINDS: Mapping[str, Kind] = {
    "code": Kind(
        CodeStep,
        {
            **_COMMON,
            "language": Field(choice(Language), "language", required=True),
            "source": Field(source, "source"),
            "command": Field(command, "command"),
            "network": Field(boolean, "network"),
            "retry": Field(retry, "retry"),
        },
        _code_problems,
    ),
    "manual_approval": Kind(
        ApprovalStep,
        {
            **_COMMON,
            "message": Field(template, "message"),
            "approvers": Field(list_of(filled), "approvers"),
            "groups": Field(list_of(group, unique="name"), "groups"),
            "requiredApprovals": Field(
                number(1, MAX_REQUIRED_APPROVALS, whole=True), "required_approvals"
            ),
            "allowSelfApproval": Field(boolean, "allow_self_approval"),
            "reminders": Field(list_of(duration, most=MAX_REMINDERS), "reminders"),
        },
        approval_problems,
    ),
}


def read_steps(document: Json, path: str, reading: Reading) -> tuple[Step, ...]:
    """The steps of a list, in order; None stands for one with mistakes."""
    read = list_of(lambda item, place, _: _read_step(item, place, reading), least=1)
    steps: tuple[Step, ...] = read(document, path, reading.findings)
    return steps


def _read_step(document: Json, path: str, reading: Reading) -> Step | None:
    findings = reading.findings
    before = len(findings.problems)
    kind = _kind_of(document, path, findings)
    values = read_object(document, path, kind.fields, findings) if kind else {}
    for field, message in kind.problems(values) if kind else ():
        findings.add(f"{path}.{field}", message)
    reading.check_templates(reading.seen)
    _note_name(document, path, reading)
    values.pop("kind", None)
    return kind.build(**values) if kind and len(findings.problems) == before else None


def _kind_of(document: Json, path: str, findings: Findings) -> Kind | None:
    """The row of the step's kind; where there is none, that is the step's only mistake."""
    where, wanted = below(path, "kind"), f"one of {', '.join(KINDS)}"
    kind = document.get("kind", "") if isinstance(document, Mapping) else ""
    if not isinstance(document, Mapping):
        findings.wrong(path, "an object", document)
    elif "kind" not in document:
        findings.add(where, f"is required: {wanted}")
    elif not isinstance(kind, str):
        findings.wrong(where, wanted, kind)
    elif kind not in KINDS:
        findings.add(where, f"kind {kind!r} is not supported; {known_or(kind, KINDS)}")
    return KINDS.get(kind) if isinstance(kind, str) else None


def _note_name(document: Json, path: str, reading: Reading) -> None:
    name = document.get("name") if isinstance(document, Mapping) else None
    if isinstance(name, str):
        first = reading.seen.setdefault(name, path)
        if first != path:
            reading.findings.add(below(path, "name"), f"repeats {name!r} of {first}")
