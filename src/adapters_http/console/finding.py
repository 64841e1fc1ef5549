"""The search over all that the reader sees, with pages and deeds: `/search`, and ⌘K. PG-9."""

from collections.abc import Iterator, Sequence

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.language import _
from adapters_http.console.places import places_for
from adapters_http.console.rendering import page
from adapters_http.console.routes import PAGES
from adapters_http.request import Request
from wfcore.model.access import Scope
from wfcore.rules.searching import fits
from wfcore.usecases.searching import SearchResults, search


@frozen
class Goal:
    """A page or a deed. `path`: below the mount."""

    title: str
    path: str
    icon: str


async def show(request: Request) -> Response:
    """The results for the text in the address; without a text all pages and deeds."""
    text = (request.query("q") or "").strip()
    found = await search(request.services, request.who, text)
    return page(
        request,
        "search.html",
        text=text,
        found=found,
        deeds=[one for one in _deeds(request, found) if fits(text, one.title)],
        pages=[one for one in _pages(request) if fits(text, one.title)],
    )


def _pages(request: Request) -> Sequence[Goal]:
    groups = places_for(request.owns, request.who.operator)
    found = [Goal(one.title, one.path, one.icon) for group in groups for one in group.places]
    return [*found, Goal(_("Account"), "account", "person")]


def _deeds(request: Request, found: SearchResults) -> Iterator[Goal]:
    """What the reader may do, each as a link to the page that does it."""
    scopes, operator = request.who.scopes, request.who.operator
    if not scopes or Scope.WORKFLOW_EXECUTE in scopes:
        for flow in found.workflows:
            title = _("Start {name}…").format(name=flow.name)
            yield Goal(title, f"workflows/{flow.id}/start", "start")
    if not (request.owns or operator):
        return
    yield Goal(_("Begin: the first steps"), "start", "start")
    if any(one.path == "/workflows/new" for one in PAGES):
        yield Goal(_("New workflow…"), "workflows/new", "plus")
    yield Goal(_("Connect a webhook…"), "operate/webhooks/new", "webhooks")
    yield Goal(_("Create a key…"), "operate/keys#new-title", "keys")
    yield Goal(_("Add a secret…"), "operate/secrets#add", "secrets")
    if operator:
        yield Goal(_("Invite a person…"), "operate/people#invite", "people")
        yield Goal(_("Create a group…"), "operate/groups#new-title", "people")
