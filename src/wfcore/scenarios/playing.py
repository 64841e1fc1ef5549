"""
Plays one scenario: the real use cases over a store in memory, with a virtual clock.

When nothing is left to do at an instant, the clock advances to the next instant at which something
happens: a step ends, a delay ends, a person decides, an approval expires. So a month takes no
longer than a second, and a scenario always plays the same way.

Child workflows whose definitions are not given are replaced by a single step that uses the stub of
the step that starts them: `retry`, `timeout` and failures of that step are handled by the real
engine.
"""

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from wfcore.errors import InvalidInput, WfError
from wfcore.memory import Disk, MemoryCounters, MemoryFiles, MemoryStore
from wfcore.memory.disk import Changes, Rows
from wfcore.memory.tables import APPROVALS, EXECUTIONS, NOTICES
from wfcore.memory.virtual import (
    CountingIds,
    CountingTokens,
    ManualClock,
    NotedEnvironments,
    PlainPasswords,
)
from wfcore.model.access import OPERATOR, Account, AccountStatus, Permission, Principal, Tier
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.execution import Execution, TriggerSource
from wfcore.model.json import JsonObject
from wfcore.model.notice import Notice, NoticeKind
from wfcore.model.passkey import Assertion, Passkey
from wfcore.model.trigger import Schedule
from wfcore.model.workflow import Assurance, ChildStep, CodeStep, Definition, Language
from wfcore.ports.notices import NoticeRefused, Receipt
from wfcore.ports.runtime import AiJob, Job, LeftFile, StepEnd
from wfcore.ports.system import Calendar, Templates
from wfcore.rules.approval.machine import Approve
from wfcore.rules.approval.people import ANYBODY
from wfcore.rules.approval.receipts import statement_of
from wfcore.rules.auth.passkeys import NonceUse
from wfcore.rules.definition.values import MAX_DURATION
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.scope import name_of
from wfcore.rules.receipt import statement_digest
from wfcore.scenarios.document import (
    Given,
    GivenLike,
    GivenRedrive,
    Scenario,
    ScenarioDecision,
    Sequel,
    StartedBy,
    Stub,
)
from wfcore.scenarios.triggering import start_by_facts
from wfcore.scenarios.virtual_worker import Ending, NotedMoves, VirtualWorker, at_once, done
from wfcore.time import DAY, DurationMs, EpochMs, later
from wfcore.usecases.accounts.accounts import set_secret
from wfcore.usecases.accounts.groups import create_group
from wfcore.usecases.accounts.passkeys import Confirmed, give_nonce
from wfcore.usecases.approvals.deciding import Decide, decide_approval, weigh
from wfcore.usecases.approvals.expiry import expire_due, remind_due
from wfcore.usecases.executions.redriving import Redrive, preview_redrive, redrive
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.notices.sending import settle_notice, take_notice
from wfcore.usecases.services import Policy, Services
from wfcore.usecases.state import state_of
from wfcore.usecases.upkeep.sweeping import next_deadline
from wfcore.usecases.workflows.firing import fire_due
from wfcore.usecases.workflows.state import set_state
from wfcore.usecases.workflows.triggers import following_of
from wfcore.usecases.workflows.workflows import apply_workflow, share_workflow
from wfcore.wire.decisions import command

R = TypeVar("R")

OWNER = "owner@example.org"
"""The owner of the workflows, who also starts the execution if the scenario names nobody."""
STAND_IN = "stand_in"
_UNKNOWN_TYPE = "application/octet-stream"
_VIRTUAL = "virtual"
"""The id of the passkey that everybody has here."""
MOST_ROUNDS = 20_000
_POLICY = Policy(
    lease_ms=DurationMs(36_500 * DAY),
    places=1_000,
    channels=frozenset({"mail"}),
    gate_approvers=frozenset({ANYBODY}),
    mail_to=frozenset({ANYBODY}),
)


