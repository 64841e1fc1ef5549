"""Artifact files on disk: nothing outside, nothing half, nothing for others to read."""
# ruff: noqa: ASYNC240 - nothing else runs in the loop of a test

import stat
from io import BytesIO
from pathlib import Path

import pytest

from adapters_store.files import LocalFiles
from wfcore.errors import NotFound, StoreUnavailable


async def content(files: LocalFiles, key: str) -> bytes:
    """Everything under *key*."""
    return b"".join([chunk async for chunk in files.read(key, 0, 1_000_000)])


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/",
        "exec_1",
        "exec_1/",
        "exec_1/../secret",
        "../secret",
        "exec_1/../../secret",
        "/etc/passwd",
        "exec_1/a/b",
        "exec_1/a\0",
        "exec_1/.a.part",
        "exec_1/a\n",
    ],
)
async def test_a_key_that_is_none_is_not_found(tmp_path: Path, key: str) -> None:
    """Only `<execution>/<artifact>` of plain names leads to a file."""
    files = LocalFiles(tmp_path / "artifacts")
    await files.store("exec_1", "a", BytesIO(b"a"))
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "artifacts" / "secret").write_text("secret")
    with pytest.raises(NotFound):
        await content(files, key)


async def test_names_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    """Ids that would lead elsewhere write and delete nothing."""
    files = LocalFiles(tmp_path / "artifacts")
    (tmp_path / "precious").mkdir()
    for execution_id, artifact_id in (("..", "a"), ("exec_1", "../a"), ("a/b", "c"), ("", "c")):
        with pytest.raises(NotFound):
            await files.store(execution_id, artifact_id, BytesIO(b""))
    with pytest.raises(NotFound):
        await files.delete_executions("../precious")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A link where content should be is not read."""
    files = LocalFiles(tmp_path / "artifacts")
    await files.store("exec_1", "a", BytesIO(b"a"))
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "artifacts" / "exec_1" / "b").symlink_to(tmp_path / "secret")
    with pytest.raises(StoreUnavailable):
        await content(files, "exec_1/b")


async def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    """Content has mode 600, folders 700."""
    files = LocalFiles(tmp_path / "artifacts")
    await files.store("exec_1", "a", BytesIO(b"a"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files.root.rglob("*")}
    assert modes == {"exec_1": 0o700, "a": 0o600}
    assert stat.S_IMODE(files.root.stat().st_mode) == 0o700


class Broken(BytesIO):
    """Content that ends with an error of the disk."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Some bytes once, then the error."""
        if self.tell():
            raise OSError(28, "No space left on device")
        return super().read(10)


async def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """A half file never gets its name, and what was there before stays."""
    files = LocalFiles(tmp_path / "artifacts")
    await files.store("exec_1", "a", BytesIO(b"before"))
    with pytest.raises(StoreUnavailable):
        await files.store("exec_1", "a", Broken(b"x" * 100))
    assert await content(files, "exec_1/a") == b"before"
    assert [path.name for path in (files.root / "exec_1").iterdir()] == ["a"]
