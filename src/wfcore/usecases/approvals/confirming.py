"""
Requests for the passkey of an approver, before the decision. SR-3.

The statement of a decision is computed twice from the same body: here, to be signed, and when the
decision arrives. So only what the approver's page sent before the confirmation can be decided.
"""

from collections.abc import Sequence
from functools import partial

from attrs import frozen

from wfcore.errors import NotConfirmed
from wfcore.model.access import Account, Caller
from wfcore.model.approval import Approval
from wfcore.model.passkey import Passkey, RelyingParty
from wfcore.model.review import Assurance
from wfcore.rules.approval.receipts import require_early, statement_of
from wfcore.rules.auth.passkeys import Nonce, NonceUse, usable_passkeys
from wfcore.rules.receipt import challenge_of, statement_digest
from wfcore.usecases.accounts.passkeys import give_nonce, party_of
from wfcore.usecases.approvals.deciding import Decide, weigh
from wfcore.usecases.services import Services


@frozen
class PasskeyChoice:
    """A passkey that can confirm, with the digests of its statements and the challenge to sign."""

    passkey: Passkey
    digests: Sequence[str]
    challenge: bytes


@frozen
class ConfirmationRequest:
    """A request for one confirmation. `choices`: the passkeys that count, last used first."""

    nonce: Nonce
    rp_id: str
    choices: Sequence[PasskeyChoice]


async def begin_confirmation(
    services: Services, who: Caller, decisions: Sequence[Decide]
) -> ConfirmationRequest:
    """
    A request for the passkey that confirms these approvals with one gesture. SR-3.

    Raises as `decide_approval` does, and `NotConfirmed` if the account has no passkey that counts
    for all of them.
    """
    account, party = await _account(services, who), party_of(services)
    after = [(one, await weigh(services, who, one)) for one in decisions]
    counting = counting_passkeys(account, party, [made for _, made in after])
    nonce = await give_nonce(services, NonceUse.APPROVE, account.id)
    offer = partial(_choice, account.id, nonce, after)
    choices = await services.offload(lambda: [offer(one) for one in counting])
    return ConfirmationRequest(nonce, counting[0].rp_id, choices)


async def _account(services: Services, who: Caller) -> Account:
    async with services.store.view() as view:
        account = await view.get(Account, who.account_id) if who.account_id else None
    if account is None:
        raise NotConfirmed("it needs an account with a passkey; sign in")
    return account


async def require_passkey_for(services: Services, who: Caller, approval: Approval) -> None:
    """Raises `NotConfirmed` if *who* has no passkey that counts for a signed approval. SR-4."""
    if approval.assurance is Assurance.PASSKEY:
        counting_passkeys(await _account(services, who), party_of(services), [approval])


def counting_passkeys(
    account: Account, party: RelyingParty | None, approvals: Sequence[Approval]
) -> Sequence[Passkey]:
    """
    The passkeys that count for all of *approvals*, last used first. Raises `NotConfirmed` if there
    are none. SR-4, SR-7.
    """
    known = usable_passkeys(account, party)
    if not known:
        raise NotConfirmed("your account has no passkey here; register one on your account's page")
    counting = [one for one in known if _counts(one, approvals)]
    if not counting:
        raise NotConfirmed("each of your passkeys was registered after the question was asked")
    return counting


def _counts(passkey: Passkey, approvals: Sequence[Approval]) -> bool:
    try:
        for one in approvals:
            require_early(one, passkey)
    except NotConfirmed:
        return False
    return True


def _choice(
    account_id: str, nonce: Nonce, after: Sequence[tuple[Decide, Approval]], passkey: Passkey
) -> PasskeyChoice:
    digests = [
        statement_digest(
            statement_of(made, one.comment, account_id, passkey, nonce.given_at, nonce.token)
        )
        for one, made in after
    ]
    return PasskeyChoice(passkey, digests, challenge_of(digests))
