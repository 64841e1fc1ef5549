"""Backups, and restoring from them: everything is there again, and nothing else gets in."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from wfserver.archive import FORMAT, MANIFEST

from .conftest import Call


@pytest.fixture
def archive(wfcore: Call, applied: str, data: Path, tmp_path: Path) -> Path:
    """A backup of a store with a workflow and an artifact."""
    folder = data / "artifacts" / "exec_1"
    folder.mkdir(parents=True)
    (folder / "art_1").write_bytes(b"report")
    (folder / ".art_2.part").write_bytes(b"half")
    (folder / "art_3").symlink_to("/etc/passwd")
    file = tmp_path / "all.tar"
    said = wfcore("backup", str(file), "--json")
    assert said.json == {"file": str(file), "size": file.stat().st_size}
    return file


def test_a_restored_folder_is_the_same(
    call: Call, wfcore: Call, archive: Path, data: Path, tmp_path: Path
) -> None:
    """Records, artifacts and signing key are there again; links and halves are not."""
    again = tmp_path / "again"
    assert call("--data", str(again), "restore", str(archive)).status == 0
    listed = call("--data", str(again), "workflow", "list", "--json").json
    assert listed == wfcore("workflow", "list", "--json").json
    assert listed["total"] == 1
    assert (again / "signing.key").read_bytes() == (data / "signing.key").read_bytes()
    artifacts = sorted((again / "artifacts").rglob("*"))
    assert [path.name for path in artifacts] == ["exec_1", "art_1"]
    assert artifacts[1].read_bytes() == b"report"


def test_backups_are_private_and_never_replaced(wfcore: Call, archive: Path) -> None:
    """The archive is for its owner only, and an existing file is not written over."""
    assert archive.stat().st_mode & 0o777 == 0o600
    before = archive.read_bytes()
    said = wfcore("backup", str(archive))
    assert said.status == 1
    assert "exists already" in said.err
    assert archive.read_bytes() == before
    assert [path.name for path in archive.parent.iterdir() if "backup" in path.name] == []


def test_only_an_empty_folder_is_filled(wfcore: Call, archive: Path, data: Path) -> None:
    """A data folder in use is refused and left as it is."""
    before = sorted(os.listdir(data))
    said = wfcore("restore", str(archive))
    assert said.status == 1
    assert f"{data} is not empty" in said.err
    assert sorted(os.listdir(data)) == before


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


HOSTILE = [
    _member("../outside"),
    _member("/tmp/outside"),
    _member("artifacts/../../outside"),
    _member("artifacts/exec_1/../../../outside"),
    _member("artifacts/exec_1/art_9/deeper"),
    _member("artifacts/.hidden/art_9"),
    _member("first.key"),
    _member("artifacts/exec_1/art_9", tarfile.SYMTYPE, "/etc/passwd"),
    _member("artifacts/exec_1/art_9", tarfile.LNKTYPE, "signing.key"),
    _member("artifacts", tarfile.SYMTYPE, "/tmp"),
    _member("artifacts/exec_1/art_9", tarfile.CHRTYPE),
    _member("artifacts/exec_1/art_9", tarfile.FIFOTYPE),
]


@pytest.mark.parametrize("member", HOSTILE, ids=lambda one: f"{one.name}-{one.type.decode()}")
def test_an_archive_with_anything_else_is_refused(
    call: Call, archive: Path, tmp_path: Path, member: tarfile.TarInfo
) -> None:
    """A member that no backup has is named; nothing is written, inside the folder or outside."""
    with tarfile.open(archive, "a") as tar:
        tar.addfile(member)
    before = sorted(os.listdir(tmp_path))
    said = call("--data", str(tmp_path / "again"), "restore", str(archive))
    assert said.status == 1
    assert repr(member.name) in said.err
    assert sorted(os.listdir(tmp_path)) == before


def _archive_of(file: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(file, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file


GOOD = str(FORMAT).replace("'", '"').encode()


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"wfcore.db": b"x"},
        {MANIFEST: b"{}"},
        {MANIFEST: b"not json"},
        {MANIFEST: GOOD},
        {MANIFEST: GOOD, "wfcore.db": b"this is no database", "signing.key": b"k"},
    ],
    ids=["empty", "no manifest", "other manifest", "broken manifest", "no database", "damaged"],
)
def test_an_archive_that_is_no_backup_is_refused(
    call: Call, tmp_path: Path, members: dict[str, bytes]
) -> None:
    """Another tar, or a backup with a damaged database, is refused and leaves nothing."""
    file = _archive_of(tmp_path / "other.tar", members)
    said = call("--data", str(tmp_path / "again"), "restore", str(file))
    assert said.status == 1
    assert said.err.startswith("error: ")
    assert os.listdir(tmp_path) == ["other.tar"]


def test_a_truncated_archive_is_refused(call: Call, archive: Path, tmp_path: Path) -> None:
    """Half a backup restores nothing."""
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    said = call("--data", str(tmp_path / "again"), "restore", str(archive))
    assert said.status == 1
    assert not (tmp_path / "again").exists()
