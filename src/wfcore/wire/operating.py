"""How the wire shows what owners and operators look after: keys, usage, triggers, the audit log."""

from collections.abc import Mapping, Sequence

from attrs import define, field

from wfcore.model.access import Account, AccountStatus, ApiKey, Permission, Scope, Tier
from wfcore.model.event import AuditEntry, AuditOutcome
from wfcore.model.execution import ExecutionStatus
from wfcore.model.json import JsonObject
from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.model.passkey import Passkey
from wfcore.model.workflow import DefinitionSnapshot
from wfcore.rules.definition.written import text_of, withheld
from wfcore.wire.common import ABSENT, ListPage
from wfcore.wire.workflows import WorkflowTriggerView


@define(eq=False, kw_only=True)
class KeyView:
    """
    A key; `apiKey`, its text, and `callbackSecret`, which signs callbacks, are there once, when
    they are made. `approvers`: the only people whom it may ask through gates, if it is bound.
    """

    id: str
    api_key: str | None = field(default=None, metadata=ABSENT, repr=False)
    callback_secret: str | None = field(default=None, metadata=ABSENT, repr=False)
    account_id: str
    name: str
    scopes: Sequence[Scope]
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None
    previous_until: int | None
    approvers: Sequence[str]


@define(eq=False)
class KeyList:
    keys: Sequence[KeyView]


@define(eq=False)
class PersonView:
    """An account, as operators see it. `operator`: whether it is marked as one of them."""

    id: str
    email: str
    plan: Tier
    status: AccountStatus
    operator: bool
    created_at: int


@define(eq=False, kw_only=True)
class PersonPage(ListPage):
    accounts: Sequence[PersonView]


@define(eq=False)
class SignedInView:
    """A session that is open."""

    created_at: int
    last_seen_at: int


@define(eq=False)
class PersonDetail:
    """An account with its open sessions and its keys."""

    account: PersonView
    sessions: Sequence[SignedInView]
    keys: Sequence[KeyView]


@define(eq=False)
class LoginLinkView:
    """A link that signs somebody in once, within 15 minutes; it is only in this response."""

    url: str


@define(eq=False)
class InvitationView:
    """
    An invitation: the account of the person. `url`: the link that signs the person in once, in this
    response alone; null: the link was mailed.
    """

    account: PersonView
    url: str | None


def person_view(account: Account) -> PersonView:
    """An account, without anything secret."""
    return PersonView(
        account.id,
        account.email,
        account.plan,
        account.status,
        account.operator,
        account.created_at,
    )


@define(eq=False)
class PeopleGroupView:
    """A group of the server, and the addresses of its members."""

    name: str
    members: Sequence[str]


@define(eq=False)
class PeopleGroupList:
    """The groups of the server, by name."""

    groups: Sequence[PeopleGroupView]


@define(eq=False)
class MemberView:
    """A member of a group, with the account of that email, if there is one."""

    email: str
    account_id: str | None
    status: AccountStatus | None


@define(eq=False)
class GroupUseView:
    """A workflow whose present definition, or an open execution's, names the group."""

    id: str
    name: str


@define(eq=False)
class PeopleGroupDetail:
    """A group, its members, and the workflows that name it as an approver."""

    name: str
    members: Sequence[MemberView]
    used_by: Sequence[GroupUseView]


def group_detail(
    name: str, members: Sequence[tuple[str, Account | None]], uses: Mapping[str, str]
) -> PeopleGroupDetail:
    """A group with its members and uses. *uses*: the names of workflows by their ids."""
    return PeopleGroupDetail(
        name,
        [_member(email, account) for email, account in members],
        [GroupUseView(id, workflow) for id, workflow in uses.items()],
    )


def _member(email: str, account: Account | None) -> MemberView:
    if account is None:
        return MemberView(email, None, None)
    return MemberView(email, account.id, account.status)


