"""
The metrics of a server: counts of its own process, and gauges of the store.

A process counts its own commits (so that counts of several servers add up), its AI calls, refusals
by quota, and the lag of its event loop. Gauges of the store are read on request, from indexes and
at most once in `FRESH_S`; every server on one store shows the same values.

The values of labels are bounded: enumerations, HTTP statuses, and the first `MOST_MODELS` models.
"""

import asyncio
from collections import Counter as Counted
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, cast

from prometheus_client import CollectorRegistry, Counter, Histogram

from adapters_runtime.engine.journal import UNKNOWN_KIND, CommittedUnit, RecordedEvent
from wfcore.errors import StoreUnavailable
from wfcore.model.access import Admission, Window
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.event import EventKind
from wfcore.model.execution import Callback, CallbackStatus, ExecutionStatus, TriggerSource
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import PageRequest
from wfcore.ports.counters import Counters
from wfcore.ports.models import ModelReply, Prices
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import View
from wfcore.rules.definition.steps import KINDS
from wfcore.time import EpochMs
from wfcore.usecases.nodes import NodeState, state_of
from wfcore.usecases.services import Services

FRESH_S = 5.0
"""How long gauges of the store are shown before they are read again."""
MOST_MODELS = 50
"""
The most models with a label of their own, because users name models; other models are `OTHER`.
"""
OTHER = "other"
MOST_OPEN = 10_000
"""The highest count of open approvals."""
MOST_DUE = 1_000
"""The highest count of callbacks and of notices that are due."""
LAG_EVERY_S = 1.0

_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_WORK = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200)
_PEOPLE = (60, 300, 900, 3_600, 4 * 3_600, 8 * 3_600, 86_400, 3 * 86_400, 7 * 86_400)

STEP_ENDS = {
    EventKind.STEP_COMPLETED: "completed",
    EventKind.STEP_FAILED: "failed",
    EventKind.STEP_SKIPPED: "skipped",
    EventKind.STEP_RETRYING: "retrying",
    EventKind.STEP_POSTPONED: "postponed",
}
_STATUSES = {EventKind(f"execution.{one.lower()}"): one for one in ExecutionStatus}
_DECIDED = [one for one in ApprovalStatus if one is not ApprovalStatus.PENDING]
_CALLBACK_ENDS = {CallbackStatus.DELIVERED: "delivered", CallbackStatus.FAILED: "given_up"}
_NOTICE_ENDS = {
    NoticeStatus.SENT: "sent",
    NoticeStatus.FAILED: "given_up",
    NoticeStatus.DROPPED: "dropped",
    NoticeStatus.DIGESTED: "digested",
}

GAUGES: Mapping[str, str] = {
    "wfcore_executions_running": "Executions that this server works on.",
    "wfcore_places": "Executions that this server may work on at once.",
    "wfcore_starts_short_total": "Starts of steps that this machine lacked something for (EX-27).",
    "wfcore_machine_short": "1 while this machine cannot start steps.",
    "wfcore_loop_up": "1 while the loop runs and its last round went well.",
    "wfcore_oldest_due_seconds": "Age of the oldest work that is due for the loop.",
    "wfcore_dispatch_up": "1 while this server is connected to what dispatches executions.",
    "wfcore_dispatch_backlog": "Messages of a pool that no worker has got; of the dispatch.",
    "wfcore_dispatch_unsettled": "Messages of a pool that a worker has; of the dispatch.",
    "wfcore_dispatch_again": "Of these, how many were delivered more than once; of the dispatch.",
    "wfcore_redeliveries_total": "Deliveries to this server that were not the first of a message.",
    "wfcore_connections": "Open connections.",
    "wfcore_connections_refused_total": "Connections that were refused for lack of room.",
    "wfcore_connections_dropped_total": "Connections that were ended because nothing was read.",
    "wfcore_unsent_bytes": "Bytes that wait for clients.",
    "wfcore_store_up": "1 while the store answers and can be written; the same on each server.",
    "wfcore_nodes": (
        "Servers that run steps: taking executions, draining, or gone without a word in the last "
        "hour; of the store."
    ),
    "wfcore_executions_kept": f"Executions by status, each up to {MOST_OPEN}; of the store.",
    "wfcore_queue_p50_seconds": (
        f"Median age of executions that have not begun, of the oldest {MOST_OPEN}; of the store."
    ),
    "wfcore_queue_p99_seconds": "The same, of the 99th percentile.",
    "wfcore_queue_oldest_seconds": (
        "How long the oldest execution that no server has taken has been due; of the store."
    ),
    "wfcore_approvals_open": f"Approvals that wait for people, up to {MOST_OPEN}; of the store.",
    "wfcore_approvals_oldest_seconds": "Age of the oldest open approval; of the store.",
    "wfcore_callbacks_due": f"Callbacks that are due, up to {MOST_DUE}; of the store.",
    "wfcore_callbacks_oldest_due_seconds": (
        "How long the oldest callback has been due; of the store."
    ),
    "wfcore_notices_due": f"Notices that are due, up to {MOST_DUE}; of the store.",
    "wfcore_notices_oldest_due_seconds": ("How long the oldest notice has been due; of the store."),
    "wfcore_store_size_bytes": "Size of the database, its log included; of the store.",
    "wfcore_cache_bytes": "What decoded records take up in memory here.",
    "wfcore_cache_lookups_total": "Reads of records by key.",
    "wfcore_cache_decoded_total": "Reads by key that found nothing current and decoded a row.",
}
"""The gauges with their descriptions. Gauges are read on request."""


