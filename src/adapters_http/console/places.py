"""
The places of the console, as the frame shows them beside every page, by the role of the reader.

Who sees approvals but no workflow gets the inbox alone; pages for operators are not
offered to other readers. Each page judges for itself who may open it.
"""

from collections.abc import Sequence
from functools import cache

from attrs import frozen

from adapters_http.console.language import N_, TranslatedTexts, _
from adapters_http.console.routes import PAGES

MAIN = TranslatedTexts(
    {
        "inbox": N_("Inbox"),
        "overview": N_("Overview"),
        "executions": N_("Executions"),
        "workflows": N_("Workflows"),
    }
)
"""The first places, by path. The keys `g` and then the first letter lead to each."""
TABS = TranslatedTexts(
    {
        "webhooks": N_("Webhooks"),
        "schedules": N_("Schedules"),
        "keys": N_("Keys"),
        "usage": N_("Usage"),
        "secrets": N_("Secrets"),
        "audit": N_("Audit"),
    }
)
"""The pages below `/operate` that show the records of an owner; to an operator, all records."""
FOR_OPERATORS = TranslatedTexts(
    {
        "people": N_("People"),
        "groups": N_("Groups"),
        "notices": N_("Notices"),
        "health": N_("Health"),
    }
)
"""The pages below `/operate` for operators alone. AC-7."""
_ICONS = {"usage": "overview", "groups": "people"}
"""The icons of places whose icon has another name."""
_ON_PHONES = ("inbox", "executions", "workflows")


@frozen
class Place:
    """A link in the frame. `key`: the key that leads there after `g`; empty without a key."""

    path: str
    title: str
    icon: str
    key: str = ""
    tab: bool = False


@frozen
class Places:
    """A group of places; the first group has no title."""

    title: str
    places: Sequence[Place]


def places_for(owns: bool, operator: bool) -> Sequence[Places]:
    """
    The groups of places of a reader. *owns*: the reader sees a workflow, or nothing yet.
    *operator*: the reader operates the server.
    """
    first = [name for name in _main() if name == "inbox" or owns or operator]
    groups = [Places("", [_first(name) for name in first])]
    server = {"audit": TABS["audit"]} if operator else {}
    if owns or operator:
        own = {name: title for name, title in TABS.items() if name not in server}
        groups.append(Places(_("Connect"), [_below(*one) for one in own.items()]))
    if operator:
        groups.append(
            Places(_("Server"), [_below(*one) for one in {**FOR_OPERATORS, **server}.items()])
        )
    return groups


@cache
def _main() -> tuple[str, ...]:
    """The first places whose pages exist."""
    paths = {route.path for route in PAGES}
    return tuple(name for name in MAIN if f"/{name}" in paths)


def _first(name: str) -> Place:
    return Place(name, MAIN[name], name, name[0], name in _ON_PHONES)


def _below(name: str, title: str) -> Place:
    return Place(f"operate/{name}", title, _ICONS.get(name, name))
