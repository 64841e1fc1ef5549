"""Sign-in by password, link or identity provider; sign-out; appearance. SE-1, SE-7 to SE-9."""

from http import HTTPStatus

from starlette.responses import Response

from adapters_http.browsers import (
    attempt_cookies,
    kept_attempt,
    preference_cookie,
    session_cookie,
    session_token,
)
from adapters_http.config import SignOn
from adapters_http.console.error_page import form_facts
from adapters_http.console.headers import page_headers
from adapters_http.console.language import CHOSEN, _
from adapters_http.console.passkeys import answer_in, assertion_of, passkey_request, problem_of
from adapters_http.console.paths import HOME, own_path, see_other
from adapters_http.console.rendering import DENSITY, THEME, TIMES, page
from adapters_http.request import Request
from wfcore.errors import (
    AccountBlocked,
    NotConfirmed,
    NotFound,
    PasskeyAwaited,
    TooManyAttempts,
    Unauthenticated,
    Unvouched,
)
from wfcore.model.access import OPERATOR
from wfcore.rules.auth.session import SignInMethod
from wfcore.usecases.accounts import passkeys, sessions
from wfcore.usecases.accounts.single_sign_on import come_back, leave_for
from wfcore.wire.languages import LANGUAGES


async def more(request: Request) -> Response:
    """All places and the settings of the browser: on a phone, where the frame has no room."""
    return page(request, "more.html")


async def show(request: Request) -> Response:
    """The form for signing in."""
    return await _form(request, own_path(request.query("next") or ""))


async def enter_by_passkey(request: Request) -> Response:
    """Sign in by a passkey, alone or after the password."""
    next = own_path(request.body.next)
    try:
        answer = answer_in(request.body.passkey)
        if answer is None:
            raise NotConfirmed("it needs a browser with scripts")
        signed_in = await passkeys.sign_in_by_passkey(
            request.services, assertion_of(answer), request.origin, session_token(request)
        )
    except NotConfirmed as refused:
        return await _form(request, next, problem_of(refused), status=HTTPStatus.UNAUTHORIZED)
    except AccountBlocked as refused:
        return await _form(request, next, f"{refused}.", status=HTTPStatus.FORBIDDEN)
    request.headers.append(session_cookie(request, signed_in.token))
    return see_other(request, next)


async def _form(
    request: Request, next: str, problem: str | None = None, email: str = "", status: int = 200
) -> Response:
    facts = form_facts(request, next, problem, email)
    facts["asked"] = await passkey_request(request)
    return page(request, "sign_in.html", status, **facts)


async def depart(request: Request) -> Response:
    """Redirect to the identity provider; 404 without an identity provider."""
    sign_on, next = _sign_on(request), own_path(request.query("next") or "")
    left = await leave_for(request.services, sign_on.provider, _back(request), next)
    request.headers.extend(attempt_cookies(request, left.kept, left.state))
    return Response(None, 303, {**page_headers(request), "Location": left.url})


async def arrive(request: Request) -> Response:
    """
    Complete the sign-in after the return from the identity provider. The method is GET, because
    browsers send cookies from another site only with a GET. Without the cookie and the state of the
    same attempt, no account is signed in.
    """
    sign_on = _sign_on(request)
    query = {name: request.query(name) or "" for name in request.query_names}
    kept, gone = kept_attempt(request, query.get("state", ""))
    request.headers.extend(gone)
    try:
        signed_in, next = await come_back(
            request.services,
            sign_on.provider,
            sign_on.terms,
            _back(request),
            query,
            kept,
            request.origin,
            session_token(request),
        )
    except (Unvouched, AccountBlocked) as refused:
        return await _form(request, HOME, f"{refused}.", status=HTTPStatus.FORBIDDEN)
    request.headers.append(session_cookie(request, signed_in.token))
    return see_other(request, own_path(next))


async def mail_link(request: Request) -> Response:
    """
    Mail a link that signs in. Every email gets the same answer at once: neither words nor time show
    whether a mail is sent. SE-10.
    """
    mail, email = request.context.config.mail, request.body.email.strip()
    if mail is None:
        raise NotFound("Page")
    if not email:
        return await _form(
            request, own_path(request.body.next), _("Type your e-mail first."), status=400
        )
    services = request.services
    services.login_traffic.admit(request.origin.ip, services.clock.now(), SignInMethod.MAIL)
    if services.link_traffic.admits(email, services.clock.now()):
        sending = sessions.mail_login_link(services, OPERATOR, mail, email, request.origin)
        request.context.background.begin(sending)
    return page(request, "mailed.html", email=email)


def _sign_on(request: Request) -> SignOn:
    found = request.context.config.sign_on
    if found is None:
        raise NotFound("Page")
    return found


def _back(request: Request) -> str:
    return f"{request.base_url}/sign-in/back"


async def enter(request: Request) -> Response:
    """Sign in by password. The page never shows whether the e-mail or the password is wrong."""
    form, next = request.body, own_path(request.body.next)
    try:
        signed_in = await sessions.sign_in(
            request.services, form.email, form.password, request.origin, session_token(request)
        )
    except Unauthenticated:
        problem, status = _("E-mail or password is wrong."), HTTPStatus.UNAUTHORIZED
    except TooManyAttempts as refused:
        minutes = -(-refused.retry_after_s // 60)
        problem = _("Too many attempts. Try again in {minutes} min.").format(minutes=minutes)
        status = HTTPStatus.TOO_MANY_REQUESTS
        request.headers.append((b"retry-after", b"%d" % refused.retry_after_s))
    except AccountBlocked as refused:
        problem, status = f"{refused}.", HTTPStatus.FORBIDDEN
    except PasskeyAwaited as awaited:
        asked = await passkey_request(request, awaited.account_id)
        return page(request, "passkey.html", next=next, asked=asked)
    else:
        request.headers.append(session_cookie(request, signed_in.token))
        return see_other(request, next)
    return await _form(request, next, problem, form.email, status)


async def show_link(request: Request) -> Response:
    """
    The account of a link. Opening the page does not use the link up, because mail scanners open
    links, too.
    """
    account = await sessions.account_of_link(request.services, request.params["token"])
    return page(request, "link.html", email=account.email)


async def use_link(request: Request) -> Response:
    """Sign in by a link, which is then used up."""
    token = request.params["token"]
    begun = await sessions.sign_in_by_link(
        request.services, token, request.origin, session_token(request)
    )
    request.headers.append(session_cookie(request, begun.token))
    return see_other(request, HOME)


async def leave(request: Request) -> Response:
    """Sign out, in this browser or everywhere; the script of the page deletes the drafts."""
    who, token = request.who, session_token(request) or ""
    if request.body.everywhere == "1":
        await sessions.end_sessions(request.services, who, who.account.id, request.origin)
    await sessions.sign_out(request.services, token, request.origin)
    request.headers.append(session_cookie(request, ""))
    return see_other(request, "/sign-in")


async def settle(request: Request) -> Response:
    """Store the appearance of pages in cookies."""
    response = see_other(request, own_path(request.body.next))
    for name, value, allowed in (
        (THEME, request.body.theme, ("light", "dark")),
        (TIMES, request.body.times, ("utc",)),
        (CHOSEN, request.body.language, LANGUAGES),
        (DENSITY, request.body.density, ("comfortable",)),
    ):
        chosen = value if value in allowed else ""
        response.raw_headers.append(preference_cookie(request, name, chosen))
    return response
