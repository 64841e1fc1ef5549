"""The loop that makes callbacks: what is due is taken, sent, and settled."""

import asyncio
import logging
from contextlib import suppress

from adapters_runtime.wakeups import Wakeups, wait_for
from wfcore.errors import StoreUnavailable
from wfcore.model.callback import CallbackStatus
from wfcore.ports.callbacks import Courier
from wfcore.usecases.calling_back import Call, next_call, settle_call, take_calls
from wfcore.usecases.services import Services

log = logging.getLogger("wfcore.callbacks")

AT_ONCE = 8
LONGEST_PAUSE_S = 30.0
TROUBLE_S = 1.0


class Caller:
    """Makes the calls that fall due, a few at once, until cancelled."""

    def __init__(self, services: Services, courier: Courier, wakeups: Wakeups) -> None:
        self._services = services
        self._courier = courier
        self._wakeups = wakeups
        self._calls: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Call until cancelled; calls that are on their way are broken off then, and due again."""
        try:
            while True:
                await wait_for(self._wakeups.calls_due, await self._call_all())
        finally:
            for call in self._calls:
                call.cancel()
            await asyncio.gather(*self._calls, return_exceptions=True)

    async def _call_all(self) -> float:
        """Begin what is due and has a place; how long to sleep afterwards, in seconds."""
        try:
            free = AT_ONCE - len(self._calls)
            for call in await take_calls(self._services, free) if free else ():
                task = asyncio.create_task(self._call(call))
                self._calls.add(task)
                task.add_done_callback(self._over)
            due = await next_call(self._services) if len(self._calls) < AT_ONCE else None
        except StoreUnavailable as refusal:
            log.warning("store unavailable", extra={"detail": refusal.detail})
            return TROUBLE_S
        except Exception:
            log.exception("calling back failed")
            return TROUBLE_S
        if due is None:
            return LONGEST_PAUSE_S
        return min(max((due - self._services.clock.now()) / 1_000, 0.005), LONGEST_PAUSE_S)

    def _over(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._wakeups.calls_due.set()

    async def _call(self, call: Call) -> None:
        answer = await self._courier.post(call.url, call.headers, call.body)
        with suppress(StoreUnavailable):  # then it counts as failed, and is due again later
            settled = await settle_call(self._services, call, answer)
            if settled is not None and settled.status is CallbackStatus.FAILED:
                log.warning("a callback was given up", extra={"execution_id": call.callback.id})
