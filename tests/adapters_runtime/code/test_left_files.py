"""Of what a step left, plain files are kept, under harmless names; links are not followed."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from adapters_runtime.code import artifacts
from adapters_runtime.code.artifacts import CollectedFiles, UnusableArtifact, find
from wfcore.model.execution import RefusedFile
from wfcore.ports.files import StoredFile
from wfcore.rules.masking import secrets_of
from wfcore.testing.fakes_running import DictFiles

MOST = 100


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """The folder as it is handed over; nothing else stays open."""
    before = len(os.listdir("/proc/self/fd"))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
    assert len(os.listdir("/proc/self/fd")) == before


def found(folder: Path, most_files: int = MOST, most_bytes: int = MOST) -> CollectedFiles:
    with opened(folder) as descriptor:
        return find(descriptor, most_files, most_bytes)


def filled(folder: Path, *names: str, size: int = 1) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)


def test_only_plain_files_with_one_name_qualify(tmp_path: Path) -> None:
    """Whatever else is there is refused by name and with a reason, and is no fault of the step."""
    left = tmp_path / "left"
    filled(left, "b.txt", "a/deep/c.txt", "twice", "odd\nname")
    filled(tmp_path, "outside")
    os.link(left / "twice", left / "again")
    (left / "file").symlink_to(tmp_path / "outside")
    (left / "folder").symlink_to(tmp_path)
    os.mkfifo(left / "pipe")
    os.mknod(left / "socket", stat.S_IFSOCK | 0o600)
    came = found(left)
    assert came.files == [("a", "deep", "c.txt"), ("b.txt",), ("odd\nname",)]
    assert came.names()["odd\nname",] == "odd\N{REPLACEMENT CHARACTER}name"
    assert sorted((one.name, one.reason) for one in came.all_refused()) == [
        ("again", "a file with several names"),
        ("file", "a link"),
        ("folder", "a link"),
        ("pipe", "a pipe"),
        ("socket", "a socket"),
        ("twice", "a file with several names"),
    ]
    assert came.fault is None


def test_one_file_too_many_and_a_byte_too_many_are_faults(tmp_path: Path) -> None:
    """As many and as large as the limits say are no fault, and are kept where others are."""
    filled(tmp_path, "a", "c", size=2)
    assert found(tmp_path, 2, 2) == CollectedFiles([("a",), ("c",)])
    filled(tmp_path, "b/large", size=3)
    large = [RefusedFile("b/large", "larger than 2 bytes")]
    fault = "artifact b/large is larger than 2 bytes"
    assert found(tmp_path, 2, 2) == CollectedFiles([("a",), ("c",)], large, fault)
    many = [RefusedFile("b/large", "one more than 2"), RefusedFile("c", "one more than 2")]
    assert found(tmp_path, 1, 3) == CollectedFiles(
        [("a",)],
        [RefusedFile(one.name, "one more than 1") for one in many],
        "more than 1 artifacts",
    )


def test_all_files_together_fit_into_what_their_folder_may_hold(tmp_path: Path) -> None:
    """A file is as large as it says, holes included; what does not fit is refused by name."""
    filled(tmp_path, "a", "d", size=2)
    for name in ("b", "c"):
        filled(tmp_path, name)
        os.truncate(tmp_path / name, 6)
    with opened(tmp_path) as descriptor:
        assert find(descriptor, MOST, MOST, most_in_all=16).fault is None
        assert find(descriptor, MOST, MOST, most_in_all=10) == CollectedFiles(
            [("a",), ("b",), ("d",)],
            [RefusedFile("c", "beyond 10 bytes in all")],
            "artifacts of more than 10 bytes in all",
        )


def test_folders_are_looked_into_up_to_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So deep, so many, and so many entries in all: what is beyond is named."""
    filled(tmp_path, "1/2/kept", "1/2/3/lost")
    with monkeypatch.context() as patched:
        patched.setattr(artifacts, "_MOST_LEVELS", 2)
        deep = [RefusedFile("1/2/3", "nested deeper than 2 folders")]
        assert found(tmp_path) == CollectedFiles([("1", "2", "kept")], deep)
    with monkeypatch.context() as patched:
        patched.setattr(artifacts, "_MOST_FOLDERS", 3)
        many = [RefusedFile("1/2/3", "one more than 3 folders")]
        assert found(tmp_path) == CollectedFiles([("1", "2", "kept")], many)
    with monkeypatch.context() as patched:
        patched.setattr(artifacts, "_MOST_ENTRIES", 3)  # which of the last two comes first is open
        behind = found(tmp_path)
        assert behind.files in ([], [("1", "2", "kept")])
        assert {one.reason for one in behind.refused} == {"behind 3 others"}
        assert len(behind.refused) == 2 - len(behind.files)
    with monkeypatch.context() as patched:
        patched.setattr(artifacts, "_MOST_ENTRIES", 1)
        assert found(tmp_path) == CollectedFiles([], [RefusedFile("1", "behind 1 others")])


def test_of_many_that_do_not_qualify_fifty_are_named(tmp_path: Path) -> None:
    """The others are counted."""
    for number in range(artifacts.MOST_NAMED):
        (tmp_path / f"{number}").symlink_to("x")
    assert len(found(tmp_path).all_refused()) == artifacts.MOST_NAMED
    for number in range(2):
        (tmp_path / f"more {number}").symlink_to("x")
    *named, rest = found(tmp_path).all_refused()
    assert (len(named), rest) == (artifacts.MOST_NAMED, RefusedFile("2 more", "not named"))


