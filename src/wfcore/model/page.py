"""Pages of lists."""

from typing import Generic, TypeVar

from attrs import frozen

from wfcore.errors import InvalidInput

R = TypeVar("R", covariant=True)


@frozen
class PageCursor:
    """
    The position of a row in its list: `key` is the instant or name that orders the list; rows with
    the same key are ordered by `id`.
    """

    key: int | str
    id: str


OLDEST = PageCursor(0, "")
NEWEST = PageCursor(1 << 52, "")
"""
The cursor before every row of a list by age, in either direction: the list's first page, without a
count.
"""


@frozen
class PageRequest:
    """
    A request for page *page* (from 1) of *size* rows. With *after*: a request for the *size* rows
    behind that row; rows added before that row in the meantime do not matter. PG-5.
    """

    page: int = 1
    size: int = 50
    after: PageCursor | None = None

    def __attrs_post_init__(self) -> None:
        """Raises `InvalidInput` for a page or a size under 1."""
        for name, value in (("page", self.page), ("size", self.size)):
            if not isinstance(value, int) or value < 1:
                raise InvalidInput(name, "must be a number, at least 1")

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size


@frozen
class Page(Generic[R]):
    """
    One page of rows. `total`: the exact number of rows; None for a request with a cursor, which
    counts no rows. `next`: the position of the page's last row; None if no rows follow.
    """

    rows: tuple[R, ...]
    total: int | None
    page: int
    size: int
    next: PageCursor | None = None

    @property
    def rest(self) -> PageRequest | None:
        """The request for the following rows."""
        return PageRequest(size=self.size, after=self.next) if self.next else None
