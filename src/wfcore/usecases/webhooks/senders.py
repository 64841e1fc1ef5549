"""Admission of a sender to a webhook: credentials, account status, rate, active status."""

from attrs import frozen

from wfcore.errors import AccountBlocked, NotFound, Unauthenticated
from wfcore.model.access import Account, Scope
from wfcore.model.webhook import AuthMode, Webhook
from wfcore.rules.auth.access import require_active
from wfcore.rules.auth.rate_limit import Quota
from wfcore.rules.webhooks.scheme import Headers, verify
from wfcore.rules.webhooks.webhook import current_secrets, require_bound_key, require_triggerable
from wfcore.usecases.accounts.authenticate import Credentials, authenticate, take
from wfcore.usecases.audit.auditing import Origin, note_denial
from wfcore.usecases.services import Services


async def find_webhook(services: Services, webhook_id: str) -> Webhook:
    """The webhook of a trigger URL. Raises `NotFound`."""
    async with services.store.view() as view:
        webhook = await view.get(Webhook, webhook_id)
    if webhook is None:
        raise NotFound("Webhook")
    return webhook


@frozen
class Sender:
    """
    A caller that may trigger a webhook. `subject`: the key or webhook whose quota the requests use.
    """

    subject: str
    account: Account


async def identify_sender(
    services: Services,
    webhook: Webhook,
    carried: Credentials,
    headers: Headers,
    body: bytes,
    origin: Origin,
) -> Sender:
    """
    The sender, if the request's credentials are valid for *webhook*. WH-1, WH-11, SG-3, SG-4.

    Raises `Unauthenticated`, `AccountBlocked` (both noted in the audit log).
    """
    try:
        if webhook.auth_mode is AuthMode.API_KEY:
            who = await authenticate(services, carried, Scope.WEBHOOK_TRIGGER)
            require_bound_key(webhook, who)
            return Sender(f"key:{webhook.api_key_id}", who.account)
        if webhook.auth_mode is AuthMode.SIGNATURE:
            now = services.clock.now()
            secrets = current_secrets(webhook, now)
            verify(webhook.scheme, secrets, headers, body, now)
        return await owner_as_sender(services, webhook)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(services, "webhook.trigger", refusal, origin, webhook.id)
        raise


async def owner_as_sender(services: Services, webhook: Webhook) -> Sender:
    """
    The owner of the webhook as its sender; a webhook without a bound key has a quota of its own.
    RL-5.

    Raises `AccountBlocked`, and `NotFound` if the owner is gone.
    """
    async with services.store.view() as view:
        owner = await view.get(Account, webhook.owner_id)
    if owner is None:
        raise NotFound("Webhook")
    require_active(owner)
    subject = f"key:{webhook.api_key_id}" if webhook.api_key_id else f"webhook:{webhook.id}"
    return Sender(subject, owner)


async def admit_sender(services: Services, webhook: Webhook, sender: Sender) -> Quota:
    """
    Admit *sender* to *webhook*: check first the sender's rate, then whether the webhook is active.
    WH-2, RL-5.

    Raises `RateLimited`, `Conflict`.
    """
    quota = await take(services, sender.subject, sender.account)
    require_triggerable(webhook)
    return quota
