"""Callbacks: the loop that takes, sends and settles due calls, and the client. CB-4."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from adapters_runtime.engine.loops import FailureLog, Loop
from adapters_runtime.pinned_http import Choice, ExchangeFailed, HostShort, NotAllowed, PinnedHttp
from wfcore.errors import StoreUnavailable
from wfcore.model.execution import CallbackStatus
from wfcore.ports.callbacks import CallbackAnswer, CallbackClient
from wfcore.rules.address import is_public
from wfcore.usecases.executions.callbacks import Call, next_call, settle_call, take_calls
from wfcore.usecases.services import Services

log = logging.getLogger("wfcore.callbacks")

AT_ONCE = 8
LONGEST_PAUSE_S = 30.0
LEFT_OVER_S = 1.0
"""How soon to look again at what is due and was not taken."""


class CallbackLoop:
    """Makes the calls that fall due, a few at once, until cancelled."""

    def __init__(self, services: Services, callback_client: CallbackClient) -> None:
        self._services = services
        self._client = callback_client
        self._failures = FailureLog("callbacks")
        due = asyncio.Event()
        self.loop = Loop("callbacks", self._round, due)
        services.wakeup.listen(timer=due.set)
        self._calls: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """
        Call until `stop` of its loop; calls that are on their way are broken off then, and due
        again.
        """
        try:
            await self.loop.run()
        finally:
            for call in self._calls:
                call.cancel()
            await asyncio.gather(*self._calls, return_exceptions=True)

    async def _round(self) -> float:
        """Begin what is due and has a place; how long to sleep afterwards, in seconds."""
        free = AT_ONCE - len(self._calls)
        self._failures.begin()
        calls = await take_calls(self._services, free, self._failures) if free else ()
        for call in calls:
            task = asyncio.create_task(self._call(call))
            self._calls.add(task)
            task.add_done_callback(self._over)
        self.loop.oldest_due = due = await next_call(self._services)
        if due is None or len(self._calls) == AT_ONCE:
            return LONGEST_PAUSE_S
        left = (due - self._services.store.now()) / 1_000
        if left <= 0 and not calls:
            return LEFT_OVER_S
        return min(max(left, 0.005), LONGEST_PAUSE_S)

    def _over(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self.loop.due.set()

    async def _call(self, call: Call) -> None:
        about = {"execution_id": call.callback.id}
        try:
            answer = await self._client.post(call.url, call.headers, call.body)
            settled = await settle_call(self._services, call, answer)
        except StoreUnavailable:  # then it counts as failed, and is due again later
            return
        except Exception:
            log.exception("a callback broke down", extra=about)
            return
        if answer.postponed is not None:
            log.warning("a callback waits", extra={**about, "lacking": answer.postponed})
        if settled is not None and settled.status is CallbackStatus.FAILED:
            log.warning("a callback was given up", extra=about)


TIMEOUT_S = 15.0
_HEADERS = {"content-type": "application/json", "user-agent": "wfcore-callback"}


class HttpCallbackClient:
    """The `CallbackClient` of a server. *allow_private*: also private and loopback addresses."""

    def __init__(
        self,
        allow_private: bool = False,
        timeout_s: float = TIMEOUT_S,
        http: Callable[[Choice], PinnedHttp] = PinnedHttp,
    ) -> None:
        self._timeout_s = timeout_s
        self._http = http(_anywhere if allow_private else _public_alone)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        """Send *body* once; see `CallbackClient`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._http.exchange("POST", url, {**headers, **_HEADERS}, body, 0)
        except TimeoutError:
            return CallbackAnswer(error=f"no answer within {self._timeout_s:g} s")
        except HostShort as short:
            return CallbackAnswer(postponed=str(short))
        except NotAllowed:
            return CallbackAnswer(error="its address is private or a loopback one")
        except ExchangeFailed as failure:
            return CallbackAnswer(error=f"could not be reached: {type(failure).__name__}")
        return CallbackAnswer(reply.status)


def _anywhere(addresses: Sequence[str]) -> Sequence[str]:
    return addresses


def _public_alone(addresses: Sequence[str]) -> Sequence[str]:
    """A single private address is enough to distrust the name."""
    return addresses if all(map(is_public, addresses)) else ()
