"""
Passkeys at the pages: confirmations of decisions, and the page of the reader's own account.

What a browser signs travels as JSON in one hidden field of a form, or in the body of the editor of
rows. SR-3 to SR-6.
"""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from adapters_http.browsers import session_token
from adapters_http.console.forms import ConfirmedBody, RegistrationBody
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.json_text import dump_json
from adapters_http.request import Request
from wfcore.errors import Conflict, InvalidInput, NotConfirmed
from wfcore.model.approval import Approval, DecisionSource
from wfcore.model.passkey import Assertion, Registration
from wfcore.rules.approval.machine import Approve
from wfcore.rules.auth.passkeys import NonceUse, usable_passkeys
from wfcore.rules.base64url import encoded
from wfcore.usecases.accounts import passkeys
from wfcore.usecases.accounts.passkeys import Confirmed
from wfcore.usecases.accounts.preferences import set_zone
from wfcore.usecases.approvals.confirming import ConfirmationRequest, begin_confirmation
from wfcore.usecases.approvals.deciding import Decide
from wfcore.wire.converter import structured


def source_of(request: Request) -> DecisionSource:
    """The source of decisions on this page: `link` for a guest, otherwise `console`."""
    return DecisionSource.LINK if request.guest else DecisionSource.CONSOLE


async def confirm(request: Request) -> bytes:
    """The request for a passkey, for the editor of rows; nothing is decided."""
    body = request.body
    if not body.expected_items_hash:
        raise InvalidInput("expectedItemsHash", "is required: the itemsHash of what was shown")
    decision = Approve(body.edited_items, body.answers)
    id, comment = request.params["id"], body.comment or None
    decide = Decide(id, decision, source_of(request), comment, body.expected_items_hash)
    asked = await begin_confirmation(request.services, request.caller, [decide])
    return dump_json(request_view(asked))


def request_view(asked: ConfirmationRequest) -> Mapping[str, Any]:
    """A request for a confirmation, for the script that asks the browser."""
    return {
        "nonce": asked.nonce.token,
        "rpId": asked.rp_id,
        "choices": [
            {
                "id": one.passkey.id,
                "name": one.passkey.name,
                "digests": one.digests,
                "challenge": encoded(one.challenge),
            }
            for one in asked.choices
        ],
    }


async def confirming_page(
    request: Request,
    decisions: Sequence[Decide],
    approvals: Sequence[Approval],
    fields: Sequence[tuple[str, str]],
    back: str,
) -> Response:
    """The page on which a browser asks for the passkey; it sends *fields* again with the answer."""
    asked = await begin_confirmation(request.services, request.caller, decisions)
    return page(
        request,
        "confirm.html",
        asked=dump_json(request_view(asked)).decode(),
        choices=[one.passkey for one in asked.choices],
        approvals=approvals,
        comment=decisions[0].comment,
        fields=fields,
        back=back,
    )


async def confirmed_in(request: Request, body: ConfirmedBody | None) -> Confirmed | None:
    """The confirmation in a request, which is taken; None without one. Raises `NotConfirmed`."""
    if body is None:
        return None
    return await passkeys.take_confirmation(
        request.services, request.caller, assertion_of(body), body.digests, request.origin
    )


def assertion_of(body: ConfirmedBody) -> Assertion:
    """The answer of a browser, for the use cases."""
    return Assertion(
        body.nonce,
        body.credential_id,
        body.authenticator_data,
        body.client_data,
        body.signature,
        body.user,
    )


async def passkey_request(request: Request, account_id: str = "") -> str | None:
    """
    The request for a passkey that signs in, for the page's script; None where there are none.
    *account_id*: whose password was right; empty: a passkey alone. SR-5.
    """
    if (party := passkeys.party_of(request.services)) is None:
        return None
    use = NonceUse.AFTER_PASSWORD if account_id else NonceUse.SIGN_IN
    nonce = await passkeys.give_nonce(request.services, use, account_id)
    known = await passkeys.list_passkeys(request.services, account_id) if account_id else ()
    asked = {
        "nonce": nonce.token,
        "rpId": party.id,
        "challenge": encoded(nonce.challenge),
        "allow": [one.id for one in known],
    }
    return dump_json(asked).decode()


def answer_in(text: str) -> ConfirmedBody | None:
    """The answer of a browser in a hidden field; None for an empty field. Raises `InvalidInput`."""
    return structured(ConfirmedBody, _object(text)) if text else None


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        raise InvalidInput("passkey", "is not what the page's script writes")
    return found


async def show_account(request: Request) -> Response:
    """The reader's account: their passkeys."""
    return await _account(request)


async def _account(request: Request, problem: str | None = None) -> Response:
    services, account = request.services, request.who.account
    party, asked = passkeys.party_of(services), None
    if party is not None:
        begun = await passkeys.begin_registration(services, request.who)
        asked = dump_json(
            {
                "nonce": begun.nonce.token,
                "challenge": encoded(begun.nonce.challenge),
                "rpId": party.id,
                "user": encoded(account.id.encode()),
                "email": account.email,
                "known": [one.id for one in account.passkeys],
            }
        ).decode()
    return page(
        request,
        "account.html",
        HTTPStatus.CONFLICT if problem else HTTPStatus.OK,
        asked=asked,
        usable=usable_passkeys(account, party),
        passkeys=account.passkeys,
        required=account.passkey_required,
        problem=problem,
    )


async def register(request: Request) -> Response:
    """Register the passkey that the browser made."""
    try:
        body = structured(RegistrationBody, _object(request.body.passkey))
        answer = Registration(body.nonce, body.client_data, body.attestation)
        await passkeys.register_passkey(
            request.services,
            request.who,
            session_token(request),
            answer,
            request.body.name,
            request.origin,
        )
    except (NotConfirmed, Conflict, InvalidInput) as refused:
        return await _account(request, problem_of(refused))
    return see_other(request, "/account")


def problem_of(refused: Exception) -> str:
    """A refusal in the reader's language."""
    if isinstance(refused, NotConfirmed):
        return _("The passkey does not confirm this: {why}.").format(why=_(refused.message))
    return _(str(refused))


async def rename(request: Request) -> Response:
    """Give a passkey another name."""
    id, name = request.params["id"], request.body.name
    try:
        await passkeys.rename_passkey(request.services, request.who, id, name, request.origin)
    except InvalidInput as refused:
        return await _account(request, problem_of(refused))
    return see_other(request, "/account")


async def remove(request: Request) -> Response:
    """Remove a passkey of one's own."""
    who, id, token = request.who, request.params["id"], session_token(request)
    try:
        await passkeys.remove_passkey(
            request.services, who, who.account.id, id, request.origin, token
        )
    except NotConfirmed as refused:
        return await _account(request, problem_of(refused))
    return see_other(request, "/account")


async def place(request: Request) -> Response:
    """Set the time zone of messages to the reader."""
    name = request.body.zone.strip()
    try:
        await set_zone(request.services, request.who, name)
    except InvalidInput:
        problem = _("{zone} is no time zone; write one like Europe/Berlin.").format(zone=name)
        return await _account(request, problem)
    return see_other(request, "/account")


async def require(request: Request) -> Response:
    """Let a password sign in only together with a passkey, or alone again."""
    on, token = request.body.required == "1", session_token(request)
    try:
        await passkeys.require_passkey(request.services, request.who, token, on, request.origin)
    except (NotConfirmed, InvalidInput) as refused:
        return await _account(request, problem_of(refused))
    return see_other(request, "/account")