class ServerMetrics:
    """The counts of one server, in a registry of its own. An `Observer` of its commits."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._models: set[str] = set()
        self._make_counts()
        self._make_histograms()
        for source in TriggerSource:
            for status in ExecutionStatus:
                self.executions.labels(status.value, source.value)
        for kind in (*KINDS, UNKNOWN_KIND):
            for end in STEP_ENDS.values():
                self.steps.labels(kind, end)

    def _make_counts(self) -> None:
        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"wfcore_{name}", says, labels, registry=self.registry)

        self.executions = counter(
            "executions", "Executions that entered a status.", "status", "trigger"
        )
        self.steps = counter("steps", "What became of attempts of steps.", "kind", "status")
        self.callbacks = counter("callbacks", "Callbacks that are over.", "outcome")
        self.notices = counter("notices", "Notices that are over.", "outcome")
        self.webhooks = counter(
            "webhook_requests", "Requests to webhooks, by the answer.", "status"
        )
        self.refusals = counter("quota_refusals", "Requests that a full window refused.", "window")
        self.tokens = counter("ai_tokens", "Tokens of AI steps.", "model", "direction")
        self.cost = counter("ai_cost_usd", "Cost of AI steps, where it is known.", "model")
        self.unpriced = counter(
            "ai_unpriced_answers", "Answers of models without a known price.", "model"
        )
        self.conflicts = counter(
            "store_conflicts", "Units of work that lost a race, and were repeated."
        )
        for end in _CALLBACK_ENDS.values():
            self.callbacks.labels(end)
        for end in _NOTICE_ENDS.values():
            self.notices.labels(end)
        for window in ("minute", "day"):
            self.refusals.labels(window)

    def _make_histograms(self) -> None:
        def histogram(name: str, says: str, buckets: Any, *labels: str) -> Histogram:
            name = f"wfcore_{name}_seconds"
            return Histogram(name, says, labels, buckets=buckets, registry=self.registry)

        self.queued = histogram("execution_queue", "Time from acceptance to the first step.", _WORK)
        self.step_time = histogram(
            "step_duration", "Time from a step's first start to its end.", _WORK, "kind"
        )
        self.decisions = histogram(
            "approval_decision", "Time from an approval's opening to its end.", _PEOPLE, "status"
        )
        self.commits = histogram("store_commit", "Time that a commit took.", _SHORT)
        self.lag = histogram(
            "event_loop_lag", "How late the event loop was, measured each second.", _SHORT
        )
        for status in _DECIDED:
            self.decisions.labels(status.value)
        for kind in KINDS:
            self.step_time.labels(kind)

    def collided(self) -> None:
        """Count a unit of work that lost a race."""
        self.conflicts.inc()

    def committed(self, unit: CommittedUnit) -> None:
        """Count a unit of work that is durable."""
        self.commits.observe(unit.seconds)
        for one in unit.events:
            self._count_event(one)
        for record in unit.records:
            self._count_record(record)
        for status in unit.answers:
            self.webhooks.labels(str(status)).inc()

    def _count_event(self, one: RecordedEvent) -> None:
        event, run = one.event, one.run
        if event.number == _TAKEN and event.kind is not EventKind.EXECUTION_CANCELLED:
            self.queued.observe(max(event.at - run.accepted_at, 0) / 1_000)
        if (status := _STATUSES.get(event.kind)) is not None:
            self.executions.labels(status.value, run.trigger_source.value).inc()
        if (end := STEP_ENDS.get(event.kind)) is None:
            return
        self.steps.labels(one.kind, end).inc()
        result = run.step_results.get(str(event.data["step"]))
        if end in ("completed", "failed") and result and result.duration_ms is not None:
            self.step_time.labels(one.kind).observe(result.duration_ms / 1_000)

    def _count_record(self, record: Any) -> None:
        match record:
            case Approval(decided_at=int(at), status=status, created_at=opened):
                self.decisions.labels(status.value).observe(max(at - opened, 0) / 1_000)
            case Callback(status=status) if status in _CALLBACK_ENDS:
                self.callbacks.labels(_CALLBACK_ENDS[status]).inc()
            case Notice(status=sent) if sent in _NOTICE_ENDS:
                self.notices.labels(_NOTICE_ENDS[sent]).inc()
            case _:
                pass

    def answered(self, model: str, answer: ModelReply, cost: Decimal | None) -> None:
        """Count an answer of a model."""
        if model not in self._models and len(self._models) >= MOST_MODELS:
            model = OTHER
        self._models.add(model)
        self.tokens.labels(model, "input").inc(answer.input_tokens)
        self.tokens.labels(model, "output").inc(answer.output_tokens)
        if cost is None:
            self.unpriced.labels(model).inc()
        else:
            self.cost.labels(model).inc(float(cost))

    @asynccontextmanager
    async def watching_the_loop(self) -> AsyncIterator[None]:
        """Until this is left, measure the lag of the event loop."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + LAG_EVERY_S
            await asyncio.sleep(LAG_EVERY_S)
            self.lag.observe(max(clock() - due, 0))


