"""Files and records of artifacts are compared both ways, and only what nobody can record goes."""

import os
from io import BytesIO
from pathlib import Path

import pytest

from adapters_store.files import LocalFiles
from wfcore.errors import Conflict
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import DAY, EpochMs
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.upkeep import orphans
from wfcore.usecases.upkeep.orphans import GRACE, FileComparison, compare_files, delete_strange

from .conftest import World


async def stored(world: World, execution_id: str, artifact_id: str, age: int = 2 * DAY) -> str:
    """A file that was stored *age* ms ago; its key."""
    files = world.services.files
    assert isinstance(files, LocalFiles)
    kept = await files.store(execution_id, artifact_id, BytesIO(b"x"))
    at = (world.clock.now() - age) / 1_000
    os.utime(files.root / kept.storage_key, (at, at))
    return kept.storage_key


async def known(world: World, execution_id: str) -> None:
    await keep(world.services.store, make.execution(execution_id))


async def recorded(world: World, execution_id: str, artifact_id: str) -> str:
    """A record, with no file so far; its key."""
    record = make.artifact(artifact_id, execution_id=execution_id)
    await keep(world.services.store, record)
    return record.storage_key


async def test_what_fits_is_no_finding(world: World) -> None:
    """A file with its record, and a young one that a step may be about to record."""
    await known(world, "e1")
    await recorded(world, "e1", "a1")
    await stored(world, "e1", "a1")
    await stored(world, "e1", "a2", age=GRACE)
    await stored(world, "e2", "a3", age=GRACE)
    assert await compare_files(world.services) == FileComparison(files=3, records=1, own=2)


async def test_each_kind_of_orphan_is_named(world: World) -> None:
    """Files nobody recorded, files of executions that are not there, records without a file."""
    await known(world, "e1")
    missing = await recorded(world, "e1", "a1")
    unrecorded = await stored(world, "e1", "a2")
    for name in ("a3", "a4"):
        await stored(world, "gone", name)
    found = await compare_files(world.services)
    assert (found.missing, found.unrecorded, found.strange) == ([missing], [unrecorded], ["gone"])


async def test_only_files_of_missing_executions_are_deleted(world: World) -> None:
    """What belongs to an execution stays, also one that came back in the meantime. Audited."""
    await known(world, "e1")
    await stored(world, "e1", "a2")
    for id in ("gone", "back"):
        await stored(world, id, "a3")
    found = await compare_files(world.services)
    assert sorted(found.strange) == ["back", "gone"]
    await known(world, "back")
    assert await delete_strange(world.services, found) == 1
    left = {one.execution_id async for one in world.services.files.find_all()}
    assert left == {"e1", "back"}
    entries = await read_audit(world.services, EpochMs(0), None, 100)
    (entry,) = [one for one in entries if one.event == "artifacts.mend"]
    assert entry.details == {"executions": 1}


async def test_the_bucket_of_another_service_is_left_alone(world: World) -> None:
    """Where no file at all belongs to this store, none is deleted."""
    await stored(world, "theirs", "a1")
    found = await compare_files(world.services)
    with pytest.raises(Conflict, match="another service"):
        await delete_strange(world.services, found)
    assert [one.execution_id async for one in world.services.files.find_all()] == ["theirs"]


async def test_a_comparison_stays_small(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, so many are named and the rest is counted; pages miss nothing."""
    monkeypatch.setattr(orphans, "MOST", 2)
    monkeypatch.setattr(orphans, "REMEMBERED", 1)
    monkeypatch.setattr(orphans, "_BATCH", 2)
    for number in range(5):
        await known(world, f"e{number}")
        await recorded(world, f"e{number}", f"a{number}")
        await stored(world, f"e{number}", f"a{number}")
        await stored(world, f"gone{number}", "a1")
    found = await compare_files(world.services)
    assert (found.files, found.records, found.own, found.missing) == (10, 5, 5, [])
    assert (len(found.strange), found.beyond) == (2, 3)


async def test_what_is_no_file_of_ours_is_left_alone(tmp_path: Path) -> None:
    """A folder of artifacts may hold parts of a file, and what a file system puts there."""
    files = LocalFiles(tmp_path)
    await files.store("e1", "a1", BytesIO(b"x"))
    (tmp_path / "e1" / ".a2.part").touch()
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "note").touch()
    assert [one.storage_key async for one in files.find_all()] == ["e1/a1"]
    assert [one async for one in LocalFiles(tmp_path / "none").find_all()] == []