@frozen
class ScenarioParts:
    """The ports with which definitions are evaluated."""

    templates: Templates
    calendar: Calendar


@frozen
class StubAttempt:
    """An attempt of a step. `key`: the step's name in the scenario."""

    key: str
    job: Job


@frozen
class ScenarioRun:
    """
    The result of one execution of a scenario. `run` None: nothing was started; `refused` gives the
    reason. `plan`: of a redrive, the fates of its steps.

    `approvals`: the approvals in the order of opening, each at its opening and at the end.
    `notices`: the notices of all executions, in the order of writing. `mails`: the mails of steps,
    in the order of sending, each with the names of its files. `keys`: for each execution,
    the prefix of its steps in the scenario. `state`: the values of the workflow's state at
    the end. `problems`: mistakes of the scenario itself.
    """

    started_at: EpochMs
    run: Execution | None = None
    refused: str | None = None
    attempts: tuple[StubAttempt, ...] = ()
    approvals: tuple[tuple[Approval, Approval], ...] = ()
    notices: tuple[Notice, ...] = ()
    mails: tuple[tuple[Notice, tuple[str, ...]], ...] = ()
    keys: Mapping[str, str] = field(factory=dict)
    next_fires: tuple[EpochMs, ...] = ()
    zone: str = "UTC"
    state: JsonObject = field(factory=dict)
    plan: JsonObject = field(factory=dict)
    problems: tuple[str, ...] = ()


@frozen
class _Played:
    """The numbers of what the executions before have left."""

    attempts: int = 0
    approvals: int = 0
    notices: int = 0
    mails: int = 0


def play(
    scenario: Scenario,
    definition: Definition,
    others: Sequence[Definition],
    parts: ScenarioParts,
    newest: Mapping[str, Definition] | None = None,
) -> Sequence[ScenarioRun]:
    """
    Play *scenario*, and return the result of its execution, then of each execution that repeats it.
    *others*: the given definitions of workflows that *definition* starts. *newest*: the definitions
    of redrives by their paths.
    """
    stage = _Stage(scenario, definition, others, parts)
    return (stage.play(), *(stage.repeat(one, newest or {}) for one in scenario.then))


