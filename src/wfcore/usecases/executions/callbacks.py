"""
Callbacks: each attempt is recorded before it is made, and its result can be read. CB-1, CB-3, CB-5.
"""

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from wfcore.errors import NotFound, Stale
from wfcore.model.access import ApiKey, Principal, Unrestricted
from wfcore.model.execution import Callback, Execution
from wfcore.model.trace import span_about
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.ports.store import View
from wfcore.rules.callback import answered, attempted, body_of, put_off, signed
from wfcore.time import EpochMs
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import Report, apart, at_once, execution_for, retried

NO_EXECUTION = CallbackAnswer(error="the execution is gone")
NO_SECRET = CallbackAnswer(error="the key that signs it is gone")


@frozen
class CallbackAttempt:
    """One attempt of a callback, ready to be sent."""

    callback: Callback
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def url(self) -> str:
        """The address of the callback."""
        return self.callback.url


async def read_callback(
    services: Services, who: Principal | Unrestricted, execution_id: str
) -> tuple[Execution, Callback]:
    """
    An execution and the state of its callback; before the end of the execution, the callback that
    will be due at the end. CB-5. Raises `NotFound`, also for an execution without a callback.
    """
    async with services.store.view() as view:
        run = await execution_for(view, who, execution_id)
        if (callback := await callback_of(view, run)) is None:
            raise NotFound("Callback")
    return run, callback


async def callback_of(view: View, run: Execution) -> Callback | None:
    """
    The callback of *run*, or None. Before the end of *run*, the callback that will be due at the
    end.
    """
    if run.callback_url is None:
        return None
    pending = Callback(run.id, run.callback_url, run.key_id, run.accepted_at, due_at=None)
    return await view.get(Callback, run.id) or pending


async def next_call(services: Services) -> EpochMs | None:
    """The due time of the next attempt."""
    async with services.store.view() as view:
        return await view.callbacks.next_due()


async def take_calls(
    services: Services, limit: int, report: Report = at_once
) -> Sequence[CallbackAttempt]:
    """
    Up to *limit* attempts that are due now, each recorded; of racing workers one gets each attempt.
    """
    async with services.store.view() as view:
        due = await view.callbacks.due(limit)
    taken: list[CallbackAttempt] = []
    for callback in due:
        with apart(report, "callbacks", callback.id):
            call = await _take(services, callback)
            taken += [call] if call is not None else []
    return taken


async def _take(services: Services, callback: Callback) -> CallbackAttempt | None:
    now = services.store.now()
    async with services.store.unit() as unit:
        run = await execution_of(unit, callback.id)
        key = await unit.get(ApiKey, callback.key_id or "")
        begun = attempted(callback, now)
        lost = NO_EXECUTION if run is None else NO_SECRET
        secret = key.callback_secret if key else None
        if run is None or secret is None:
            begun = answered(begun, 410, lost.error)
        unit.put(begun)
        try:
            await unit.commit()
        except Stale:
            return None
    if run is None or secret is None:
        return None
    body = body_of(run)
    headers = signed(secret, run.id, services.clock.now(), body)
    return CallbackAttempt(begun, {**headers, **_traced(run, begun)}, body)


def _traced(run: Execution, callback: Callback) -> Mapping[str, str]:
    """The headers that let the receiver join the trace, if spans are made. TR-2."""
    if run.trace is None or not run.trace.recorded:
        return {}
    span = span_about(run.id, f"callback/{callback.attempts}")
    state = {"tracestate": run.trace.state} if run.trace.state else {}
    return {"traceparent": run.trace.traceparent(span), **state}


@retried
async def settle_call(
    services: Services, call: CallbackAttempt, answer: CallbackAnswer
) -> Callback | None:
    """Record the result of an attempt. Does nothing if a later attempt has begun."""
    async with services.store.unit() as unit:
        callback = await unit.get(Callback, call.callback.id)
        if callback is None or _beginning(callback) != _beginning(call.callback):
            return None
        if answer.postponed is not None:
            settled = put_off(callback, answer.postponed, services.store.now())
        else:
            settled = answered(callback, answer.status, answer.error)
        unit.put(settled)
        await unit.commit()
    return settled


def _beginning(callback: Callback) -> tuple[int, EpochMs | None]:
    """The values that distinguish attempts: a postponed attempt returns its number."""
    return callback.attempts, callback.due_at
