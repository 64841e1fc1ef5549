"""The contract of artifact files: a test class to inherit from, with a fixture `files`."""

import hashlib
from io import BytesIO
from pathlib import Path

import pytest

from wfcore.errors import NotFound
from wfcore.ports.files import ArtifactFiles
from wfcore.testing.contracts.awaited import Awaited

CONTENT = bytes(range(256)) * 1_000


async def content(files: ArtifactFiles, key: str, start: int, end: int) -> bytes:
    """The bytes [*start*, *end*) in one piece."""
    return b"".join([chunk async for chunk in files.read(key, start, end)])


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


class FilesContract(Awaited):
    """Subclasses provide a fixture `files`: empty artifact storage."""

    async def test_what_was_stored_is_read_back(self, files: ArtifactFiles) -> None:
        """`store` returns size and SHA-256, and all bytes can be read."""
        stored = await files.store("exec_1", "art_1", BytesIO(CONTENT))
        assert stored.size == len(CONTENT)
        assert stored.sha256 == hashlib.sha256(CONTENT).hexdigest()
        assert await content(files, stored.storage_key, 0, stored.size) == CONTENT

    async def test_a_local_path_is_that_of_the_content(self, files: ArtifactFiles) -> None:
        """Content that is a file of this machine is that file; other content has no path."""
        kept = await files.store("exec_1", "art_1", BytesIO(b"content"))
        path = files.local_path(kept.storage_key)
        assert path is None or _read(path) == b"content"

    async def test_nothing_is_content_too(self, files: ArtifactFiles) -> None:
        """An empty file can be stored and read."""
        stored = await files.store("exec_1", "art_1", BytesIO(b""))
        assert stored.size == 0
        assert await content(files, stored.storage_key, 0, 0) == b""

    async def test_copying_begins_at_the_position(self, files: ArtifactFiles) -> None:
        """Content is taken from its position to its end."""
        source = BytesIO(CONTENT)
        source.seek(250)
        stored = await files.store("exec_1", "art_1", source)
        assert await content(files, stored.storage_key, 0, stored.size) == CONTENT[250:]

    @pytest.mark.parametrize(
        "given_name",
        ["", "../../etc/a", 'a"; b', "a\r\nX: b", "Überweisung €.csv", "\ud800", "x" * 9_000],
    )
    async def test_a_name_is_a_label(self, files: ArtifactFiles, given_name: str) -> None:
        """The name of a file does not change where the content is stored."""
        stored = await files.store("exec_1", "art_1", BytesIO(b"abc"), given_name)
        assert stored.storage_key == (await files.store("exec_1", "art_1", BytesIO())).storage_key
        stored = await files.store("exec_1", "art_1", BytesIO(b"abc"), given_name)
        assert await content(files, stored.storage_key, 0, 3) == b"abc"

    @pytest.mark.parametrize(
        ("given_start", "given_end"),
        [(0, 1), (100, 200), (70_000, 200_001), (255_999, 256_000), (9, 9)],
    )
    async def test_a_range_is_read(
        self, files: ArtifactFiles, given_start: int, given_end: int
    ) -> None:
        """A read returns the bytes from start up to but not including end."""
        stored = await files.store("exec_1", "art_1", BytesIO(CONTENT))
        assert (
            await content(files, stored.storage_key, given_start, given_end)
            == CONTENT[given_start:given_end]
        )

    async def test_reading_past_the_end_stops_there(self, files: ArtifactFiles) -> None:
        """A range beyond the content ends where the content ends."""
        stored = await files.store("exec_1", "art_1", BytesIO(b"abc"))
        assert await content(files, stored.storage_key, 1, 99) == b"bc"

    async def test_content_that_is_gone_is_not_found(self, files: ArtifactFiles) -> None:
        """Reading deleted or unknown content raises before the first chunk."""
        first = await files.store("exec_1", "art_1", BytesIO(b"a"))
        other = await files.store("exec_2", "art_2", BytesIO(b"b"))
        await files.delete_executions("exec_1", "exec_none")
        await files.delete_executions("exec_1")
        for end in (0, 1):
            with pytest.raises(NotFound):
                await content(files, first.storage_key, 0, end)
        assert await content(files, other.storage_key, 0, 1) == b"b"

    async def test_a_copy_lives_as_long_as_its_own_execution(self, files: ArtifactFiles) -> None:
        """A copy keeps the bytes after its original is deleted; a repeated copy is made once."""
        first = await files.store("exec_1", "art_1", BytesIO(CONTENT))
        for _ in range(2):
            key = await files.copy(first.storage_key, "exec_2", "art_2")
        await files.delete_executions("exec_1")
        assert await content(files, key, 0, len(CONTENT)) == CONTENT
        assert [one.storage_key async for one in files.find_all()] == [key]
        assert [one.execution_id async for one in files.find_all()] == ["exec_2"]

    async def test_a_copy_of_content_that_is_gone_is_not_found(self, files: ArtifactFiles) -> None:
        """A copy of missing content raises `NotFound`, and nothing is stored."""
        with pytest.raises(NotFound):
            await files.copy("exec_1/art_1", "exec_2", "art_2")
        assert [one async for one in files.find_all()] == []

    async def test_every_file_is_found(self, files: ArtifactFiles) -> None:
        """`find_all` finds each file with its key and its execution, and no deleted file."""
        kept = [await files.store(f"exec_{n}", "art_1", BytesIO(b"a")) for n in range(3)]
        await files.delete_executions("exec_1")
        found = {one.storage_key: one.execution_id async for one in files.find_all()}
        assert found == {kept[0].storage_key: "exec_0", kept[2].storage_key: "exec_2"}

    async def test_executions_are_told_apart_by_their_whole_id(self, files: ArtifactFiles) -> None:
        """
        Deleting the files of one execution leaves those of another whose id has the same beginning.
        """
        await files.store("exec_1", "art_1", BytesIO(b"a"))
        other = await files.store("exec_10", "art_2", BytesIO(b"b"))
        await files.delete_executions("exec_1")
        assert await content(files, other.storage_key, 0, 1) == b"b"