class _Stage:
    """The environment in which one scenario is played, once."""

    def __init__(
        self,
        scenario: Scenario,
        definition: Definition,
        others: Sequence[Definition],
        parts: ScenarioParts,
    ) -> None:
        self._scenario = scenario
        self._definition = definition
        self._others = others
        self._clock = ManualClock(scenario.at)
        hints = NotedMoves()
        self._services = Services(
            store=MemoryStore(at_once, Disk(watch=self._noted), now=self._clock.service_now),
            counters=MemoryCounters(at_once),
            files=MemoryFiles(),
            clock=self._clock,
            ids=CountingIds(),
            tokens=CountingTokens(),
            passwords=PlainPasswords(),
            templates=parts.templates,
            wakeup=hints,
            signing_key=b"scenario" * 4,
            policy=_POLICY,
            calendar=parts.calendar,
            environments=NotedEnvironments(),
        )
        self._main = ""
        self._commits = 0
        self._runs: dict[str, Execution] = {}
        self._opened: dict[str, Approval] = {}
        self._approvals: dict[str, Approval] = {}
        self._notices: dict[str, Notice] = {}
        self._mails: list[tuple[Notice, tuple[str, ...]]] = []
        self._posts: dict[str, EpochMs] = {}
        self._worker = VirtualWorker(self._services, hints, self._started)
        self._stand_ins: set[str] = set()
        self._people: dict[str, Principal] = {}
        self._stubs = scenario.steps
        self._decisions = list(scenario.decisions)
        self._attempts: list[StubAttempt] = []
        self._problems: list[str] = []
        self._played = _Played()

    def _noted(self, tables: Mapping[str, Rows], changes: Changes) -> None:
        """Records every change of the store before the change is made."""
        self._commits += 1
        self._runs.update(_kept(changes, EXECUTIONS.name))
        self._approvals.update(_kept(changes, APPROVALS.name))
        self._opened = {**self._approvals, **self._opened}
        self._notices.update(_kept(changes, NOTICES.name))

    def play(self) -> ScenarioRun:
        fires, zone = self._next_fires(len(self._scenario.expect.get("nextFires", ())))
        told = ScenarioRun(self._now(), next_fires=fires, zone=zone)
        if not set(self._scenario.expect) - {"nextFires"} and not self._scenario.then:
            return told
        try:
            self._begin()
        except WfError as refusal:
            return evolve(told, refused=_words(refusal))
        return self._ended(told)

    def repeat(self, sequel: Sequel, newest: Mapping[str, Definition]) -> ScenarioRun:
        """Play an execution that repeats the one before."""
        self._stubs = {**self._stubs, **sequel.steps}
        self._decisions, self._problems = list(sequel.decisions), []
        self._played = _Played(
            *map(len, (self._attempts, self._opened, self._notices, self._mails))
        )
        told = ScenarioRun(self._now())
        if not self._main:
            return evolve(told, refused="there is no execution before")
        try:
            if sequel.redrive:
                told = evolve(told, plan=self._redrive(sequel.redrive, newest))
            else:
                self._start(
                    self._starter(), self._runs[self._main].workflow_id, sequel.like or GivenLike()
                )
        except WfError as refusal:
            return evolve(told, refused=_words(refusal))
        return self._ended(told)

    def _redrive(self, given: GivenRedrive, newest: Mapping[str, Definition]) -> JsonObject:
        """Redrive the execution before, and return the plan: the fate of each step. EX-35."""
        if given.definition is not None:
            self._definition = newest[given.definition]
            self._apply(self._person(OWNER), evolve(self._definition, triggers=()))
        wanted = Redrive(given.start, given.definition is not None, given.inputs)
        who, old = self._starter(), self._main
        plan = done(preview_redrive(self._services, who, old, wanted)).plan
        self._main = done(redrive(self._services, who, old, wanted)).execution_id
        return {one.key: one.fate.value for one in plan.steps}

    def _ended(self, told: ScenarioRun) -> ScenarioRun:
        """Play the execution that has begun to its end."""
        self._run()
        self._problems += (
            f"{one.decision.value} of {one.step}: no such approval was open then"
            for one in self._decisions
        )
        run, before = self._runs[self._main], self._played
        approvals = zip(self._opened.values(), self._approvals.values(), strict=True)
        notices = list(self._notices.values())[before.notices :]
        return evolve(
            told,
            started_at=run.accepted_at,
            run=run,
            attempts=tuple(self._attempts[before.attempts :]),
            approvals=tuple(approvals)[before.approvals :],
            notices=tuple(one for one in notices if not _is_mail(one)),
            mails=tuple(self._mails[before.mails :]),
            keys={id: self._prefix(id) for id in self._runs},
            state=done(self._state(run.workflow_id)),
            problems=tuple(self._problems),
        )

    async def _state(self, workflow_id: str) -> JsonObject:
        async with self._services.store.view() as view:
            return (await state_of(view, workflow_id, self._definition)).values

    def _now(self) -> EpochMs:
        return self._clock.service_now()

    def _next_fires(self, wanted: int) -> tuple[tuple[EpochMs, ...], str]:
        """The next instants at which a schedule starts the workflow, and the zone of the first."""
        specs = [one for one in self._definition.triggers if isinstance(one, Schedule)]
        found: list[EpochMs] = []
        for spec in specs:
            next_after, at = following_of(self._services, spec), self._now()
            for _ in range(wanted):
                fires = next_after(at)
                if fires is None:
                    break
                found.append(at := fires)
        return tuple(sorted(found)[:wanted]), specs[0].timezone if specs else "UTC"

    def _begin(self) -> None:
        """
        Create all accounts and workflows, then start the execution. Raises the refusals of the
        service.
        """
        owner = self._person(OWNER)
        given, known = self._scenario.given, {self._definition.name}
        for name, members in given.groups.items():
            done(create_group(self._services, OPERATOR, name, members))
        for other in (*self._others, *_stand_ins((self._definition, *self._others))):
            known.add(other.name)
            workflow = self._apply(owner, evolve(other, triggers=()))
            if other.steps[0].name == STAND_IN:
                self._stand_ins.add(workflow)
        by_schedule = given.start is StartedBy.SCHEDULE
        kept = tuple(one for one in self._definition.triggers if isinstance(one, Schedule))
        main = self._apply(owner, evolve(self._definition, triggers=kept if by_schedule else ()))
        if given.state:
            done(set_state(self._services, OPERATOR, main, given.state))
        if by_schedule:
            self._wait_for_schedule()
            return
        if given.trigger is not None:
            self._main = done(
                start_by_facts(self._services, self._definition, main, given.trigger, given.inputs)
            )
            return
        starter = self._starter()
        if starter.account.id != owner.account.id:
            share = share_workflow(
                self._services, OPERATOR, main, starter.account.id, Permission.EXECUTE
            )
            done(share)
        self._start(starter, main, given)

    def _starter(self) -> Principal:
        return self._person(self._scenario.given.by or OWNER)

    def _start(self, starter: Principal, workflow: str, given: Given | GivenLike) -> None:
        by_hand = self._scenario.given.start is StartedBy.HAND
        source = TriggerSource.MANUAL if by_hand else TriggerSource.OPEN_API
        like = self._main or None
        started = start_execution(
            self._services, starter, workflow, given.inputs, source=source, like=like
        )
        self._main = done(started).execution_id

    def _apply(self, owner: Principal, definition: Definition) -> str:
        secrets = self._scenario.given.secrets
        for name in {name for step in definition.walk() for name in getattr(step, "secrets", ())}:
            value = secrets.get(name, f"made-up-{name}")
            done(set_secret(self._services, OPERATOR, owner.account.id, name, value))
        return done(apply_workflow(self._services, owner.account.id, definition)).id

    def _wait_for_schedule(self) -> None:
        """Let time pass until a schedule has started the workflow."""
        while not self._main:
            at = done(next_deadline(self._services))
            if at is None:
                raise InvalidInput("given.start", "no schedule of this definition ever fires")
            self._clock.advance(max(at - self._now(), 0))
            for fired in done(fire_due(self._services)):
                if fired.execution_id is None:
                    raise InvalidInput(
                        "given.start", f"the schedule starts nothing: {fired.refusal}"
                    )
                self._main = fired.execution_id

    def _person(self, name: str) -> Principal:
        """The account for a name: an email or an id, as in `approvers`."""
        key = name.strip().lower()
        if key not in self._people:
            made_up = f"acc_{key.replace('@', '.')}"  # what has an @ would be taken for an email
            id, email = (made_up, key) if "@" in key else (name, f"{key}@example.org")
            account = Account(id, email, Tier.ENTERPRISE, AccountStatus.ACTIVE, self._now())
            done(self._stored(account))
            self._people[key] = Principal(account)
        return self._people[key]

    async def _stored(self, record: object) -> None:
        async with self._services.store.unit() as unit:
            unit.put(record)
            await unit.commit()

    def _run(self) -> None:
        """Play until the execution has ended or nothing can continue it."""
        for _ in range(MOST_ROUNDS):
            before = self._commits, len(self._decisions)
            self._round()
            if self._runs[self._main].status in EXECUTION.final:
                return
            if before != (self._commits, len(self._decisions)):
                continue
            at = min(self._instants(), default=None)
            if at is None:
                return
            self._clock.advance(at - self._now())
        self._problems.append(f"still runs after {MOST_ROUNDS} rounds")

    def _round(self) -> None:
        """Do everything that is due at this instant, once."""
        done(expire_due(self._services))
        done(remind_due(self._services))
        self._worker.work()
        self._post()
        for approval in [one for one in self._approvals.values() if _open(one)]:
            self._decide(approval)

    def _instants(self) -> Iterator[EpochMs]:
        """The future instants at which something is due."""
        now = self._now()
        known = [done(next_deadline(self._services)), *self._worker.instants()]
        known += self._posts.values()
        for approval in filter(_open, self._approvals.values()):
            decision = self._decision_about(approval)
            known.append(later(approval.created_at, decision.after_ms) if decision else None)
        return (at for at in known if at is not None and at > now)

    def _post(self) -> None:
        """
        Answer the mails of steps: a mail server takes each at once, or as the stub of its step
        says. ML-7.
        """
        for mail in [one for one in self._notices.values() if _is_mail(one) and one.due_at]:
            key = self._prefix(mail.subject) + str(mail.about["step"])
            stub = self._stub(key, 1) or Stub()
            at = self._posts.setdefault(mail.id, later(mail.created_at, stub.takes_ms))
            if at > self._now():
                continue
            sending = done(take_notice(self._services, mail.id))
            if sending is None:
                continue
            if stub.fails is None:
                self._mails.append((mail, tuple(one.name for one in sending.files)))
            outcome = NoticeRefused(stub.fails) if stub.fails else Receipt("taken")
            done(settle_notice(self._services, sending, outcome))

    def _started(self, job: Job) -> Ending:
        """
        The end of an attempt according to its stub; an attempt without a stub fails and is
        reported.
        """
        key, attempt = self._prefix(job.execution_id) + job.step_name, job.attempt
        run = self._runs[job.execution_id]
        if run.workflow_id in self._stand_ins and run.parent_id and run.parent_step:
            parent = self._runs[run.parent_id]
            key = self._prefix(parent.id) + run.parent_step
            attempt = parent.step_results[run.parent_step].attempts
        self._attempts.append(StubAttempt(key, job))
        stub = self._stub(key, attempt)
        if stub is None:
            self._problems.append(f"{key} ran and has no stub; say under steps what it gives")
            stub = Stub(fails="it has no stub")
        timeout = job.step.timeout_ms
        if stub.takes_ms >= timeout:
            error = f"ran into its timeout of {timeout / 1_000:g} s"
            return Ending(timeout, StepEnd(error=error, timed_out=True, usage=stub.usage))
        output = None if stub.fails else stub.output
        model = self._model(key, job, stub)
        files = tuple(self._left(run.id, name) for name in stub.files)
        end = StepEnd(
            output, stub.fails, files=files, usage=stub.usage, model=model, state=stub.state
        )
        return Ending(stub.takes_ms, end)

    def _model(self, key: str, job: Job, stub: Stub) -> str | None:
        """The model that answers; by default the first one. AI-11."""
        if not isinstance(job, AiJob) or not job.step.fallback or stub.fails:
            return None
        if stub.model is not None and stub.model not in job.step.models:
            known = ", ".join(job.step.models)
            self._problems.append(f"{key}: asks no model {stub.model}; it asks {known}")
        return stub.model or job.step.model

    def _left(self, execution_id: str, name: str) -> LeftFile:
        """An empty file that a step leaves."""
        id = self._services.ids.new("art", self._now())
        stored = done(self._services.files.store(execution_id, id, BytesIO()))
        return LeftFile(id, name, stored.storage_key, 0, _UNKNOWN_TYPE, stored.sha256, False)

    def _stub(self, key: str, attempt: int) -> Stub | None:
        """
        The stub of an attempt, by the step's key or by the step's name in any round of a loop; the
        last stub repeats.
        """
        where, _, step = key.rpartition("/")
        in_any_round = "/".join(map(name_of, key.split("/")))
        names = (key, f"{where}/{name_of(step)}", in_any_round)
        stubs = next((self._stubs[name] for name in names if name in self._stubs), None)
        return stubs[min(attempt, len(stubs)) - 1] if stubs else None

    def _prefix(self, execution_id: str) -> str:
        """The prefix of an execution's step keys: the steps that led to the execution."""
        run = self._runs[execution_id]
        if run.parent_id is None:
            return ""
        return f"{self._prefix(run.parent_id)}{run.parent_step}/"

    def _decision_about(self, approval: Approval) -> ScenarioDecision | None:
        """The scenario's next decision about the approval."""
        key = self._prefix(approval.execution_id) + approval.step_name
        names = (key, name_of(key))
        return next((one for one in self._decisions if one.step in names), None)

    def _decide(self, approval: Approval) -> None:
        decision = self._decision_about(approval)
        if decision is None or later(approval.created_at, decision.after_ms) > self._now():
            return
        self._decisions.remove(decision)
        who = self._person(decision.by) if decision.by else self._next_approver(approval)
        verdict = command(decision.decision, decision.rows, decision.answers)
        asked = Decide(approval.id, verdict, DecisionSource.API, decision.comment)
        said = f"{decision.decision.value} of {decision.step} by {who.account.email}"
        try:
            asked = self._confirmed(who, asked)
            done(decide_approval(self._services, who, asked))
        except WfError as refusal:
            if not decision.refused:
                self._problems.append(f"{said}: refused: {_words(refusal)}")
        else:
            if decision.refused:
                self._problems.append(f"{said}: was not refused")

    def _confirmed(self, who: Principal, asked: Decide) -> Decide:
        """
        The decision, confirmed by a virtual passkey where the approval asks for one. Its signature
        is empty: nobody verifies it here. SR-1.
        """
        if not isinstance(asked.decision, Approve):
            return asked
        after = done(weigh(self._services, who, asked))
        if after.assurance is not Assurance.PASSKEY:
            return asked
        nonce = done(give_nonce(self._services, NonceUse.APPROVE, who.account.id))
        passkey = Passkey(_VIRTUAL, _VIRTUAL, "", 0, _VIRTUAL, EpochMs(0))
        answer = Assertion(nonce.token, passkey.id, "", "", "")
        at, id = nonce.given_at, who.account.id
        statement = statement_of(after, asked.comment, id, passkey, at, nonce.token)
        digests = (statement_digest(statement),)
        return evolve(asked, confirmed=Confirmed(who.account, passkey, nonce, answer, digests))

    def _next_approver(self, approval: Approval) -> Principal:
        """The first approver who has not approved; the owner if no approvers are named."""
        people = [self._person(name) for name in approval.approvers] or [self._person(OWNER)]
        gave = {one.account for one in approval.assents}
        return next((one for one in people if one.account.id not in gave), people[0])


