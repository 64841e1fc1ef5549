"""A data folder that cannot be used: one true line, as root and as an ordinary user."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wfcore.errors import StoreDisplaced
from wfcore.model.access import Tier
from wfserver.compose import open_system
from wfserver.data.bootstrap import first_things
from wfserver.data.folder import SIGNING_KEY_FILE, signing_key
from wfserver.data.pidfile import FILE, ServerNote, is_serving, noted_url
from wfserver.errors import CommandFailed
from wfserver.settings.names import FIRST_KEY_FILE
from wfserver.settings.record import settings_from

from .conftest import Call, Said, document, end, environment, start

NOBODY = 65_534
ROOT = os.geteuid() == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users may enter, too: those of pytest are for their owner only."""
    folder = Path(tempfile.mkdtemp(prefix="wfcore-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


DROP_RIGHTS = f"""
import importlib, os, pkgutil, sys
for package in ("wfserver", "adapters_store", "adapters_runtime", "wfcore.usecases"):
    for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{{package}}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
from adapters_store.sqlite.migrate import migrations
from wfserver.commands import account, backup, up
from wfserver.cli import main
migrations()
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
    os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
sys.exit(main(sys.argv[1:]))
"""
"""Everything is loaded before: the interpreter may lie where only root may look."""


def as_ordinary_user(*arguments: str) -> Said:
    """Call the command line as somebody whom modes of files concern."""
    return said_by(sys.executable, "-c", DROP_RIGHTS, *arguments)


def said_by(*command: str) -> Said:
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(),
        timeout=60,
    )
    return Said(ended.returncode, ended.stdout, ended.stderr)


def given_to_the_user(path: Path, mode: int) -> None:
    if ROOT:
        os.chown(path, NOBODY, NOBODY)
    path.chmod(mode)


def new(data: Path) -> None:
    data.mkdir()
    given_to_the_user(data, 0o700)


def a_file(data: Path) -> None:
    data.touch()


def below_a_file(data: Path) -> None:
    data.parent.rmdir()
    data.parent.touch()


def a_link_to_nothing(data: Path) -> None:
    data.symlink_to(data.with_name("nothing"))


def a_folder_for_the_database(data: Path) -> None:
    new(data)
    (data / "wfcore.db").mkdir()


def a_file_for_artifacts(data: Path) -> None:
    new(data)
    (data / "artifacts").touch()


def a_folder_for_the_note(data: Path) -> None:
    new(data)
    (data / "server.json").mkdir()


FOR_ALL = {
    a_file: "is a file, not a folder; choose another folder",
    below_a_file: "cannot create .* Not a directory|there is no folder",
    a_link_to_nothing: "is a symbolic link to a path that does not exist",
    a_folder_for_the_database: "wfcore.db is a folder, but wfcore needs a file",
    a_file_for_artifacts: "artifacts is a file, but wfcore needs a folder",
    a_folder_for_the_note: "server.json is a folder, but wfcore needs a file",
}


def closed_to_its_owner(data: Path) -> None:
    new(data)
    data.chmod(0o500)


def a_parent_of_somebody_else(data: Path) -> None:
    data.parent.chmod(0o555)


def a_database_nobody_may_write(data: Path) -> None:
    new(data)
    (data / "wfcore.db").write_bytes(b"x")
    given_to_the_user(data / "wfcore.db", 0o400)


def a_key_nobody_may_read(data: Path) -> None:
    new(data)
    (data / "signing.key").write_bytes(b"x" * 32)
    given_to_the_user(data / "signing.key", 0o000)


FOR_ORDINARY_USERS = {
    **FOR_ALL,
    closed_to_its_owner: "its mode denies its owner access; chmod u",
    a_parent_of_somebody_else: "cannot create .* may not write to",
    a_database_nobody_may_write: "wfcore.db belongs to .* denies its owner access",
    a_key_nobody_may_read: "signing.key belongs to .* denies its owner access",
}


def one_line(said: Said, text: str) -> None:
    """It failed as a command fails, and said why."""
    assert said.status in (1, 2)
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert re.search(text, said.err), said.err


@pytest.mark.parametrize("fault", FOR_ALL, ids=lambda one: one.__name__)
@pytest.mark.parametrize("command", [("account", "list"), ("up", "--port", "0")])
def test_what_is_in_the_way_is_named(
    call: Call, folder: Path, fault: Callable[[Path], None], command: tuple[str, ...]
) -> None:
    """Whoever asks: something else where the folder, or a part of it, should be."""
    data = folder / "parent" / "data"
    data.parent.mkdir()
    fault(data)
    one_line(call("--data", str(data), *command), FOR_ALL[fault])


@pytest.mark.parametrize("fault", FOR_ORDINARY_USERS, ids=lambda one: one.__name__)
def test_an_ordinary_user_is_told_what_it_may_not(
    folder: Path, fault: Callable[[Path], None]
) -> None:
    """Modes stop everybody but root: the line names the file and what helps."""
    data = folder / "parent" / "data"
    data.parent.mkdir()
    fault(data)
    said = as_ordinary_user("--data", str(data), "up", "--port", "0")
    one_line(said, FOR_ORDINARY_USERS[fault])


def test_a_folder_of_somebody_else_is_named_with_its_owner() -> None:
    """A folder of root's is none to serve from, and the line says whose it is."""
    said = as_ordinary_user("--data", "/etc", "account", "list")
    one_line(said, "/etc belongs to root, .* only wfcore uses /etc: chown -R")


def test_a_read_only_mount_is_named(folder: Path) -> None:
    """Even root cannot write there, and modes have nothing to do with it."""
    inside = ("unshare", "--mount") if ROOT else ("unshare", "--mount", "--map-root-user")
    mounted = (*inside, "sh", "-c", f'mount -t tmpfs -o ro none {folder} && exec "$@"', "sh")
    wfcore = (sys.executable, "-m", "wfserver", "--data", str(folder))
    said = said_by(*mounted, *wfcore, "account", "list")
    one_line(said, "mounted read-only; mount it read-write")


@pytest.mark.parametrize("size", [0, 31, 33, 4_096])
def test_a_signing_key_of_another_size_is_refused(wfcore: Call, data: Path, size: int) -> None:
    """Whoever knows a part of the key could sign with it: with an empty one, anybody."""
    key = data / SIGNING_KEY_FILE
    key.write_bytes(b"k" * size)
    said = wfcore("account", "list")
    one_line(said, f"signing.key has {size} bytes instead of 32")
    assert key.read_bytes() == b"k" * size


def test_a_lost_signing_key_is_made_anew(wfcore: Call, data: Path) -> None:
    """As the refusal says: links that were handed out end, nothing else does."""
    (data / SIGNING_KEY_FILE).unlink()
    assert wfcore("account", "list").status == 0
    assert len(signing_key(data)) == 32
    assert signing_key(data) == signing_key(data)
    assert (data / SIGNING_KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_a_link_to_a_signing_key_is_followed(tmp_path: Path) -> None:
    """Where secrets are mounted, the file in the folder is a link."""
    (tmp_path / "secret").write_bytes(b"k" * 32)
    (tmp_path / SIGNING_KEY_FILE).symlink_to("secret")
    assert signing_key(tmp_path) == b"k" * 32
    (tmp_path / "secret").write_bytes(b"")
    with pytest.raises(CommandFailed, match="0 bytes"):
        signing_key(tmp_path)


def test_a_store_in_memory_leaves_no_key(call: Call, data: Path) -> None:
    """A key beside no database would tell of a service that was never there."""
    data.mkdir()
    assert call("--data", str(data), "--store", "memory:", "account", "list").status == 0
    assert list(data.iterdir()) == []
    assert call("--data", str(data), "account", "list").status == 0


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"wf_\0", b"no key", b"k" * 100_000])
async def test_a_first_key_that_is_none_is_no_key(tmp_path: Path, text: bytes) -> None:
    """What cannot be the account's key is as good as no file: one is made and written."""
    data = tmp_path / "data"
    data.mkdir()
    async with open_system(settings_from({}, data=str(data))) as system:
        (data / FIRST_KEY_FILE).write_bytes(text)
        first = await first_things(system.services, data, Tier.ENTERPRISE)
    assert first.new_key is not None
    assert (data / FIRST_KEY_FILE).read_text() == f"{first.new_key}\n"
    assert (data / FIRST_KEY_FILE).stat().st_mode & 0o777 == 0o600


