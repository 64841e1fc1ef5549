"""Executions: their states, the results and files of their steps, and callbacks to callers."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import field, frozen

from wfcore.errors import NotRead
from wfcore.model.json import Json, JsonObject
from wfcore.model.trace import Trace
from wfcore.time import DurationMs, EpochMs


@frozen
class Usage:
    """Tokens and cost. `cost_usd` is a decimal number as text; None if a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str | None = "0"


@frozen
class RefusedFile:
    """A file of a step that does not qualify as an artifact. The name is only a label."""

    name: str
    reason: str


@frozen
class Artifact:
    """
    A stored file. `name` is only a label; `storage_key` locates the content. `attempt`: the attempt
    of the step that left the file; 0 if unknown.
    """

    id: str
    execution_id: str
    step_name: str
    name: str
    storage_key: str
    size: int
    content_type: str
    sha256: str
    previewable: bool
    created_at: EpochMs
    attempt: int = 0
    version: int = 0


class ExecutionStatus(StrEnum):
    """
    The state of an execution. PENDING, RUNNING and AWAITING_APPROVAL are open. INTERRUPTED: a step
    ran at a crash; a redrive is possible until the grace is over. COMPLETED, FAILED and CANCELLED
    are final.
    """

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    INTERRUPTED = "INTERRUPTED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class StepStatus(StrEnum):
    """
    The state of a step. RUNNING and AWAITING_APPROVAL are open. SKIPPED: a condition left the step
    out. REJECTED: its approval was refused. INTERRUPTED: the step ran at a crash.
    """

    RUNNING = "RUNNING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"


class TriggerSource(StrEnum):
    """
    The origin of an execution. With OPEN_API a step that ran at a crash is never begun again; with
    every other source the service may resume it. EX-12, EX-14.
    """

    OPEN_API = "open_api"
    WEBHOOK = "webhook"
    MANUAL = "manual"
    SCHEDULE = "schedule"
    DELAYED_COMPLETION = "delayed_completion"
    WORKFLOW = "workflow"


class ReasonCode(StrEnum):
    """The reason why an execution failed, was cancelled or was interrupted."""

    STEP_FAILED = "STEP_FAILED"
    TIMEOUT = "TIMEOUT"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"
    APPROVAL_REJECTED = "APPROVAL_REJECTED"
    APPROVAL_TIMEOUT = "APPROVAL_TIMEOUT"
    INTERRUPTED = "INTERRUPTED"
    PARENT_CANCELLED = "PARENT_CANCELLED"


@frozen
class StatusReason:
    """The reason for an execution's status, for programs."""

    code: ReasonCode
    step_name: str | None = None
    approval_id: str | None = None


@frozen
class PendingFailure:
    """The failure that an execution ends with once its `onFailure` steps have run. EX-31."""

    error: str
    reason: StatusReason


class Awaits(StrEnum):
    """The event for which a step without a process waits."""

    STEPS = "steps"
    """The end of the steps inside."""
    TIME = "time"
    """The end of the delay."""
    CHILD = "child"
    """The end of the execution that the step started."""
    MAIL = "mail"
    """The answer of a mail server to the step's mail."""


@frozen
class Unread:
    """
    The mark of a large value that is in the store and was not read: output or items of the step
    *key*; with the key None, the output of the execution. *place*: the store's own address of the
    value; *size*: the characters of the value's JSON, approximately. ST-7.
    """

    execution_id: str
    key: str | None
    place: int
    size: int


@frozen(slots=False)
class StepResult:
    """
    The state of one step. Only steps that began or were skipped have a result.

    `started_at`: the start of the first attempt. `attempt_at`: the start of the present attempt, if
    there were earlier attempts. `retry_at`: the start of the next attempt, after a failed attempt;
    until then nothing of the step runs. `approval_id`: the approval that the step waits for.
    `refused`: the files of the last attempt that do not qualify as artifacts. `reason`: the reason
    of a failure, for programs.

    `awaits`: the event that a RUNNING step without a process waits for, at most until `until` (a
    delay: exactly). `child_id`: the execution that the step started; with an `error`, that
    execution failed and the step's next state is undecided. `items`: the items of a loop that has
    not completed; `rounds`: the number of items. `case`: the list of steps that a switch has
    chosen, from 0; the last list is its `else`. `steps`: how many steps of the definition count as
    finished when this step has finished.

    `postponed`: how often the machine could not start the next attempt. Nothing of these attempts
    ran, `attempts` does not count them, and `error` names the missing resource. EX-27. `earlier`:
    how many of the `attempts` were made in earlier rounds; see `Execution.put_aside`. `model`: the
    model that answered, of an AI step that may ask several. AI-11.
    """

    status: StepStatus
    started_at: EpochMs
    completed_at: EpochMs | None = None
    output: Json = None
    error: str | None = None
    attempts: int = 1
    usage: Usage | None = None
    retry_at: EpochMs | None = None
    approval_id: str | None = None
    refused: tuple[RefusedFile, ...] = ()
    reason: ReasonCode | None = None
    awaits: Awaits | None = None
    until: EpochMs | None = None
    child_id: str | None = None
    items: Json = None
    steps: int = 1
    postponed: int = 0
    earlier: int = 0
    case: int | None = None
    attempt_at: EpochMs | None = None
    rounds: int | None = None
    model: str | None = None

    @property
    def tries(self) -> int:
        """The attempts in this round, the number that `retry` limits."""
        return self.attempts - self.earlier

    @property
    def duration_ms(self) -> DurationMs | None:
        """
        The time from the first start to the end in ms; None for a step that has not ended. Never
        negative, even if two processes with slightly different clocks recorded the instants.
        """
        if self.completed_at is None:
            return None
        return DurationMs(max(self.completed_at - self.started_at, 0))

    @property
    def in_flight(self) -> bool:
        """Whether a process may be running for the step now."""
        return self.status is StepStatus.RUNNING and self.retry_at is None and self.awaits is None

    @property
    def open_child(self) -> str | None:
        """The execution that the step waits for."""
        waits = self.status is StepStatus.RUNNING and self.awaits is Awaits.CHILD
        return self.child_id if waits and self.error is None else None


