"""The keys that seal what is stored: where they are, how they change, and what is said without."""

import asyncio
import json
import os
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adapters_store.postgres.store import PostgresStore
from adapters_store.sql.sealing import AeadSealer, id_of, keys_in, new_key
from tests.support.postgres_server import Cluster
from wfcore.model.node import Node
from wfcore.testing.contracts.keeping import keep
from wfcore.time import EpochMs
from wfserver.data.seal_keys import add_key, sealer_of
from wfserver.settings.record import Settings, take_environment

from .conftest import Call, Running, Said, document, end, program, start

SECRET = "whsec-c4nary-51b0"


def files(data: Path) -> bytes:
    """Everything in the data folder but its keys."""
    kept = ("seal.key", "first.key", "signing.key")
    return b"".join(
        path.read_bytes() for path in data.rglob("*") if path.is_file() and path.name not in kept
    )


@pytest.fixture
def hook(wfcore: Call, applied: str) -> str:
    """The id of a webhook whose secret came in over stdin."""
    made = wfcore(
        *("webhook", "create", "--workflow", applied, "--name", "in", "--secret-stdin", "--json"),
        stdin=f"{SECRET}\n",
    )
    assert made.status == 0, made.err
    return str(made.json["id"])


def test_the_first_start_makes_a_key(up: Running) -> None:
    """It lies in the data folder, for its owner alone; the database knows its id."""
    file = up.data / "seal.key"
    assert file.stat().st_mode & 0o777 == 0o600
    (key,) = keys_in(file.read_text())
    status = program("--data", str(up.data), "seal", "status", "--json").json
    assert status["keys"] == str(file)
    assert list(status["sealed"]) == [id_of(key)]
    assert status["sealed"][id_of(key)] > 0
    assert status["clear"] == 0
    assert key.encode() not in files(up.data)


def test_a_secret_from_stdin_is_in_no_file(wfcore: Call, hook: str, data: Path) -> None:
    """Neither as it is nor in base64; and not among the arguments, which everybody can read."""
    assert b"c4nary" not in files(data)
    changed = wfcore("webhook", "set", hook, "--secret-stdin", stdin="another-c4nary\n")
    assert changed.status == 0
    assert b"c4nary" not in files(data)
    assert "c4nary" not in changed.out


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("--secret", "x", "--secret-stdin"), "y\n", "not both"),
        (("--secret-stdin",), "\n", "must not be empty"),
        (("--secret-stdin", "--open"), "y\n", "exactly one"),
    ],
)
def test_a_secret_comes_from_one_place(
    wfcore: Call, applied: str, arguments: tuple[str, ...], stdin: str, said: str
) -> None:
    """Given twice, or not at all, it is refused before anything is made."""
    made = wfcore(
        "webhook", "create", "--workflow", applied, "--name", "in", *arguments, stdin=stdin
    )
    assert made.status == 2
    assert said in made.err


@pytest.mark.parametrize("what", ["gone", "another", "broken"])
def test_no_start_with_a_wrong_key(
    wfcore: Call, hook: str, data: Path, what: str, tmp_path: Path
) -> None:
    """One line says which file, which key and what helps; nothing is made or changed."""
    file = data / "seal.key"
    right = file.read_text()
    file.unlink()
    if what == "another":
        file.write_text(new_key())
    elif what == "broken":
        file.write_text("hunter2")
    before = sorted(os.listdir(data)), (data / "wfcore.db").read_bytes()
    said = wfcore("webhook", "list")
    assert said.status == 1
    assert str(file) in said.err
    assert "Traceback" not in said.err
    assert said.err.count("\n") == 1
    assert "hunter2" not in said.err
    assert (id_of(right.strip()) in said.err) == (what != "broken")
    assert (sorted(os.listdir(data)), (data / "wfcore.db").read_bytes()) == before
    file.write_text(right)
    assert hook in wfcore("webhook", "list").out


