"""Approvals, their rows and their history, on the wire."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import define, frozen

from wfcore.model.approval import (
    Approval,
    ApprovalStatus,
    Attachment,
    DecisionSource,
    Group,
    HistoryEntry,
    Purpose,
)
from wfcore.model.page import Page
from wfcore.model.workflow import Assurance, Column, ColumnType
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import present_stage, receipts_of
from wfcore.rules.receipt import receipt_document
from wfcore.wire.common import APPROVALS, ListPage, shown_of
from wfcore.wire.requests import Answers, ReceiptView, Row


@define(eq=False)
class ColumnView:
    key: str
    title: str
    type: ColumnType
    editable: bool
    required: bool
    options: Sequence[Any]


@define(eq=False)
class GroupView:
    """A group of rows. `items` is empty in lists, `itemsCount` is kept."""

    name: str
    title: str
    items: Sequence[Row]
    items_count: int


@define(eq=False)
class GroupDetail(GroupView):
    """A group with its rows and their columns. `allowAdd`: whether reviewers may add rows."""

    columns: Sequence[ColumnView]
    row_key: str | None
    allow_add: bool


@define(eq=False)
class FieldView:
    """A field that approvers answer."""

    key: str
    title: str
    type: ColumnType
    required: bool
    options: Sequence[Any]


@define(eq=False)
class AttachmentView:
    """An artifact that belongs to the question; `downloadUrl` opens it for 15 minutes."""

    id: str
    execution_id: str
    step_name: str
    name: str
    size: int
    content_type: str
    sha256: str
    download_url: str | None


class StageState(StrEnum):
    """How far a stage is: over, asked now, or asked later."""

    DONE = "done"
    PRESENT = "present"
    LATER = "later"


@define(eq=False)
class StageView:
    """Approvers who are asked after those before, and who of them has approved."""

    title: str
    approvers: Sequence[str]
    required_approvals: int
    approved_by: Sequence[str]
    state: StageState


@define(eq=False)
class DelegationView:
    """`to` decides in the place of `by` until that instant."""

    by: str
    to: str
    until: int


@define(eq=False)
class HistoryView:
    """
    Who did what when, with the rows before and after an edit, and the answers given. `receipt`: the
    signature of an approver who confirmed with a passkey.
    """

    at: int
    action: str
    by: str | None
    source: DecisionSource | None
    comment: str | None
    rows_before: Mapping[str, Sequence[Row]] | None
    rows_after: Mapping[str, Sequence[Row]] | None
    answers: Answers | None
    receipt: ReceiptView | None


@frozen
class Standing:
    """What an approval is to its reader. `why_not` None: the reader may approve it now."""

    workflow_name: str
    why_not: str | None


@define(eq=False, kw_only=True)
class ApprovalHead:
    """
    `canDecide`: whether the reader may approve it now, and if not, `whyNot`. These and
    `workflowName` are null where nobody in particular reads. `reference`: of its execution.
    """

    id: str
    execution_id: str
    workflow_id: str
    step_name: str
    purpose: Purpose
    status: ApprovalStatus
    approval_message: str
    timeout: int
    created_at: int
    expires_at: int
    decided_at: int | None
    decided_by: str | None
    decision_source: DecisionSource | None
    comment: str | None
    required_approvals: int
    approved_by: Sequence[str]
    allow_self_approval: bool
    assurance: Assurance
    reminders: Sequence[int]
    round: int
    revise_to: str | None
    revisions_left: int
    humans: int
    stages: Sequence[StageView]
    delegable: bool
    delegated_to: Sequence[DelegationView]
    approvers: Sequence[str]
    workflow_name: str | None
    reference: str | None
    can_decide: bool | None
    why_not: str | None


@define(eq=False, kw_only=True)
class ApprovalView(ApprovalHead):
    """An approval as lists show it: the rows are left out."""

    reviewable_groups: Sequence[GroupView]


@define(eq=False, kw_only=True)
class ApprovalDetail(ApprovalHead):
    """
    An approval with its rows, their columns, and its history. `itemsHash` is another one when
    any row, answer or attachment is another one. `receipts`: one for each person whose approval
    counts and who signed it with a passkey.
    """

    reviewable_groups: Sequence[GroupDetail]
    attachments: Sequence[AttachmentView]
    fields: Sequence[FieldView]
    answers: Answers
    items_hash: str
    receipts: Sequence[ReceiptView]
    history: Sequence[HistoryView]


@define(eq=False, kw_only=True)
class ApprovalPage(ListPage):
    approvals: Sequence[ApprovalView]


@define(eq=False)
class ExecutionApprovals:
    """All approvals of one execution."""

    approvals: Sequence[ApprovalView]
    total: int


def approval_view(approval: Approval, standing: Standing | None = None) -> ApprovalView:
    """An approval without its rows; their number is kept. AP-13."""
    groups = [GroupView(group.name, group.title, (), group.count) for group in approval.groups]
    return ApprovalView(**_head(approval, standing), reviewable_groups=groups)


def approval_detail(
    approval: Approval,
    link: Callable[[Attachment], str] | None = None,
    standing: Standing | None = None,
) -> ApprovalDetail:
    """An approval with rows, columns and history; *link* makes the `downloadUrl` of a file."""
    return ApprovalDetail(
        **_head(approval, standing),
        reviewable_groups=[_group(group) for group in approval.groups],
        attachments=[_attachment(one, link) for one in approval.attachments],
        fields=[field_view(one) for one in approval.fields],
        answers=approval.answers,
        items_hash=items_hash(approval),
        receipts=[receipt_document(one) for one in receipts_of(approval)],
        history=[_history(entry) for entry in approval.history],
    )


def _head(approval: Approval, standing: Standing | None) -> dict[str, Any]:
    return {
        "id": approval.id,
        "execution_id": approval.execution_id,
        "workflow_id": approval.workflow_id,
        "step_name": approval.step_name,
        "purpose": approval.purpose,
        "status": approval.status,
        "approval_message": approval.message,
        "timeout": approval.timeout_ms,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decided_at": approval.decided_at,
        "decided_by": approval.decided_by,
        "decision_source": approval.decision_source,
        "comment": approval.comment,
        "required_approvals": approval.required_approvals,
        "approved_by": [one.by for one in approval.assents],
        "allow_self_approval": approval.allow_self_approval,
        "assurance": approval.assurance,
        "reminders": approval.reminders,
        "round": approval.round,
        "revise_to": approval.revise_to,
        "revisions_left": approval.revisions_left,
        "humans": approval.humans,
        "stages": stage_views(approval),
        "delegable": approval.delegable,
        "delegated_to": [DelegationView(one.by, one.to, one.until) for one in approval.delegations],
        "approvers": approval.approvers,
        "workflow_name": standing and standing.workflow_name,
        "reference": approval.reference,
        "can_decide": standing and standing.why_not is None,
        "why_not": standing and standing.why_not,
    }


def stage_views(approval: Approval) -> Sequence[StageView]:
    """The stages, with who has approved in each."""
    present = present_stage(approval)
    found: list[StageView] = []
    for at, one in enumerate(approval.stages):
        given = [assent.by for assent in approval.assents if assent.stage == at]
        state = StageState.LATER
        if len(given) >= one.required_approvals:
            state = StageState.DONE
        elif at == present:
            state = StageState.PRESENT
        found.append(StageView(one.title, one.approvers, one.required_approvals, given, state))
    return found


def _group(group: Group) -> GroupDetail:
    columns = [column_view(column) for column in group.columns]
    return GroupDetail(
        group.name,
        group.title,
        group.items,
        len(group.items),
        columns,
        group.row_key,
        group.allow_add,
    )


def column_view(column: Column) -> ColumnView:
    """A column of a group."""
    return ColumnView(
        column.key, column.title, column.type, column.editable, column.required, column.options
    )


def field_view(field: Column) -> FieldView:
    """A field that approvers answer."""
    return FieldView(field.key, field.title, field.type, field.required, field.options)


def _attachment(one: Attachment, link: Callable[[Attachment], str] | None) -> AttachmentView:
    return AttachmentView(
        one.artifact_id,
        one.execution_id,
        one.step_name,
        one.name,
        one.size,
        one.content_type,
        one.sha256,
        link(one) if link is not None else None,
    )


def _history(entry: HistoryEntry) -> HistoryView:
    return HistoryView(
        entry.at,
        entry.action,
        entry.by,
        entry.source,
        entry.comment,
        entry.rows_before,
        entry.rows_after,
        entry.answers,
        receipt_document(entry.receipt) if entry.receipt is not None else None,
    )


Standings = Mapping[str, Standing]
"""By the id of the approval."""


def approval_page(found: Page[Approval], standings: Standings) -> ApprovalPage:
    """One page of approvals, without their rows."""
    rows = [approval_view(approval, standings[approval.id]) for approval in found.rows]
    return ApprovalPage(approvals=rows, **shown_of(found, APPROVALS))


def execution_approvals(approvals: Sequence[Approval], standings: Standings) -> ExecutionApprovals:
    """All approvals of one execution, without their rows."""
    views = [approval_view(one, standings[one.id]) for one in approvals]
    return ExecutionApprovals(views, len(views))
