"""
What pages say, in the reader's language: every text goes through `_`, or `N_` where a module holds
it. The language is that of the request, whose task a context variable belongs to.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal
from operator import itemgetter

from adapters_http.browsers import cookie
from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.model.json import Json
from wfcore.rules.approval.machine import BY_RULE
from wfcore.rules.approval.typed import cell_text
from wfcore.rules.decimals import Doubtful, decimal_signs, decimal_text
from wfcore.rules.visible import visible
from wfcore.rules.written_dates import date_orders, date_text
from wfcore.time import DAY, HOUR, MINUTE, SECOND, EpochMs
from wfcore.wire.languages import ENGLISH, LANGUAGES, translations

_SPOKEN: ContextVar[str] = ContextVar("language", default=ENGLISH)
_SIGNS: ContextVar[str] = ContextVar("decimal signs", default=".")
_ORDERS: ContextVar[str] = ContextVar("orders of dates", default="")
CHOSEN = "wfcore_language"
"""The cookie with the language that the browser's owner chose."""


def speak(request: Request) -> None:
    """From here on, speak to the reader of this request in their language."""
    accepted = request.header(b"accept-language")
    _SPOKEN.set(tag_for(cookie(request, CHOSEN), accepted))
    tags = _preferred(accepted or "") or [tag()]
    _SIGNS.set(decimal_signs(tags))
    _ORDERS.set(date_orders(tags))


def tag_for(chosen: str | None, accepted: str | None) -> str:
    """
    The tag of a language that is here, with the reader's region where they say it (`de-AT`): the
    *chosen* one, else the first *accepted* one, else English.
    """
    tags = [*_preferred(accepted or ""), ENGLISH]
    known = [tag for tag in tags if tag.partition("-")[0].lower() in LANGUAGES]
    if chosen in LANGUAGES:
        return next((tag for tag in known if tag.partition("-")[0].lower() == chosen), chosen)
    return known[0]


def _preferred(accepted: str) -> Sequence[str]:
    """The tags of an Accept-Language header, the best first."""
    found = list[tuple[float, str]]()
    for part in accepted.split(",")[:_MOST_TAGS]:
        tag, _, quality = part.strip().partition(";q=")
        if _TAG.fullmatch(tag):
            found.append((-float(quality) if _QUALITY.fullmatch(quality) else -1.0, tag))
    return [tag for weight, tag in sorted(found, key=itemgetter(0)) if weight < 0]


_MOST_TAGS = 20
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", re.ASCII)
_QUALITY = re.compile(r"[01](\.[0-9]{1,3})?", re.ASCII)


def tag() -> str:
    """The tag of the language that is spoken now, for the page and its scripts."""
    return _SPOKEN.get()


def language() -> str:
    """The language that is spoken now."""
    return tag().partition("-")[0].lower()


def _(text: str) -> str:
    """*text* in the language that is spoken now."""
    return translations(language()).gettext(text)


def ngettext(one: str, many: str, count: int) -> str:
    """*one* or *many* in the language that is spoken now."""
    return translations(language()).ngettext(one, many, count)


def N_(text: str) -> str:
    """Marks a text of a module, which is loaded once, to be translated when it is shown."""
    return text


