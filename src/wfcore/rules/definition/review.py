"""
The fields of a `manual_approval` step: the question, the approvers, and their possible answers.

An answer is checked as the cell of a column is, so a `fields` entry is a column without `editable`.
AP-21, AP-25, AP-29, AP-30.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from wfcore.errors import Problem
from wfcore.model.json import Json
from wfcore.model.review import (
    APPROVAL_TIMEOUT,
    Assurance,
    Column,
    ColumnType,
    Escalation,
    GroupSpec,
    OnRevise,
    Stage,
)
from wfcore.model.workflow import ApprovalStep, CodeStep, Definition
from wfcore.rules.approval.people import GROUP_MARK, is_template
from wfcore.rules.definition.tree import Fields, Reading
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    any_object,
    any_of,
    boolean,
    choice,
    duration,
    filled,
    known_or,
    list_of,
    number,
    object_schema,
    read_object,
    record,
    text,
    whole_template,
)
from wfcore.rules.limits import (
    MAX_ATTACHED_STEPS,
    MAX_FIELDS,
    MAX_REQUIRED_APPROVALS,
    MAX_REVISIONS,
    MAX_STAGES,
)
from wfcore.rules.mailbox import FORMS, is_name, same_name, warning_of
from wfcore.rules.paths import below


@accepting({"type": ["string", "number", "boolean"]})
def _scalar(document: Json, path: str, findings: Findings) -> Any:
    if document is None or isinstance(document, Mapping | list | tuple):
        return findings.wrong(path, "text, a number, true or false", document)
    return document


COLUMN = {
    "key": Field(
        filled, "key", "Its name: the field of the rows, or of the answer.", required=True
    ),
    "title": Field(text(), "title", "What people read above it. Default: the key."),
    "type": Field(choice(ColumnType), "type", "What it holds. Default: string."),
    "editable": Field(
        boolean,
        "editable",
        "`false`: reviewers cannot change it, which needs a `rowKey`. Default: true.",
    ),
    "required": Field(boolean, "required", "`true`: it may not be empty. Default: false."),
    "options": Field(list_of(_scalar), "options", "What may be chosen if the type is enum."),
}

FIELD = {name: row for name, row in COLUMN.items() if name != "editable"}


def _typed(fields: Mapping[str, Field]) -> Check:
    """A check for a column, or for a field to answer; its title defaults to its key."""

    @accepting(object_schema(fields))
    def check(document: Json, path: str, findings: Findings) -> Any:
        before = len(findings.problems)
        values = read_object(document, path, fields, findings)
        if values.get("type") is ColumnType.ENUM and not values.get("options"):
            findings.add(below(path, "options"), "is required for a column of type enum")
        if len(findings.problems) > before:
            return None
        return Column(**{"title": values["key"], **values})

    return check


column = _typed(COLUMN)
answer_fields = list_of(_typed(FIELD), most=MAX_FIELDS, unique="key")


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
    "name": Field(filled, "name", "The key of the group in the step's output.", required=True),
    "title": Field(text(), "title", "What reviewers read above the rows. Default: the name."),
    "rows": Field(
        rows,
        "rows",
        "The rows: a template whose result is a list of objects, or such a list. At most 10,000.",
        required=True,
    ),
    "rowKey": Field(
        filled,
        "row_key",
        "The column that identifies a row, so that a reviewer may send just the key "
        "and the changed cells.",
    ),
    "allowAdd": Field(boolean, "allow_add", "`true`: reviewers may add rows. Default: false."),
    "columns": Field(
        list_of(column, unique="key"),
        "columns",
        "What reviewers can write; other fields are passed on as proposed.",
    ),
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
    """
    Reports a read-only column without a row key: without it, nobody can see whether the column was
    changed. AP-25.
    """
    for at, one in enumerate(spec.columns):
        if not one.editable:
            where = below(below(below(path, "columns"), at), "editable")
            findings.add(where, "false needs a rowKey in the group, by which rows are told apart")


def approval_problems(values: Mapping[str, Any]) -> Collection[tuple[str, str]]:
    """
    The problems of a quorum that the named approvers cannot reach, or of a reminder that comes too
    early. AP-21.
    """
    named = {same_name(str(name)) for name in values.get("approvers") or ()}
    required = values.get("required_approvals") or 1
    timeout = values.get("timeout_ms") or APPROVAL_TIMEOUT
    found: list[tuple[str, str]] = []
    is_open = _depends(named)
    required = max(required, values.get("humans") or 0) if not values.get("stages") else required
    if named and not is_open and required > len(named):
        there = f"approvers names {len(named)}"
        found.append(("requiredApprovals", f"is {required}, but {there}; nobody else may approve"))
    for at, before in enumerate(values.get("reminders") or ()):
        if before is not None and before >= timeout:
            found.append((below("reminders", at), "must be shorter than the step's timeout"))
    return [*found, *_stage_problems(values)]


def _attachment(reading: Reading) -> Check:
    """Reads the name of a step whose artifacts belong to the question."""

    @accepting(filled.schema)
    def attached(document: Json, path: str, findings: Findings) -> Any:
        """A step before this one that may leave files. AP-29."""
        name = filled(document, path, findings)
        before = reading.names.steps
        if isinstance(name, str) and name not in before:
            findings.add(path, f"{name!r} is no step before this one; {known_or(name, before)}")
        elif (kind := reading.kinds_of.get(str(name))) and kind.build is not CodeStep:
            findings.add(path, f"{name!r} is no code step, and only these leave artifacts")
        return name

    return attached


def _way_back(reading: Reading) -> Check:
    """Reads the name of the step to which an approval may go back."""

    @accepting(filled.schema)
    def goto(document: Json, path: str, findings: Findings) -> Any:
        """A step before this one in the same list. AP-31."""
        name = filled(document, path, findings)
        if isinstance(name, str) and name not in reading.listed:
            near = known_or(name, reading.listed) if reading.listed else "there is none"
            findings.add(path, f"{name!r} is no step before this one in the same list; {near}")
        return name

    return goto


@accepting(any_of(filled.schema, whole_template.schema))
def approver(document: Json, path: str, findings: Findings) -> Any:
    """An email, an account id, a group, or a template. AP-34, AP-41, AP-49."""
    if isinstance(document, str) and is_template(document):
        return whole_template(document, path, findings)
    if isinstance(document, str) and document.startswith(GROUP_MARK):
        return filled(document, path, findings)
    return _person(document, path, findings, "group:NAME, or one template {{ … }}")


def _revise_fields(reading: Reading) -> Fields:
    """The fields of `onRevise`."""
    return {
        "goto": Field(
            _way_back(reading),
            "goto",
            "A step before this one in the same list, at which the execution goes on.",
            required=True,
        ),
        "max": Field(
            number(1, MAX_REVISIONS, whole=True),
            "max",
            "How often changes may be asked for. Default: 3.",
        ),
    }


STAGE: Fields = {
    "approvers": Field(
        list_of(approver, least=1), "approvers", "Who may decide in this stage.", required=True
    ),
    "requiredApprovals": Field(
        number(1, MAX_REQUIRED_APPROVALS, whole=True),
        "required_approvals",
        "How many of them must approve. Default: 1.",
    ),
    "when": Field(
        whole_template,
        "when",
        "A template; if it is false, null, 0 or empty, the stage is skipped.",
    ),
    "title": Field(text(), "title", "What people read of the stage."),
}


ESCALATE: Fields = {
    "after": Field(duration, "after_ms", "How long after the question.", required=True),
    "to": Field(
        list_of(approver, least=1),
        "to",
        "Who are then asked, too, written as approvers are.",
        required=True,
    ),
}


def review_fields(reading: Reading) -> Fields:
    """The fields of an approval that name other steps or approvers."""
    return {
        "attachments": Field(
            list_of(_attachment(reading), most=MAX_ATTACHED_STEPS),
            "attachments",
            "Names of code steps before this one, whose artifacts belong to the question.",
        ),
        "onRevise": Field(
            record(OnRevise, _revise_fields(reading)),
            "on_revise",
            "Approvers may ask for changes: the execution then goes back to an earlier step.",
        ),
        "approvers": Field(
            list_of(approver),
            "approvers",
            "Those who may decide: emails, account ids, groups, or templates that give such. "
            "Default: who may edit the workflow, and who started the execution.",
        ),
        "escalate": Field(
            record(Escalation, ESCALATE),
            "escalate",
            "Who is asked, too, after some time without a decision.",
        ),
        "stages": Field(
            list_of(record(Stage, STAGE), least=1, most=MAX_STAGES),
            "stages",
            "Approvers who are asked one after another.",
        ),
    }


ON_REVISE = {name: Field(filled, name) for name in ("goto", "max")}
"""The names of the fields of `onRevise`, for writing such an object out."""


def _person(document: Json, path: str, findings: Findings, others: str = "") -> Any:
    before = len(findings.problems)
    name = filled(document, path, findings)
    if len(findings.problems) == before and not is_name(name):
        more = f", {others}" if others else ""
        findings.add(path, f"{name!r} can be nobody: write {FORMS}{more}")
    return name


def _depends(names: Collection[str]) -> bool:
    """Whether the persons behind *names* are known only as the approval opens."""
    return any(name.startswith(GROUP_MARK) or is_template(name) for name in names)


_members = list_of(Check(_person, filled.schema), least=1)


@accepting(
    {
        "type": "object",
        "propertyNames": filled.schema,
        "additionalProperties": _members.schema,
    }
)
def approver_groups(document: Json, path: str, findings: Findings) -> Any:
    """The members of each group, by its name. AP-34."""
    if not isinstance(document, Mapping):
        return findings.wrong(path, "an object of lists by name", document)
    for name in document:
        filled(name, below(path, name), findings)
    return {name: _members(one, below(path, name), findings) for name, one in document.items()}


def named_people(definition: Definition) -> Iterator[tuple[str, str]]:
    """The names of people in *definition*, templates excluded, each with its path. AP-43."""
    for group, members in definition.approver_groups.items():
        yield from _each(below("approverGroups", group), members)
    yield from ((path, one) for path, one in _approvers(definition) if not _depends((one,)))


def _approvers(definition: Definition) -> Iterator[tuple[str, str]]:
    """The entries of `approvers`, `stages` and `escalate`, each with its path."""
    for path, step in definition.located():
        if isinstance(step, ApprovalStep):
            yield from _each(below(path, "approvers"), step.approvers)
            for at, stage in enumerate(step.stages):
                yield from _each(f"{path}.stages[{at}].approvers", stage.approvers)
            if step.escalate is not None:
                yield from _each(f"{path}.escalate.to", step.escalate.to)


def _each(path: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((below(path, at), name) for at, name in enumerate(names))


def server_groups(definition: Definition) -> Iterator[tuple[str, str]]:
    """
    The groups that approvers of *definition* name and the definition does not have, each with its
    path. Groups that templates name are known only as an approval opens. AP-49.
    """
    for path, entry in _approvers(definition):
        name = entry.removeprefix(GROUP_MARK)
        if entry.startswith(GROUP_MARK) and name not in definition.approver_groups:
            yield path, name


def unknown_groups(definition: Definition, known: Collection[str]) -> Iterator[Problem]:
    """
    A problem for each group that neither *definition* nor the server has. *known*: the groups of
    the server. AP-49.
    """
    either = sorted({*definition.approver_groups, *known})
    for path, name in server_groups(definition):
        if name not in known:
            near = known_or(name, either) if either else "there is none"
            fix = f"{name!r} is no group of approverGroups or of this server; {near}"
            yield Problem(path, fix)


def hidden_groups(definition: Definition, known: Collection[str]) -> Iterator[str]:
    """
    The warnings about groups of *definition* that hide a group of the server. *known*: the groups
    of the server. AP-49.
    """
    for name in definition.approver_groups:
        if name in known:
            where = below("approverGroups", name)
            yield f"{where}: this server has a group {name}, too; here the definition's counts"


def literal_ids(definition: Definition) -> Iterator[tuple[str, str]]:
    """The names that are ids of accounts, which only the store knows."""
    return ((path, same_name(name)) for path, name in named_people(definition) if "@" not in name)


def doubtful_people(definition: Definition) -> Iterator[str]:
    """The warnings about addresses that may get no mail. AP-43."""
    for path, name in named_people(definition):
        if (doubt := warning_of(name)) is not None:
            yield f"{path}: {doubt}"


def _stage_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The problems of stages: approvers given twice, a question to nobody, or too few people."""
    stages = values.get("stages") or ()
    for name, into in (("approvers", "approvers"), ("requiredApprovals", "required_approvals")):
        if stages and values.get(into):
            yield name, "is for steps without stages; say it in each stage"
    if stages and all(one is not None and one.when is not None for one in stages):
        yield "stages", "must have one without `when`, so that somebody is asked in any case"
    always = [one for one in stages if one is not None and one.when is None]
    named = {same_name(name) for one in always for name in one.approvers}
    if not _depends(named):
        wanted = sum(one.required_approvals for one in always)
        if len(named) < wanted:
            yield "stages", f"need {wanted} approvals of {len(named)} people; each counts once"
    for name, into in (("delegable", "delegable"), ("escalate", "escalate")):
        if values.get(into) and not (stages or values.get("approvers")):
            yield name, "needs approvers, or stages, that name who is asked first"
    late, timeout = values.get("escalate"), values.get("timeout_ms") or APPROVAL_TIMEOUT
    if late is not None and late.after_ms >= timeout:
        yield "escalate.after", "must be shorter than the step's timeout"
    if values.get("auto_approve") is not None and values.get("assurance") is Assurance.PASSKEY:
        yield "autoApprove", "a rule has no passkey; leave out autoApprove or assurance"
    if values.get("auto_approve") is not None and any(
        one is not None and one.required for one in values.get("fields") or ()
    ):
        yield "autoApprove", "cannot answer required fields; leave one of them out"
