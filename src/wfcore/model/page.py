"""Pages of lists."""

from typing import Generic, TypeVar

from attrs import frozen

R = TypeVar("R")


@frozen
class PageCursor:
    """
    Where a row stands in its list: `key` is what the list is ordered by, an instant or a name;
    rows that are alike there are ordered by `id`.
    """

    key: int | str
    id: str


@frozen
class PageRequest:
    """
    Page *page* (from 1) of *size* rows; or, *after* a row, the *size* rows behind it, whatever
    was added before it meanwhile. PG-5.
    """

    page: int = 1
    size: int = 50
    after: PageCursor | None = None

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size


@frozen
class Page(Generic[R]):
    """
    One page of rows. `total`: how many there are in all (exact); None where the request was for
    the rows after a cursor, so that nobody counts. `next`: where its last row stands; None: there
    are no rows behind it.
    """

    rows: tuple[R, ...]
    total: int | None
    page: int
    size: int
    next: PageCursor | None = None

    @property
    def rest(self) -> PageRequest | None:
        """The request for the rows behind these."""
        return PageRequest(size=self.size, after=self.next) if self.next else None