def _kept(changes: Changes, table: str) -> dict[Any, Any]:
    return {key: one for key, one in changes.get(table, {}).items() if one is not None}


def _is_mail(notice: Notice) -> bool:
    return notice.kind is NoticeKind.STEP_MAIL


def _open(approval: Approval) -> bool:
    return approval.status is ApprovalStatus.PENDING


def _words(refusal: WfError) -> str:
    if isinstance(refusal, InvalidInput):
        return f"{refusal.field}: {refusal.fix}" if refusal.field else refusal.fix
    return str(refusal)


def _stand_ins(definitions: Sequence[Definition]) -> Iterator[Definition]:
    """A stand-in for every workflow that a step starts and that is not given."""
    there = {one.name for one in definitions}
    steps = (step for one in definitions for step in one.walk())
    names = [step.workflow for step in steps if isinstance(step, ChildStep)]
    written: JsonObject = {
        "name": STAND_IN,
        "kind": "code",
        "language": "command",
        "command": [STAND_IN],
        "timeout": MAX_DURATION,
    }
    step = CodeStep(STAND_IN, Language.COMMAND, command=(STAND_IN,), timeout_ms=MAX_DURATION)
    for name in dict.fromkeys(names):
        if name not in there:
            yield Definition(name, (step,), (written,))
