"""Artifacts in a bucket, from the command line: kept there, checked, compared, moved there."""

import asyncio
import shutil
import sys
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.postgres_server import Cluster
from tests.support.s3_server import SECRET, Buckets
from wfcore.installed import install
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.usecases.upkeep import orphans
from wfserver.commands.move import FOLDER
from wfserver.compose import open_system
from wfserver.settings.record import settings_from

from .conftest import Call, Said


@pytest.fixture
def kept(wfcore: Call, bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The bucket's URL, which is in the settings of all calls."""
    monkeypatch.setenv("WFCORE_ARTIFACTS", bucket)
    return bucket


def checked(said: Said) -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in said.json["checks"]}


def keys_in(buckets: Buckets, bucket: str) -> list[str]:
    """The keys of all objects, as the server says them."""
    listed = buckets.call("GET", f"/{bucket.split('/')[2]}?list-type=2").decode()
    return [part.partition("</Key>")[0] for part in listed.split("<Key>")[1:]]


def run(wfcore: Call) -> str:
    """The id of an execution that was accepted."""
    flow = "steps: [{name: write, kind: code, language: command, command: [echo, hello]}]"
    wfcore("workflow", "apply", "-", "--owner", "ann@example.org", stdin=f"name: Report\n{flow}")
    return str(wfcore("execution", "start", "Report", "--json").json["executionId"])


def test_doctor_tries_the_bucket(wfcore: Call, kept: str, buckets: Buckets) -> None:
    """It stores, reads and deletes; what fails is said with a cure, and never the secret."""
    said = wfcore("doctor", "--json")
    found = checked(said)["artifacts"]
    assert found["ok"], found
    assert kept in str(found["detail"])
    assert keys_in(buckets, kept) == []
    assert SECRET not in said.out + said.err + wfcore("settings").out


def test_doctor_says_what_is_wrong_with_a_bucket(
    wfcore: Call, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not there is named with what the bucket said."""
    monkeypatch.setenv("WFCORE_ARTIFACTS", "s3://not-there-at-all")
    found = checked(wfcore("doctor", "--json"))["artifacts"]
    assert not found["ok"]
    assert "404" in str(found["detail"])
    assert "credentials" in str(found["cure"])


def test_without_the_library_it_says_what_to_install(
    wfcore: Call, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, with the extra's name."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "adapters_store.objects", raising=False)
    said = wfcore("account", "list")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert install("objects") in said.err


def test_orphans_are_named_and_deleted_on_request(
    wfcore: Call, kept: str, buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways; nothing goes unless somebody agrees, and then only what nobody can record."""
    monkeypatch.setattr(orphans, "GRACE", -60_000)
    prefix = kept.removeprefix("s3:/")
    id = run(wfcore)
    for key in (f"{id}/unrecorded", "exec_gone/a", "exec_gone/b"):
        buckets.call("PUT", f"{prefix}/{key}")
    refused = wfcore("doctor", "--artifacts", "--mend")
    assert "exec_gone" in refused.err
    assert "give --yes" in refused.err
    assert len(keys_in(buckets, kept)) == 3
    mended = checked(wfcore("doctor", "--artifacts", "--mend", "--yes", "--json"))["files"]
    assert mended["ok"], mended
    assert f"{id}/unrecorded" in str(mended["detail"])
    assert [key.rpartition("/")[2] for key in keys_in(buckets, kept)] == ["unrecorded"]
    assert wfcore("doctor", "--mend").status == 2


def test_a_backup_says_where_artifacts_stay(wfcore: Call, kept: str, tmp_path: Path) -> None:
    """They are not in it, and `check` leaves them to `doctor`."""
    said = wfcore("backup", str(tmp_path / "kept.tar"))
    assert said.status == 0, said.err
    assert f"{kept} keeps them" in said.out
    assert wfcore("check").status == 0


async def with_artifact(data: Path, content: bytes) -> str:
    """An execution whose artifact is in the folder; the artifact's key."""
    async with open_system(settings_from({}, data=str(data))) as system:
        files, store = system.services.files, system.services.store
        stored = await files.store("exec_1", "art_1", BytesIO(content))
        facts = {"size": stored.size, "sha256": stored.sha256}
        await keep(store, make.execution(due_at=None), make.artifact(**facts))
    return stored.storage_key


def test_artifacts_move_to_a_bucket(
    wfcore: Call, data: Path, bucket: str, buckets: Buckets, server: Cluster
) -> None:
    """With the database, from the folder, each compared with its checksum; and back again."""
    content = bytes(range(256)) * 30_000
    key = asyncio.run(with_artifact(data, content))
    server.execute("CREATE DATABASE into_bucket")
    try:
        target = server.url("into_bucket")
        said = wfcore("move", target, "--artifacts", "s3://b?x")
        assert (said.status, "WFCORE_ARTIFACTS" in said.err) == (1, True)
        said = wfcore("move", target, "--artifacts", bucket)
        assert said.status == 0, said.err
        assert f"WFCORE_ARTIFACTS={bucket} wfcore serve" in said.out
        assert buckets.call("GET", f"{bucket.removeprefix('s3:/')}/{key}") == content
        again = data.parent / "again"
        shutil.rmtree(data / FOLDER)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WFCORE_ARTIFACTS", bucket)
            said = wfcore("--store", target, "move", str(again))
        assert said.status == 0, said.err
        assert (again / FOLDER / key).read_bytes() == content
    finally:
        server.execute("DROP DATABASE into_bucket WITH (FORCE)")