ODD = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 4_000,
    b'{"url": 5, "pid": "1"}',
    b'{"url": "javascript:alert(1)", "pid": 0}',
    b'{"url": "http://a b", "pid": -1}',
    b'{"url": "http://127.0.0.1\\n", "pid": true}',
    b'{"url": null, "pid": 99999999999999999999999}',
    b'{"url": "http://127.0.0.1:1", "pid": 1}' + b" " * 5_000,
]


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text[:40]))
def test_an_odd_note_of_a_server_is_no_note(tmp_path: Path, text: bytes) -> None:
    """Nobody is taken for a server, nothing is followed, and the next server notes itself."""
    (tmp_path / FILE).write_bytes(text)
    assert noted_url(tmp_path) is None
    assert is_serving(settings_from({}, data=str(tmp_path))) is False
    note = ServerNote(tmp_path / FILE)
    note.here("http://127.0.0.1:8000")
    assert noted_url(tmp_path) == "http://127.0.0.1:8000"
    assert is_serving(settings_from({}, data=str(tmp_path))) is True
    note.clear()
    assert not (tmp_path / FILE).exists()


def test_doctor_says_the_same(call: Call, folder: Path) -> None:
    """What a command fails with, the check of the folder names with its cure apart."""
    data = folder / "data"
    data.touch()
    said = call("--data", str(data), "doctor", "--json")
    checks = {one["name"]: one for one in json.loads(said.out)["checks"]}
    assert said.status == 1
    assert checks["data"]["detail"] == f"{data} is a file, not a folder"
    assert checks["data"]["cure"] == "choose another folder with --data"


NAMED = str(StoreDisplaced())


def answer_of(url: str, method: str = "GET") -> tuple[int, str]:
    """Status and text of a request, whatever they are."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_server_whose_database_is_replaced_says_so(folder: Path) -> None:
    """Readiness names it, until the file is put back; nothing is restarted."""
    data = folder / "data"
    process = start("serve", "--port", "0", "--json", data=data)
    try:
        ready = f"{document(process, data)['url']}/readyz"
        assert answer_of(ready)[0] == 200
        database, aside = data / "wfcore.db", data / "aside"
        database.rename(aside)
        shutil.copyfile(aside, database)
        asked = [answer_of(ready)]
        while NAMED not in asked[-1][1] and len(asked) < 100_000:
            asked.append(answer_of(ready))
        assert asked[-1] == (503, f'{{"error":"{NAMED}"}}')
        aside.replace(database)
        while asked[-1][0] == 503 and len(asked) < 100_000:
            asked.append(answer_of(ready))
        assert asked[-1][0] == 200
    finally:
        end(process)
