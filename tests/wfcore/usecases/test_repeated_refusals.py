"""What strangers repeat leaves a bounded trace that still counts."""

from itertools import count

import pytest
from attrs import evolve

from wfcore.errors import AuthReason, ItemsChanged, NotFound, Unauthenticated
from wfcore.model.access import Scope
from wfcore.model.event import AuditEntry
from wfcore.rules.audit.refusals import MOST, SHOWN
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import MINUTE, EpochMs
from wfcore.usecases.accounts.authenticate import Credentials, admit
from wfcore.usecases.audit.auditing import (
    Origin,
    note_denial,
    note_refusal,
    note_repeated,
    read_audit,
)

from .conftest import World

HERE = Origin("/x", "192.168.0.9")


async def denied(world: World) -> list[AuditEntry]:
    entries = await read_audit(world.services, EpochMs(0), None, 10_000)
    return [entry for entry in entries if entry.reason]


async def refuse(world: World, origin: Origin, reason: AuthReason, **more: str) -> None:
    target = more.pop("target", None)
    event = more.pop("event", "api.request")
    refusal = Unauthenticated(reason, key_id=more.get("key_id"))
    await note_denial(world.services, event, refusal, origin, target)


async def test_a_thousand_requests_with_long_paths_are_two_short_entries(world: World) -> None:
    """AL-8: the first of the minute, cut, and how many followed it."""
    for number in range(1_000):
        origin = evolve(HERE, path=f"/api/v1/{number}" + "x" * 8_000)
        with pytest.raises(Unauthenticated):
            await admit(world.services, Credentials(), Scope.WORKFLOW_READ, origin)
    world.clock.advance(MINUTE)
    await note_repeated(world.services, world.services.clock.now())
    first, others = await denied(world)
    assert [len(one.path or "") for one in (first, others)] == [SHOWN, SHOWN]
    assert (first.details, others.details) == (
        None,
        {"repeated": 999, "lastAt": first.at},
    )
    assert (others.ip, others.reason) == (HERE.ip, "missing")


async def test_each_address_reason_key_and_webhook_counts_by_itself(world: World) -> None:
    """Nothing hides behind a flood from elsewhere, of another kind, or with another key."""
    kinds = [
        (HERE, AuthReason.MISSING, {}),
        (evolve(HERE, ip="192.168.0.10"), AuthReason.MISSING, {}),
        (HERE, AuthReason.REVOKED, {"key_id": "key_1"}),
        (HERE, AuthReason.REVOKED, {"key_id": "key_2"}),
        *((HERE, AuthReason.MISSING, {"event": "webhook.trigger", "target": w}) for w in "ab"),
    ]
    for _ in range(3):
        for origin, reason, more in kinds:
            await refuse(world, origin, reason, **more)
    assert len(await denied(world)) == len(kinds)
    await note_repeated(world.services)
    found = await denied(world)
    assert len(found) == 2 * len(kinds)
    assert all(one.details and one.details["repeated"] == 2 for one in found[len(kinds) :])


async def test_ids_that_anybody_can_make_up_tell_nothing_apart(world: World) -> None:
    """Ids of unknown keys, of artifacts, and addresses of one IPv6 network are one stranger's."""
    numbers = count()
    for _ in range(50):
        made_up = f"{next(numbers):x}"
        await refuse(world, HERE, AuthReason.UNKNOWN_KEY, key_id=made_up)
        artifact = {"event": "artifact.download", "target": made_up * 300}
        await refuse(world, HERE, AuthReason.SIGNATURE_MISMATCH, **artifact)
        await refuse(world, evolve(HERE, ip=f"fd00::{made_up}"), AuthReason.MISSING)
    found = await denied(world)
    assert len(found) == 3
    assert max(len(one.target or "") for one in found) <= SHOWN


async def test_many_addresses_share_one_count(world: World) -> None:
    """Beyond `MOST` in a minute the clients are not told apart, and none is forgotten."""
    for number in range(MOST + 100):
        await refuse(
            world, evolve(HERE, ip=f"10.0.{number // 250}.{number % 250}"), AuthReason.MISSING
        )
    await note_repeated(world.services)
    found = await denied(world)
    assert len(found) == MOST + 2
    assert found[-1].ip is None
    assert found[-1].details is not None
    assert found[-1].details["repeated"] == 99
    assert len(world.services.refusal_traffic._of) == 0


async def test_the_next_refusal_notes_what_was_counted(world: World) -> None:
    """No loop is needed: whoever comes in a later minute writes the count of the one before."""
    for _ in range(5):
        await refuse(world, HERE, AuthReason.MISSING)
    world.clock.advance(MINUTE)
    await refuse(world, HERE, AuthReason.MISSING)
    assert [one.details and one.details["repeated"] for one in await denied(world)] == [
        None,
        4,
        None,
    ]


async def test_refused_decisions_of_one_person_on_one_approval_are_counted(world: World) -> None:
    """AL-8: each person and approval by itself; both entries name the execution."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    run = make.execution("exec_1", owner_id=ann.account.id)
    shown = make.approval("appr_1", execution_id="exec_1", owner_id=ann.account.id)
    await keep(world.services.store, run, shown)
    for number in range(5):
        for who, id in ((ann, "appr_1"), (bob, "appr_1"), (ann, f"made_up{number}")):
            refusal = NotFound("Approval") if id != "appr_1" else ItemsChanged("0", id)
            await note_refusal(world.services, "approval.approve", who, id, refusal, HERE)
    await note_repeated(world.services)
    found = await denied(world)
    assert [one.details and one.details["repeated"] for one in found] == [None] * 3 + [4] * 3
    assert [one.execution_id for one in found] == ["exec_1", "exec_1", None] * 2
    assert [one.account_id for one in found] == [ann.account.id, bob.account.id, ann.account.id] * 2
