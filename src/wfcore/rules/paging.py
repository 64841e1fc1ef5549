"""
Page, size and cursor from text: `page` counts from 1, `size` is limited to the maximum, `after`
continues behind a row. PG-1, PG-5.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

from wfcore.errors import InvalidInput
from wfcore.model.page import PageCursor, PageRequest

BY_NAME = frozenset({"workflows"})
"""Lists that are ordered by a name; all other lists are ordered by an instant."""

LARGEST_PAGE = 10**9
_DIGITS = 20
"""The most digits of a number. A longer number is above every limit, and slow to read."""
_PAST_ANY = f"must be at most {LARGEST_PAGE:,}"


def page_request(
    page: str | None,
    size: str | None,
    sizes: tuple[int, int],
    after: str | None = None,
    list: str = "",
) -> PageRequest:
    """
    The requested page. *sizes*: default and maximum; *list*: the list that the cursor *after* must
    belong to. PG-1, PG-2, PG-5.

    Raises `InvalidInput` for anything that is not a positive integer, for a page that no list could
    have, and for a cursor that is invalid or given together with a page.
    """
    default, largest = sizes
    number = _positive("page", page, 1)
    if number > LARGEST_PAGE:
        raise InvalidInput("page", _PAST_ANY)
    rows = min(_positive("size", size, default), largest)
    if not after:
        return PageRequest(number, rows)
    if page is not None:
        raise InvalidInput("page", "does not go with after: a cursor says where to go on")
    return PageRequest(size=rows, after=read_cursor(list, after))


def cursor_text(list: str, cursor: PageCursor) -> str:
    """
    A cursor for clients, to whom it is opaque. The cursor contains only values that its row showed.
    """
    text = json.dumps([list, cursor.key, cursor.id], ensure_ascii=False, separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(list: str, text: str) -> PageCursor:
    """
    The cursor in *text*. Raises `InvalidInput` unless `cursor_text` could have made the cursor for
    *list*. The cursor grants no access: the list behind it shows only what the caller may see.
    PG-5.
    """
    try:
        found = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        _, key, id = found
        cursor = PageCursor(key, id)
        if _fits(list, cursor) and cursor_text(list, cursor) == text:
            return cursor
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidInput("after", _NO_CURSOR)


_NO_CURSOR = "must be `next` of a page of this list, as it was given"


def _fits(list: str, cursor: PageCursor) -> bool:
    """Whether every store can compare the cursor with the values that order the list."""
    if list in BY_NAME:
        return type(cursor.key) is str and type(cursor.id) is str
    key = cursor.key
    return type(key) is int and 0 <= key < 1 << 53 and type(cursor.id) is str


def _positive(field: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    digits = text.lstrip("0")[:_DIGITS]
    if not (text.isascii() and text.isdigit() and digits):
        raise InvalidInput(field, "must be a positive integer")
    return int(digits)
