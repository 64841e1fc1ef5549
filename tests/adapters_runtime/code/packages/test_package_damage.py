"""What an installer leaves is copied with care, and a damaged environment is made anew."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters_runtime.code.packages import sandbox
from wfcore.errors import PackagesUnavailable

from .test_package_folders import Notes, folders, python


def copied(root: Path) -> None:
    """Copy what is in `left` to `kept`."""
    left = os.open(root / "left", os.O_RDONLY)
    try:
        sandbox.copy(left, root / "kept")
    finally:
        os.close(left)


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what an installer left, more than the limit is not kept. PK-6."""
    monkeypatch.setattr(sandbox, "LARGEST", 2 << 20)
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "module").write_bytes(b"x" * (3 << 20))
    with pytest.raises(PackagesUnavailable, match="they take more than 2 MiB"):
        copied(tmp_path)


@pytest.mark.parametrize("trick", ["link", "pipe", "second name", "depth"])
def test_only_files_and_folders_are_taken_from_an_installer(tmp_path: Path, trick: str) -> None:
    """Links, pipes, files with two names and endless folders are refused, not followed. PK-11."""
    (left := tmp_path / "left").mkdir()
    (secret := tmp_path / "secret").write_text("s3cret")
    match trick:
        case "link":
            (left / "module").symlink_to(secret)
        case "pipe":
            os.mkfifo(left / "module")
        case "second name":
            (left / "module").hardlink_to(secret)
        case _:
            left.joinpath(*"x" * 102).mkdir(parents=True)
    with pytest.raises((PackagesUnavailable, OSError)):
        copied(tmp_path)
    assert not any("s3cret" in path.read_text() for path in (tmp_path / "kept").glob("m*"))


def test_what_an_installer_left_is_for_all_to_read(tmp_path: Path) -> None:
    """Nobody else may write to it, what could be run still can, and compiled files still fit."""
    (left := tmp_path / "left").mkdir()
    for name, mode in (("module", 0o600), ("program", 0o4711), ("open", 0o666)):
        (left / name).write_text(name)
        (left / name).chmod(mode)
        os.utime(left / name, ns=(1, 1_234_567_891))
    copied(tmp_path)
    found = {path.name: path.stat() for path in (tmp_path / "kept").iterdir()}
    modes = {name: facts.st_mode & 0o7777 for name, facts in found.items()}
    assert modes == {"module": 0o644, "program": 0o755, "open": 0o644}
    assert {facts.st_mtime_ns for facts in found.values()} == {1_234_567_891}
    assert (tmp_path / "kept" / "module").read_text() == "module"


def spoil_content(modules: Path) -> None:
    (modules / "a==1").write_bytes(b"evil")


def spoil_mode(modules: Path) -> None:
    (modules / "a==1").chmod(0)


def spoil_folder(modules: Path) -> None:
    modules.chmod(0o777)


def add_one(modules: Path) -> None:
    (modules / "evil.py").write_text("")


def remove_one(modules: Path) -> None:
    (modules / "a==1").unlink()


def content_of(folder: str) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in Path(folder).iterdir()]


@pytest.mark.parametrize("deed", [spoil_content, spoil_mode, spoil_folder, add_one, remove_one])
async def test_a_damaged_environment_is_made_anew(
    tmp_path: Path, deed: Callable[[Path], None]
) -> None:
    """Whatever was done to it, applying again repairs it, in a place nobody has seen. PK-12."""
    notes = Notes()
    kept = folders(tmp_path, notes)
    needs = await kept.prepare(python("a==1"))
    damaged = Path(kept.find(needs) or "")
    await kept.prepare(needs)
    assert notes.runs == 1
    deed(damaged)
    await kept.prepare(needs)
    repaired = kept.find(needs) or ""
    assert (notes.runs, repaired != str(damaged)) == (2, True)
    assert len(os.listdir(tmp_path)) == 1
    assert content_of(repaired) == [("a==1", b"x")]
