"""
A power cut, played: what a medium may hold at any moment of a recorded run, and what must hold.

What was flushed is there. Of what was written since the last flush of a file: nothing, all,
what came first with the last piece torn, any choice of it, or garbage in its place.
"""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

from attrs import define, evolve, field, frozen

from adapters_store.sqlite.store import SqliteStore
from tests.proofs.durability.tracing import FLUSHES, Call
from wfcore.model.execution import Execution

KEPT = ("wfcore.db", "wfcore.db-wal", "wfcore.db-commit")


@frozen
class Write:
    """Bytes at an offset; `data` None: the file is cut off there."""

    offset: int
    data: bytes | None

    def onto(self, content: bytearray) -> None:
        """Do it."""
        if self.data is None:
            del content[self.offset :]
            return
        content.extend(bytes(max(0, self.offset - len(content))))
        content[self.offset : self.offset + len(self.data)] = self.data


@define
class File:
    """What is on the medium for sure, and what was written since."""

    flushed: bytearray = field(factory=bytearray)
    since: list[tuple[int, Write]] = field(factory=list)

    def flush(self, begun: int) -> None:
        """A flush has ended that began at *begun*: what was written before it is there."""
        for at, write in self.since:
            if at < begun:
                write.onto(self.flushed)
        self.since = [(at, write) for at, write in self.since if at >= begun]


@frozen
class Moment:
    """The files at one moment, and what had been acknowledged: versions by execution."""

    files: Mapping[str, File]
    acknowledged: Mapping[str, int]


def moments(record: Sequence[Call]) -> Iterator[Moment]:
    """Every moment after a call that changed something, from "ready" on."""
    files = {name: File() for name in KEPT}
    acknowledged: dict[str, int] = {}
    ready = False
    for call in record:
        name = Path(call.file).name
        if call.name == "write" and call.texts[:1] == [b"ready\n"]:
            ready = True
        elif call.name == "write" and (ack := re.fullmatch(rb"ack (\w+) (\d)\n", call.texts[0])):
            acknowledged = {**acknowledged, ack[1].decode(): int(ack[2])}
        elif name in files and call.name in FLUSHES:
            files[name].flush(call.begin)
        elif name in files and (write := _write(call)):
            files[name].since.append((call.begin, write))
        elif call.name == "unlink" and Path(call.texts[0].decode()).name in files:
            files[Path(call.texts[0].decode()).name] = File()
        else:
            continue
        if ready:
            yield Moment(files, acknowledged)
        else:
            for file in files.values():
                file.flush(call.end + 1)


def _write(call: Call) -> Write | None:
    if call.name == "pwrite64":
        (data,) = call.texts
        assert f", {len(data)}, " in call.text, "the record holds a part of it only"
        return Write(call.offset, data)
    if call.name == "ftruncate":
        return Write(int(call.text.rpartition(")")[0].rpartition(", ")[2]), None)
    return None


def _nothing(writes: Sequence[Write], chance: Random) -> Sequence[Write]:
    return ()


def _all(writes: Sequence[Write], chance: Random) -> Sequence[Write]:
    return writes


def _torn(writes: Sequence[Write], chance: Random) -> Sequence[Write]:
    if not writes:
        return ()
    *some, last = writes[: chance.randint(1, len(writes))]
    if not last.data:
        return [*some, last]
    return [*some, evolve(last, data=last.data[: chance.randrange(len(last.data))])]


def _some(writes: Sequence[Write], chance: Random) -> Sequence[Write]:
    return [one for one in writes if chance.random() < 0.5]


def _garbled(writes: Sequence[Write], chance: Random) -> Sequence[Write]:
    def garbled(one: Write) -> Write:
        if not one.data or chance.random() < 0.5:
            return one
        at = chance.randrange(len(one.data))
        size = chance.randint(1, len(one.data) - at)
        return evolve(one, data=one.data[:at] + chance.randbytes(size) + one.data[at + size :])

    return [garbled(one) for one in writes]


CUTS: Sequence[Callable[[Sequence[Write], Random], Sequence[Write]]] = (
    _nothing,
    _all,
    _torn,
    _some,
    _garbled,
)


def cut(moment: Moment, chance: Random, folder: Path) -> None:
    """Write down one state in which the medium may be."""
    for name, file in moment.files.items():
        content = bytearray(file.flushed)
        kind = chance.choice(CUTS)
        for write in kind([write for _, write in file.since], chance):
            write.onto(content)
        path = folder / name
        path.unlink(missing_ok=True)
        if content:
            path.write_bytes(content)
    (folder / "wfcore.db-shm").unlink(missing_ok=True)


def judge(moment: Moment, folder: Path) -> None:
    """Our own code opens what is left: sound, with all that was acknowledged, and nothing half."""
    path = folder / "wfcore.db"
    asyncio.run(_open_and_read(path, list(moment.acknowledged.items())[-3:]))
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        versions = dict(database.execute("SELECT id, version FROM executions").fetchall())
        counted = "SELECT execution_id, count(*) FROM events GROUP BY execution_id"
        assert dict(database.execute(counted).fetchall()) == versions, "half a unit"
    lost = {
        id: (version, versions.get(id))
        for id, version in moment.acknowledged.items()
        if versions.get(id, 0) < version
    }
    assert not lost, f"acknowledged and lost: {lost}"


async def _open_and_read(path: Path, acknowledged: Sequence[tuple[str, int]]) -> None:
    store = await SqliteStore.open(path)
    async with store.view() as view:
        for id, version in acknowledged:
            run = await view.get(Execution, id)
            assert run is not None, f"{id} is lost"
            assert run.version >= version
    await store.ping()
    await store.close()
