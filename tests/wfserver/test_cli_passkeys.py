"""Passkeys from the command line: lists, help for people who lost one, and evidence with keys."""

import asyncio
import json
from pathlib import Path

import pytest
from attrs import define, frozen

from tests.support.authenticator import URL
from tests.system.scenarios.process import until
from tests.wfcore.usecases.conftest import World
from tests.wfcore.usecases.test_signed_release import Person, deed, opened
from wfcore.model.access import Principal
from wfcore.testing.fakes import NotedHints
from wfcore.usecases.accounts.accounts import find_account
from wfcore.usecases.accounts.sessions import put_session
from wfserver.compose import open_system
from wfserver.settings.record import settings_from

from .conftest import Call, end, log_of, said_until, start

ANN = "ann@example.org"


@frozen
class Signed:
    """Ann's passkey, and an execution of which she signed the release."""

    credential_id: str
    execution_id: str


@define
class Waiting:
    """A clock whose `advance` waits until the next millisecond has come."""

    now_of: object

    def advance(self, _ms: int) -> None:
        now = self.now_of.deadline_now  # type: ignore[attr-defined]
        before = now()
        while now() <= before:
            pass


async def _sign(data: Path) -> Signed:
    settings = settings_from({"WFCORE_PUBLIC_URL": URL}, data=str(data))
    async with open_system(settings) as system:
        services = system.services
        world = World(services, Waiting(services.clock), NotedHints())  # type: ignore[arg-type]
        who = Principal(await find_account(services, ANN))
        async with services.store.unit() as unit:
            begun = put_session(services, unit, who.account, None)
            await unit.commit()
        ann = Person(world, who, begun.token)
        await ann.register()
        approval = await opened(world, who)
        await ann.approve(deed(approval))
        return Signed(ann.key.credential_id, approval.execution_id)


@pytest.fixture
def signed(wfcore: Call, data: Path, monkeypatch: pytest.MonkeyPatch) -> Signed:
    monkeypatch.setenv("WFCORE_PUBLIC_URL", URL)
    return asyncio.run(_sign(data))


def test_evidence_names_the_keys_that_are_trusted(
    wfcore: Call, signed: Signed, tmp_path: Path
) -> None:
    """A key that only the file knows is told apart from one that was kept elsewhere. SR-8."""
    file, trusted = tmp_path / "evidence.json", tmp_path / "trusted.json"
    trusted.write_text(wfcore("passkey", "list", ANN, "--json").out)
    assert wfcore("evidence", signed.execution_id, "--output", str(file)).status == 0
    plain = wfcore("evidence", "verify", str(file))
    assert (plain.status, "key known only from this file" in plain.out) == (0, True)
    known = wfcore("evidence", "verify", str(file), "--trust", str(trusted))
    assert (known.status, "key named by --trust" in known.out) == (0, True)
    other = json.loads(trusted.read_text())
    other["items"][0]["publicKey"] = "MFkw"
    trusted.write_text(json.dumps(other))
    swapped = wfcore("evidence", "verify", str(file), "--trust", str(trusted))
    assert "key known only from this file" in swapped.out
    no_list = wfcore("evidence", "verify", str(file), "--trust", str(file))
    assert (no_list.status, "passkey list --json" in no_list.err) == (1, True)


def test_a_lost_passkey_is_listed_and_removed(wfcore: Call, signed: Signed) -> None:
    """By the operator on the host; evidence of what it signed fits as before. SR-5."""
    listed = wfcore("passkey", "list", ANN)
    assert all(part in listed.out for part in (signed.credential_id, "a key", "flows.example.org"))
    removed = wfcore("passkey", "remove", ANN, signed.credential_id)
    assert (removed.status, removed.out) == (0, f"{signed.credential_id} is removed\n")
    assert wfcore("passkey", "list", ANN, "--json").json["items"] == []
    assert wfcore("passkey", "remove", ANN, signed.credential_id).status == 1
    assert wfcore("evidence", signed.execution_id, "--output", "after.json").status == 0
    assert wfcore("evidence", "verify", "after.json").status == 0


def test_another_public_address_is_warned_of(
    wfcore: Call, signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor counts the passkeys that no longer count, with the host they belong to. SR-7."""

    def found() -> tuple[bool, str]:
        checks = wfcore("doctor", "--json").json["checks"]
        return next((one["ok"], one["detail"]) for one in checks if one["name"] == "passkeys")

    assert found() == (True, "1 registered")
    monkeypatch.setenv("WFCORE_PUBLIC_URL", "https://other.example.org")
    assert found() == (False, "1 of 1 do not count here: registered for flows.example.org")


def test_a_server_at_another_address_warns_as_it_starts(
    wfcore: Call, signed: Signed, data: Path
) -> None:
    """Its log counts the passkeys that it leaves behind, with the host they belong to. SR-7."""
    elsewhere = {"WFCORE_PUBLIC_URL": "https://other.example.org"}
    process = start("serve", "--port", "0", data=data, **elsewhere)
    try:
        said_until(process, lambda line: "other.example.org" in line, data)
        warning = "passkeys: 1 of 1 do not count here: registered for flows.example.org"
        until(lambda: warning in log_of(data).read_text())
    finally:
        end(process)
