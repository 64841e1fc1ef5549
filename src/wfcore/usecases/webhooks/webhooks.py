"""Managing webhooks: creation, change, deletion, statistics. Spec: webhook management."""

from attrs import evolve, field, frozen

from wfcore.errors import InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Account, ApiKey, Permission, Principal, Unrestricted
from wfcore.model.json import Json
from wfcore.model.page import Page, PageRequest
from wfcore.model.webhook import DisabledReason, Scheme, Webhook, WebhookStatus
from wfcore.ports.store import Unit
from wfcore.rules.callback import SECRET_LENGTH
from wfcore.rules.limits import ROTATION_OVERLAP
from wfcore.rules.webhooks import webhook as rules
from wfcore.rules.webhooks.conditions import check_headers, check_when
from wfcore.rules.webhooks.scheme import check_secret, made_secret
from wfcore.rules.webhooks.webhook import Stats, stats
from wfcore.time import DurationMs, EpochMs
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried, workflow_for


@frozen
class NewWebhook:
    """
    The settings of a new webhook: bound to a key, signed (with `secret`; `makes_secret` requests a
    new secret), or open. Only the operator may choose an open webhook.
    """

    workflow_id: str
    name: str
    api_key_id: str | None = None
    variable_mapping: Json = None
    secret: str | None = field(default=None, repr=False)
    scheme: Scheme = Scheme.WFCORE
    makes_secret: bool = False
    when: Json = None
    headers: Json = None


class Unchanged:
    """Marks a field that a change leaves unchanged (None is a value)."""


UNCHANGED = Unchanged()


@frozen
class WebhookChange:
    """
    The fields of a webhook to change. `secret` None: a new secret made by the service; the previous
    secret stays valid for `overlap` milliseconds.
    """

    name: str | Unchanged = UNCHANGED
    api_key_id: str | None | Unchanged = UNCHANGED
    variable_mapping: Json | Unchanged = UNCHANGED
    status: WebhookStatus | Unchanged = UNCHANGED
    scheme: Scheme | Unchanged = UNCHANGED
    secret: str | None | Unchanged = field(default=UNCHANGED, repr=False)
    overlap: int | Unchanged = UNCHANGED
    when: Json | Unchanged = UNCHANGED
    headers: Json | Unchanged = UNCHANGED


@retried
async def create_webhook(
    services: Services, who: Principal, new: NewWebhook, origin: Origin = UNKNOWN
) -> Webhook:
    """
    A new active webhook of *who*, who must be allowed to EDIT the workflow. WH-3, WH-4, WH-6,
    WH-12, WH-24, WH-25.

    Raises `NotFound`, `Forbidden` (no EDIT, plan FREE), `InvalidInput` (key, mapping, name,
    secret, `when`, headers), `Conflict` (over the plan's limit).
    """
    now = services.clock.now()
    async with services.store.unit() as unit:
        await workflow_for(unit, who, new.workflow_id, Permission.EDIT)
        rules.require_plan(who.account.plan)
        if new.api_key_id is not None:
            rules.require_own_key(await unit.get(ApiKey, new.api_key_id), who.account, now)
        webhook = Webhook(
            id=services.ids.new("wh", now),
            owner_id=who.account.id,
            workflow_id=new.workflow_id,
            name=rules.check_name(new.name),
            created_at=now,
            updated_at=now,
            api_key_id=new.api_key_id,
            secret_key=_secret(services, new.scheme, new.secret, new.makes_secret),
            scheme=new.scheme,
            variable_mapping=(mapping := rules.check_mapping(new.variable_mapping)),
            when=check_when(new.when, services.templates.problems),
            headers=check_headers(new.headers, mapping),
        )
        await _claim_room(unit, who.account, webhook.id)
        unit.put(webhook)
        note(services, unit, "webhook.create", who, webhook.id, origin)
        await unit.commit()
    return webhook


def _secret(services: Services, scheme: Scheme, given: str | None, makes: bool) -> str | None:
    """The given secret, or a new secret made by the service. Raises `InvalidInput`. SG-7."""
    if given is not None:
        return check_secret(scheme, given)
    return made_secret(scheme, services.tokens.text(SECRET_LENGTH)) if makes else None


async def _claim_room(unit: Unit, owner: Account, webhook_id: str) -> None:
    """
    Require room within the plan for a webhook that is new or active again. The account is read
    first and put unchanged, so that of two units that both saw room only one unit commits.
    """
    current = await unit.get(Account, owner.id)
    if current is None:
        raise NotFound("Account")
    all_of_them = await unit.webhooks.all_of_owner(owner.id)
    rules.require_room(current.plan, rules.older_than(webhook_id, all_of_them))
    unit.put(current)


async def list_webhooks(
    services: Services, who: Principal | Unrestricted, page: PageRequest
) -> Page[Webhook]:
    """The webhooks of *who* (`OPERATOR`: of all accounts), newest first."""
    async with services.store.view() as view:
        return await view.webhooks.of_owner(None if who is OPERATOR else who.account.id, page)


