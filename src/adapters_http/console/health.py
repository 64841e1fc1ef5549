"""The health of the server as cards, the worst first; the metrics behind one press. AC-7."""

from collections.abc import Iterator, Mapping
from enum import IntEnum

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.formats import size, took
from adapters_http.console.language import N_, TranslatedTexts, _
from adapters_http.console.operate import operate_page
from adapters_http.handlers.operating import read_health
from adapters_http.request import Request
from wfcore.time import SECOND
from wfcore.wire.operating import OperatorHealthView

NEAR = 0.9
"""The share of a limit from which a card asks for attention."""
_SLOW_S = 300
"""The age in seconds from which work that is due is late."""
_QUEUE_S = 5
"""The age in seconds from which an execution waits too long for a server."""


class Grade(IntEnum):
    """How urgent a card is, the worst first."""

    BAD = 0
    NEAR = 1
    GOOD = 2


@frozen
class HealthCard:
    """
    One fact about the server. `figure`: in words. `share`: of the limit, from 0 to 1; None without
    a limit. `cure`: what to do if the card is not good. `path`: the page that says more.
    """

    name: str
    grade: Grade
    figure: str
    share: float | None = None
    cure: str = ""
    path: str = ""


_QUEUED = (
    N_("Oldest in the queue"),
    _QUEUE_S,
    N_("Executions wait for a server: raise the number of executions at once, or add one."),
    "executions?status=PENDING",
)
"""The card of the queue, as those of `_AGES`."""
_AGES: Mapping[str, tuple[str, int, str, str]] = {
    "wfcore_callbacks_oldest_due_seconds": (
        N_("Oldest callback that is due"),
        _SLOW_S,
        N_("Callbacks wait: the address that they go to may be slow or down."),
        "",
    ),
    "wfcore_notices_oldest_due_seconds": (
        N_("Oldest notice that is due"),
        _SLOW_S,
        N_("Notices wait: the mail server or the chat may be slow or down."),
        "operate/notices?status=DUE",
    ),
}
"""By the name of a gauge of seconds: the card, its limit in seconds, its cure and its page."""
CHECKS = TranslatedTexts(
    {
        "wfcore": N_("Program"),
        "data": N_("Data folder"),
        "disk": N_("Disk"),
        "backups": N_("Backups"),
        "keys": N_("Keys of the store"),
        "packages": N_("Packages of steps"),
        "isolation": N_("Isolation of steps"),
    }
)
"""The names of the checks of the machine."""


async def show(request: Request) -> Response:
    """The cards, and the metrics."""
    found = await read_health(request)
    shown = sorted(cards(found), key=lambda card: card.grade)
    return operate_page(request, "health", health=found, cards=shown, Grade=Grade)


def cards(health: OperatorHealthView) -> Iterator[HealthCard]:
    """One card for each fact that is known."""
    ready = health.trouble is None
    figure = f"wfcore {health.version}" if ready else str(health.trouble)
    yield HealthCard(_("Ready"), _good(ready), figure)
    for one in health.checks:
        name = CHECKS.get(one.name) or one.name
        yield HealthCard(name, _good(one.ok), one.detail, cure="" if one.ok else one.cure or "")
    lost = health.notices_given_up
    yield HealthCard(
        _("Notices given up"),
        _good(not lost),
        str(lost),
        cure=_("Nobody got them. Each says why, and can be tried again.") if lost else "",
        path="operate/notices?status=FAILED" if lost else "",
    )
    gauges = {name: float(value) for name, value in health.gauges.items()}  # type: ignore[arg-type]
    yield from capacity(gauges)
    yield from _of_gauges(gauges)


QUEUE = "wfcore_queue_oldest_seconds"


def capacity(gauges: Mapping[str, float]) -> Iterator[HealthCard]:
    """How many executions run at once of as many as may, and how long the oldest has waited."""
    running, places = gauges.get("wfcore_executions_running"), gauges.get("wfcore_places")
    if running is not None and places:
        share = running / places
        yield HealthCard(
            _("Executions at once"),
            Grade.NEAR if share >= NEAR else Grade.GOOD,
            _("{used} of {limit}").format(used=round(running), limit=round(places)),
            min(share, 1.0),
            _("All is in use: what starts now waits.") if share >= NEAR else "",
            "executions?status=RUNNING",
        )
    if QUEUE in gauges:
        yield _age(_(_QUEUED[0]), gauges[QUEUE], _QUEUED[1], _(_QUEUED[2]), _QUEUED[3])


def _of_gauges(gauges: Mapping[str, float]) -> Iterator[HealthCard]:
    for gauge, (name, limit, cure, path) in _AGES.items():
        if gauge in gauges:
            yield _age(_(name), gauges[gauge], limit, _(cure), path)
    loops = {name: up for name, up in gauges.items() if name.startswith("wfcore_loop_up")}
    if loops:
        down = [name.partition('"')[2].rstrip('"}') for name, up in loops.items() if not up]
        yield HealthCard(
            _("Background work"),
            _good(not down),
            ", ".join(down) or _("all runs"),
            cure=_("It stands still; the log of the server says why.") if down else "",
        )
    if (stored := gauges.get("wfcore_store_size_bytes")) is not None:
        yield HealthCard(_("Database"), Grade.GOOD, size(round(stored)))


def _age(name: str, seconds: float, limit: int, cure: str, path: str) -> HealthCard:
    late = seconds > limit
    figure = _("{age}, at most {limit}").format(
        age=took(round(seconds * SECOND)), limit=took(limit * SECOND)
    )
    share = min(seconds / limit, 1.0)
    return HealthCard(name, _good(not late), figure, share, cure if late else "", path)


def _good(is_so: bool) -> Grade:
    return Grade.GOOD if is_so else Grade.BAD