_TAKEN = 2
"""The number of the event with which a server takes an execution; event 1 accepts it."""


class CountedCounters:
    """*counters* whose refusals are counted in *metrics*."""

    def __init__(self, counters: Counters, metrics: ServerMetrics) -> None:
        self._counters = counters
        self._metrics = metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self._counters, name)

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Admission:
        """See `Counters.take`."""
        taken = await self._counters.take(subject, windows, now)
        for kind in taken.full:
            self._metrics.refusals.labels(kind).inc()
        return taken


def counted_quotas(counters: Counters, metrics: ServerMetrics) -> Counters:
    """*counters* whose refusals are counted in *metrics*."""
    return cast("Counters", CountedCounters(counters, metrics))


class CountedPrices:
    """*prices* that also count answers of models, because each answer is priced."""

    def __init__(self, prices: Prices, metrics: ServerMetrics) -> None:
        self._prices = prices
        self._metrics = metrics

    async def cost(self, model: str, answer: ModelReply) -> Decimal | None:
        """
        See `Prices.cost`. An answer without tokens only checks for a price, and is not counted.
        """
        cost = await self._prices.cost(model, answer)
        if answer.input_tokens or answer.output_tokens:
            self._metrics.answered(model, answer, cost)
        return cost


class StoreGauges:
    """The gauges of the store, read at most once in *fresh_s* for all callers."""

    def __init__(self, services: Services, fresh_s: float = FRESH_S) -> None:
        self._services = services
        self._fresh_s = fresh_s
        self._reading = asyncio.Lock()
        self._known: Mapping[str, float] = {}
        self._until = 0.0

    async def read(self) -> Mapping[str, float]:
        """The gauges; for a store that does not answer or take a write, only that it is down."""
        clock = asyncio.get_running_loop().time
        async with self._reading:
            if clock() >= self._until:
                self._known = await self._read()
                self._until = clock() + self._fresh_s
            return self._known

    async def _read(self) -> Mapping[str, float]:
        own: Callable[[], Awaitable[Mapping[str, float]]] | None
        own = getattr(self._services.store, "gauges", None)
        try:
            await self._services.store.ping()
            known = await self._waiting()
            beside = await own() if own is not None else {}
        except StoreUnavailable:
            return {"wfcore_store_up": 0.0}
        return {"wfcore_store_up": 1.0, **known, **beside}

    async def _waiting(self) -> Mapping[str, float]:
        now = self._services.store.now()

        def age(since: EpochMs | None) -> float:
            return 0.0 if since is None else max(now - since, 0) / 1_000

        async with self._services.store.view() as view:
            count, opened = await view.approvals.open(MOST_OPEN)
            kept = await view.executions.by_status(EVERYTHING, MOST_OPEN)
            waiting = kept[ExecutionStatus.PENDING]
            nodes = Counted(state_of(node, now) for node in await view.nodes.list())
            return {
                **{f'wfcore_nodes{{state="{one}"}}': float(nodes[one]) for one in NodeState},
                **{f'wfcore_executions_kept{{status="{one}"}}': float(kept[one]) for one in kept},
                "wfcore_queue_p50_seconds": age(await _accepted(view, waiting, 0.5)),
                "wfcore_queue_p99_seconds": age(await _accepted(view, waiting, 0.99)),
                "wfcore_queue_oldest_seconds": age(await view.executions.next_due()),
                "wfcore_approvals_open": float(count),
                "wfcore_approvals_oldest_seconds": age(opened),
                "wfcore_callbacks_due": float(len(await view.callbacks.due(MOST_DUE))),
                "wfcore_callbacks_oldest_due_seconds": age(await view.callbacks.next_due()),
                "wfcore_notices_due": float(len(await view.notices.due(MOST_DUE))),
                "wfcore_notices_oldest_due_seconds": age(await view.notices.next_due()),
            }


EVERYTHING = ExecutionFilter()
_NOT_BEGUN = ExecutionFilter(statuses=(ExecutionStatus.PENDING,), oldest_first=True)


async def _accepted(view: View, waiting: int, share: float) -> EpochMs | None:
    """
    The time of acceptance of the execution that is older than *share* of the *waiting* executions.
    """
    if not waiting:
        return None
    place = int(waiting * (1 - share)) + 1
    found = await view.executions.list(_NOT_BEGUN, PageRequest(min(place, waiting), 1))
    return found.rows[0].accepted_at if found.rows else None
