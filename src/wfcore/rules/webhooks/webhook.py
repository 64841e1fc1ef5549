"""
Webhooks: their state machine, the rights to trigger a webhook, their changes, their number for each
account, and the statistics of their answers.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from typing import TypeAlias

from attrs import evolve, frozen

from wfcore.errors import AuthReason, Conflict, Forbidden, InvalidInput, Unauthenticated
from wfcore.machine import Machine, Row
from wfcore.model.access import Account, ApiKey, Principal, Tier
from wfcore.model.webhook import (
    ACCEPTED,
    IGNORED,
    AuthMode,
    Delivery,
    DisabledReason,
    Scheme,
    Tally,
    Webhook,
    WebhookStatus,
)
from wfcore.model.webhook import WebhookStatus as S
from wfcore.model.workflow import Definition
from wfcore.rules.limits import (
    DELIVERY_PAYLOAD,
    MAX_NAME,
    MAX_SECRET_OVERLAP,
    WEBHOOKS_PER_ACCOUNT,
)
from wfcore.rules.variables import check_printable
from wfcore.rules.webhooks.scheme import check_secret
from wfcore.time import DurationMs, EpochMs, later


@frozen
class Disabled:
    """The owner or the operator disabled the webhook."""


@frozen
class PlanExceeded:
    """
    After a downgrade the account has more webhooks than its plan allows; this webhook is one of the
    newest.
    """


@frozen
class WorkflowDeleted:
    """The webhook's workflow is deleted."""


@frozen
class AccessLost:
    """The webhook's owner may no longer EDIT the workflow."""


@frozen
class Enabled:
    """The owner, the operator or an upgrade enabled the webhook; plan and access allow it."""


Fact: TypeAlias = Disabled | PlanExceeded | WorkflowDeleted | AccessLost | Enabled

# fmt: off
WEBHOOK = Machine(
    name="webhook",
    initial=S.ACTIVE,
    final=frozenset(),
    rows=(
        Row(S.ACTIVE,   Disabled,        S.DISABLED, "WH-14"),
        Row(S.ACTIVE,   PlanExceeded,    S.DISABLED, "WH-5"),
        Row(S.ACTIVE,   WorkflowDeleted, S.DISABLED, "WH-10"),
        Row(S.ACTIVE,   AccessLost,      S.DISABLED, "WH-10"),
        Row(S.DISABLED, Disabled,        S.DISABLED, "WH-15"),
        Row(S.DISABLED, PlanExceeded,    S.DISABLED, "WH-15"),
        Row(S.DISABLED, WorkflowDeleted, S.DISABLED, "WH-15"),
        Row(S.DISABLED, AccessLost,      S.DISABLED, "WH-15"),
        Row(S.DISABLED, Enabled,         S.ACTIVE,   "WH-14"),
    ),
)
# fmt: on

BECAUSE: Mapping[DisabledReason, Fact] = {
    DisabledReason.MANUAL: Disabled(),
    DisabledReason.PLAN_LIMIT: PlanExceeded(),
    DisabledReason.WORKFLOW_DELETED: WorkflowDeleted(),
    DisabledReason.ACCESS_LOST: AccessLost(),
}
"""The fact behind each reason for which a webhook is disabled."""

REASON: Mapping[type, DisabledReason] = {type(fact): reason for reason, fact in BECAUSE.items()}


MAX_REASON = 500
"""Characters of the stored reason of a refused delivery."""

_KEY_WORDS: Mapping[AuthReason, str] = {
    AuthReason.MISSING: "the request carries no API key",
    AuthReason.MALFORMED: "what stands where a key should be is no API key",
    AuthReason.UNKNOWN_KEY: "there is no such API key",
    AuthReason.BAD_SECRET: "the secret part of the API key is wrong",
    AuthReason.REVOKED: "the API key is revoked",
    AuthReason.EXPIRED: "the API key is expired",
    AuthReason.SCOPE_MISSING: "the API key lacks the scope WEBHOOK_TRIGGER",
    AuthReason.NOT_BOUND_KEY: "the API key is not the one that the webhook is bound to",
    AuthReason.WRONG_ACCOUNT: "the API key belongs to another account than the webhook",
    AuthReason.SIGNATURE_MISMATCH: "the signature does not fit",
    AuthReason.SESSION_INVALID: "the session is over",
}


def require_bound_key(webhook: Webhook, who: Principal) -> None:
    """
    Raises `Unauthenticated` unless *who* has the bound key, of the webhook's own account. In key
    mode the webhook's secret does not count. WH-1, WH-11.
    """
    key_id = who.key.id if who.key else None
    if key_id != webhook.api_key_id:
        raise Unauthenticated(AuthReason.NOT_BOUND_KEY, who.account.id, key_id)
    if who.account.id != webhook.owner_id:
        raise Unauthenticated(AuthReason.WRONG_ACCOUNT, who.account.id, key_id)