async def read_webhook(
    services: Services, who: Principal | Unrestricted, webhook_id: str
) -> Webhook:
    """The webhook, for its owner or an operator. Raises `NotFound` for everybody else."""
    async with services.store.view() as view:
        return _own(await view.get(Webhook, webhook_id), who)


@retried
async def update_webhook(
    services: Services,
    who: Principal | Unrestricted,
    webhook_id: str,
    change: WebhookChange,
    origin: Origin = UNKNOWN,
) -> Webhook:
    """
    The webhook with *change* applied, completely or not at all. WH-4, WH-6, WH-7.

    Raises `NotFound`, `InvalidInput`, `Conflict` (a key would be removed, no room to enable, the
    workflow is gone), `Forbidden` (enabling without EDIT or on plan FREE).
    """
    now = services.clock.now()
    async with services.store.unit() as unit:
        webhook = _own(await unit.get(Webhook, webhook_id), who)
        owner = await unit.get(Account, webhook.owner_id)
        if owner is None:
            raise NotFound("Webhook")
        changed = await _changed(unit, webhook, owner, change, now)
        changed = _reconditioned(services, changed, change)
        changed = _resigned(services, changed, change, now)
        unit.put(evolve(changed, updated_at=now))
        note(services, unit, "webhook.update", who, webhook_id, origin)
        await unit.commit()
    return evolve(changed, updated_at=now)


async def _changed(
    unit: Unit, webhook: Webhook, owner: Account, change: WebhookChange, now: EpochMs
) -> Webhook:
    if not isinstance(change.name, Unchanged):
        webhook = evolve(webhook, name=rules.check_name(change.name))
    if not isinstance(change.variable_mapping, Unchanged):
        mapping = rules.check_mapping(change.variable_mapping)
        webhook = evolve(webhook, variable_mapping=mapping)
    if not isinstance(change.api_key_id, Unchanged):
        webhook = rules.bound(webhook, change.api_key_id)
        if change.api_key_id is not None:
            rules.require_own_key(await unit.get(ApiKey, change.api_key_id), owner, now)
    if isinstance(change.status, Unchanged) or change.status is webhook.status:
        return webhook
    if change.status is WebhookStatus.DISABLED:
        return rules.disabled(webhook, DisabledReason.MANUAL, now)
    await workflow_for(unit, Principal(owner), webhook.workflow_id, Permission.EDIT)
    rules.require_plan(owner.plan)
    await _claim_room(unit, owner, webhook.id)
    return rules.enabled(webhook, now)


def _reconditioned(services: Services, webhook: Webhook, change: WebhookChange) -> Webhook:
    """The webhook with its `when` and headers changed. Raises `InvalidInput`. WH-24, WH-25."""
    if not isinstance(change.when, Unchanged):
        webhook = evolve(webhook, when=check_when(change.when, services.templates.problems))
    headers = webhook.headers if isinstance(change.headers, Unchanged) else change.headers
    return evolve(webhook, headers=check_headers(headers, webhook.variable_mapping))


def _resigned(services: Services, webhook: Webhook, change: WebhookChange, now: EpochMs) -> Webhook:
    """The webhook with its scheme and secret changed. Raises `InvalidInput`, `Conflict`."""
    scheme = webhook.scheme if isinstance(change.scheme, Unchanged) else change.scheme
    overlap = ROTATION_OVERLAP if isinstance(change.overlap, Unchanged) else change.overlap
    if isinstance(change.secret, Unchanged):
        if not isinstance(change.overlap, Unchanged):
            raise InvalidInput("overlap", "needs a new secret beside it")
        if isinstance(change.scheme, Unchanged):
            return webhook
        return rules.rekeyed(webhook, scheme, None, DurationMs(0), now)
    rules.require_signatures(webhook)
    secret = _secret(services, scheme, change.secret, makes=True)
    return rules.rekeyed(webhook, scheme, secret, DurationMs(overlap), now)


@retried
async def delete_webhook(
    services: Services, who: Principal | Unrestricted, webhook_id: str, origin: Origin = UNKNOWN
) -> None:
    """Delete the webhook with its statistics and deliveries. Raises `NotFound`."""
    async with services.store.unit() as unit:
        webhook = _own(await unit.get(Webhook, webhook_id), who)
        unit.delete(webhook)
        note(services, unit, "webhook.delete", who, webhook_id, origin)
        await unit.commit()


async def webhook_stats(
    services: Services, who: Principal | Unrestricted, webhook_id: str
) -> Stats:
    """The counts of accepted and refused triggers. Raises `NotFound`. WH-9."""
    async with services.store.view() as view:
        webhook = _own(await view.get(Webhook, webhook_id), who)
        return stats(await view.webhooks.tallies(webhook.id))


async def last_triggered(services: Services, webhook_id: str) -> EpochMs | None:
    """The time of the last accepted trigger."""
    async with services.store.view() as view:
        return stats(await view.webhooks.tallies(webhook_id)).last_triggered_at


def _own(webhook: Webhook | None, who: Principal | Unrestricted) -> Webhook:
    sees = who is OPERATOR or who.operator or (webhook and webhook.owner_id == who.account.id)
    if webhook is None or not sees:
        raise NotFound("Webhook")
    return webhook
