"""
The outboxes: loops that send the callbacks and notices that are due.

An attempt is recorded before it is made (CB-3, NT-4), so that a process that dies loses no attempt.
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
from wfcore.ports.notices import NotDelivered, Notifier, Receipt
from wfcore.time import EpochMs
from wfcore.usecases.executions.callbacks import CallbackAttempt, next_call, settle_call, take_calls
from wfcore.usecases.notices.mails import with_files
from wfcore.usecases.notices.sending import Sending, next_notice, settle_notice, take_notices
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import Report

AT_ONCE = 8
LEFT_OVER_S = 1.0
"""The pause before attempts that are due and were not taken are tried again."""

A = TypeVar("A")


class Outbox(ABC, Generic[A]):
    """
    A loop that makes due attempts, a few at once. Subclasses find due attempts (`take`, `next_due`)
    and make a single attempt (`make`).
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
        """Records and returns up to *limit* attempts that are due now."""

    @abstractmethod
    async def next_due(self) -> EpochMs | None:
        """The time at which the next attempt is due, or None."""

    @abstractmethod
    def about(self, attempt: A) -> Mapping[str, object]:
        """The fields of a line of the log on *attempt*."""

    @abstractmethod
    async def make(self, attempt: A) -> None:
        """Make *attempt*, and record its result."""

    async def run(self) -> None:
        """
        Run until `stop` of `loop`. Unfinished attempts are then cancelled, and are due again later.
        """
        try:
            await self.loop.run()
        finally:
            for attempt in self._attempts:
                attempt.cancel()
            await asyncio.gather(*self._attempts, return_exceptions=True)

    async def _round(self) -> float:
        """
        Begin as many due attempts as there are free places; returns how many seconds to sleep.

        The sleep is never longer than two sweeps, since the hints of other processes may be lost.
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
            task.add_done_callback(self._ended)
        self.loop.oldest_due = due
        if due is None or len(self._attempts) == AT_ONCE:
            return longest_s
        left = (due - self.services.store.now()) / 1_000
        if left <= 0 and not begun:
            return LEFT_OVER_S
        return min(max(left, 0.005), longest_s)

    def _ended(self, attempt: asyncio.Task[None]) -> None:
        self._attempts.discard(attempt)
        self.loop.due.set()

    async def _made(self, attempt: A) -> None:
        try:
            await self.make(attempt)
        except StoreUnavailable:  # the attempt counts as failed, and the next is due later
            return
        except Exception:
            self.log.exception(f"a {self.noun} broke down", extra=dict(self.about(attempt)))


class CallbackLoop(Outbox[CallbackAttempt]):
    """The outbox of callbacks, which report the ends of executions to their callers. CB-1."""

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
    """The outbox of notices to people. NT-4."""

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
        outcome: Receipt | NotDelivered
        try:
            message = await with_files(self.services, attempt.message, attempt.files)
            outcome = await self._notifier.send(message)
        except NotDelivered as failed:
            outcome = failed
        except StoreUnavailable:
            outcome = NotDelivered("the files cannot be read now")
        except Exception as defect:  # of an installed notifier: other notices must still go out
            self.log.exception("a notifier broke down", extra=dict(self.about(attempt)))
            outcome = NotDelivered(f"the notifier broke down: {type(defect).__name__}")
        settled = await settle_notice(self.services, attempt, outcome)
        if settled is not None and settled.status is NoticeStatus.FAILED:
            about = {**self.about(attempt), "error": settled.last_error}
            self.log.warning("a notice was given up", extra=about)
