"""What servers share besides the database: keys that sign links, and the folder of artifacts."""

from io import BytesIO
from pathlib import Path

import pytest

from tests.support.postgres_server import emptied
from wfcore import Services, in_memory
from wfcore.errors import InvalidInput, NotFound, PersonalLinkOver, Unauthenticated
from wfcore.model.access import OPERATOR
from wfcore.rules.auth.signed_links import personal_token
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import DAY, EpochMs, later
from wfcore.usecases.accounts.authenticate import admit_guest
from wfcore.usecases.artifacts import link, linked_artifact
from wfcore.usecases.signing import (
    list_signing_keys,
    retire_signing_key,
    rotate_signing_key,
    signing_keys,
)
from wfserver.compose import open_system
from wfserver.errors import CommandFailed
from wfserver.settings.isolation import step_isolation
from wfserver.settings.record import settings_from

OLD, NEW = "a" * 64, "B" * 64


async def accepts(services: Services, other: Services) -> bool:
    """Whether *services* believe a download link and a personal link that *other* made."""
    until = later(services.clock.now(), DAY)
    approval = make.approval(expires_at=until, approvers=("bob@example.org",))
    keys = await signing_keys(other)
    token = keys.signed(lambda key: personal_token(key, approval, "bob@example.org"))
    try:
        with pytest.raises(NotFound):  # the link is good; there is just no such artifact
            await linked_artifact(services, "exec_1", "art_1", link(other, keys, "art_1"))
        assert (await admit_guest(services, token)).email == "bob@example.org"
    except (Unauthenticated, PersonalLinkOver):
        return False
    return True


async def test_keys_are_the_same_on_servers_with_folders_of_their_own(tmp_path: Path) -> None:
    """With the same setting links hold everywhere; without it each folder has a key of its own."""

    async def both(environment: dict[str, str]) -> bool:
        folders = [str(tmp_path / name) for name in "ab"]
        first, second = (settings_from(environment, data=data) for data in folders)
        async with open_system(first) as one, open_system(second) as other:
            return await accepts(one.services, other.services)

    assert not await both({})
    assert await both({"WFCORE_SIGNING_KEY": f"may:{OLD}"})


async def test_a_download_works_at_every_server(database: str, tmp_path: Path) -> None:
    """What one server stored another one hands out, with a folder and a key that both have."""
    shared = tmp_path / "shared"
    shared.mkdir()
    common = {
        "WFCORE_ARTIFACTS": f"file://{shared}",
        "WFCORE_SIGNING_KEY": f"may:{OLD}",
        "WFCORE_SEAL_KEY_FILE": str(tmp_path / "seal.key"),
    }
    url = await emptied(database)
    first, second = (
        settings_from(common, data=str(tmp_path / name), store=url) for name in ("a", "b")
    )
    assert str(shared) in step_isolation(first).hidden
    async with open_system(first) as one, open_system(second) as other:
        kept = await one.services.files.store("exec_1", "art_1", BytesIO(b"the report"))
        record = make.artifact("art_1", storage_key=kept.storage_key, size=kept.size)
        await keep(one.services.store, record)
        given = link(one.services, await signing_keys(one.services), "art_1")
        found = await linked_artifact(other.services, "exec_1", "art_1", given)
        parts = other.services.files.read(found.storage_key, 0, found.size)
        assert b"".join([part async for part in parts]) == b"the report"
    shared.rename(tmp_path / "elsewhere")
    with pytest.raises(CommandFailed, match="mount it"):
        async with open_system(second):
            pass


@pytest.mark.parametrize(
    "text",
    ["file://relative", "file:///", "/shared", "s3://", "s3://key:secret@bucket", "s3://b/../c",
     "s3://bucket?x=1", "http://bucket/x"],
)  # fmt: skip
def test_a_place_for_artifacts_that_is_none_is_refused(text: str) -> None:
    """The error names the setting and what it takes; a store of one machine keeps its folder."""
    for store in ("postgresql://x", "memory:"):
        with pytest.raises(InvalidInput) as refused:
            settings_from({"WFCORE_ARTIFACTS": text}, store=store)
        assert refused.value.field == "WFCORE_ARTIFACTS"


def test_a_bucket_is_for_every_store_that_stays() -> None:
    """One machine may use one, too; a store in memory would leave everything behind there."""
    for store in (None, "postgresql://x", "sqlite:////tmp/x.db"):
        settings = settings_from({"WFCORE_ARTIFACTS": "s3://bucket/a/b"}, store=store)
        assert settings.artifacts == "s3://bucket/a/b"
        assert settings.artifacts_folder is None
    with pytest.raises(InvalidInput, match="must be"):
        settings_from({"WFCORE_ARTIFACTS": "s3://bucket/a"}, store="memory:")


@pytest.mark.parametrize(
    ("downloads", "artifacts"), [("direct", None), ("yes", "s3://b1/x"), ("direct", "file:///x")]
)
def test_links_lead_only_to_a_bucket(downloads: str, artifacts: str | None) -> None:
    """What cannot be done is refused at the start, with the setting's name."""
    env = {"WFCORE_ARTIFACT_DOWNLOADS": downloads, "WFCORE_ARTIFACTS": artifacts or ""}
    with pytest.raises(InvalidInput) as refused:
        settings_from(env, store="postgresql://x")
    assert refused.value.field == "WFCORE_ARTIFACT_DOWNLOADS"


