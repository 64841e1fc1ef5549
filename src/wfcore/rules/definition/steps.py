"""
The kinds of steps: for each a table of fields, and a function that makes the step.

A new kind is a new row of `KINDS`.
"""

from collections.abc import Collection, Mapping
from typing import Any

from wfcore.model.json import Json
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    ChildStep,
    CodeStep,
    DelayStep,
    Language,
    Links,
    LoopStep,
    OnInterrupt,
    ParallelStep,
)
from wfcore.rules import named_secrets as secret_name
from wfcore.rules.definition import tree as trees
from wfcore.rules.definition.ai import max_tokens, model, prompt, schema, temperature
from wfcore.rules.definition.fields import CHANNELS, retry
from wfcore.rules.definition.packages import package_problems, packages, requirement
from wfcore.rules.definition.review import (
    answer_fields,
    approval_problems,
    group,
    review_fields,
)
from wfcore.rules.definition.tree import Fields, StepKind
from wfcore.rules.definition.values import (
    Field,
    Findings,
    accepting,
    below,
    boolean,
    choice,
    duration,
    list_of,
    number,
    template,
    text,
    whole_template,
)
from wfcore.rules.limits import (
    MAX_BRANCHES,
    MAX_NAME,
    MAX_PACKAGES,
    MAX_REMINDERS,
    MAX_REQUIRED_APPROVALS,
    MAX_ROUNDS,
    SECRETS_PER_ACCOUNT,
    SOURCE_BYTES,
)
from wfcore.rules.variables import NO_NUL


@accepting({"type": "string", "minLength": 1})
def source(document: Json, path: str, findings: Findings) -> Any:
    """Source code. Never a template: code receives data through its environment and files."""
    if not isinstance(document, str):
        return findings.wrong(path, "text", document)
    if not document.strip():
        findings.add(path, "must not be empty")
    if len(document.encode("utf-8", "surrogatepass")) > SOURCE_BYTES:
        findings.add(path, f"is over {SOURCE_BYTES // 1_024} KiB")
    _refuse_nul(document, path, findings)
    return document


@accepting({"type": "string"})
def _argument(document: Json, path: str, findings: Findings) -> Any:
    if isinstance(document, str):
        _refuse_nul(document, path, findings)
    return template(document, path, findings)


_arguments = list_of(_argument, least=1)


@accepting(_arguments.schema)
def command(document: Json, path: str, findings: Findings) -> Any:
    """A list of arguments, each a template; the first is the program."""
    vector = _arguments(document, path, findings)
    if vector and vector[0] == "":
        findings.add(below(path, 0), "must name a program")
    return vector


def _refuse_nul(written: str, path: str, findings: Findings) -> None:
    if "\0" in written:
        findings.add(path, NO_NUL)


def _code_problems(values: Mapping[str, Any]) -> Collection[tuple[str, str]]:
    """`command` is for language command, `source` for all others."""
    language = values.get("language")
    if language is None:
        return ()
    is_command = language is Language.COMMAND
    wanted, refused = ("command", "source") if is_command else ("source", "command")
    found = [(wanted, f"is required for language {language}")] if wanted not in values else []
    if refused in values:
        found.append((refused, f"is not for language {language}; use {wanted}"))
    return [*found, *package_problems(language, values)]


@accepting(False)
def _never_in_flight(document: Json, path: str, findings: Findings) -> Any:
    """
    Refuse `onInterrupt` on steps that no worker runs: the steps inside, or the started workflow,
    say it.
    """
    findings.add(
        path,
        "is for code and ai steps: only these run when a worker dies; say it on the steps that "
        "this one holds, in the definition of the workflow that it starts, or at the top",
    )


_STEP_NAME = text(
    most=MAX_NAME,
    pattern="[A-Za-z_][A-Za-z0-9_-]*",
    wanted="letters, digits, _ and -, beginning with a letter or _",
)

_SECRET_NAME = text(most=MAX_NAME, pattern=secret_name.NAME, wanted=secret_name.WANTED)

_COMMON: Fields = {
    "name": Field(_STEP_NAME, "name", required=True),
    "kind": Field(text(), "kind", required=True),
    "when": Field(whole_template, "when"),
    "continueOnError": Field(boolean, "continue_on_error"),
    "onInterrupt": Field(_never_in_flight, "on_interrupt"),
}
_TIMED: Fields = {**_COMMON, "timeout": Field(duration, "timeout_ms")}
_RUN: Fields = {**_TIMED, "onInterrupt": Field(choice(OnInterrupt), "on_interrupt")}
"""What a worker runs, so that it can be in flight when that one dies. EX-25."""

KINDS: Mapping[str, StepKind] = {
    "code": StepKind(
        CodeStep,
        {
            **_RUN,
            "language": Field(choice(Language), "language", required=True),
            "source": Field(source, "source"),
            "command": Field(command, "command"),
            "network": Field(boolean, "network"),
            "secrets": Field(list_of(_SECRET_NAME, most=SECRETS_PER_ACCOUNT), "secrets"),
            "requirements": Field(list_of(requirement, most=MAX_PACKAGES), "requirements"),
            "packages": Field(packages, "packages"),
            "retry": Field(retry, "retry"),
        },
        _code_problems,
    ),
    "ai": StepKind(
        AiStep,
        {
            **_RUN,
            "model": Field(model, "model", required=True),
            "system": Field(template, "system"),
            "prompt": Field(prompt, "prompt", required=True),
            "maxTokens": Field(max_tokens, "max_tokens"),
            "temperature": Field(temperature, "temperature"),
            "schema": Field(schema, "schema"),
            "retry": Field(retry, "retry"),
        },
    ),
    "manual_approval": StepKind(
        ApprovalStep,
        {
            **_TIMED,
            "message": Field(template, "message"),
            "humans": Field(number(1, MAX_REQUIRED_APPROVALS, whole=True), "humans"),
            "delegable": Field(boolean, "delegable"),
            "autoApprove": Field(whole_template, "auto_approve"),
            "groups": Field(list_of(group, unique="name"), "groups"),
            "requiredApprovals": Field(
                number(1, MAX_REQUIRED_APPROVALS, whole=True), "required_approvals"
            ),
            "allowSelfApproval": Field(boolean, "allow_self_approval"),
            "reminders": Field(list_of(duration, most=MAX_REMINDERS), "reminders"),
            "links": Field(choice(Links), "links"),
            "notify": Field(CHANNELS, "notify"),
            "fields": Field(answer_fields, "fields"),
        },
        approval_problems,
        nested=review_fields,
    ),
    "delay": StepKind(
        DelayStep, {**_COMMON, "duration": Field(duration, "duration_ms", required=True)}
    ),
    "parallel": StepKind(
        ParallelStep,
        {**_TIMED, "maxParallel": Field(number(1, MAX_BRANCHES, whole=True), "max_parallel")},
        nested=trees.branches,
    ),
    "loop": StepKind(
        LoopStep,
        {
            **_TIMED,
            "items": Field(trees.items, "items", required=True),
            "maxParallel": Field(number(1, MAX_ROUNDS, whole=True), "max_parallel"),
        },
        nested=trees.rounds,
    ),
    "workflow": StepKind(
        ChildStep,
        {
            **_TIMED,
            "inputs": Field(trees.inputs, "inputs"),
            "retry": Field(retry, "retry"),
        },
        nested=trees.child,
    ),
}
