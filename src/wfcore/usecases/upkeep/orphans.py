"""
Files and records of artifacts, compared in both directions.

A file is stored before its record and deleted before its record. So an upload of a lost worker has
no record, and is deleted with its execution. No other duty finds a file whose execution is not in
the store; only such files are deleted here. An execution is stored before any of its steps runs and
its id is never used again, so no later upload can belong to a missing execution. Young files stay
all the same, for a store that was just restored or moved.
"""

from collections.abc import AsyncIterator, Collection, Sequence

from attrs import define, field

from wfcore.errors import Conflict, NotFound, Unreadable
from wfcore.model.execution import Artifact
from wfcore.model.page import OLDEST, PageRequest
from wfcore.ports.files import FoundFile
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import View
from wfcore.time import DAY, EpochMs, later
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried

GRACE = DAY
"""The age from which a file without a record counts as a file that nobody will record."""
MOST = 1_000
"""The most names of each kind in one comparison; further names are only counted."""
REMEMBERED = 200_000
"""
The most keys of files in memory. For a record with another key, the comparison checks the file
itself.
"""
_BATCH = 200


@define
class FileComparison:
    """
    The result of a comparison. `strange`: executions with files that are not in the store.
    `unrecorded`: files without a record of executions that are in the store. `missing`: storage
    keys of records without a file. Each list has at most `MOST` names; `beyond` counts the further
    names.
    """

    files: int = 0
    records: int = 0
    own: int = 0
    """Files of executions that are in the store."""
    strange: list[str] = field(factory=list)
    unrecorded: list[str] = field(factory=list)
    missing: list[str] = field(factory=list)
    beyond: int = 0

    def name(self, kind: list[str], what: str) -> None:
        if len(kind) < MOST:
            kind.append(what)
        else:
            self.beyond += 1


async def compare_files(services: Services) -> FileComparison:
    """Read all names of files and all records; contents are not read. Raises `StoreUnavailable`."""
    found, seen = FileComparison(), set[str]()
    old = later(services.clock.now(), -GRACE)
    async for batch in _batches(services.files.find_all()):
        seen.update(one.storage_key for one in batch[: max(0, REMEMBERED - len(seen))])
        await _without_record(services, batch, old, found)
    await _without_file(services, seen, found)
    return found


async def delete_strange(
    services: Services, found: FileComparison, origin: Origin = UNKNOWN
) -> int:
    """
    Delete the files of executions that are not in the store; returns the number of these
    executions. Audited.

    Raises `Conflict` if no file at all belongs to this store: the files then belong to another
    service.
    """
    if found.strange and not found.own:
        raise Conflict("No file there belongs to this store: is it the place of another service?")
    gone = 0
    for start in range(0, len(found.strange), _BATCH):
        ids = found.strange[start : start + _BATCH]
        async with services.store.view() as view:
            known = await _known(view, ids)
        await services.files.delete_executions(*(id for id in ids if id not in known))
        gone += len(ids) - len(known)
    if gone:
        await _note_mended(services, gone, origin)
    return gone


@retried
async def _note_mended(services: Services, gone: int, origin: Origin) -> None:
    async with services.store.unit() as unit:
        note(services, unit, "artifacts.mend", None, None, origin, {"executions": gone})
        await unit.commit()


async def _batches(files: AsyncIterator[FoundFile]) -> AsyncIterator[Sequence[FoundFile]]:
    batch: list[FoundFile] = []
    async for one in files:
        batch.append(one)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _without_record(
    services: Services, batch: Sequence[FoundFile], old: EpochMs, found: FileComparison
) -> None:
    ids = {one.execution_id for one in batch}
    async with services.store.view() as view:
        known = await _known(view, ids)
        recorded = {
            one.storage_key for id in sorted(known) for one in await view.artifacts.of_execution(id)
        }
    for one in batch:
        found.files += 1
        found.own += one.execution_id in known
        if one.stored_at >= old or one.storage_key in recorded:
            continue
        if one.execution_id in known:
            found.name(found.unrecorded, one.storage_key)
        elif one.execution_id not in found.strange:
            found.name(found.strange, one.execution_id)


async def _known(view: View, ids: Collection[str]) -> set[str]:
    return {id for id in ids if await _is_known(view, id)}


async def _is_known(view: View, id: str) -> bool:
    """Whether the store has the execution; an unreadable execution counts."""
    try:
        return await execution_of(view, id) is not None
    except Unreadable:
        return True


async def _without_file(services: Services, seen: Collection[str], found: FileComparison) -> None:
    page: PageRequest | None = PageRequest(size=_BATCH, after=OLDEST)
    while page is not None:
        async with services.store.view() as view:
            runs = await view.executions.list(ExecutionFilter(oldest_first=True), page)
            records = [
                one for run in runs.rows for one in await view.artifacts.of_execution(run.id)
            ]
        found.records += len(records)
        for one in records:
            if one.storage_key not in seen and await _is_missing(services, one):
                found.name(found.missing, one.storage_key)
        page = runs.rest


async def _is_missing(services: Services, artifact: Artifact) -> bool:
    """
    Whether the file is missing although its record still exists: retention deletes a file before
    its row.
    """
    try:
        async for _ in services.files.read(artifact.storage_key, 0, 0):
            pass
    except NotFound:
        async with services.store.view() as view:
            return await view.get(Artifact, artifact.id) is not None
    return False
