"""What `wfcore doctor` finds."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from adapters_runtime.sandbox.isolation.config import LADDER
from adapters_runtime.system import SystemClock
from adapters_store.postgres import connection
from adapters_store.postgres import store as postgres
from adapters_store.sql.sealing import id_of, keys_in
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import StoreUnavailable

from .conftest import Call, Said


def _check(said: Said, name: str) -> Any:
    return next(check for check in said.json["checks"] if check["name"] == name)


def test_the_document_says_everything(wfcore: Call) -> None:
    """`doctor --json` has the checks, each language and the isolation level."""
    said = wfcore("doctor", "--json")
    assert (said.status, said.json["ok"]) == (0, True)
    assert set(said.json) == {"ok", "checks", "languages", "runtimes", "isolation"}
    names = ["wfcore", "data", "disk", "store", "artifacts", "clock", "webhooks", "records"]
    names += ["backups", "keys", "packages", "providers", "notices"]
    assert [check["name"] for check in said.json["checks"]] == names
    assert all({"name", "ok", "detail", "cure"} <= set(check) for check in said.json["checks"])
    assert set(said.json["languages"]) == {
        *("python", "javascript", "typescript", "bash", "ruby", "lua", "command")
    }
    assert set(said.json["runtimes"]) == {"node", "bun"}
    python = said.json["languages"]["python"]
    assert python["available"] is True
    assert python["version"].startswith(f"{sys.version_info[0]}.")
    isolation = said.json["isolation"]
    assert isolation["level"] in LADDER
    assert bool(isolation["cure"]) == bool(isolation["lacks"]) == (isolation["level"] != LADDER[0])
    assert isolation["minimum"] == ("uid" if os.geteuid() == 0 else "landlock")
    assert isolation["refused"] is (isolation["level"] == "process")


def test_a_server_without_a_backup_is_not_well(wfcore: Call, tmp_path: Path) -> None:
    """No archive yet is a fault with a cure, not a tick; after the first one it is well."""
    before = _check(wfcore("doctor", "--json"), "backups")
    assert (before["ok"], before["detail"]) == (False, "none by wfcore backup yet")
    assert "wfcore backup" in before["cure"]
    assert re.search(r"^! +backups ", wfcore("doctor").out, re.MULTILINE)
    assert wfcore("backup", str(tmp_path / "first.tar")).status == 0
    assert _check(wfcore("doctor", "--json"), "backups")["ok"] is True


def test_a_clock_that_was_set_back_is_shown(wfcore: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far, that approvals are held, and by how much work is ahead; first nothing is wrong."""
    assert _check(wfcore("doctor", "--json"), "clock")["detail"] == "no jump"
    wall, back = SystemClock._wall, 0
    monkeypatch.setattr(SystemClock, "_wall", lambda self: wall(self) - back)
    back = 600_000
    said = wfcore("doctor", "--json")
    found = _check(said, "clock")
    assert (said.status, found["ok"], found["essential"]) == (0, False, False)
    assert "it jumped by -60" in found["detail"]
    assert "NTP" in found["cure"]
    steady = SystemClock._steady
    monkeypatch.setattr(SystemClock, "_steady", lambda self: steady(self) + 301_000)
    assert " s ahead of it" in _check(wfcore("doctor", "--json"), "clock")["detail"]


def test_keys_that_others_may_read_are_named(wfcore: Call, data: Path) -> None:
    """Which key seals is said by its id; a file of keys that is not private, with the cure."""
    wfcore("account", "create", "ann@example.org")
    (key,) = keys_in((data / "seal.key").read_text())
    found = _check(wfcore("doctor", "--json"), "keys")
    assert found["ok"]
    assert id_of(key) in found["detail"]
    assert key not in found["detail"]
    for name in ("seal.key", "signing.key"):
        (data / name).touch()
        (data / name).chmod(0o644)
        found = _check(wfcore("doctor", "--json"), "keys")
        assert (found["ok"], found["cure"]) == (False, f"chmod 600 {data / name}")
        (data / name).chmod(0o600)
    (data / "seal.key").write_text("wfs_\n")
    assert not _check(wfcore("doctor", "--json"), "keys")["ok"]