def require_triggerable(webhook: Webhook) -> None:
    """Raises `Conflict` if the webhook is disabled. WH-2."""
    if webhook.status is WebhookStatus.DISABLED:
        raise Conflict("The webhook is disabled")


def require_plan(plan: Tier) -> None:
    """Raises `Forbidden` below the Pro plan, which webhooks need. WH-3."""
    if plan is Tier.FREE:
        raise Forbidden("Webhooks need the plan PRO or above")


def require_room(plan: Tier, older: Sequence[Webhook]) -> None:
    """
    Raises `Conflict` if the account has as many webhooks, active or not, as its plan allows.
    *older*: the account's webhooks created before this one. WH-4.
    """
    limit = WEBHOOKS_PER_ACCOUNT[plan]
    if limit is not None and len(older) >= limit:
        raise Conflict(
            f"The plan {plan} allows {limit} webhooks, active or not; delete one or upgrade"
        )


def older_than(webhook_id: str, webhooks: Sequence[Webhook]) -> tuple[Webhook, ...]:
    """
    The account's webhooks that were created before *webhook_id*; all webhooks for a new webhook.
    """
    by_age = _by_age(webhooks)
    return tuple(takewhile(lambda webhook: webhook.id != webhook_id, by_age))


def over_limit(plan: Tier, webhooks: Sequence[Webhook]) -> tuple[Webhook, ...]:
    """The newest active webhooks above the plan's limit, which a downgrade disables. WH-5."""
    limit = WEBHOOKS_PER_ACCOUNT[plan]
    over = _by_age(webhooks)[limit:] if limit is not None else ()
    return tuple(webhook for webhook in over if webhook.status is WebhookStatus.ACTIVE)


def back_within(plan: Tier, webhooks: Sequence[Webhook]) -> tuple[Webhook, ...]:
    """
    The webhooks to enable again: those that a downgrade disabled and that *plan* now has room for.
    WH-16.
    """
    within = _by_age(webhooks)[: WEBHOOKS_PER_ACCOUNT[plan]]
    return tuple(one for one in within if one.disabled_reason is DisabledReason.PLAN_LIMIT)


def _by_age(webhooks: Sequence[Webhook]) -> tuple[Webhook, ...]:
    return tuple(sorted(webhooks, key=lambda webhook: (webhook.created_at, webhook.id)))


def moved(webhook: Webhook, fact: Fact, now: EpochMs) -> Webhook:
    """
    Fold one fact into a webhook. Disabling a disabled webhook changes nothing: the first reason
    stays. WH-14, WH-15.

    Raises `IllegalMove` if the table has no row: an active webhook cannot be enabled.
    """
    status = WEBHOOK.target(webhook.status, type(fact))
    if status is webhook.status:
        return webhook
    reason = REASON.get(type(fact))
    return evolve(webhook, status=status, disabled_reason=reason, updated_at=now)


def disabled(webhook: Webhook, reason: DisabledReason, now: EpochMs) -> Webhook:
    """The webhook, disabled. The first reason stays."""
    return moved(webhook, BECAUSE[reason], now)


def enabled(webhook: Webhook, now: EpochMs) -> Webhook:
    """The webhook, active again. The caller has checked its plan and access."""
    return moved(webhook, Enabled(), now)


def require_own_key(key: ApiKey | None, owner: Account, now: EpochMs) -> ApiKey:
    """Raises `InvalidInput` unless the bound key is a valid key of the webhook's owner. WH-6."""
    if key is None or key.account_id != owner.id:
        raise InvalidInput("apiKeyId", "must be the id of one of your own API keys")
    if key.revoked_at is not None or (key.expires_at is not None and now >= key.expires_at):
        raise InvalidInput("apiKeyId", "is revoked or expired")
    return key


def bound(webhook: Webhook, api_key_id: str | None) -> Webhook:
    """
    The webhook with another key. The change to key mode cannot be reversed. WH-7.

    Raises `Conflict` if a key would be removed.
    """
    if api_key_id is None:
        if webhook.auth_mode is AuthMode.API_KEY:
            raise Conflict("A webhook bound to a key cannot go back to another mode")
        return webhook
    return evolve(webhook, api_key_id=api_key_id, old_secret=None, old_secret_until=None)


def current_secrets(webhook: Webhook, now: EpochMs) -> tuple[str, ...]:
    """The secrets valid at *now*: during an overlap also the previous secret. WH-19."""
    new, old, until = webhook.secret_key, webhook.old_secret, webhook.old_secret_until
    overlaps = old is not None and until is not None and now < until
    return tuple(secret for secret in (new, old if overlaps else None) if secret)


