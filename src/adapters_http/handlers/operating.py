"""
The functions of the pages of operating, for programs with a session; and the operations of the
command line from elsewhere (decision 187).
"""

from collections.abc import Iterable, Sequence

import attrs
from attrs import evolve

from adapters_http.params import enum_values, page, span
from adapters_http.request import Request
from wfcore.errors import Forbidden, InvalidInput, NotFound, NotReady, StoreUnavailable
from wfcore.model.access import ApiKey, Scope
from wfcore.model.event import AuditOutcome
from wfcore.model.notice import NoticeStatus
from wfcore.model.page import PageRequest
from wfcore.model.webhook import Webhook
from wfcore.rules.auth.access import require_operator
from wfcore.rules.limits import ROTATION_OVERLAP, WORKFLOW_PAGE
from wfcore.time import DurationMs
from wfcore.usecases.accounts import accounts, keys, usage
from wfcore.usecases.administration.operations import OPERATIONS
from wfcore.usecases.administration.operator import Answer, Operator, parameters_of
from wfcore.usecases.audit.auditing import AuditFilter, search_audit
from wfcore.usecases.notices import managing
from wfcore.usecases.workflows import browsing, triggers
from wfcore.usecases.workflows.browsing import WorkflowSummary
from wfcore.usecases.workflows.triggers import next_fires, triggers_seen
from wfcore.wire.common import WORKFLOWS, DoneView, shown_of
from wfcore.wire.converter import structured
from wfcore.wire.operating import (
    AccountUsageView,
    AuditPage,
    CheckView,
    FireView,
    HourView,
    KeyList,
    KeyView,
    ModelView,
    OperatorHealthView,
    OwnTriggerView,
    QuotaView,
    SecretList,
    SecretView,
    TriggerList,
    WindowView,
    WorkflowSummaryPage,
    WorkflowSummaryView,
    audit_view,
    key_view,
)
from wfcore.wire.workflows import WorkflowTriggerView, trigger_view

FIRES, LONGEST_NUMBER = 20, 16


async def list_summaries(request: Request) -> WorkflowSummaryPage:
    """What each workflow does, without definitions."""
    wanted = page(request, WORKFLOW_PAGE, WORKFLOWS)
    found = await browsing.list_summaries(request.services, request.who, wanted)
    return WorkflowSummaryPage(items=[*map(_summary, found.rows)], **shown_of(found, WORKFLOWS))


def _summary(one: WorkflowSummary) -> WorkflowSummaryView:
    flow, did = one.workflow, one.activity
    return WorkflowSummaryView(
        flow.id,
        flow.name,
        flow.owner_id,
        one.permission,
        flow.revision,
        flow.updated_at,
        did.last,
        did.last_status,
        did.last_at,
        [HourView(ended + failed, failed) for ended, failed in did.ends],
        did.waiting,
        did.next_at,
        did.cost_usd,
        did.unpriced,
    )


async def list_keys(request: Request) -> KeyList:
    """The account's keys, newest first, without their secrets."""
    return KeyList([key_view(one) for one in await own_keys(request)])


async def own_keys(request: Request) -> Sequence[ApiKey]:
    """The keys of the account; for a visitor only keys without further rights. AU-11."""
    found = await keys.list_keys(request.services, request.who.account.id)
    return [one for one in found if not _is_more_than_own(request, one.scopes)]


async def own_key(request: Request) -> tuple[ApiKey, Sequence[Webhook]]:
    """
    The key that the address names, with its webhooks. Raises `NotFound`, `Forbidden`.
    """
    found, hooks = await keys.read_key(request.services, request.who, request.params["id"])
    refuse_more_than_own(request, found.scopes)
    return found, hooks


async def create_key(request: Request) -> KeyView:
    """A new key, whose text is in this answer alone."""
    body, account = request.body, request.who.account
    refuse_more_than_own(request, body.scopes)
    lasts = body.expires_in
    if lasts is not None and lasts <= 0:
        raise InvalidInput("expiresIn", "must be a number of milliseconds above 0")
    made = await keys.create_key(
        request.services,
        account.id,
        body.name,
        body.scopes,
        DurationMs(lasts) if lasts is not None else None,
        request.origin,
        approvers=body.approvers or (),
    )
    return key_view(made.key, made.text, made.callback_secret)


def refuse_more_than_own(request: Request, scopes: Iterable[Scope]) -> None:
    """
    Raises `Forbidden` if a visitor would create or change a key with more rights than the visitor
    has. AU-10, AU-11.
    """
    if _is_more_than_own(request, scopes):
        raise Forbidden("A key may do no more than whoever creates it, or changes it")


def _is_more_than_own(request: Request, scopes: Iterable[Scope]) -> bool:
    return request.is_visitor and not request.who.scopes.issuperset(scopes)


async def rotate_key(request: Request) -> KeyView:
    """A new secret under the same id, in this answer alone."""
    id, overlap = request.params["id"], request.body.overlap
    await own_key(request)
    if overlap is not None and overlap < 0:
        raise InvalidInput("overlap", "must be a number of milliseconds, or 0")
    lasts = ROTATION_OVERLAP if overlap is None else DurationMs(overlap)
    made = await keys.rotate_key(request.services, request.who, id, lasts, request.origin)
    return key_view(made.key, made.text, made.callback_secret)


