"""Artifact files on disk: nothing outside, nothing half, nothing for others to read."""
# ruff: noqa: ASYNC240 - nothing else runs in the loop of a test

import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

from adapters_store.files import LocalFiles
from adapters_store.private_folder import make_private
from wfcore.errors import NotFound, StoreUnavailable
from wfcore.ports.files import StoredFile


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
    with pytest.raises(StoreUnavailable) as refused:
        await content(files, "exec_1/b")
    assert str(refused.value.detail).startswith("artifact: [Errno ")


async def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    """Content has mode 600, folders 700."""
    files = LocalFiles(tmp_path / "artifacts")
    await files.store("exec_1", "a", BytesIO(b"a"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files.root.rglob("*")}
    assert modes == {"exec_1": 0o700, "a": 0o600}
    assert stat.S_IMODE(files.root.stat().st_mode) == 0o700


@pytest.fixture
def open_mask() -> Iterator[None]:
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_mask")
def test_a_folder_is_private_whatever_the_mask(tmp_path: Path) -> None:
    """So are the missing ones above it."""
    make_private(tmp_path / "a" / "b")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")]
    assert modes == [0o700, 0o700]


def test_a_folder_that_two_make_at_once_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes second, after both have seen that it is missing, goes on with the other's."""
    monkeypatch.setattr(Path, "exists", lambda path: path == tmp_path)
    for _ in range(2):
        make_private(tmp_path / "a")
    assert (tmp_path / "a").is_dir()


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
    with pytest.raises(StoreUnavailable) as refused:
        await files.store("exec_1", "a", Broken(b"x" * 100))
    assert refused.value.detail == "artifact: [Errno 28] No space left on device"
    assert await content(files, "exec_1/a") == b"before"
    assert [path.name for path in (files.root / "exec_1").iterdir()] == ["a"]


async def test_what_is_stored_is_told_by_its_size_and_hash(tmp_path: Path) -> None:
    """The record of an artifact says what was written, however many reads that took."""
    written = b"0123456789" * 10_000
    stored = await LocalFiles(tmp_path).store("exec_1", "a", BytesIO(written))
    assert stored == StoredFile("exec_1/a", len(written), sha256(written).hexdigest())


@pytest.mark.parametrize("at", ["artifacts", "artifacts/exec_1"])
async def test_where_no_folder_can_be_made_the_store_is_unavailable(
    tmp_path: Path, at: str
) -> None:
    """Whatever stands in the way is an unavailable store, also to the half file's deletion."""
    (tmp_path / at).parent.mkdir(exist_ok=True)
    (tmp_path / at).write_text("in the way")
    with pytest.raises(StoreUnavailable) as refused:
        await LocalFiles(tmp_path / "artifacts").store("exec_1", "a", BytesIO(b"a"))
    assert at in str(refused.value.detail)


async def test_a_folder_that_cannot_be_made_leaves_no_half_file_to_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk without room for a folder is an unavailable store, too."""

    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr("adapters_store.files.make_private", full)
    with pytest.raises(StoreUnavailable) as refused:
        await LocalFiles(tmp_path / "artifacts").store("exec_1", "a", BytesIO(b"a"))
    assert "No space left on device" in str(refused.value.detail)


async def test_deleted_files_are_gone_and_others_stay(tmp_path: Path) -> None:
    """All files of the executions that are named; what is not there any more is no error."""
    files = LocalFiles(tmp_path / "artifacts")
    for execution_id in ("exec_1", "exec_2", "exec_3"):
        await files.store(execution_id, "a", BytesIO(b"a"))
    for _ in range(2):
        await files.delete_executions("exec_1", "exec_2")
    assert [path.name for path in files.root.iterdir()] == ["exec_3"]