@define(eq=False)
class SecretView:
    """A secret of the account: never its value."""

    name: str
    updated_at: int


@define(eq=False)
class SecretList:
    secrets: Sequence[SecretView]


@define(eq=False)
class CheckView:
    """What was checked of the machine, what was found, and what helps where it is not fine."""

    name: str
    ok: bool
    detail: str
    cure: str | None


@define(eq=False)
class OperatorHealthView:
    """
    `trouble`: why the server is not ready; null: it is. `gauges`: those of `/metrics`.
    `notices_given_up`: so many were not delivered.
    """

    version: str
    trouble: str | None
    checks: Sequence[CheckView]
    gauges: JsonObject
    notices_given_up: int


@define(eq=False)
class WindowView:
    """One window of a quota: `used` of `limit` requests (null: no limit) until `end`."""

    kind: str
    used: int
    limit: int | None
    start: int
    end: int


@define(eq=False)
class QuotaView:
    """
    What a key, or a webhook without one, has used of its quota; `last_30_days`: requests that were
    admitted in 30 days, this one included.
    """

    id: str
    name: str
    windows: Sequence[WindowView]
    last_30_days: int


@define(eq=False)
class ModelView:
    """What a model did for a workflow. `unpriced`: the price of some of it is not known."""

    workflow_id: str
    workflow_name: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: str
    unpriced: bool


@define(eq=False)
class AccountUsageView:
    """
    Quotas now, and models since `since`; `cut`: of the newest 500 executions since then only.
    """

    plan: Tier
    quotas: Sequence[QuotaView]
    models: Sequence[ModelView]
    since: int
    cut: bool


@define(eq=False)
class OwnTriggerView:
    """A trigger and its workflow."""

    workflow_id: str
    workflow_name: str
    trigger: WorkflowTriggerView


@define(eq=False)
class FireView:
    """A start to come."""

    at: int
    trigger_id: str
    workflow_id: str


@define(eq=False)
class TriggerList:
    """Triggers, newest first, and the next fires of their schedules, the earliest first."""

    triggers: Sequence[OwnTriggerView]
    fires: Sequence[FireView]


@define(eq=False)
class AuditView:
    """A line of the audit log."""

    id: str
    at: int
    event: str
    outcome: AuditOutcome
    reason: str | None
    account_id: str | None
    key_id: str | None
    target: str | None
    path: str | None
    ip: str | None
    request_id: str | None
    details: JsonObject | None
    execution_id: str | None
    record_hash: str | None


@define(eq=False)
class AuditPage:
    """
    Entries, newest first. `next`: the `before` of what lies behind, absent at the end; a page may
    be empty and have one, where what is looked for is rare.
    """

    entries: Sequence[AuditView]
    next: int | None = field(default=None, metadata=ABSENT)


@define(eq=False)
class HourView:
    """Executions that were accepted in one hour: how many ended, and how many of them failed."""

    ended: int
    failed: int


@define(eq=False)
class WorkflowSummaryView:
    """
    A workflow without its definition. `hours`: of the last 24, the present one last; `waiting`:
    open approvals; `costUsd`: what executions have cost that were accepted in 7 days and have
    ended, without the `unpriced` ones, which used a model whose price is unknown.
    """

    id: str
    name: str
    owner_id: str
    permission: Permission
    version: int
    updated_at: int
    last_execution_id: str | None
    last_status: ExecutionStatus | None
    last_started_at: int | None
    hours: Sequence[HourView]
    waiting: int
    next_run_at: int | None
    cost_usd: str
    unpriced: int


@define(eq=False, kw_only=True)
class WorkflowSummaryPage(ListPage):
    items: Sequence[WorkflowSummaryView]


@define(eq=False)
class VersionView:
    """
    The text of one version. `written`: whether it is what the author wrote; else it is JSON, with
    the defaults of secrets masked. `tests`: the text of its scenarios. `warnings`: what its author
    should know, once it has been applied; not kept.
    """

    workflow_id: str
    version: int
    text: str
    written: bool
    tests: str
    warnings: Sequence[str] = ()