def test_a_key_from_the_environment(
    wfcore: Call, hook: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It seals instead of the file, which need not be there; nothing started later inherits it."""
    key = (data / "seal.key").read_text().strip()
    (data / "seal.key").unlink()
    monkeypatch.setenv("WFCORE_SEAL_KEY", key)
    said = wfcore("seal", "status", "--json")
    assert said.json["keys"] == "WFCORE_SEAL_KEY"
    assert "WFCORE_SEAL_KEY" not in os.environ
    assert not (data / "seal.key").exists()
    monkeypatch.setenv("WFCORE_SEAL_KEY", key)
    assert take_environment()["WFCORE_SEAL_KEY"] == key
    for name, value in (("WFCORE_SEAL_KEY", key), ("WFCORE_SEAL_KEY_FILE", "/nowhere")):
        monkeypatch.setenv(name, value)
    said = wfcore("seal", "status")
    assert (said.status, "leave one out" in said.err) == (1, True)
    assert key not in said.err


def test_a_key_file_elsewhere(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made there, and the data folder holds no key to what is in it."""
    file = tmp_path / "keys" / "wfcore"
    file.parent.mkdir()
    monkeypatch.setenv("WFCORE_SEAL_KEY_FILE", str(file))
    data = tmp_path / "data"
    assert call("--data", str(data), "account", "create", "ann@example.org").status == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert not (data / "seal.key").exists()


def test_a_made_key_can_be_used(wfcore: Call) -> None:
    """`wfcore seal key` prints one, and its id with --json."""
    (key,) = keys_in(wfcore("seal", "key").out)
    made = wfcore("seal", "key", "--json").json
    assert made["id"] == id_of(made["key"])
    assert made["key"] != key


def test_rotation_beside_a_running_server(tmp_path: Path) -> None:
    """A server goes on, with the new key, and the old one can go a minute later."""
    data = tmp_path / "data"
    process = start("up", "--port", "0", "--json", data=data)
    try:
        document(process, data)
        old = (data / "seal.key").read_text().strip()
        wfcore = ("--data", str(data), "--json")
        rotated = program(*wfcore, "seal", "rotate").json
        new, kept = keys_in((data / "seal.key").read_text())
        assert (rotated["key"], kept) == (id_of(new), old)
        assert rotated["sealed"] > 0
        assert (data / "seal.key").stat().st_mode & 0o777 == 0o600
        tried = program("--data", str(data), "try", "--yes", timeout=60)
        assert tried.status == 0, tried.err
        said = program("--data", str(data), "seal", "prune")
        assert (said.status, "less than a minute" in said.err) == (1, True)
        os.utime(data / "seal.key", (1, 1))
        assert program(*wfcore, "seal", "rotate").status == 0
        os.utime(data / "seal.key", (1, 1))
        assert id_of(old) in program(*wfcore, "seal", "prune").json["removed"]
        assert program("--data", str(data), "execution", "list").status == 0
    finally:
        end(process)
    assert list(program(*wfcore, "seal", "status").json["sealed"]) != []


def test_rotations_at_once_lose_no_key(tmp_path: Path) -> None:
    """Each adds its key to those of the others, and who has read the file before knows them all."""
    file = tmp_path / "seal.key"
    file.write_text(f"{new_key()}\n")
    sealer = AeadSealer(file=file)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_key, [file] * 16))
    keys = keys_in(file.read_text())
    assert len(keys) == 17
    assert list(sealer.keys) == [id_of(key) for key in keys]


def test_a_backup_holds_a_key_only_if_asked(
    call: Call, wfcore: Call, hook: str, data: Path, tmp_path: Path
) -> None:
    """Without one it opens nothing until the key is put back; with it, it is complete."""
    plain, whole = tmp_path / "plain.tar", tmp_path / "whole.tar"
    said = wfcore("backup", str(plain))
    assert str(data / "seal.key") in said.out
    assert wfcore("backup", str(whole), "--with-key").status == 0
    for file, named in ((plain, False), (whole, True)):
        with tarfile.open(file) as tar:
            assert ("seal.key" in tar.getnames()) == named
    assert b"c4nary" not in plain.read_bytes()
    assert (data / "seal.key").read_bytes().strip() not in plain.read_bytes()
    assert call("--data", str(tmp_path / "two"), "restore", str(whole)).status == 0
    assert hook in call("--data", str(tmp_path / "two"), "webhook", "list").out
    one = tmp_path / "one"
    restored = call("--data", str(one), "restore", str(plain))
    assert restored.status == 0
    assert str(one / "seal.key") in restored.err
    refused = call("--data", str(one), "webhook", "list")
    assert refused.status == 1
    assert "put the key back" in refused.err
    (one / "seal.key").write_bytes((data / "seal.key").read_bytes())
    assert hook in call("--data", str(one), "webhook", "list").out


