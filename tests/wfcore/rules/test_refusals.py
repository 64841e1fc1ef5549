"""What is refused is refused in exact words: they name what is wrong, and what would do."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import astuple

from wfcore.errors import (
    AccountBlocked,
    AlreadyDecided,
    AuthReason,
    Conflict,
    Forbidden,
    InvalidInput,
    ItemsChanged,
    LimitReached,
    NotFound,
    RateLimited,
    TemplateFailed,
    TooManyAttempts,
    Unauthenticated,
    WfError,
)
from wfcore.model.access import AccountStatus, Admission, Permission, Principal, Scope, Tier
from wfcore.model.approval import ApprovalStatus, Assent, Group
from wfcore.model.webhook import Scheme, WebhookStatus
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, Concurrency, GroupSpec
from wfcore.rules.approval.agreement import require_seen
from wfcore.rules.approval.machine import (
    BY_END,
    BY_TIMEOUT,
    Expire,
    Reject,
    decide,
    with_assent,
)
from wfcore.rules.approval.released_rows import released_rows
from wfcore.rules.auth.access import (
    require_active,
    require_other_eyes,
    require_permission,
    require_scope,
)
from wfcore.rules.auth.api_key import Presented, check, hash_secret, parse, presented_key
from wfcore.rules.auth.rate_limit import verdict, windows
from wfcore.rules.auth.session import require_alive, require_unlocked
from wfcore.rules.execution.concurrency import require_room as require_room_in_group
from wfcore.rules.execution.open_approval import open_approval
from wfcore.rules.execution.redrive import plan_redrive
from wfcore.rules.paging import page_request
from wfcore.rules.webhooks.scheme import verify
from wfcore.rules.webhooks.webhook import (
    bound,
    check_mapping,
    check_name,
    require_bound_key,
    require_own_key,
    require_plan,
    require_room,
    require_triggerable,
)
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import EpochMs, later

Case = tuple[Callable[[], Any], WfError]


def refuses(deed: Callable[[], Any], wanted: WfError) -> None:
    with pytest.raises(type(wanted)) as caught:
        deed()
    assert type(caught.value) is type(wanted)
    assert astuple(caught.value) == astuple(wanted)  # type: ignore[arg-type]


def opened(rows: Any) -> Any:
    step = ApprovalStep("review", groups=(GroupSpec("rows", "Rows", rows, row_key="id"),))
    return open_approval(make.execution(), step, "review", "appr_1", NOW, lambda value: value)


HALF = make.approval(required_approvals=3, assents=(Assent("ann", "acc_1", NOW),))
CLOSED = make.approval(status=ApprovalStatus.APPROVED)
THEIRS = make.approval(allow_self_approval=False)
ROWS = "groups.rows.rows"
APPROVALS: list[Case] = [
    (
        lambda: decide(CLOSED, Reject(), BY_END, NOW),
        AlreadyDecided("The approval has already been decided", "appr_1"),
    ),
    (
        lambda: decide(CLOSED, Expire(), BY_TIMEOUT, NOW),
        AlreadyDecided("The approval has already been decided", "appr_1"),
    ),
    (
        lambda: with_assent(HALF, Assent("ann", "acc_1", NOW)),
        AlreadyDecided("You have approved this already; it needs 2 more", "appr_1"),
    ),
    (
        lambda: require_other_eyes(THEIRS, Principal(make.account("acc_1"))),
        Forbidden("Who started the execution may not approve it; another approver must"),
    ),
    (
        lambda: require_seen(HALF, "other"),
        ItemsChanged(
            "expectedItemsHash: what you saw has changed; read the approval again",
            "appr_1",
        ),
    ),
    (lambda: opened("text"), TemplateFailed(ROWS, "must give a list of rows")),
    (lambda: opened({}), TemplateFailed(ROWS, "must give a list of rows")),
    (
        lambda: opened([{"id": n} for n in range(10_001)]),
        TemplateFailed(ROWS, "gives 10001 rows; at most 10000"),
    ),
    (lambda: opened([{"id": 1}, 7]), TemplateFailed(ROWS, "row 1 is no object")),
    (lambda: opened([{"id": 1}, {}]), TemplateFailed(ROWS, "row 1: id is missing or repeated")),
    (
        lambda: opened([{"id": 1}, {"id": 1.0}]),
        TemplateFailed(ROWS, "row 1: id is missing or repeated"),
    ),
]


NO_ADDING = "rows may be added only where the group says allowAdd: true"
TELL_ME = (
    "has no column: send it as it was proposed, each row once, so that its row can be told; "
    "a group with a rowKey needs neither"
)


def released(
    rows: Any,
    group: str = "g",
    type: ColumnType = ColumnType.STRING,
    allow_add: bool = False,
    **hidden: Any,
) -> Any:
    columns = (
        Column("c", "C", type, required=True, options=("a", 1)),
        Column("fixed", "Fixed", ColumnType.JSON, editable=False),
    )
    items = ({"id": 1, "c": "x", **hidden}, {"id": 2, "c": "y"})
    asked = Group("g", "G", columns, items, "id", allow_add)
    approval = make.approval(groups=(asked, Group("a", "A", (), ())))
    return released_rows(approval, {group: rows})


def unkeyed(rows: Any) -> Any:
    items = ({"c": "x", "hidden": 1}, {"c": "y", "hidden": 2})
    return released_rows(
        make.approval(groups=(Group("g", "G", (Column("c", "C"),), items),)), {"g": rows}
    )


def typed(type: ColumnType, words: str) -> Case:
    row = {"id": 1, "c": ["wrong"]}
    return lambda: released([row], type=type), InvalidInput("editedItems.g[0].c", words)


RELEASES: list[Case] = [
    (
        lambda: released([], "x"),
        InvalidInput("editedItems.x", "unknown group; the groups are: a, g"),
    ),
    (
        lambda: released_rows(make.approval(), {"x": []}),
        InvalidInput("editedItems.x", "unknown group; the groups are: none"),
    ),
    (lambda: released("text"), InvalidInput("editedItems.g", "must be an array of row objects")),
    (
        lambda: released([{}] * 10_001),
        InvalidInput("editedItems.g", "must hold at most 10000 rows"),
    ),
    (lambda: released([7]), InvalidInput("editedItems.g[0]", "must be an object")),
    (lambda: released([{"id": 1, "c": None}]), InvalidInput("editedItems.g[0].c", "is required")),
    (
        lambda: released([{"id": 1, "d": 1}]),
        InvalidInput("editedItems.g[0].d", "is no column and no field of the proposed row"),
    ),
    (
        lambda: released([{"id": 1, "hidden": 8}], hidden=7),
        InvalidInput(
            "editedItems.g[0].hidden",
            "has no column and was changed; leave it out or as it was",
        ),
    ),
    (
        lambda: released([{}], "a"),
        InvalidInput("editedItems.a[0]", f"is more than was proposed; {NO_ADDING}"),
    ),
    (
        lambda: unkeyed([{"c": "x", "d": 1}]),
        InvalidInput("editedItems.g[0].d", "is no column and no field of the proposed row"),
    ),
    (lambda: unkeyed([{"c": "x"}]), InvalidInput("editedItems.g[0].hidden", TELL_ME)),
    (
        lambda: unkeyed([{"c": "x", "hidden": 3}]),
        InvalidInput("editedItems.g[0].hidden", TELL_ME),
    ),
    (
        lambda: unkeyed([{"c": "x", "hidden": 1}, {"c": "x", "hidden": 1}]),
        InvalidInput(
            "editedItems.g[1].hidden",
            "has no column and was changed; leave it out or as it was",
        ),
    ),
    (
        lambda: released([{"c": "z"}], allow_add=True),
        InvalidInput("editedItems.g[0].id", "is required: an added row needs a key of its own"),
    ),
    typed(ColumnType.STRING, "must be a string"),
    typed(ColumnType.NUMBER, "must be a number"),
    typed(ColumnType.BOOLEAN, "must be true or false"),
    typed(ColumnType.DATE, "must be a date (YYYY-MM-DD)"),
    typed(ColumnType.ENUM, "must be one of the options: a, 1"),
    (
        lambda: released([{"id": 3, "c": "z"}]),
        InvalidInput("editedItems.g[0].id", f"is no key of an original row; {NO_ADDING}"),
    ),
    (
        lambda: released([{"id": 2, "c": "z"}, {"id": 2, "c": "z"}]),
        InvalidInput("editedItems.g[1].id", "stands twice; each row may be released once"),
    ),
    (
        lambda: released([{"id": 2, "c": "z", "fixed": 1}]),
        InvalidInput("editedItems.g[0].fixed", "is read-only and was changed"),
    ),
]

OFF = make.webhook(status=WebhookStatus.DISABLED)
ME = make.account()
WEBHOOKS: list[Case] = [
    (
        lambda: require_bound_key(make.webhook(), Principal(ME, make.key("key_9"))),
        Unauthenticated(AuthReason.NOT_BOUND_KEY, "acc_1", "key_9"),
    ),
    (
        lambda: require_bound_key(make.webhook(), Principal(ME)),
        Unauthenticated(AuthReason.NOT_BOUND_KEY, "acc_1", None),
    ),
    (
        lambda: require_bound_key(make.webhook(), Principal(make.account("acc_2"), make.key())),
        Unauthenticated(AuthReason.WRONG_ACCOUNT, "acc_2", "key_1"),
    ),
    (lambda: require_triggerable(OFF), Conflict("The webhook is disabled")),
    (lambda: require_plan(Tier.FREE), Forbidden("Webhooks need the plan PRO or above")),
    (
        lambda: require_room(Tier.PRO, [make.webhook()] * 3),
        Conflict("The plan PRO allows 3 webhooks, active or not; delete one or upgrade"),
    ),
    (
        lambda: require_own_key(None, ME, NOW),
        InvalidInput("apiKeyId", "must be the id of one of your own API keys"),
    ),
    (
        lambda: require_own_key(make.key(revoked_at=NOW), ME, NOW),
        InvalidInput("apiKeyId", "is revoked or expired"),
    ),
    (
        lambda: bound(make.webhook(), None),
        Conflict("A webhook bound to a key cannot go back to another mode"),
    ),
    (lambda: check_mapping([]), InvalidInput("variableMapping", "must be an object")),
    (
        lambda: check_mapping({"v": ""}),
        InvalidInput("variableMapping.v", "must be the name of a top-level payload field"),
    ),
    (lambda: check_name(" "), InvalidInput("name", "must have 1 to 200 characters")),
    (lambda: check_name("x" * 201), InvalidInput("name", "must have 1 to 200 characters")),
]

KEY = make.key(secret_hash=hash_secret("new"))
SHARED = make.share(permission=Permission.VIEW)
BUSY = (NOW, EpochMs(NOW + 1_500))


def checked(secret: str, **fields: Any) -> Any:
    return check(
        make.key(secret_hash=hash_secret("new"), **fields), Presented("key_1", secret), NOW
    )


AUTHENTICATORS: list[Case] = [
    (lambda: parse("wfk_no"), Unauthenticated(AuthReason.MALFORMED)),
    (
        lambda: check(None, Presented("key_7", "new"), NOW),
        Unauthenticated(AuthReason.UNKNOWN_KEY, None, "key_7"),
    ),
    (lambda: checked("old"), Unauthenticated(AuthReason.BAD_SECRET, "acc_1", "key_1")),
    (
        lambda: checked("new", revoked_at=NOW),
        Unauthenticated(AuthReason.REVOKED, "acc_1", "key_1"),
    ),
    (
        lambda: checked("new", expires_at=NOW),
        Unauthenticated(AuthReason.EXPIRED, "acc_1", "key_1"),
    ),
    (lambda: presented_key([], [], []), Unauthenticated(AuthReason.MISSING)),
    (lambda: presented_key(["a", "b"], [], []), Unauthenticated(AuthReason.MALFORMED)),
    (lambda: presented_key([], ["a", "b"], []), Unauthenticated(AuthReason.MALFORMED)),
    (
        lambda: verify(Scheme.WFCORE, ["s"], {}, b"", NOW),
        Unauthenticated(
            AuthReason.SIGNATURE_MISMATCH, detail="the header x-webhook-signature is missing"
        ),
    ),
    (
        lambda: require_alive(make.session(account_id="acc_7", created_at=EpochMs(0)), NOW),
        Unauthenticated(AuthReason.SESSION_INVALID, "acc_7"),
    ),
    (lambda: require_alive(None, NOW), Unauthenticated(AuthReason.SESSION_INVALID)),
    (
        lambda: require_unlocked(make.login(locked_until=later(NOW, 1_001)), NOW),
        TooManyAttempts(2),
    ),
    (
        lambda: require_active(make.account(status=AccountStatus.LOCKED)),
        AccountBlocked("acc_1", None),
    ),
    (
        lambda: require_scope(Principal(ME, make.key(scopes=frozenset())), Scope.ARTIFACT_READ),
        Unauthenticated(AuthReason.SCOPE_MISSING, "acc_1", "key_1"),
    ),
    (
        lambda: require_scope(Principal(ME), Scope.ARTIFACT_READ),
        Unauthenticated(AuthReason.SCOPE_MISSING, "acc_1", None),
    ),
    (
        lambda: require_permission(None, "acc_1", None, Permission.VIEW),
        NotFound("Workflow"),
    ),
    (
        lambda: require_permission(make.workflow(), "acc_2", SHARED, Permission.EDIT),
        Forbidden("This needs the permission EDIT on the workflow"),
    ),
    (
        lambda: verdict(
            asked=windows(Tier.FREE, EpochMs(1)),
            taken=Admission(("minute",), (60, 60)),
            now=EpochMs(1),
        ),
        RateLimited("minute", 60, 60),
    ),
]

FULL = "and as many have not ended"
LISTS: list[Case] = [
    (
        lambda: require_room_in_group(make.execution(), Concurrency(1), 1),
        LimitReached(f"The workflow allows 1 execution at once, {FULL}", "wf_1", 1),
    ),
    (
        lambda: require_room_in_group(make.execution(), Concurrency(2, "{{ 1 }}"), 3),
        LimitReached(f"The workflow allows 2 executions with this key at once, {FULL}", "wf_1", 2),
    ),
    (
        lambda: page_request("0", None, (20, 200)),
        InvalidInput("page", "must be a positive integer"),
    ),
    (
        lambda: page_request("1", "", (20, 200)),
        InvalidInput("size", "must be a positive integer"),
    ),
    (
        lambda: plan_redrive(make.execution(), make.definition(), make.definition(), NOW),
        NotFound("Execution"),
    ),
]


@pytest.mark.parametrize(("deed", "refusal"), APPROVALS)
def test_what_cannot_be_decided(deed, refusal):
    """AP-1, AP-6, AP-16, AP-18, AP-19: an approval and its rows are refused in these words."""
    refuses(deed, refusal)


@pytest.mark.parametrize(("deed", "refusal"), RELEASES)
def test_what_cannot_be_released(deed, refusal):
    """AP-9: each mistake in `editedItems` is named by its place, with what would do."""
    refuses(deed, refusal)


@pytest.mark.parametrize(("deed", "refusal"), WEBHOOKS)
def test_what_a_webhook_refuses(deed, refusal):
    """WH-1 to WH-8: in words for the caller, and with account and key for the audit log."""
    refuses(deed, refusal)


@pytest.mark.parametrize(("deed", "refusal"), AUTHENTICATORS)
def test_who_is_not_let_in(deed, refusal):
    """AU-3, AU-4, AC-1, AC-3, SE-1, SE-2, RL-3: with whom it was, as far as that is known."""
    refuses(deed, refusal)


@pytest.mark.parametrize(("deed", "refusal"), LISTS)
def test_what_a_list_or_group_refuses(deed, refusal):
    """CC-4, PG-1, EX-17: in words that name the limit, the field or the kind."""
    refuses(deed, refusal)