@pytest.mark.parametrize("level", LADDER)
def test_a_forced_level_and_why_it_cannot_be_had(
    wfcore: Call, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """A forced level is what there is, or the reason why not and how to get it are said."""
    monkeypatch.setenv("WFCORE_ISOLATION", level)
    isolation = wfcore("doctor", "--json").json["isolation"]
    if isolation["level"] == level:
        assert (isolation["refused"], isolation["missed"]) == (False, {})
    else:
        assert (isolation["level"], isolation["refused"]) == ("process", True)
        assert isolation["missed"][level]
        assert isolation["missed"][level] in " ".join(wfcore("doctor").out.split())


def test_what_the_users_of_steps_cannot_run_is_missing(
    wfcore: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An interpreter in a private folder is one where steps run as the server, and none else."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    copy = shutil.copy2(os.path.realpath("/bin/bash"), private / "bash")
    monkeypatch.setenv("PATH", str(private))
    monkeypatch.setenv("WFCORE_ISOLATION", "process")
    assert wfcore("doctor", "--json").json["languages"]["bash"]["path"] == str(copy)
    if os.geteuid() == 0:
        monkeypatch.setenv("WFCORE_ISOLATION", "uid")
        assert not wfcore("doctor", "--json").json["languages"]["bash"]["available"]


def test_an_unknown_level_is_a_usage_error(wfcore: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error in the level is refused by name, not taken for none."""
    monkeypatch.setenv("WFCORE_MIN_ISOLATION", "namespaces")
    said = wfcore("doctor")
    assert said.status != 0
    assert "WFCORE_MIN_ISOLATION" in said.err


def test_missing_languages_are_no_failure(wfcore: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A language that is missing comes with its cure, and the exit status stays 0."""
    monkeypatch.setenv("PATH", "/nowhere")
    said = wfcore("doctor", "--json")
    assert (said.status, said.json["ok"]) == (0, True)
    lua = said.json["languages"]["lua"]
    assert (lua["available"], lua["path"], lua["version"]) == (False, None, None)
    assert lua["cure"] == "apt-get install lua5.4"
    assert "apt-get install lua5.4" in wfcore("doctor").out


def test_a_damaged_store_fails(wfcore: Call, data: Path) -> None:
    """A store that cannot be opened is essential: exit status 1, with the reason."""
    (data / "wfcore.db").write_bytes(b"nothing of ours" * 1_000)
    said = wfcore("doctor", "--json")
    assert (said.status, said.json["ok"]) == (1, False)
    store = _check(said, "store")
    assert store["ok"] is False
    assert str(data / "wfcore.db") in store["detail"]
    assert store["cure"]


def test_a_full_disk_is_cured_by_room(wfcore: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store cannot write for lack of space, to restore a backup would be no help."""
    wfcore("account", "create", "ann@example.org")

    async def full(_: object) -> None:
        raise StoreUnavailable(detail="OperationalError: database or disk is full")

    monkeypatch.setattr(SqliteStore, "ping", full)
    store = _check(wfcore("doctor", "--json"), "store")
    assert store["detail"].endswith("database or disk is full")
    assert store["cure"].startswith("make room on the disk")


def test_what_serve_would_refuse_is_named(wfcore: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting without its extra, and a runner that nobody offers, fail as they fail `serve`."""

    def refused() -> Any:
        said = wfcore("doctor", "--json")
        (found,) = [one for one in said.json["checks"] if one["name"] == "serve"]
        assert (said.status, found["ok"], found["essential"]) == (1, False, True)
        return found["detail"]

    assert "serve" not in {one["name"] for one in wfcore("doctor", "--json").json["checks"]}
    with monkeypatch.context() as patch:
        patch.setenv("WFCORE_MCP", "1")
        patch.setattr("wfserver.serving.server.find_spec", lambda name: None)
        assert "WFCORE_MCP needs an extra" in refused()
    monkeypatch.setenv("WFCORE_RUNNER", "nowhere")
    assert "WFCORE_RUNNER: no package offers 'nowhere'" in refused()


def test_open_webhooks_are_named(wfcore: Call, applied: str) -> None:
    """A webhook without key or secret is a finding that names it; not so when disabled."""
    create = ("webhook", "create", "--workflow", applied, "--name", "w", "--open", "--json")
    id = wfcore(*create).json["id"]
    said = wfcore("doctor", "--json")
    assert said.status == 0
    assert _check(said, "webhooks")["ok"] is False
    assert id in _check(said, "webhooks")["detail"]
    wfcore("webhook", "set", id, "--status", "DISABLED")
    assert _check(wfcore("doctor", "--json"), "webhooks")["ok"] is True


def test_it_makes_nothing(call: Call, tmp_path: Path) -> None:
    """On a folder that is not there it says so, exits 0 and does not make it."""
    said = call("--data", str(tmp_path / "none"), "doctor", "--json")
    assert said.status == 0
    assert "wfcore up" in _check(said, "data")["detail"]
    assert not (tmp_path / "none").exists()


def test_a_folder_open_to_others_is_a_finding(wfcore: Call, data: Path) -> None:
    """A data folder that other users can read is named with its cure."""
    data.chmod(0o755)
    check = _check(wfcore("doctor", "--json"), "data")
    assert (check["ok"], check["cure"]) == (False, f"chmod 700 {data}")


def test_a_database_that_is_away_is_waited_for_once(
    wfcore: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that the store is asked is asked of one opening; the cure is no restore."""
    opened = []
    open_pool = connection.open_pool

    async def counted(url: str, *more: int) -> object:
        opened.append(url)
        return await open_pool(url, *more)

    monkeypatch.setattr(postgres, "open_pool", counted)
    monkeypatch.setenv("WFCORE_SMTP_URL", "smtp://127.0.0.1:1")
    monkeypatch.setenv("WFCORE_MAIL_FROM", "wfcore@example.org")
    monkeypatch.setenv("WFCORE_PUBLIC_URL", "https://example.org")
    url = "postgresql://wfcore@127.0.0.1:1/away"
    said = wfcore("doctor", "--store", url, "--json")
    assert opened == [url]
    found = _check(said, "store")
    assert (said.status, found["ok"], found["essential"]) == (1, False, True)
    assert "ConnectionRefusedError" in found["detail"]
    assert found["cure"].startswith("start the database, or wait")
    assert _check(said, "notices")["ok"]
