"""
The medium of all units in memory, the scheduling point before the medium, and files.

Like a disk, the medium may lose changes that were not synced. At the scheduling point other tasks
may run and faults may occur.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from hashlib import sha256
from typing import Any, BinaryIO, Protocol, TypeVar

from wfcore.errors import NotFound
from wfcore.ports.files import FoundFile, StoredFile
from wfcore.time import EpochMs

R = TypeVar("R")
Rows = dict[Hashable, Any]
Changes = dict[str, Rows]
"""The new record by table and key; None: the record is deleted."""

Watch = Callable[[Mapping[str, Rows], Changes], None]
"""A function that sees the present tables and the changes before they are made."""


def unwatched(tables: Mapping[str, Rows], changes: Changes) -> None:
    """The `Watch` of a disk without a watcher."""


class Medium(Protocol):
    """
    The tables that a `MemoryStore` reads and writes. Another medium, such as a file or a key-value
    database, makes another store. The store uses a medium only inside the scheduling point, which
    is the place to open a transaction.

    A scheduling point runs the step that it is given once. After a failure it raises
    `StoreUnavailable` and does not run the step again, because a part of the changes may be
    collected or stored. A step named `commit` may end with `Stale` if another writer of the medium
    was first; the use case then reads and decides again. Leases end by the store's `now`, which
    must be the clock of the medium if several machines share the medium.
    """

    @property
    def tables(self) -> Mapping[str, Mapping[Hashable, Any]]:
        """
        The rows of each table by their key, for every name of `ROWS`. Units keep the mappings from
        step to step, and read one key (`get`) or all rows (`dict(rows)`, `items`, `values`). A
        mapping that sends a query for each row should load all rows when its keys are iterated.
        """

    def settle(self, changes: Changes) -> None:
        """
        Carry out *changes* at the end of a step, all or none. The changes are durable once the
        scheduling point returns.
        """


class Disk:
    """Tables of records. If not *durable*, a change is safe only after the next `sync`."""

    def __init__(self, *, durable: bool = True, watch: Watch = unwatched) -> None:
        self.tables: defaultdict[str, Rows] = defaultdict(dict)
        self.durable = durable
        self.watch = watch
        self._unsafe: list[Changes] = []

    def settle(self, changes: Changes) -> None:
        """Carry out *changes*, all at once."""
        self.watch(self.tables, changes)
        if not self.durable:
            self._unsafe.append(self._before(changes))
        self._write(changes)

    def sync(self) -> None:
        """Make all changes so far survive a power cut."""
        self._unsafe.clear()

    def power_cut(self) -> None:
        """Lose the changes that were not synced, the latest first."""
        while self._unsafe:
            self._write(self._unsafe.pop())

    def _before(self, changes: Changes) -> Changes:
        tables = self.tables
        return {
            name: {key: tables[name].get(key) for key in rows} for name, rows in changes.items()
        }

    def _write(self, changes: Changes) -> None:
        for name, rows in changes.items():
            table = self.tables[name]
            for key, record in rows.items():
                if record is None:
                    table.pop(key, None)
                else:
                    table[key] = record


class MemoryFiles:
    """Implements `wfcore.ports.files.ArtifactFiles` over a dict."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}

    async def store(
        self, execution_id: str, artifact_id: str, content: BinaryIO, name: str = ""
    ) -> StoredFile:
        """Copy *content* from its position to its end."""
        data = content.read()
        key = f"{execution_id}/{artifact_id}"
        self._content[key] = data
        return StoredFile(key, len(data), sha256(data).hexdigest())

    async def copy(self, storage_key: str, execution_id: str, artifact_id: str) -> str:
        """The same bytes under another key. Raises `NotFound`."""
        if storage_key not in self._content:
            raise NotFound("Artifact")
        key = f"{execution_id}/{artifact_id}"
        self._content[key] = self._content[storage_key]
        return key

    def local_path(self, storage_key: str) -> None:
        """Returns None: no other process sees this memory."""

    async def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes [*start*, *end*) in one chunk. Raises `NotFound`."""
        if storage_key not in self._content:
            raise NotFound("Artifact")
        if chunk := self._content[storage_key][start:end]:
            yield chunk

    async def delete_executions(self, *execution_ids: str) -> None:
        """Delete every file of these executions."""
        for key in [key for key in self._content if key.partition("/")[0] in execution_ids]:
            del self._content[key]

    async def find_all(self) -> AsyncIterator[FoundFile]:
        """Every file. The time of storing is not kept; `stored_at` is 0."""
        for key in tuple(self._content):
            yield FoundFile(key, EpochMs(0))

    async def direct_url(self, storage_key: str) -> str | None:
        """Returns None: no other process sees this memory."""
        return None


class SchedulingPoint(Protocol):
    """Lets the operations of the store through, one after another."""

    async def __call__(
        self, name: str, about: object, apply: Callable[[], R], *, writes: bool = False
    ) -> R:
        """
        Carry out *apply* in one uninterrupted step, when its turn comes; returns the result of
        *apply*. *name* and *about* describe the operation in words; *writes*: whether the operation
        changes anything lasting.
        """