def cell(value: Json) -> str:
    """A value as a table shows it; the fields of a page hold `cell_text`."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    text = cell_text(value)
    if isinstance(value, int | float):
        return _pointed(text.removesuffix(".0"))
    return visible(text)


def person(by: str | None) -> str | None:
    """Who decided, as people read it. AP-35."""
    return _("a rule") if by == BY_RULE.by else by


class Said(Mapping[str, str]):
    """Texts by key, each in the language that is spoken as it is looked up."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def __getitem__(self, key: str) -> str:
        return _(self._texts[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


_LAST_INSTANT = 253_402_300_799_000


def iso(at: EpochMs) -> str:
    """An instant for machines: `2026-11-22T12:00:00Z`."""
    return f"{_datetime(at):%Y-%m-%dT%H:%M:%SZ}"


def utc(at: EpochMs) -> str:
    """An instant for people who want no other zone."""
    return f"{_datetime(at):%Y-%m-%d %H:%M:%S} UTC"


def _datetime(at: EpochMs) -> datetime:
    return datetime.fromtimestamp(min(at, _LAST_INSTANT) / 1_000, UTC)


def relative(at: EpochMs, now: EpochMs) -> str:
    """`in 23 h`, `35 s ago`: the largest unit that fits, rounded down. `app.js` says the same."""
    away = at - now
    length = _length(abs(away))
    return (_("in {length}") if away > 0 else _("{length} ago")).format(length=length)


def took(ms: int) -> str:
    """How long something was: `84 ms`, `1.2 s`, `3 min 5 s`, `2 h 4 min`, `3 d 2 h`."""
    if ms < SECOND:
        return _("{count} ms").format(count=ms)
    if ms < 10 * SECOND:
        return _("{count} s").format(count=number(Decimal(ms // 100) / 10))
    if ms < MINUTE:
        return _length(ms)
    size = next(size for size in (DAY, HOUR, MINUTE) if ms >= size)
    rest = ms % size
    return f"{_length(ms)} {_length(rest)}" if rest >= _SMALLER[size] else _length(ms)


_SMALLER = {DAY: HOUR, HOUR: MINUTE, MINUTE: SECOND}

STATUSES = Said(
    {
        "PENDING": N_("Pending"),
        "RUNNING": N_("Running"),
        "AWAITING_APPROVAL": N_("Awaiting approval"),
        "INTERRUPTED": N_("Interrupted"),
        "COMPLETED": N_("Completed"),
        "FAILED": N_("Failed"),
        "CANCELLED": N_("Cancelled"),
        "SKIPPED": N_("Skipped"),
        "REJECTED": N_("Rejected"),
    }
)
"""What pages call the status of an execution or a step."""
MARKS = {
    "PENDING": "○",
    "RUNNING": "●",
    "AWAITING_APPROVAL": "‖",
    "INTERRUPTED": "!",
    "COMPLETED": "✓",
    "FAILED": "✕",
    "CANCELLED": "–",
    "SKIPPED": "»",
    "REJECTED": "✕",
}
"""Beside the colour, a sign that says the same."""
SOURCES = Said(
    {
        "open_api": N_("API"),
        "webhook": N_("Webhook"),
        "manual": N_("Console"),
        "schedule": N_("Schedule"),
        "delayed_completion": N_("After another one"),
        "workflow": N_("Another execution"),
    }
)
"""What started an execution."""
SCOPES = Said(
    {
        "WORKFLOW_READ": N_("read workflows"),
        "WORKFLOW_EXECUTE": N_("start workflows"),
        "EXECUTION_READ": N_("read executions"),
        "EXECUTION_CANCEL": N_("cancel executions"),
        "APPROVAL_RESPOND": N_("decide approvals"),
        "ARTIFACT_READ": N_("download artifacts"),
        "WEBHOOK_TRIGGER": N_("trigger webhooks"),
        "ADMIN": N_("operate the server"),
    }
)
"""What a key of that scope may do."""
ACCOUNTS = Said({"ACTIVE": N_("active"), "DISABLED": N_("disabled"), "LOCKED": N_("locked")})
"""What pages call the status of an account."""
DENIALS = Said(
    {
        "missing": N_("without credentials"),
        "malformed": N_("malformed key"),
        "unknown_key": N_("unknown key"),
        "bad_secret": N_("wrong secret"),
        "revoked": N_("revoked key"),
        "expired": N_("expired key"),
        "scope_missing": N_("without the scope"),
        "not_bound_key": N_("another key is bound to it"),
        "wrong_account": N_("another account"),
        "signature_mismatch": N_("wrong signature"),
        "session_invalid": N_("session not valid"),
        "account_blocked": N_("account disabled or locked"),
        "login_locked": N_("too many attempts to sign in"),
        "not_found": N_("not found"),
        "forbidden": N_("not permitted"),
        "items_changed": N_("the rows had changed"),
        "already_decided": N_("decided already"),
        "conflict": N_("conflict"),
        "FAILURES": N_("too many failures"),
    }
)
"""Why something was denied, by the word of the audit log; of triggers see `REFUSALS`. PG-8."""

WEEKDAYS = Said(
    {
        "0": N_("Mon"),
        "1": N_("Tue"),
        "2": N_("Wed"),
        "3": N_("Thu"),
        "4": N_("Fri"),
        "5": N_("Sat"),
        "6": N_("Sun"),
    }
)
"""By the number of the day."""


def count(number: int, most: int) -> str:
    """A number, or what is certain of it: `1,000+`."""
    return f"{grouped(most)}+" if number > most else grouped(number)


def number(value: Decimal) -> str:
    """A decimal with its digits in groups, as the reader writes numbers."""
    return grouped(value, "f")


def amount(value: Decimal) -> str:
    """What adds up, as `number` writes it, without zeros that say nothing."""
    text = format(value, "f")
    return number(Decimal(text.rstrip("0").rstrip(".") if "." in text else text))


def grouped(value: int | Decimal, form: str = "") -> str:
    """A number with its digits in groups."""
    return _pointed(format(value, f",{form}"))


def _pointed(text: str) -> str:
    """A number with the reader's decimal sign, and the other one between groups."""
    return text.translate(_SWAPPED) if has_comma() else text


def has_comma() -> bool:
    """Whether the reader writes a decimal comma; a dot stands between groups then."""
    return signs()[0] == ","


def signs() -> str:
    """
    The decimal signs of the reader's languages, their own first: those that the browser names,
    whatever language the page was translated to. AP-46.
    """
    return _SIGNS.get()


def orders() -> str:
    """What comes first in the dates of the reader's languages: see `date_orders`. AP-48."""
    return _ORDERS.get()


def field_text(value: Json) -> str:
    """A value as a field shows it: a number with the reader's decimal sign."""
    text = cell_text(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return text.replace(".", signs()[0], 1) if is_number else text


def read_decimal(typed: str) -> str:
    """
    A number as JSON writes it, of what the reader typed into a field; another text stays. Raises
    `InvalidInput` for one that may be two numbers.
    """
    return _only(typed, lambda: decimal_text(typed, signs()))


def read_date(typed: str) -> str:
    """The same for a date, as YYYY-MM-DD."""
    return _only(typed, lambda: date_text(typed, orders()))


def _only(typed: str, read: Callable[[], str | None]) -> str:
    """What *read* makes of a text, if that is one thing. Raises `InvalidInput` if it may be two."""
    try:
        text = read()
    except Doubtful as doubt:
        fix = _("is {one} or {other}? Write {one} or {exact}")
        fix = fix.format(one=doubt.one, other=doubt.other, exact=doubt.exact)
        raise InvalidInput("", fix) from None
    return typed if text is None else text


_SWAPPED = str.maketrans(",.", ".,")


def usd(value: str) -> str:
    """An amount of USD in cents, or that it is less than one."""
    amount = Decimal(value)
    if 0 < amount < _CENT:
        return _("less than {amount} USD").format(amount=number(_CENT))
    return f"{number(amount.quantize(_CENT))} USD"


_CENT = Decimal("0.01")


def size(count: int) -> str:
    """How much a file holds: `999 B`, `1.5 kB`, `3.2 MB`, rounded down."""
    if count < 1_000:
        return f"{count} B"
    power = min((len(str(count)) - 1) // 3, len(_UNITS))
    amount = (Decimal(count) / 1_000**power).quantize(Decimal("0.1"), ROUND_DOWN)
    return f"{number(amount)} {_UNITS[power - 1]}"


_UNITS = ("kB", "MB", "GB", "TB")


def short(id: str) -> str:
    """The end of an id, which is what people compare."""
    return f"…{id[-6:]}"


def _length(ms: int) -> str:
    for size, text in (
        (DAY, _("{count} d")),
        (HOUR, _("{count} h")),
        (MINUTE, _("{count} min")),
    ):
        if ms >= size:
            return text.format(count=ms // size)
    return _("{count} s").format(count=ms // SECOND)


REASONS = (
    N_("You are not an approver of this approval, or not now"),
    N_("Who started the execution may not approve it; another approver must"),
)
"""What rules say of who may not decide."""
