"""The promises of a store whose medium fails: an error of the core, and no damage."""

from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, get_type_hints

import pytest

from wfcore.errors import StoreUnavailable
from wfcore.model.page import Page, PageRequest
from wfcore.ports import records
from wfcore.ports.store import Slots, Store, View
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.contracts import samples
from wfcore.testing.contracts.keeping import collect
from wfcore.time import HOUR, DurationMs, EpochMs

WORDS: dict[Any, Any] = {
    str: "x",
    int: 9,
    EpochMs: NOW,
    DurationMs: HOUR,
    PageRequest: PageRequest(),
    Collection[str]: ("x", "y"),
    records.ExecutionFilter: records.ExecutionFilter(),
    records.ApprovalFilter: records.ApprovalFilter(),
}
"""An argument of each type that a query of the port takes. Optional arguments are None."""

Look = Callable[[View], Awaitable[Any]]


def every_look() -> Iterator[tuple[str, Look]]:
    """Every read of a store: each kind by its key, and each named query."""
    for kind in records.RECORDS:
        key = tuple("x" for _ in kind.key)
        yield f"get {kind.name}", lambda view, kind=kind, key=key: view.get(kind.type, *key)  # type: ignore[misc]
    for subject, queries in vars(View).items():
        if isinstance(queries, property):
            asked = get_type_hints(queries.fget)["return"]
            for name, query in vars(asked).items():
                if not name.startswith("_"):
                    yield f"{subject}.{name}", _asking(subject, name, query)


def _asking(subject: str, name: str, query: Any) -> Look:
    hints = get_type_hints(query)
    hints.pop("return")
    given = [WORDS.get(wanted) for wanted in hints.values()]
    return lambda view: getattr(getattr(view, subject), name)(*given)


LOOKS = dict(every_look())
NOTHING: tuple[Any, ...] = (None, (), 0)
"""The answers that an empty store may give."""


class BrokenContract:
    """The promises about a broken medium. See `keeping.Handles` for the fixtures."""

    @pytest.mark.parametrize("given_record", samples.RECORDS, ids=lambda r: type(r).__name__)
    async def test_nothing_is_stored_by_a_medium_that_fails(
        self, broken: Store, given_record: Any
    ) -> None:
        """`commit` raises `StoreUnavailable`, whatever the unit contains."""
        async with broken.unit() as unit:
            collect(unit, given_record, make.event(1), make.audit_entry())
            with pytest.raises(StoreUnavailable):
                await unit.commit()

    async def test_a_store_whose_medium_fails_gives_no_work(self, broken: Store) -> None:
        """Claims, leases, health checks and cleanup raise errors of the core."""
        for deed in (
            broken.claim("w1", HOUR, Slots(8), 9),
            broken.claim("w1", HOUR, Slots(8), 9, ids=["e1"], able=["network"]),
            broken.extend("w1", ("e1",), HOUR),
            broken.ping(),
            broken.trim(NOW, NOW, NOW, NOW, 9),
        ):
            with pytest.raises(StoreUnavailable):
                await deed

    async def test_an_election_needs_no_more_than_the_store(self, broken: Store) -> None:
        """An election raises `StoreUnavailable`, or succeeds in a store of one machine."""
        try:
            elected = await broken.elect("sweep", HOUR)
        except StoreUnavailable:
            return
        assert elected

    @pytest.mark.parametrize("given_name", LOOKS)
    async def test_no_error_of_a_driver_is_read(self, broken: Store, given_name: str) -> None:
        """
        A read of an empty store whose medium failed finds nothing or raises `StoreUnavailable`.
        """
        try:
            async with broken.view() as view:
                found = await LOOKS[given_name](view)
        except StoreUnavailable:
            return
        found = found.rows if isinstance(found, Page) else found
        assert given_name == "audit.chain" or (found if found is None else found or ()) in NOTHING

    async def test_a_broken_store_can_be_closed(self, broken: Store) -> None:
        """`close` may be called twice on a broken store."""
        await broken.close()
        await broken.close()
