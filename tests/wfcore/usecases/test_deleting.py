"""Deleting an account: everything that is its own goes, nothing else does. AC-9."""

import asyncio

import pytest

from wfcore.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from wfcore.model.access import OPERATOR, Account, AccountStatus, Permission, Principal, Share
from wfcore.model.approval import Approval
from wfcore.model.execution import Artifact, Execution
from wfcore.model.trigger import Trigger
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import Workflow
from wfcore.testing.builders import artifact
from wfcore.time import EpochMs
from wfcore.usecases.accounts import sessions
from wfcore.usecases.accounts.accounts import create_account, set_account
from wfcore.usecases.audit.auditing import Origin, read_audit
from wfcore.usecases.executions import executions
from wfcore.usecases.upkeep import deleting_accounts as deleting
from wfcore.usecases.upkeep.deleting_accounts import Belongings, delete_account, read_belongings
from wfcore.usecases.webhooks.webhooks import NewWebhook, create_webhook
from wfcore.usecases.workflows.workflows import share_workflow

from .conftest import World, code, review
from .triggering import HOURLY, runs_of

BOB = "bob@example.org"


async def rich(world: World) -> tuple[Principal, str, str]:
    """An account that has one of everything, its workflow, and an execution that waits."""
    ann = await world.account()
    flow = await world.workflow(ann, review(), triggers=(HOURLY,))
    await create_webhook(world.services, ann, NewWebhook(flow, "hook", makes_secret=True))
    await world.key(ann.account)
    await set_account(world.services, OPERATOR, ann.account.id, password="a long enough password")
    await sessions.sign_in(world.services, ann.email, "a long enough password", Origin())
    run_id = await world.start(ann, flow)
    await world.take()
    return ann, flow, run_id


async def stored(world: World, kind: type, *key: str) -> object:
    async with world.services.store.view() as view:
        return await view.get(kind, *key)


async def test_everything_of_the_account_goes(world: World) -> None:
    """What is shown before is what goes; the audit log stays, and says it."""
    ann, flow, run_id = await rich(world)
    bob = await world.account(BOB)
    other = await world.workflow(bob, code("one"), name="other")
    await share_workflow(world.services, OPERATOR, other, ann.account.id, Permission.EXECUTE)
    await executions.cancel_execution(world.services, OPERATOR, run_id)
    bobs = await world.start(bob, other)
    async with world.services.store.view() as view:
        (approval,) = await view.approvals.of_execution(run_id)
        (webhook,) = await view.webhooks.all_of_owner(ann.account.id)
        (trigger,) = await view.triggers.of_workflow(flow)
    async with world.services.store.unit() as unit:
        unit.put(artifact(id="art_1", execution_id=run_id))
        await unit.commit()
    expected = Belongings(
        workflows=1, shares=1, webhooks=1, keys=1, sessions=1, executions=1, going=0
    )
    assert await read_belongings(world.services, ann.account.id) == expected
    assert await delete_account(world.services, ann.account.id) == expected
    for kind, id in (
        (Account, ann.account.id), (Workflow, flow), (Webhook, webhook.id), (Trigger, trigger.id),
        (Execution, run_id), (Approval, approval.id), (Artifact, "art_1"),
    ):  # fmt: skip
        assert await stored(world, kind, id) is None
    assert await stored(world, Share, other, ann.account.id) is None
    async with world.services.store.view() as view:
        assert not await view.keys.of_account(ann.account.id)
        assert not await view.sessions.of_account(ann.account.id)
    assert await stored(world, Execution, bobs) is not None
    assert await stored(world, Workflow, other) is not None
    entries = await read_audit(world.services, EpochMs(0), None, 1_000)
    (entry,) = [one for one in entries if one.event == "account.delete"]
    assert (entry.target, entry.details and entry.details["executions"]) == (ann.account.id, 1)
    assert [one for one in entries if one.target == run_id]
    assert (await create_account(world.services, ann.email)).id != ann.account.id


async def test_what_is_going_keeps_the_account_unless_it_is_cancelled(world: World) -> None:
    """Refused without any change; with cancel it ends, also what others started there."""
    ann, flow, run_id = await rich(world)
    bob = await world.account(BOB)
    await share_workflow(world.services, OPERATOR, flow, bob.account.id, Permission.EXECUTE)
    bobs = await world.start(bob, flow)
    with pytest.raises(Conflict, match="2 executions have not ended"):
        await delete_account(world.services, ann.account.id)
    kept = await stored(world, Account, ann.account.id)
    assert isinstance(kept, Account)
    assert kept.status is AccountStatus.ACTIVE
    found = await delete_account(world.services, ann.account.id, cancel=True)
    assert found.going == 2
    assert await stored(world, Execution, run_id) is None
    run = await stored(world, Execution, bobs)
    assert isinstance(run, Execution)
    assert run.status == "CANCELLED"


async def test_two_operators_delete_it_once(world: World) -> None:
    """One of them did it, the other finds nothing; one entry says so."""
    ann, _, _ = await rich(world)
    ends = await asyncio.gather(
        *(delete_account(world.services, ann.account.id, cancel=True) for _ in range(3)),
        return_exceptions=True,
    )
    assert [type(end) for end in ends if not isinstance(end, Belongings)] == [NotFound] * 2
    entries = await read_audit(world.services, EpochMs(0), None, 1_000)
    assert len([one for one in entries if one.event == "account.delete"]) == 1


async def test_what_was_interrupted_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account is disabled meanwhile; files go before the rows that name them."""
    ann, flow, run_id = await rich(world)

    async def fails(*ids: str) -> None:
        raise StoreUnavailable(detail="the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(world.services.files, "delete_executions", fails)
        with pytest.raises(StoreUnavailable):
            await delete_account(world.services, ann.account.id, cancel=True)
    left = await stored(world, Account, ann.account.id)
    assert isinstance(left, Account)
    assert left.status is AccountStatus.DISABLED
    assert await stored(world, Execution, run_id) is not None
    await delete_account(world.services, ann.account.id)
    assert await stored(world, Account, ann.account.id) is None
    assert not await runs_of(world, flow)


async def test_all_batches_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many executions and workflows there are."""
    monkeypatch.setattr(deleting, "_BATCH", 2)
    ann = await world.account()
    flows = [await world.workflow(ann, code("one"), name=f"flow{n}") for n in range(5)]
    runs = [await world.start(ann, flow) for flow in flows]
    found = await delete_account(world.services, ann.account.id, cancel=True)
    assert (found.workflows, found.executions, found.going) == (5, 5, 5)
    for id in runs:
        assert await stored(world, Execution, id) is None


async def test_nobody_deletes_the_account_of_the_own_key(world: World) -> None:
    """An operator elsewhere would lose what they ask with."""
    ann = await world.account()
    with pytest.raises(InvalidInput, match="key"):
        await delete_account(world.services, ann.account.id, origin=Origin(operator=ann))
    with pytest.raises(NotFound):
        await read_belongings(world.services, "acc_none")
