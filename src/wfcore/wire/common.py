"""
What lists, sessions and errors look like on the wire.

Each response shape is an attrs class, grouped by subject, in the same file as the functions that
build it from records; these are pure, and they mask secrets. Names are snake case here and camel
case on the wire (`converter`). A field without a value is null, or absent if it is marked `ABSENT`.
The classes are not frozen, because building a frozen class costs five times as much and these live
for microseconds.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from attrs import define, field

from wfcore.model.access import Account, AccountStatus, Tier
from wfcore.model.page import Page
from wfcore.rules.paging import cursor_text

ABSENT: Final = {"absent": True}
"""Field metadata: left out while it is None."""
Names: TypeAlias = Mapping[str, str]
"""What people call accounts and keys, by id: emails and names."""
NO_NAMES: Names = {}
EXECUTIONS, APPROVALS, WORKFLOWS, WEBHOOKS = "executions", "approvals", "workflows", "webhooks"
NOTICES, ACCOUNTS = "notices", "accounts"
"""Lists that are read on by cursor, as their cursors name them."""
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9 ._()+-]")
_SAFE_IN_EXTENDED = "!#$&+-.^_`|~"


@define(eq=False, kw_only=True)
class ListPage:
    """
    A part of a list. `total` and `page` are absent where it is read on with `after`; `next` is
    the `after` of the rows behind these, absent at the end.
    """

    total: int | None = field(default=None, metadata=ABSENT)
    page: int | None = field(default=None, metadata=ABSENT)
    size: int
    next: str | None = field(default=None, metadata=ABSENT)


@define(eq=False)
class AccountView:
    id: str
    email: str
    plan: Tier
    status: AccountStatus


@define(eq=False)
class SessionView:
    """Who is signed in at the console."""

    account: AccountView


@define(eq=False)
class DoneView:
    """It is done; there is nothing more to say."""

    ok: bool


@define(eq=False)
class HealthView:
    status: str
    version: str


@define(eq=False)
class MistakeView:
    """A mistake in a definition. `path`: of the field; `line`: from 1, null if it is unknown."""

    line: int | None
    path: str
    message: str


@define(eq=False)
class ErrorView:
    """`mistakes`: where a definition is refused, each of its mistakes."""

    error: str
    mistakes: Sequence[MistakeView] | None = field(default=None, metadata=ABSENT)


@define(eq=False)
class RateLimitedView:
    """A full quota window (`minute` or `day`)."""

    error: str
    window: str
    limit: int
    retry_after_seconds: int


def shown_of(found: Page[Any], list: str) -> dict[str, Any]:
    """The fields that every `ListPage` takes from a page of that *list*."""
    after = found.total is None
    return {
        "total": found.total,
        "page": None if after else found.page,
        "size": found.size,
        "next": cursor_text(list, found.next) if found.next else None,
    }


def account_view(account: Account) -> AccountView:
    """An account, without anything secret."""
    return AccountView(account.id, account.email, account.plan, account.status)


def disposition(name: str, *, inline: bool = False) -> str:
    """A Content-Disposition for any *name*: ASCII only, and in full by RFC 8187 if it differs."""
    label = re.split(r"[/\\]", name)[-1].encode("utf-8", "replace").decode() or "file"
    plain = _UNSAFE_IN_NAME.sub("_", label)
    kind = "inline" if inline else "attachment"
    if plain == label:
        return f'{kind}; filename="{plain}"'
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(label, safe=_SAFE_IN_EXTENDED)}"
