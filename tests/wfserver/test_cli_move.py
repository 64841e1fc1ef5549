"""`wfcore move`: a service goes to PostgreSQL and comes back, with its artifacts and keys."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_store.sql.sealing import new_key
from tests.support.postgres_server import Cluster
from wfcore.installed import install

from .conftest import Call, Said, document, end, start

REPORT = """
name: Report
steps:
  - name: write
    kind: code
    language: command
    command: [sh, -c, 'echo 42 > "$WF_ARTIFACTS/report.txt"']
"""


@pytest.fixture(scope="module")
def fresh(server: Cluster) -> Iterator[str]:
    """The URL of an empty database."""
    server.execute("CREATE DATABASE carried")
    yield server.url("carried")
    server.execute("DROP DATABASE carried WITH (FORCE)")


def test_a_service_moves_there_and_back(
    call: Call, wfcore: Call, data: Path, tmp_path: Path, fresh: str
) -> None:
    """One page of the docs: stop, move, serve; what was begun before is finished elsewhere."""
    wfcore("workflow", "apply", "-", "--owner", "ann@example.org", stdin=REPORT)
    first = run(wfcore, data)
    waiting = wfcore("execution", "start", "Report", "--json").json["executionId"]
    said = wfcore("move", fresh, "--json")
    assert said.status == 0, said.err
    rows = {one["table"]: one["rows"] for one in said.json["tables"]}
    assert (rows["executions"], said.json["artifacts"], said.json["missing"]) == (2, 1, [])
    refused = wfcore("execution", "list")
    assert (refused.status, "was moved to postgresql://" in refused.err) == (1, True)

    def there(*arguments: str, stdin: str = "") -> Said:
        return call("--data", str(data), "--store", fresh, *arguments, stdin=stdin)

    second = run(there, data, "--store", fresh, begun=waiting)
    kept = next(path for path in (data / "artifacts" / second).iterdir() if path.is_file())
    kept.write_bytes(b"43")
    again = tmp_path / "again"
    said = call("--data", str(data), "--store", fresh, "move", str(again))
    assert said.status == 0, said.err
    assert f"{kept.name}: its content is missing or damaged" in said.err
    assert (again / "signing.key").read_bytes() == (data / "signing.key").read_bytes()
    assert [path.read_bytes() for path in (again / "artifacts" / first).iterdir()] == [b"42\n"]
    listed = call("--data", str(again), "execution", "list", "--json").json["items"]
    assert {one["executionId"]: one["status"] for one in listed} == {
        first: "COMPLETED",
        second: "COMPLETED",
    }


def run(wfcore: Call, data: Path, *more: str, begun: str | None = None) -> str:
    """Serve until an execution has ended; its id."""
    process = start("serve", "--port", "0", "--json", *more, data=data)
    try:
        document(process, data)
        id = begun or wfcore("execution", "start", "Report", "--json").json["executionId"]
        assert wfcore("execution", "logs", id, "--follow").status == 0
    finally:
        end(process)
    return id


def test_only_a_database_or_a_folder_is_a_target(wfcore: Call, tmp_path: Path) -> None:
    """Another URL, and a folder with a service of its own, are refused in one line."""
    said = wfcore("move", "mysql://there")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert "postgresql:// URL or a folder" in said.err
    assert wfcore("move", str(tmp_path / "b")).status == 0
    said = wfcore("move", str(tmp_path / "b"))
    assert (said.status, "was moved to" in said.err) == (1, True)
    (store,) = [one for one in wfcore("doctor", "--json").json["checks"] if one["name"] == "store"]
    assert "was moved to" in store["detail"]
    assert "restore fills" not in store["cure"]


@pytest.mark.parametrize("url", ["u:s3/cret@127.0.0.1/db", "u:s3#cret@127.0.0.1/db", "[::1"])
def test_a_url_that_cannot_be_read_is_not_repeated(wfcore: Call, url: str) -> None:
    """It holds a password, of which the driver would tell a part."""
    said = wfcore("move", f"postgresql://{url}")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert "percent-encode" in said.err
    assert "s3" not in said.err


def test_a_missing_driver_is_named(wfcore: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever worked with files so far need not have it."""
    monkeypatch.delitem(sys.modules, "adapters_store.postgres.moving", raising=False)
    monkeypatch.delitem(sys.modules, "adapters_store.postgres.connection", raising=False)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    said = wfcore("move", "postgresql://127.0.0.1:1/db")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert install("postgres") in said.err


def test_the_new_folder_has_every_key_however_often_the_move_was_begun(
    wfcore: Call, call: Call, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that was made after a move was broken off is there, too; the folder's own key stays."""
    new = tmp_path / "new"

    async def broken(*_: object) -> None:
        raise OSError("the disk was taken away")

    with monkeypatch.context() as patched:
        patched.setattr("wfserver.commands.move.ArtifactCopies.all", broken)
        assert wfcore("move", str(new)).status == 1
    wfcore("seal", "rotate")
    own = new_key()
    (new / "seal.key").write_text(own + "\n")
    (new / "signing.key").write_bytes(b"s" * 32)
    assert wfcore("move", str(new)).status == 0
    keys = (data / "seal.key").read_text().split()
    assert len(keys) == 2
    assert (new / "seal.key").read_text().split() == [*keys, own]
    assert (new / "seal.key").stat().st_mode & 0o777 == 0o600
    assert (new / "signing.key").read_bytes() == (data / "signing.key").read_bytes()
    assert call("--data", str(new), "execution", "list").status == 0


def test_a_folder_that_is_no_target_gets_no_keys(wfcore: Call, call: Call, tmp_path: Path) -> None:
    """A refused move leaves the other service's folder untouched."""
    other = tmp_path / "other"
    call("--data", str(other), "account", "create", "bob@example.org")
    for name in ("signing.key", "seal.key"):
        (other / name).unlink(missing_ok=True)
    said = wfcore("move", str(other))
    assert (said.status, "holds a service already" in said.err) == (1, True)
    assert not (other / "signing.key").exists()
    assert not (other / "seal.key").exists()
