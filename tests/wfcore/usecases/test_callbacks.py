"""Callbacks: what is recorded of the attempts to tell a caller of the end."""

import pytest
from attrs import evolve

from wfcore.errors import InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Account, ApiKey, Principal, Scope
from wfcore.model.execution import Callback, CallbackStatus
from wfcore.model.page import PageRequest
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.rules.callback import DELAYS
from wfcore.rules.definition.written import read_definition_json
from wfcore.usecases.accounts import keys
from wfcore.usecases.administration import executions as administration
from wfcore.usecases.administration.operator import Operator
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.executions import callbacks
from wfcore.usecases.executions.callbacks import settle_call, take_calls
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.unit_of_work import DutyFailure

from .conftest import World, code


async def owed(world: World, email: str = "ann@example.org") -> str:
    """The id of an execution that has ended, with a callback that is due."""
    ann = await world.account(email)
    key = (await keys.create_key(world.services, ann.account.id, "key", Scope.ordinary())).key
    who = Principal(ann.account, key)
    workflow = await world.workflow(ann, code("one"))
    run_id = await world.start(who, workflow, callback_url="https://example.org/told")
    lease, _ = await world.take()
    await world.finish(lease, "one")
    return run_id


async def test_a_callback_needs_a_key_that_can_sign_it(world: World) -> None:
    """Who starts without one is told what to do, and nothing was started. CB-1, CB-4."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    with pytest.raises(InvalidInput) as refused:
        await world.start(ann, workflow, callback_url="https://example.org/told")
    words = "callbackUrl: needs a key with a callback secret; rotate the key to get one"
    assert str(refused.value) == words
    assert (await list_executions(world.services, ann, PageRequest())).total == 0


async def stored(world: World, run_id: str) -> Callback:
    async with world.services.store.view() as view:
        callback = await view.get(Callback, run_id)
    assert callback is not None
    return callback


async def test_an_answer_to_an_older_attempt_is_not_recorded(world: World) -> None:
    """Who took the next attempt, and nobody else, says what became of it. CB-3."""
    run_id = await owed(world)
    (older,) = await take_calls(world.services, 8)
    world.clock.advance(DELAYS[0])
    (newer,) = await take_calls(world.services, 8)
    taken = await stored(world, run_id)
    for late in (CallbackAnswer(200), CallbackAnswer(410), CallbackAnswer(500)):
        assert await settle_call(world.services, older, late) is None
        assert await stored(world, run_id) == taken
    await settle_call(world.services, newer, CallbackAnswer(503))
    settled = await stored(world, run_id)
    assert (settled.status, settled.last_error) == (CallbackStatus.PENDING, "answered 503")


async def test_why_nobody_was_reached_is_recorded(world: World) -> None:
    """An attempt without an answer leaves its reason, for whoever asks what became of it. CB-3."""
    run_id = await owed(world)
    (call,) = await take_calls(world.services, 8)
    await settle_call(world.services, call, CallbackAnswer(error="no answer within 15 s"))
    settled = await stored(world, run_id)
    assert (settled.status, settled.last_error) == (CallbackStatus.PENDING, "no answer within 15 s")


async def test_what_became_of_it_is_read_by_those_who_see_the_execution(world: World) -> None:
    """Its owner reads it, delivered or not; to anybody else there is no such execution. CB-5."""
    run_id = await owed(world)
    eve = await world.account("eve@example.org")
    operator = Operator(world.services, read_definition_json, Origin(), "https://flows.example.org")
    told = (await administration.read_execution(operator, run_id))["callback"]
    assert isinstance(told, dict)
    assert told["status"] == "PENDING"
    run, before = await callbacks.read_callback(world.services, OPERATOR, run_id)
    async with world.services.store.view() as view:
        owner = await view.get(Account, run.owner_id)
    assert owner is not None
    ann = Principal(owner, eve.key)
    assert before == await stored(world, run_id)
    (call,) = await take_calls(world.services, 8)
    await settle_call(world.services, call, CallbackAnswer(200))
    _, after = await callbacks.read_callback(world.services, ann, run_id)
    assert (after.status, after.attempts, after.due_at) == (CallbackStatus.DELIVERED, 1, None)
    with pytest.raises(NotFound, match=r"^Execution not found$"):
        await callbacks.read_callback(world.services, eve, run_id)


async def test_what_nobody_can_sign_is_given_up_and_says_why(world: World) -> None:
    """Without the secret of its key a callback is not sent, and is not due for ever. CB-4."""
    run_id = await owed(world)
    callback = await stored(world, run_id)
    async with world.services.store.unit() as unit:
        key = await unit.get(ApiKey, callback.key_id or "")
        assert key is not None
        unit.put(evolve(key, callback_secret=None))
        await unit.commit()
    assert await take_calls(world.services, 8) == []
    given_up = await stored(world, run_id)
    assert given_up.last_error == "the key that signs it is gone"
    assert (given_up.status, given_up.attempts) == (CallbackStatus.FAILED, 1)
    assert await callbacks.next_call(world.services) is None


async def test_a_callback_that_cannot_be_taken_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps nobody from the others, and stays due."""
    run_id = await owed(world)

    async def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    named: list[DutyFailure] = []
    with monkeypatch.context() as patch:
        patch.setattr(callbacks, "_take", broken)
        assert await take_calls(world.services, 8, named.append) == []
    assert [(one.kind, one.id, str(one.error)) for one in named] == [
        ("callbacks", run_id, "a defect")
    ]
    assert len(await take_calls(world.services, 8)) == 1


async def test_what_was_not_sent_is_no_attempt(world: World) -> None:
    """
    What the machine lacked uses up none of the ten; said again when the next one has begun, it
    puts nothing off. CB-3, EX-27.
    """
    run_id = await owed(world)
    for _ in range(12):
        (call,) = await take_calls(world.services, 8)
        for _ in range(2):
            await settle_call(world.services, call, CallbackAnswer(postponed="no descriptors"))
        put_off = await stored(world, run_id)
        assert (put_off.attempts, put_off.last_error) == (0, "no descriptors")
        assert not await take_calls(world.services, 8)
        world.clock.advance(DELAYS[0])
    (again,) = await take_calls(world.services, 8)
    begun = await stored(world, run_id)
    assert (begun.attempts, await settle_call(world.services, call, CallbackAnswer(500))) == (
        1,
        None,
    )
    assert await stored(world, run_id) == begun
    await settle_call(world.services, again, CallbackAnswer(204))
    assert (await stored(world, run_id)).status is CallbackStatus.DELIVERED