def require_signatures(webhook: Webhook) -> None:
    """Raises `Conflict` in key mode: there is no secret to change."""
    if webhook.auth_mode is AuthMode.API_KEY:
        raise Conflict("A webhook bound to a key takes no signatures")


def rekeyed(
    webhook: Webhook, scheme: Scheme, secret: str | None, overlap: DurationMs, now: EpochMs
) -> Webhook:
    """
    The webhook with another *scheme* or *secret* (None: the present secret). With a new secret of
    the same scheme, the previous secret stays valid for *overlap*. WH-17 to WH-19.

    Raises `Conflict` in key mode, `InvalidInput` for a secret that does not fit.
    """
    require_signatures(webhook)
    if not 0 <= overlap <= MAX_SECRET_OVERLAP:
        raise InvalidInput("overlap", f"must be 0 to {MAX_SECRET_OVERLAP} milliseconds (30 days)")
    if secret is None and webhook.secret_key is None:
        raise InvalidInput("secret", "is required: this webhook has none")
    chosen = check_secret(scheme, secret or webhook.secret_key or "")
    changed = evolve(webhook, scheme=scheme, secret_key=chosen)
    if scheme is not webhook.scheme:
        return evolve(changed, old_secret=None, old_secret_until=None)
    if webhook.secret_key in (None, chosen):
        return changed
    until = later(now, overlap)
    return evolve(changed, old_secret=webhook.secret_key, old_secret_until=until)


def refusal_in_words(error: Unauthenticated) -> str:
    """
    The reason why the credentials of a delivery were refused, for the webhook's owner only. WH-20.
    """
    return error.detail or _KEY_WORDS[error.reason]


def keeps_payload(definition: Definition, size: int) -> bool:
    """
    Whether the payload of a refused or ignored delivery of *size* bytes is stored for a replay.
    False if the workflow takes secrets, because the payload may contain a secret. WH-21.
    """
    takes_secrets = any(one.secret for one in definition.variables.values())
    return size <= DELIVERY_PAYLOAD and not takes_secrets


def may_be_replayed(delivery: Delivery) -> bool:
    """
    Whether anything of the delivery is stored: its payload, or the execution that it started.
    WH-22.
    """
    return delivery.execution_id is not None or delivery.payload is not None


def check_mapping(mapping: object) -> Mapping[str, str] | None:
    """`variableMapping`: variable name to top-level field name. Raises `InvalidInput`. WH-8."""
    if mapping is None:
        return None
    if not isinstance(mapping, Mapping):
        raise InvalidInput("variableMapping", "must be an object")
    for name, field in mapping.items():
        if not name or "\0" in name or not isinstance(field, str) or not field:
            raise InvalidInput(
                f"variableMapping.{name}", "must be the name of a top-level payload field"
            )
    return dict(mapping)


def check_name(name: str) -> str:
    """A webhook's or key's name. Raises `InvalidInput`."""
    if not name.strip() or len(name) > MAX_NAME:
        raise InvalidInput("name", f"must have 1 to {MAX_NAME} characters")
    check_printable("name", name)
    return name


def utc_date(at: EpochMs) -> str:
    """The UTC date (`YYYY-MM-DD`) of an instant."""
    return datetime.fromtimestamp(at / 1_000, UTC).date().isoformat()


@frozen
class Day:
    """The deliveries of one UTC day. `date` as YYYY-MM-DD."""

    date: str
    accepted: int
    rejected: int


@frozen
class Stats:
    """The answers of a webhook so far. `rejected`: counts by HTTP status."""

    total: int
    accepted: int
    ignored: int
    rejected: Mapping[str, int]
    last_triggered_at: EpochMs | None
    daily: tuple[Day, ...]


def stats(tallies: Sequence[Tally]) -> Stats:
    """The sum of one webhook's tallies; days in order. WH-9."""
    rejected: dict[str, int] = {}
    days: dict[str, Day] = {}
    ignored = sum(tally.count for tally in tallies if tally.status == IGNORED)
    judged = [tally for tally in tallies if tally.status != IGNORED]
    for tally in sorted(judged, key=lambda one: (one.date, one.status)):
        good = tally.count if tally.status == ACCEPTED else 0
        bad = tally.count - good
        if bad:
            rejected[str(tally.status)] = rejected.get(str(tally.status), 0) + bad
        day = days.get(tally.date, Day(tally.date, 0, 0))
        days[tally.date] = Day(tally.date, day.accepted + good, day.rejected + bad)
    accepted = sum(day.accepted for day in days.values())
    times = [tally.last_at for tally in tallies if tally.status == ACCEPTED]
    return Stats(
        total=accepted + ignored + sum(rejected.values()),
        accepted=accepted,
        ignored=ignored,
        rejected=rejected,
        last_triggered_at=max(times, default=None),
        daily=tuple(days.values()),
    )