def version_view(found: DefinitionSnapshot, warnings: Sequence[str] = ()) -> VersionView:
    """The text of a version."""
    written = bool(found.source) and not withheld(found.definition)
    return VersionView(
        found.workflow_id, found.revision, text_of(found), written, found.tests, warnings
    )


@define(eq=False)
class VersionEntryView:
    """
    A version in a list. `appliedBy`: an email, null if the account is gone. `added`, `removed`:
    lines, compared with the version before.
    """

    version: int
    applied_at: int
    applied_by: str | None
    added: int
    removed: int


@define(eq=False, kw_only=True)
class VersionPage(ListPage):
    items: Sequence[VersionEntryView]


@define(eq=False)
class DifferenceView:
    """The difference of the texts of two versions, unified; empty if they are equal."""

    workflow_id: str
    from_: int
    to: int
    difference: str


@define(eq=False)
class ShareView:
    account_id: str
    email: str
    permission: Permission


@define(eq=False)
class ShareList:
    items: Sequence[ShareView]


def key_view(key: ApiKey, text: str | None = None, callback_secret: str | None = None) -> KeyView:
    """A key; with *text* and *callback_secret* where they were just made."""
    return KeyView(
        id=key.id,
        api_key=text,
        callback_secret=callback_secret,
        account_id=key.account_id,
        name=key.name,
        scopes=sorted(key.scopes),
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=key.last_used_at,
        previous_until=key.previous_until,
        approvers=key.approvers,
    )


@define(eq=False)
class PasskeyView:
    """
    A passkey of an account. `publicKey`: SubjectPublicKeyInfo in DER, base64url; `rpId`: the host
    for which it was registered.
    """

    id: str
    account_id: str
    name: str
    public_key: str
    algorithm: int
    rp_id: str
    created_at: int
    last_used_at: int | None


def passkey_view(passkey: Passkey, account_id: str) -> PasskeyView:
    """A passkey with the account that it belongs to."""
    return PasskeyView(
        passkey.id,
        account_id,
        passkey.name,
        passkey.public_key,
        passkey.algorithm,
        passkey.rp_id,
        passkey.created_at,
        passkey.last_used_at,
    )


def audit_view(entry: AuditEntry) -> AuditView:
    """A line of the audit log."""
    return AuditView(
        entry.id,
        entry.at,
        entry.event,
        entry.outcome,
        entry.reason,
        entry.account_id,
        entry.key_id,
        entry.target,
        entry.path,
        entry.ip,
        entry.request_id,
        entry.details,
        entry.execution_id,
        entry.record_hash,
    )


@define(eq=False)
class NoticeView:
    """
    A notice. `to`: an email, several with commas for the mail of a step, or null where the channel
    is a room. `subject`: the id of what it is
    about. `dueAt`: when it is sent, or tried again; `digest`: the notice that it was told with.
    """

    id: str
    kind: NoticeKind
    status: NoticeStatus
    channel: str
    to: str | None
    subject: str
    execution_id: str | None
    created_at: int
    due_at: int | None
    attempts: int
    attempted_at: int | None
    last_error: str | None
    digest: str | None


@define(eq=False, kw_only=True)
class NoticePage(ListPage):
    notices: Sequence[NoticeView]


def notice_view(notice: Notice) -> NoticeView:
    """A notice without what it says."""
    return NoticeView(
        id=notice.id,
        kind=notice.kind,
        status=notice.status,
        channel=notice.channel,
        to=", ".join(notice.recipients) or None,
        subject=notice.subject,
        execution_id=notice.execution_id,
        created_at=notice.created_at,
        due_at=notice.due_at,
        attempts=notice.attempts,
        attempted_at=notice.attempted_at,
        last_error=notice.last_error,
        digest=notice.digest,
    )
