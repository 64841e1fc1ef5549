"""
What goes out by itself, callbacks and notices: a loop that makes the attempts that are due.

An attempt is on record before it is made (CB-3, NT-4), so that ending in the middle loses nothing.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from adapters_runtime.engine.loops import FailureLog, Loop
from wfcore.errors import StoreUnavailable
from wfcore.model.execution import CallbackStatus
from wfcore.model.notice import NoticeStatus
from wfcore.ports.callbacks import CallbackClient
from wfcore.ports.notices import NotDelivered, Notifier
from wfcore.time import EpochMs
from wfcore.usecases.executions.callbacks import CallbackAttempt, next_call, settle_call, take_calls
from wfcore.usecases.notices.sending import Sending, next_notice, settle_notice, take_notices
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import Report

AT_ONCE = 8
LEFT_OVER_S = 1.0
"""How soon to look again at what is due and was not taken."""

A = TypeVar("A")


class Outbox(ABC, Generic[A]):
    """
    Makes the attempts that fall due, a few at once, until cancelled. Subclasses say what is due
    (`take`, `next_due`), and make one attempt (`make`).
    """

    name: str
    noun: str

    def __init__(self, services: Services) -> None:
        self.services = services
        self.log = logging.getLogger(f"wfcore.{self.name}")
        self._failures = FailureLog(self.name)
        due = asyncio.Event()
        self.loop = Loop(self.name, self._round, due)
        services.wakeup.listen(timer=due.set)
        self._attempts: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def take(self, limit: int, report: Report) -> Sequence[A]:
        """Up to *limit* attempts that are due now, each on record."""

    @abstractmethod
    async def next_due(self) -> EpochMs | None:
        """When the next attempt is due."""

    @abstractmethod
    def about(self, attempt: A) -> Mapping[str, object]:
        """What the log says of an attempt."""

    @abstractmethod
    async def make(self, attempt: A) -> None:
        """Make an attempt, and record what came of it."""

    async def run(self) -> None:
        """
        Go on until `stop` of its loop; attempts that are on their way are broken off then, and due
        again.
        """
        try:
            await self.loop.run()
        finally:
            for attempt in self._attempts:
                attempt.cancel()
            await asyncio.gather(*self._attempts, return_exceptions=True)

    async def _round(self) -> float:
        """
        Begin what is due and has a place; how long to sleep afterwards, in seconds: as long as two
        sweeps at most, since what other processes wrote may not be hinted at.
        """
        longest_s = 2 * self.services.policy.sweep_ms / 1_000
        free = AT_ONCE - len(self._attempts)
        self._failures.begin()
        due, begun = await self.next_due(), list[A]()
        if free and due is not None and due <= self.services.store.now():
            begun += await self.take(free, self._failures)
            due = await self.next_due()
        for attempt in begun:
            task = asyncio.create_task(self._made(attempt))
            self._attempts.add(task)
            task.add_done_callback(self._over)
        self.loop.oldest_due = due
        if due is None or len(self._attempts) == AT_ONCE:
            return longest_s
        left = (due - self.services.store.now()) / 1_000
        if left <= 0 and not begun:
            return LEFT_OVER_S
        return min(max(left, 0.005), longest_s)

    def _over(self, attempt: asyncio.Task[None]) -> None:
        self._attempts.discard(attempt)
        self.loop.due.set()

    async def _made(self, attempt: A) -> None:
        try:
            await self.make(attempt)
        except StoreUnavailable:  # then it counts as failed, and is due again later
            return
        except Exception:
            self.log.exception(f"a {self.noun} broke down", extra=dict(self.about(attempt)))


class CallbackLoop(Outbox[CallbackAttempt]):
    """Tells callers of the end of their executions. CB-1."""

    name, noun = "callbacks", "callback"

    def __init__(self, services: Services, callback_client: CallbackClient) -> None:
        super().__init__(services)
        self._client = callback_client

    async def take(self, limit: int, report: Report) -> Sequence[CallbackAttempt]:
        return await take_calls(self.services, limit, report)

    async def next_due(self) -> EpochMs | None:
        return await next_call(self.services)

    def about(self, attempt: CallbackAttempt) -> Mapping[str, object]:
        return {"execution_id": attempt.callback.id}

    async def make(self, attempt: CallbackAttempt) -> None:
        about = self.about(attempt)
        answer = await self._client.post(attempt.url, attempt.headers, attempt.body)
        settled = await settle_call(self.services, attempt, answer)
        if answer.postponed is not None:
            self.log.warning("a callback waits", extra={**about, "lacking": answer.postponed})
        if settled is not None and settled.status is CallbackStatus.FAILED:
            self.log.warning("a callback was given up", extra=dict(about))


class NoticeLoop(Outbox[Sending]):
    """Tells people. NT-4."""

    name, noun = "notices", "notice"

    def __init__(self, services: Services, notifier: Notifier) -> None:
        super().__init__(services)
        self._notifier = notifier

    async def take(self, limit: int, report: Report) -> Sequence[Sending]:
        return await take_notices(self.services, limit, report)

    async def next_due(self) -> EpochMs | None:
        return await next_notice(self.services)

    def about(self, attempt: Sending) -> Mapping[str, object]:
        notice = attempt.notice
        return {"notice_id": notice.id, "channel": notice.channel, "kind": notice.kind.value}

    async def make(self, attempt: Sending) -> None:
        failure: NotDelivered | None = None
        try:
            await self._notifier.send(attempt.message)
        except NotDelivered as failed:
            failure = failed
        except Exception as defect:  # of an installed notifier: it must not keep the others
            self.log.exception("a notifier broke down", extra=dict(self.about(attempt)))
            failure = NotDelivered(f"the notifier broke down: {type(defect).__name__}")
        settled = await settle_notice(self.services, attempt, failure)
        if settled is not None and settled.status is NoticeStatus.FAILED:
            about = {**self.about(attempt), "error": settled.last_error}
            self.log.warning("a notice was given up", extra=about)
