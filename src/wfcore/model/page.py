"""Pages of lists."""

from typing import Generic, TypeVar

from attrs import frozen

R = TypeVar("R")


@frozen
class PageRequest:
    """Page *page* (from 1) of *size* rows."""

    page: int = 1
    size: int = 50

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size


@frozen
class Page(Generic[R]):
    """One page of rows, and how many there are in all (exact)."""

    rows: tuple[R, ...]
    total: int
    page: int
    size: int
