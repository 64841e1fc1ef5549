"""Backups, and restoring from them: everything is there again, and nothing else gets in."""

import io
import json
import os
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from wfserver.data.archive import FORMAT, LAST_BACKUP, MANIFEST, last_backup
from wfserver.doctor.machine import of_the_machine
from wfserver.settings.record import settings_from

from .conftest import Call
from .test_data_folder import as_ordinary_user, folder, given_to_the_user, said_by

__all__ = ["folder"]


@pytest.fixture
def archive(wfcore: Call, applied: str, data: Path, tmp_path: Path) -> Path:
    """A backup of a store with a workflow and an artifact."""
    folder = data / "artifacts" / "exec_1"
    folder.mkdir(parents=True)
    (folder / "art_1").write_bytes(b"report")
    (folder / ".art_2.part").write_bytes(b"half")
    (folder / "art_3").symlink_to("/etc/passwd")
    file = tmp_path / "all.tar"
    said = wfcore("backup", str(file), "--with-key", "--json")
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


def test_the_last_backup_is_on_record(
    wfcore: Call, applied: str, data: Path, tmp_path: Path
) -> None:
    """The page about health says which archive was made last, and what keeps steps apart."""
    assert last_backup(data) is None
    (none,) = (
        one for one in of_the_machine(settings_from({}, data=str(data))) if one.name == "backups"
    )
    assert (none.ok, none.essential, "wfcore backup" in (none.cure or "")) == (False, False, True)
    for name in ("one.tar", "two.tar"):
        file = tmp_path / name
        assert wfcore("backup", str(file)).status == 0
        last = last_backup(data)
        assert last is not None
        assert last.startswith(f"{file}, {file.stat().st_size:,} bytes, at 20")
    checks = {one.name: one.detail for one in of_the_machine(settings_from({}, data=str(data)))}
    assert checks["backups"] == last
    assert checks["isolation"]


def test_a_torn_record_of_the_last_backup_is_none(tmp_path: Path) -> None:
    """A power cut costs the knowledge, and no page."""
    for torn in ("{", "", '"x"', '{"file": 1}'):
        (tmp_path / LAST_BACKUP).write_text(torn)
        assert last_backup(tmp_path) is None


def test_a_backup_holds_no_key_unless_asked(
    call: Call, wfcore: Call, data: Path, tmp_path: Path
) -> None:
    """Without `--with-key` nobody can read it or sign a download; a restore says what ends."""
    file, again = tmp_path / "bare.tar", tmp_path / "again"
    assert wfcore("backup", str(file)).status == 0
    with tarfile.open(file) as tar:
        assert {name for name in tar.getnames() if name.endswith(".key")} == set()
    said = call("--data", str(again), "restore", str(file))
    assert (said.status, "no signing key" in said.out) == (0, True)
    assert (again / "signing.key").read_bytes() != (data / "signing.key").read_bytes()


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


def test_a_mounted_folder_is_filled(call: Call, archive: Path, tmp_path: Path) -> None:
    """The folder itself stays what it is, with what a file system keeps at its root."""
    again = tmp_path / "again"
    (again / "lost+found").mkdir(parents=True)
    before = again.stat().st_ino
    assert call("--data", str(again), "restore", str(archive)).status == 0
    assert again.stat().st_ino == before
    assert sorted(os.listdir(again)) == [
        *("artifacts", "lost+found", "seal.key", "signing.key", "wfcore.db")
    ]
    assert call("--data", str(again), "workflow", "list", "--json").json["total"] == 1


def test_a_mount_is_filled(archive: Path, tmp_path: Path) -> None:
    """A file system of its own, where nothing can be renamed from outside."""
    again = tmp_path / "again"
    again.mkdir()
    inside = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)))
    wfcore = f"{sys.executable} -m wfserver --data {again}"
    script = f"mount -t tmpfs none {again} && {wfcore} restore {archive} && {wfcore} workflow list"
    said = said_by(*inside, "sh", "-c", script)
    assert said.status == 0, said.err
    assert "Greet" in said.out
    assert list(again.iterdir()) == []