async def revoke_key(request: Request) -> KeyView:
    """Refuse it from its next request on."""
    id = request.params["id"]
    await own_key(request)
    return key_view(await keys.revoke_key(request.services, request.who, id, request.origin))


async def list_secrets(request: Request) -> SecretList:
    """The names of the account's secrets, never a value. SC-5."""
    found = await accounts.list_secrets(request.services, request.who.account.id)
    return SecretList([SecretView(one.name, one.updated_at) for one in found])


async def set_secret(request: Request) -> SecretView:
    """Set a secret of the account, or replace its value. SC-5."""
    name, account_id = request.params["name"], request.who.account.id
    await accounts.set_secret(
        request.services, request.who, account_id, name, request.body.value, request.origin
    )
    found = (await list_secrets(request)).secrets
    return next(one for one in found if one.name == name)


async def delete_secret(request: Request) -> DoneView:
    """Delete a secret of the account: steps that list it fail from now on. SC-5."""
    name, account_id = request.params["name"], request.who.account.id
    await accounts.delete_secret(request.services, request.who, account_id, name, request.origin)
    return DoneView(True)


async def read_health(request: Request) -> OperatorHealthView:
    """What operators look at first. AC-7."""
    require_operator(request.who)
    config = request.context.config
    checks = await config.checks() if config.checks is not None else ()
    given_up = await managing.list_notices(
        request.services, PageRequest(1, 1), (NoticeStatus.FAILED,)
    )
    return OperatorHealthView(
        config.version,
        await _trouble(request),
        [CheckView(one.name, one.ok, one.detail, one.cure) for one in checks],
        await config.gauges() if config.gauges is not None else {},
        given_up.total or 0,
    )


async def _trouble(request: Request) -> str | None:
    """The reason why the server is not ready, with internal details; None: it is ready."""
    try:
        await (request.context.config.ready or request.services.store.ping)()
    except StoreUnavailable as error:
        return f"{error} ({error.detail})" if error.detail else str(error)
    except NotReady as error:
        return str(error)
    return None


async def read_usage(request: Request) -> AccountUsageView:
    """Quotas and models."""
    found = await usage.read_usage(request.services, request.who)
    quotas = [
        QuotaView(
            one.id,
            one.name,
            [WindowView(w.kind, used, w.limit, w.start, w.end) for w, used in one.windows],
            one.month,
        )
        for one in found.keys
    ]
    models = [
        ModelView(
            one.workflow_id,
            one.workflow,
            one.model,
            one.input_tokens,
            one.output_tokens,
            str(one.cost_usd),
            one.unpriced,
        )
        for one in found.models
    ]
    return AccountUsageView(request.who.account.plan, quotas, models, found.since, found.cut)


async def list_triggers(request: Request) -> TriggerList:
    """Triggers, and what fires next."""
    seen = await triggers_seen(request.services, request.who)
    fires = next_fires(request.services, seen, FIRES)
    return TriggerList(
        [OwnTriggerView(one.trigger.workflow_id, name, trigger_view(one)) for one, name in seen],
        [FireView(at, one.trigger.id, one.trigger.workflow_id) for at, one, _ in fires],
    )


async def pause_trigger(request: Request) -> WorkflowTriggerView:
    """It starts nothing until it is resumed."""
    services, id = request.services, request.params["id"]
    return trigger_view(await triggers.pause_trigger(services, request.who, id, request.origin))


async def resume_trigger(request: Request) -> WorkflowTriggerView:
    """It starts again from its next instant on."""
    services, id = request.services, request.params["id"]
    return trigger_view(await triggers.resume_trigger(services, request.who, id, request.origin))


async def list_audit(request: Request) -> AuditPage:
    """What the account did, or was refused; an operator reads all of it."""
    since, until = span(request)
    outcomes = enum_values(request, "outcome", AuditOutcome)
    where = AuditFilter(
        event=request.query("event") or "",
        outcome=outcomes[0] if outcomes else None,
        account_id=request.query("accountId") or "",
        key_id=request.query("keyId") or "",
        target=request.query("target") or "",
        since=since,
        until=until,
    )
    size = page(request, WORKFLOW_PAGE).size
    found = await search_audit(request.services, request.who, where, _before(request), size)
    return AuditPage([audit_view(entry) for _, entry in found.entries], found.next)


def _before(request: Request) -> int | None:
    text = request.query("before")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise InvalidInput("before", "must be the `next` of an earlier page")
    return int(text)


async def perform(request: Request) -> Answer:
    """What the command of that name would print with `--json`."""
    operation = OPERATIONS.get(request.params["operation"])
    config = request.context.config
    if operation is None or config.read_definition is None:
        raise NotFound("Operation")
    parameters = structured(parameters_of(operation), request.json)
    at = Operator(
        request.services,
        config.read_definition,
        evolve(request.origin, operator=request.who),
        request.base_url,
        serving=True,
        warnings=config.definition_warnings,
    )
    return await operation(at, **attrs.asdict(parameters, recurse=False))