ENDED = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED})
"""The states in which a step has ended by itself."""


@frozen(slots=False)
class Execution:
    """
    One run of one workflow definition.

    `variables`: the inputs merged over the defaults. `secrets`: the variables whose values are
    masked wherever they would be shown. `step_results`: the results by the step's key: the step's
    name, or `loop.<index>.<name>` in a loop. `put_aside`: the results of earlier rounds, by the
    number of the round, a slash and the key. AP-31. `outputs_size`: the characters of JSON in all
    step results, including earlier rounds; see `rules.execution.proceed`. `granted`: usage that
    does not count against the budget: the usage until an approval last extended the budget, or
    before a redrive.

    `due_at`: the instant at which a worker may claim the execution. While a worker holds the
    execution: the instant at which this worker plans again. While the execution is INTERRUPTED: the
    end of the grace period. None: nothing happens by itself. `worker` holds the lease, and `fence`
    is the number of the lease: the store refuses a write with an older number. `events`: the number
    of the last event. `capabilities`: the abilities that a worker needs, see
    `rules.execution.start.capabilities_of`. `concurrency_group`: see `rules.execution.concurrency`.
    `failing`: set when the `onFailure` steps take over, and never reset, so that these steps run
    once.

    `parent_id` and `parent_step`: the step that started the execution. `trigger_id`: the schedule
    or chain that started the execution. `trigger`: the facts of the start that no other field has,
    by their names in templates; see `rules.execution.scope`. `reference`: a text by which people
    find the execution, without secrets. EX-38. `chain_depth`: the number of chained starts since a
    start by a person or program. `root_source`: for a child, the trigger of the root of its family;
    None: unknown. `request_id`: the request that started the execution, or the first execution of
    its family. `callback_url`: the URL that receives the end of the execution. `trace`: see
    `model.trace`.
    """

    id: str
    workflow_id: str
    workflow_name: str
    workflow_owner_id: str
    owner_id: str
    revision: int
    trigger_source: TriggerSource
    status: ExecutionStatus
    accepted_at: EpochMs
    total_steps: int
    variables: JsonObject = field(factory=dict)
    trigger: JsonObject = field(factory=dict)
    step_results: Mapping[str, StepResult] = field(factory=dict)
    put_aside: Mapping[str, StepResult] = field(factory=dict)
    status_reason: StatusReason | None = None
    error: str | None = None
    output: Json = None
    completed_at: EpochMs | None = None
    due_at: EpochMs | None = None
    worker: str | None = None
    fence: int = 0
    events: int = 0
    resumes: int = 0
    monitored: bool = False
    redrive_of: str | None = None
    reference: str | None = None
    key_id: str | None = None
    webhook_id: str | None = None
    callback_url: str | None = None
    parent_id: str | None = None
    parent_step: str | None = None
    secrets: tuple[str, ...] = ()
    concurrency_group: str | None = None
    chain_depth: int = 0
    trigger_id: str | None = None
    granted: Usage | None = None
    outputs_size: int = 0
    root_source: TriggerSource | None = None
    capabilities: tuple[str, ...] = ()
    failing: PendingFailure | None = None
    request_id: str | None = None
    trace: Trace | None = None
    version: int = 0

    @property
    def root_trigger(self) -> TriggerSource:
        """
        The trigger of the root of this family: the execution's own trigger, or the trigger that the
        parents passed down. WORKFLOW means unknown. EX-24.
        """
        return self.root_source or self.trigger_source

    @property
    def every_result(self) -> Iterator[StepResult]:
        """The results of earlier rounds, then the results of this round."""
        return chain(self.put_aside.values(), self.step_results.values())

    def rounds_of(self, key: str) -> tuple[StepResult, ...]:
        """The results of earlier rounds of the step with that key, the first round first."""
        found: list[StepResult] = []
        while self.put_aside and (aside := self.put_aside.get(aside_key(len(found) + 1, key))):
            found.append(aside)
        return tuple(found)

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The keys of the steps for which a process may be running now."""
        return tuple(name for name, result in self.step_results.items() if result.in_flight)

    @property
    def asks(self) -> bool:
        """Whether an approval of the execution is open. In the meantime other steps may run."""
        waiting = StepStatus.AWAITING_APPROVAL
        return any(result.status is waiting for result in self.step_results.values())

    @property
    def completed_steps(self) -> int:
        """
        The number of finished steps of the definition, including steps inside containers. FL-8.
        """
        return sum(
            result.steps
            for key, result in self.step_results.items()
            if result.status in ENDED and "." not in key
        )


class _UnreadResult(StepResult):
    """A result whose output, items or both are `Unread`."""

    output = cast("Json", property(lambda self: _read(self, "output")))
    items = cast("Json", property(lambda self: _read(self, "items")))
    __repr__ = object.__repr__
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__


class _UnreadExecution(Execution):
    """An execution whose output is `Unread`."""

    output = cast("Json", property(lambda self: _read(self, "output")))
    __repr__ = object.__repr__
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__


_UNREAD: Mapping[type[Any], type[Any]] = {StepResult: _UnreadResult, Execution: _UnreadExecution}
_ALL_READ = {unread: read for read, unread in _UNREAD.items()}


def _read(record: Any, name: str) -> Any:
    value = record.__dict__[name]
    if isinstance(value, Unread):
        raise NotRead(value.execution_id, value.key)
    return value


R = TypeVar("R", bound=StepResult | Execution)


def leaving_out(record: R, **values: Unread) -> R:
    """
    Returns *record* with these values marked as unread; reading an unread value raises `NotRead`.
    For stores.
    """
    if not values:
        return record
    found = type(record)
    copy = object.__new__(_UNREAD.get(found, found))
    object.__setattr__(copy, "__dict__", record.__dict__ | values)
    return cast("R", copy)


def left_out(record: StepResult | Execution) -> Mapping[str, Unread]:
    """The unread values of *record*, by field. Values of its step results are not included."""
    if type(record) not in _ALL_READ:
        return {}
    values = ((name, record.__dict__.get(name)) for name in ("output", "items"))
    return {name: value for name, value in values if isinstance(value, Unread)}


def aside_key(round: int, key: str) -> str:
    """The key under which the step's result of that round is put aside."""
    return f"{round}/{key}"


