"""An error as a page with advice."""

from http import HTTPStatus
from typing import Any

from adapters_http.console.language import N_, _, speak
from adapters_http.console.paths import path_here
from adapters_http.console.rendering import render
from adapters_http.request import Request


def form_facts(
    request: Request, next: str, problem: str | None = None, email: str = ""
) -> dict[str, Any]:
    """The facts of the form for signing in."""
    sign_on = request.context.config.sign_on
    return {
        "problem": problem,
        "email": email,
        "next": next,
        "provider": sign_on.name if sign_on else None,
        "mails": request.context.config.mail is not None,
        "asked": None,
    }


def error_page(
    request: Request,
    status: int,
    message: str,
    personal: bool = False,
    retry_s: int | None = None,
) -> str:
    """
    The page of an error with advice. The page of a 401 is the form for signing in, which leads back
    to this page. *personal*: the page of a personal link. *retry_s*: the seconds until another try
    may succeed.
    """
    speak(request)
    if status == HTTPStatus.UNAUTHORIZED:
        return render(request, "sign_in.html", **form_facts(request, path_here(request)))
    advices = _ADVICE_AT_A_LINK if personal else _ADVICE
    title, advice = advices.get(status, (HTTPStatus(status).phrase, ""))
    steps = [_(advice)] if advice else []
    if retry_s is not None:
        wait = f"{retry_s} s" if retry_s < _LONG_S else f"{-(-retry_s // 60)} min"
        steps.append(_("Try again in {wait}.").format(wait=wait))
    facts = {"title": _(title), "says": _(message), "advice": " ".join(steps)}
    return render(request, "error.html", status=status, navigates=not personal, **facts)


_LONG_S = 120

_ADVICE = {
    403: (N_("Not permitted"), N_("Ask the owner of the workflow, or sign in as somebody else.")),
    404: (
        N_("Not found"),
        N_("It no longer exists, or the account that you are signed in with may not see it."),
    ),
    410: (
        N_("This link is no longer valid"),
        N_("Each link signs you in once. On the server, wfcore login creates another one."),
    ),
    429: (N_("Too many attempts"), N_("Nothing is lost.")),
    503: (
        N_("Not available"),
        N_("Nothing was changed."),
    ),
}
_ADVICE_AT_A_LINK = {
    **_ADVICE,
    403: (N_("Not permitted"), N_("Sign in to decide, or ask the owner of the workflow.")),
    404: (N_("Not found"), N_("The approval no longer exists, or is no longer yours to decide.")),
    410: (
        N_("This link is no longer valid"),
        N_("A personal link is valid until its approval is decided or expires."),
    ),
}
