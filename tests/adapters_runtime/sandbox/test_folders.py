"""Steps' folders are private, and go whatever is in them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters_runtime.sandbox.isolation.config import PROCESS, SandboxConfig
from adapters_runtime.sandbox.isolation.levels import ProcessLevel
from adapters_runtime.sandbox.step_folders import Folders, StepFolder, remove_tree
from adapters_runtime.sandbox.workdir import fill, make

LEVEL = ProcessLevel(SandboxConfig(PROCESS))


def _deep(folder: Path) -> None:
    """Deeper than a path can be long, and than Python can recurse."""
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d" * 20, dir_fd=fd)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT, dir_fd=fd))
    os.close(fd)


def _unwritable(folder: Path) -> None:
    for name in ("a", "a/b", "a/b/c"):
        (folder / name).mkdir()
        (folder / name / "file").write_text("x")
    for name in ("a/b/c", "a/b", "a", "."):
        (folder / name).chmod(0)


def _odd(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/etc")
    (folder / "dangling").symlink_to("nowhere")
    os.close(os.open(os.fsencode(folder) + b"/\xff\n", os.O_CREAT))


def _many(folder: Path) -> None:
    for number in range(40):
        (folder / str(number)).mkdir()
        for name in range(50):
            os.close(os.open(folder / str(number) / str(name), os.O_CREAT))


@pytest.mark.parametrize("fill", [_deep, _unwritable, _odd, _many])
def test_removal(tmp_path: Path, fill: "object") -> None:
    """Deep, unwritable, odd or many: everything goes, and nothing behind a link does."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "to-outside").symlink_to(outside)
    assert callable(fill)
    fill(tree)
    remove_tree(tree)
    assert not os.path.lexists(tree)
    assert (outside / "kept").read_text() == "x"


def test_removal_of_a_link(tmp_path: Path) -> None:
    """A folder that was replaced by a link: the link goes, its target stays."""
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    remove_tree(tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_private(tmp_path: Path) -> None:
    """Nobody else can look into the folders of steps."""
    folders = Folders(tmp_path / "steps")
    folder = folders.next()
    make(LEVEL, folder.path)
    made = [tmp_path / "steps", Path(folder.path), Path(folder.work), Path(folder.artifacts)]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    folders.close()


def test_other_users_may_pass_to_what_they_know(tmp_path: Path) -> None:
    """Where steps are other users they come to their folder, and list nothing on the way."""
    for passable, mode in ((False, 0o700), (True, 0o711)):
        folders = Folders(tmp_path / "not" / "there", passable)
        assert folders.own.stat().st_mode & 0o777 == mode
        folders.close()


def test_neighbours(tmp_path: Path) -> None:
    """A second process on the same root leaves the first one's folders alone."""
    first = Folders(tmp_path)
    folder = first.next()
    make(LEVEL, folder.path)
    script = f"""
from pathlib import Path
from adapters_runtime.sandbox.step_folders import Folders
from adapters_runtime.sandbox.workdir import make
from adapters_runtime.sandbox.isolation.levels import ProcessLevel
from adapters_runtime.sandbox.isolation.config import PROCESS, SandboxConfig
folders = Folders(Path({str(tmp_path)!r}))
folder = folders.next()
make(ProcessLevel(SandboxConfig(PROCESS)), folder.path)
print(folder.path)
"""
    left = subprocess.check_output([sys.executable, "-c", script], text=True).strip()
    assert os.path.lexists(folder.path)
    assert os.path.lexists(left)
    Folders(tmp_path).close()
    assert not os.path.lexists(left)
    assert os.path.lexists(folder.path)
    first.close()
    assert list(tmp_path.iterdir()) == []


def test_a_plain_folder_goes_at_once_and_another_is_left_whole(tmp_path: Path) -> None:
    """What a step filled is left for the thorough removal; what it left alone is gone."""
    plain, filled = StepFolder.at(f"{tmp_path}/plain"), StepFolder.at(f"{tmp_path}/filled")
    for folder in (plain, filled):
        fill(LEVEL, make(LEVEL, folder.path), {"main.sh": b":"}, {})
    Path(filled.work, "left").write_text("x")
    assert plain.remove_if_plain()
    assert not os.path.lexists(plain.path)
    assert plain.remove_if_plain()
    assert not filled.remove_if_plain()
    assert Path(filled.work, "left").exists()