class CallbackStatus(StrEnum):
    """
    The state of a callback. PENDING: a call is due. DELIVERED: the receiver took it. FAILED: all
    attempts are used up.
    """

    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


@frozen
class Callback:
    """
    A message that is due to a caller. `id` is the execution's id, because an execution ends once.

    `due_at`: the earliest instant of the next attempt; None if the callback is delivered or given
    up. `key_id`: the key whose secret signs the message.
    """

    id: str
    url: str
    key_id: str | None
    created_at: EpochMs
    due_at: EpochMs | None
    status: CallbackStatus = CallbackStatus.PENDING
    attempts: int = 0
    last_error: str | None = None
    version: int = 0


@frozen
class Replay:
    """
    The first answer to an idempotency key.

    `scope`: the caller and the target. `key`: the client's header. `fingerprint`: a SHA-256 of the
    body; the same key with another body is a conflict.
    """

    scope: str
    key: str
    fingerprint: str
    execution_id: str
    created_at: EpochMs
    version: int = 0


if TYPE_CHECKING:
    from attrs import evolve as evolve  # so that names and types of the changes are checked
else:

    def evolve(record: R, **changes: Any) -> R:
        """
        A copy of *record*, of a `@frozen(slots=False)` class without converters, with *changes*.

        `attrs.evolve` asks the class for its fields and runs its whole `__init__`, which for an
        execution is a large part of a transition. A frozen class without slots has all its fields
        in one dictionary, and copying that dictionary copies the record.

        Raises `TypeError` for a name that is not a field.
        """
        fields = record.__dict__ | changes
        if len(fields) != len(record.__dict__):
            unknown = ", ".join(sorted(changes.keys() - record.__dict__.keys()))
            raise TypeError(f"{type(record).__name__} has no field {unknown}")
        made = type(record)
        if made in _ALL_READ and not any(isinstance(one, Unread) for one in fields.values()):
            made = _ALL_READ[made]
        copy = object.__new__(made)
        object.__setattr__(copy, "__dict__", fields)
        return copy
