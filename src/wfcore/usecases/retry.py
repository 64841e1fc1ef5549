"""Doing a unit of work again when somebody else was faster."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from attrs import define, frozen

from wfcore.errors import IllegalMove, Stale, StoreUnavailable

P = ParamSpec("P")
R = TypeVar("R")
MOST_TRIES = 20


@define
class Collided(StoreUnavailable):
    """A unit of work lost every race that it ran."""


def retried(unit_of_work: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """
    Repeat a whole unit of work on `Stale`: it reads afresh and decides afresh.

    In a race one of the racers always wins, so losing twenty times over means a store in
    trouble: `StoreUnavailable`.
    """

    @wraps(unit_of_work)
    async def again(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(MOST_TRIES):
            try:
                return await unit_of_work(*args, **kwargs)
            except Stale:
                continue
        raise Collided(f"{unit_of_work.__name__}: too many collisions")

    return again


@frozen
class Unswept:
    """A duty of a sweep, or one record of it, that failed; the others have their turn."""

    kind: str
    id: str
    error: Exception


Report = Callable[[Unswept], None]


def at_once(failed: Unswept) -> None:
    """A `Report` that lets nothing pass."""
    raise failed.error


@contextmanager
def apart(report: Report, kind: str, id: str) -> Iterator[None]:
    """What fails within is reported, and keeps nobody from the rest; but a store that is away."""
    try:
        yield
    except Collided as error:
        report(Unswept(kind, id, error))
    except StoreUnavailable:
        raise
    except Exception as error:
        report(Unswept(kind, id, error))


@contextmanager
def stale_if_illegal(kind: str, id: str) -> Iterator[None]:
    """
    For moves that rest on two records. They were read one after the other, so a move that the
    second one does not allow means that somebody changed both in between: `Stale`, read again.
    """
    try:
        yield
    except IllegalMove as refusal:
        raise Stale(kind, id) from refusal