def test_what_is_missing_is_said_to_programs(
    call: Call,
    wfcore: Call,
    hook: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`restore --json` lists the ids of the keys; none where the environment holds them."""
    file = tmp_path / "plain.tar"
    assert wfcore("backup", str(file)).status == 0
    again = call("--data", str(tmp_path / "one"), "restore", str(file), "--json")
    assert again.json["missingKeys"] == [id_of((data / "seal.key").read_text().strip())]
    assert json.loads(again.out)["data"] == str(tmp_path / "one")
    monkeypatch.setenv("WFCORE_SEAL_KEY", (data / "seal.key").read_text())
    there = call("--data", str(tmp_path / "two"), "restore", str(file), "--json")
    assert there.json["missingKeys"] == []


def test_what_is_in_clear_is_sealed_on_request_alone(wfcore: Call, hook: str, data: Path) -> None:
    """
    A webhook in clear is not read, named by `check`, and left by a rotation; `--accept-clear` seals
    it, and after `compact` it is in no page of the file.
    """
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(data / "wfcore.db", isolation_level=None)) as database:
        body = {"id": "wh_old", "owner_id": "acc", "workflow_id": "wf", "name": "old"}
        body |= {"created_at": 1, "updated_at": 1, "secret_key": SECRET}
        database.execute(
            "INSERT INTO webhooks VALUES ('wh_old', 'acc', 'wf', 1, 1, ?)", (json.dumps(body),)
        )
    assert b"c4nary" in files(data)
    assert "wh_old" not in wfcore("webhook", "list").out
    checked = wfcore("check")
    assert checked.status == 1
    assert "webhooks: wh_old cannot be read: it is in clear" in checked.out
    assert wfcore("seal", "rotate").status == 0
    assert wfcore("seal", "status", "--json").json["clear"] == 1
    assert "wh_old" not in wfcore("webhook", "list").out
    assert wfcore("seal", "rotate", "--accept-clear").status == 0
    assert wfcore("compact").status == 0
    assert b"c4nary" not in files(data)
    assert "wh_old" in wfcore("webhook", "list").out


@pytest.fixture
def there(server: Cluster, call: Call, data: Path) -> Iterator[tuple[str, Call]]:
    """The URL of a PostgreSQL database with an account and a webhook, and calls on it."""
    server.execute("CREATE DATABASE sealed")
    url = server.url("sealed")

    def there(*arguments: str, stdin: str = "") -> Said:
        return call("--data", str(data), "--store", url, *arguments, stdin=stdin)

    ann = "ann@example.org"
    assert there("account", "create", ann, "--plan", "PRO").status == 0
    flow = "name: F\nsteps: [{name: a, kind: code, language: bash, source: ':'}]"
    made = there("workflow", "apply", "-", "--owner", ann, "--json", stdin=flow).json["id"]
    hook = ("webhook", "create", "--workflow", made, "--name", "in", "--secret-stdin", "--json")
    assert there(*hook, stdin=f"{SECRET}\n").status == 0
    yield url, there
    server.execute("DROP DATABASE sealed WITH (FORCE)")


def test_the_same_commands_for_postgresql(
    server: Cluster, there: tuple[str, Call], data: Path
) -> None:
    """Status, rotation, check and prune work as for a file; what is in clear is named and left."""
    _, wfcore = there
    old = (data / "seal.key").read_text().strip()
    assert list(wfcore("seal", "status", "--json").json["sealed"]) == [id_of(old)]
    assert wfcore("check", "--json").json == {"ok": True, "findings": []}
    rotated = wfcore("seal", "rotate", "--json").json
    status = wfcore("seal", "status", "--json").json
    assert status["sealed"] == {rotated["key"]: rotated["sealed"], id_of(old): 0}
    os.utime(data / "seal.key", (1, 1))
    assert wfcore("seal", "prune", "--json").json["removed"] == [id_of(old)]
    assert len(keys_in((data / "seal.key").read_text())) == 1
    server.execute('UPDATE webhooks SET body = \'{"secret_key": "x"}\'', "sealed")
    checked = wfcore("check")
    assert checked.status == 1
    assert "cannot be read: it is in clear" in checked.out
    assert wfcore("seal", "rotate").status == 0
    assert wfcore("seal", "status", "--json").json["clear"] == 1
    assert wfcore("seal", "rotate", "--accept-clear").status == 0
    assert wfcore("seal", "status", "--json").json["clear"] == 0


def test_a_new_key_waits_until_every_machine_has_it(there: tuple[str, Call], data: Path) -> None:
    """
    Beside a server on another machine no key is made, which that could not read; one that was put
    first in every file is used with --no-new-key.
    """
    url, wfcore = there

    async def announced() -> None:
        sealer = sealer_of(Settings(data, store=url))
        store = await PostgresStore.open(url, sealer=sealer)
        node = Node("w", "other.example", 2, EpochMs(0), seen_until=EpochMs(store.now() + 60_000))
        await keep(store, node)
        await store.close()

    asyncio.run(announced())
    file = data / "seal.key"
    before = file.read_text()
    said = wfcore("seal", "rotate")
    assert (said.status, "other.example" in said.err, "--no-new-key" in said.err) == (1, True, True)
    assert file.read_text() == before
    fresh = new_key()
    file.write_text(f"{fresh}\n{before}")
    assert wfcore("seal", "rotate", "--no-new-key", "--json").json["key"] == id_of(fresh)
    assert wfcore("seal", "status", "--json").json["sealed"][id_of(before.strip())] == 0


def test_named_secrets_at_the_command_line(wfcore: Call, data: Path) -> None:
    """A value comes in over stdin and never out again; a definition finds it by name."""
    who = ("--account", "ann@example.org")
    flow = "name: f\nsteps: [{name: a, kind: code, language: bash, secrets: [KEY], source: ':'}]"
    owner = ("workflow", "apply", "-", "--owner", "ann@example.org")
    refused = wfcore(*owner, stdin=flow)
    assert refused.status == 1
    assert "wfcore secret set KEY" in refused.err
    assert "line 2" in refused.err or "steps[0].secrets[0]" in refused.err
    assert wfcore("secret", "set", "KEY", *who, stdin="c4nary-value\n").status == 0
    assert wfcore(*owner, stdin=flow).status == 0
    listed = wfcore("secret", "list", *who)
    assert "KEY" in listed.out
    assert "c4nary" not in listed.out + wfcore("secret", "list", *who, "--json").out
    assert b"c4nary" not in files(data)
    assert wfcore("secret", "delete", "KEY", *who).status == 0
    assert wfcore("secret", "delete", "KEY", *who).status == 1
    wrong = wfcore(*owner, stdin=flow.replace("KEY", "no-name"))
    assert "letters, digits and _" in wrong.err


def test_named_secrets_of_a_run_here(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`wfcore run` has no account: its environment holds them, or it says which is missing."""
    file = tmp_path / "flow.yaml"
    step = (
        "{name: a, kind: code, language: bash, secrets: [KEY], source: 'echo got $WF_SECRET_KEY'}"
    )
    file.write_text(f"name: f\nsteps: [{step}]")
    missing = call("run", str(file))
    assert missing.status == 1
    assert "set WF_SECRET_KEY in the environment" in missing.err
    monkeypatch.setenv("WF_SECRET_KEY", "c4nary-value")
    ran = call("run", str(file))
    assert ran.status == 0, ran.err
    assert "got ***" in ran.out + ran.err
    assert "c4nary" not in ran.out + ran.err