def test_a_service_user_fills_its_folder(folder: Path, archive: Path) -> None:
    """Nothing is needed but the folder itself: the one above it belongs to somebody else."""
    again, copy = folder / "service", folder / "all.tar"
    again.mkdir()
    given_to_the_user(again, 0o700)
    shutil.copyfile(archive, copy)
    folder.chmod(0o555)
    said = as_ordinary_user("--data", str(again), "restore", str(copy))
    assert said.status == 0, said.err
    said = as_ordinary_user("--data", str(again), "account", "list")
    assert "ann@example.org" in said.out


KILLED_AT = """
import json, os, sys
from pathlib import Path
from wfserver.cli import main

archive, folder = sys.argv[1], sys.argv[2]

def child(job):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            os._exit(job())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def restore(data, last):
    seen = 0
    def count(event, arguments):
        nonlocal seen
        creates = event == "open" and arguments[2] & os.O_CREAT
        if creates or event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir"):
            seen += 1
            if seen == last:
                os._exit(9)
    sys.addaudithook(count)
    return main(["--data", data, "restore", archive])

warm = ("--data", f"{folder}/warm")
assert (main([*warm, "restore", archive]), main([*warm, "account", "list"])) == (0, 0)
ends, last = [], 0
while not ends or ends[-1][0] == 9:
    last += 1
    data = f"{folder}/{last}"
    os.mkdir(data)
    killed = child(lambda: restore(data, last))
    there = sorted(os.listdir(data))
    start = child(lambda: main(["--data", data, "account", "list"])) if there else None
    again = child(lambda: main(["--data", data, "restore", archive])) if start != 0 else None
    ends.append((killed, there, start, again, sorted(os.listdir(data))))
with open(f"{folder}/ends", "w") as file:
    json.dump(ends, file)
"""


def test_a_restore_that_is_killed_is_never_taken_for_a_service(
    archive: Path, tmp_path: Path
) -> None:
    """Whatever it was about to do: nothing is there, or a start refuses, or all is there."""
    folder = tmp_path / "kills"
    folder.mkdir()
    said = said_by(sys.executable, "-c", KILLED_AT, str(archive), str(folder))
    assert said.status == 0, said.err
    *kills, last = json.loads((folder / "ends").read_text())
    assert last[:2] == [0, ["artifacts", "seal.key", "signing.key", "wfcore.db"]]
    assert len(kills) > 10
    whole = {"artifacts", "signing.key", "wfcore.db"}
    for killed, there, start, again, at_last in kills:
        assert killed == 9
        if start == 0:
            assert whole <= set(there)
        else:
            assert there == [] or "restoring" in there
            assert (start, again) == ((1, 0) if there else (None, 0))
        assert whole <= set(at_last)
        assert "restoring" not in at_last
    assert said.err.count("was broken off") == sum(start == 1 for _, _, start, *_ in kills)


def test_a_broken_restore_does_not_cost_other_files(
    call: Call, archive: Path, tmp_path: Path
) -> None:
    """What somebody has put beside the rest of a restore is not removed, but named."""
    again = tmp_path / "again"
    (again / "restoring").mkdir(parents=True)
    (again / "all.tar").write_bytes(archive.read_bytes())
    (again / "wfcore.db").write_bytes(b"half")
    said = call("--data", str(again), "restore", str(again / "all.tar"))
    assert said.status == 1
    assert "all.tar" in said.err
    assert (again / "all.tar").exists()
    assert "run wfcore restore again" in call("--data", str(again), "account", "list").err


@pytest.mark.parametrize("size", [0, 31])
def test_a_backup_with_half_a_key_is_refused(
    call: Call, archive: Path, tmp_path: Path, size: int
) -> None:
    """What a start would refuse is not restored."""
    with tarfile.open(archive) as tar:
        members = {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    other = _archive_of(tmp_path / "other.tar", {**members, "signing.key": b"k" * size})
    said = call("--data", str(tmp_path / "again"), "restore", str(other))
    assert said.status == 1
    assert f"signing.key has {size} bytes" in said.err
    assert not (tmp_path / "again").exists()


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