async def test_a_key_is_changed_in_two_steps() -> None:
    """
    First every server verifies the new key, then it signs; links of the old one are good until it
    is taken away.
    """
    old, new = bytes.fromhex(OLD), bytes.fromhex(NEW)
    before, prepared, changed, after = (
        in_memory(signing_key=key, older_signing_keys=older)
        for key, older in ((old, ()), (old, (new,)), (new, (old,)), (new, ()))
    )
    assert await accepts(prepared, before)
    assert await accepts(before, prepared)
    assert await accepts(prepared, changed)
    assert await accepts(changed, prepared)
    assert not await accepts(after, before)
    assert not await accepts(before, changed)


async def test_two_nodes_serve_each_others_links_while_the_key_changes(
    database: str, tmp_path: Path
) -> None:
    """One node signs with the new key while the other still signs with the old one: both hold."""
    url = await emptied(database)
    sets = {"a": f"may:{OLD},june:{NEW}", "b": f"june:{NEW},may:{OLD}"}
    one, other = (
        settings_from(
            {"WFCORE_SIGNING_KEY": keys, "WFCORE_SEAL_KEY_FILE": str(tmp_path / "seal.key")},
            data=str(tmp_path / name),
            store=url,
        )
        for name, keys in sets.items()
    )
    async with open_system(one) as first, open_system(other) as second:
        await keep(first.services.store, make.artifact("art_2"))
        for maker, reader in ((first, second), (second, first)):
            given = link(maker.services, await signing_keys(maker.services), "art_2")
            assert (await linked_artifact(reader.services, "exec_1", "art_2", given)).id == "art_2"
            assert await accepts(reader.services, maker.services)


@pytest.mark.parametrize("medium", ["sqlite", "postgresql"])
async def test_a_key_is_rotated_and_retired_at_all_servers_at_once(
    medium: str, database: str, tmp_path: Path
) -> None:
    """
    SK-1, SK-2, SK-3: from the next request on, without a restart: what one server signs after a
    rotation the other believes, links from before stay good, and what a retired key signed does
    not, at either.
    """
    url = f"sqlite:///{tmp_path}/one.db" if medium == "sqlite" else await emptied(database)
    env = {"WFCORE_SEAL_KEY_FILE": str(tmp_path / "seal.key"), "WFCORE_SIGNING_KEY": f"may:{OLD}"}
    sets = [settings_from(env, data=str(tmp_path / name), store=url) for name in ("a", "b")]
    async with open_system(sets[0]) as one, open_system(sets[1]) as other:
        a, b = one.services, other.services
        until = later(a.clock.now(), DAY)
        approval = make.approval(expires_at=until, approvers=("bob@example.org",))
        unnamed = personal_token(bytes.fromhex(OLD), approval, "bob@example.org")
        before = await signing_keys(a)
        named = before.signed(lambda key: personal_token(key, approval, "bob@example.org"))
        for token in (unnamed, named):
            assert (await admit_guest(b, token)).email == "bob@example.org"

        made = await rotate_signing_key(a, OPERATOR)
        for maker, reader in ((a, b), (b, a)):
            assert next(iter((await signing_keys(maker)).named)) == made.id
            assert await accepts(reader, maker)
        for token in (unnamed, named):
            assert (await admit_guest(b, token)).email == "bob@example.org"

        first, given = await list_signing_keys(b)
        assert (first.id, first.signs, given.made_at, given.signs) == (made.id, True, None, False)
        await retire_signing_key(b, OPERATOR, given.id)
        assert await list_signing_keys(a) == [first]
        for reader in (a, b):
            assert await accepts(reader, a)
            for token in (unnamed, named):
                with pytest.raises(PersonalLinkOver):
                    await admit_guest(reader, token)
        async with a.store.view() as view:
            entries = await view.audit.list(EpochMs(0), None, 9)
        assert [(one.event, one.target) for one in entries] == [
            ("signing.rotate", made.id),
            ("signing.retire", given.id),
        ]


async def test_a_key_that_the_store_keeps_is_sealed(tmp_path: Path) -> None:
    """Whoever has a copy of the database alone signs nothing."""
    settings = settings_from({}, data=str(tmp_path))
    async with open_system(settings) as system:
        await rotate_signing_key(system.services, OPERATOR)
        (key, *_) = (await signing_keys(system.services)).named.values()
    kept = _bytes_below(tmp_path)
    assert b"signing.rotate" in kept
    assert key not in kept


def _bytes_below(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("wfcore.db*"))


@pytest.mark.parametrize("text", [OLD, "may:abc", f"may:{OLD},may:{NEW}", f"ma y:{OLD}", f":{OLD}"])
def test_a_key_that_cannot_be_read_is_refused_and_not_shown(text: str) -> None:
    """The error names the setting and its form, and never says what was given."""
    with pytest.raises(InvalidInput) as refused:
        settings_from({"WFCORE_SIGNING_KEY": text})
    assert refused.value.field == "WFCORE_SIGNING_KEY"
    assert OLD not in str(refused.value)
    assert NEW.lower() not in repr(settings_from({"WFCORE_SIGNING_KEY": f"a:{NEW}"})).lower()
