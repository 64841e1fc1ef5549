"""Callbacks: what is recorded of the attempts to tell a caller of the end."""

from usecases.conftest import World, code
from wfcore.model.access import Principal, Scope
from wfcore.model.callback import Callback, CallbackStatus
from wfcore.ports.callbacks import Answer
from wfcore.rules.callback import DELAYS
from wfcore.usecases import keys
from wfcore.usecases.calling_back import settle_call, take_calls


async def owed(world: World) -> str:
    """The id of an execution that has ended, with a callback that is due."""
    ann = await world.account()
    key = (await keys.create_key(world.services, ann.account.id, "key", tuple(Scope))).key
    who = Principal(ann.account, key)
    workflow = await world.workflow(ann, code("one"))
    run_id = await world.start(who, workflow, callback_url="https://example.org/told")
    lease, _ = await world.take()
    await world.finish(lease, "one")
    return run_id


async def stored(world: World, run_id: str) -> Callback:
    async with world.services.store.view() as view:
        callback = await view.callbacks.get(run_id)
    assert callback is not None
    return callback


async def test_an_answer_to_an_older_attempt_is_not_recorded(world: World) -> None:
    """Who took the next attempt, and nobody else, says what became of it. CB-3."""
    run_id = await owed(world)
    (older,) = await take_calls(world.services, 8)
    world.clock.advance(DELAYS[0])
    (newer,) = await take_calls(world.services, 8)
    taken = await stored(world, run_id)
    for late in (Answer(200), Answer(410), Answer(500)):
        assert await settle_call(world.services, older, late) is None
        assert await stored(world, run_id) == taken
    await settle_call(world.services, newer, Answer(503))
    settled = await stored(world, run_id)
    assert (settled.status, settled.last_error) == (CallbackStatus.PENDING, "answered 503")