async def test_a_file_is_stored_with_what_it_is(tmp_path: Path, files: DictFiles) -> None:
    """Its label, size, digest and type are on record, and nothing stays open."""
    filled(tmp_path, "charts/one.svg", size=3)
    path, name = ("charts", "one.svg"), "charts/one.svg"
    with opened(tmp_path) as descriptor:
        left = await artifacts.store(files, "exec_1", "art_1", descriptor, path, name)
    assert (left.id, left.name, left.size) == ("art_1", "charts/one.svg", 3)
    assert left.storage_key == "exec_1/art_1"
    assert (left.content_type, left.previewable) == ("image/svg+xml", False)
    assert left.sha256 == "cd2eb0837c9b4c962c22d2ff8b5441b7b45805887f051d39bf133b583baf6860"
    assert b"".join([part async for part in files.read(left.storage_key, 0, 3)]) == b"xxx"


async def test_a_name_leaves_without_secrets(tmp_path: Path) -> None:
    """Whoever keeps the content, and may tell its name to others, gets the one without secrets."""
    told: list[str] = []

    class Named(DictFiles):
        async def store(
            self, execution_id: str, artifact_id: str, content: BinaryIO, name: str = ""
        ) -> StoredFile:
            told.append(name)
            return await super().store(execution_id, artifact_id, content, name)

    filled(tmp_path, "out/for-s3cret-canary.csv")
    with opened(tmp_path) as descriptor:
        came = find(descriptor, MOST, MOST, secrets_of(["s3cret-canary"]))
        ((path, name),) = came.names().items()
        left = await artifacts.store(Named(), "exec_1", "art_1", descriptor, path, name)
    assert told == [left.name] == ["out/for-***.csv"]


def test_names_that_are_equal_without_secrets_are_numbered(tmp_path: Path) -> None:
    """Each file has a name of its own, also where one already has the number."""
    filled(tmp_path, "a/*** (2).txt", "a/one-key.txt", "a/two-key.txt", "b/one-key.txt")
    with opened(tmp_path) as descriptor:
        came = find(descriptor, MOST, MOST, secrets_of(["one-key", "two-key"]))
    assert [*came.names().values()] == [
        "a/*** (2).txt", "a/***.txt", "a/*** (3).txt", "b/***.txt",
    ]  # fmt: skip


@pytest.mark.parametrize("secret", ["new\nline-1", "tab\tsecret", "turned\u202esecret"])
def test_a_secret_is_hidden_before_its_characters_are_replaced(tmp_path: Path, secret: str) -> None:
    """Nothing remains of one that cannot be shown as it is."""
    (tmp_path / f"r-{secret}.lnk").symlink_to("x")
    filled(tmp_path, f"{secret}/r.txt", size=3)
    with opened(tmp_path) as descriptor:
        came = find(descriptor, MOST, 2, secrets_of([secret]))
    assert sorted(one.name for one in came.refused) == ["***/r.txt", "r-***.lnk"]


def test_a_fault_names_no_secret(tmp_path: Path) -> None:
    """A file that is too large is named as it is where it is refused."""
    filled(tmp_path, "large-key/r.txt", size=3)
    with opened(tmp_path) as descriptor:
        came = find(descriptor, MOST, 2, secrets_of(["large-key"]))
    assert came.fault == "artifact ***/r.txt is larger than 2 bytes"
    assert [one.name for one in came.refused] == ["***/r.txt"]


@pytest.mark.parametrize("path", [("file",), ("folder", "outside"), ("gone",), ("plain", "x")])
async def test_what_is_no_longer_what_was_found_is_not_stored(
    tmp_path: Path, files: DictFiles, path: tuple[str, ...]
) -> None:
    """A link in the place of a file or a folder is followed by nobody."""
    filled(tmp_path, "outside", "left/plain")
    (tmp_path / "left" / "file").symlink_to(tmp_path / "outside")
    (tmp_path / "left" / "folder").symlink_to(tmp_path)
    with (
        opened(tmp_path / "left") as descriptor,
        pytest.raises(UnusableArtifact, match=r"it cannot be read: [A-Z]"),
    ):
        await artifacts.store(files, "exec_1", "art_1", descriptor, path, "name")


@pytest.mark.parametrize(
    ("name", "kind", "previewable"),
    [
        ("a.txt", "text/plain", True),
        ("a.CSV", "text/csv", True),
        ("a.json", "application/json", True),
        ("a.pdf", "application/pdf", True),
        ("a.png", "image/png", True),
        ("a.log", "text/plain", True),
        ("a.md", "text/markdown", True),
        ("a.avif", "image/avif", True),
        ("a.webp", "image/webp", True),
        ("a.html", "text/html", False),
        ("a.svg", "image/svg+xml", False),
        ("a.js", "text/javascript", False),
        ("a.yaml", "application/yaml", False),
        ("a.yml", "application/yaml", False),
        ("a.tar.gz", "application/octet-stream", False),
        ("a.txt.gz", "application/octet-stream", False),
        ("a", "application/octet-stream", False),
    ],
)
def test_a_browser_shows_only_what_holds_no_script(name: str, kind: str, previewable: bool) -> None:
    """Types come from the name alone, by our own table, and what can hold scripts is downloaded."""
    assert artifacts.content_type_of(name) == kind
    assert artifacts.is_previewable(kind) is previewable


def test_a_label_is_text_that_can_be_shown() -> None:
    """Without controls, changes of direction and broken UTF-8; blanks and joiners stay. CS-13."""
    path = ("a\u3000", os.fsdecode(b"\xff.txt"), "b\x1b\u202e\t", "é\u200d\u00a0")
    odd = "\N{REPLACEMENT CHARACTER}"
    assert artifacts.label(path) == f"a\u3000/{odd}.txt/b{odd}{odd}{odd}/é\u200d\u00a0"
