"""Opening an approval: the question of a `manual_approval` step, with its rows. AP-1."""

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from wfcore.effects import Effect, OpenApproval, Outcome
from wfcore.errors import TemplateFailed
from wfcore.model.approval import Approval, ApprovalStatus, Group, HistoryEntry, Purpose
from wfcore.model.execution import Execution, StepStatus
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import AiStep, ApprovalStep, Definition, GroupSpec, Stage
from wfcore.rules.approval.machine import names_of
from wfcore.rules.approval.people import (
    GROUP_MARK,
    Groups,
    People,
    expanded,
    given_names,
    is_template,
)
from wfcore.rules.approval.released_rows import key_text
from wfcore.rules.execution.redrive import revisions_of
from wfcore.rules.execution.scope import name_of
from wfcore.rules.limits import MAX_APPROVAL_ROWS
from wfcore.rules.markdown import escaped
from wfcore.rules.masking import Secrets, mask, mask_text, secret_values
from wfcore.rules.variables import compact
from wfcore.time import DAY, EpochMs, later

FillText = Callable[[str, Callable[[str], str]], str]
"""Renders a text; the second argument transforms each text that is inserted."""
NO_GROUPS: Groups = {}


def open_approval(
    run: Execution,
    step: ApprovalStep,
    key: str,
    approval_id: str,
    now: EpochMs,
    fill: Callable[[Json], Json],
    fill_rows: Callable[[Json], Json] | None = None,
    groups: Groups = NO_GROUPS,
    people: People | None = None,
    fill_text: FillText | None = None,
) -> Approval:
    """
    A PENDING approval for *step*. *fill* renders its message now, and *fill_rows* its rows (None:
    *fill* renders the rows, too). Message and rows are masked: the execution continues with the
    rows that the reviewer saw, so the rows hold no secret either. SC-1. *people*: decides which
    names from data count; None: all names. AP-41. *fill_text* renders the message with a
    transformation of each inserted text; None: the message is plain text. MD-3.

    Raises `UnreadPeople`. Raises `TemplateFailed`, also if no approver is left, if the rows are not
    a list of objects, or a row key is missing or repeated, since a reviewer could not refer to such
    rows.
    """
    secrets, fill_rows = secret_values(run), fill_rows or fill
    named = _Named(lambda text: mask(fill(text), secrets), groups, people)
    message = mask_text(as_text(fill(step.message)), secrets)
    stages = tuple(
        evolve(stage, approvers=named.names(f"stages[{at}].approvers", stage.approvers), when=None)
        for at, stage in enumerate(step.stages)
        if stage.when is None or fill(stage.when)
    )
    return Approval(
        id=approval_id,
        execution_id=run.id,
        workflow_id=run.workflow_id,
        workflow_owner_id=run.workflow_owner_id,
        owner_id=run.owner_id,
        step_name=key,
        reference=run.reference,
        status=ApprovalStatus.PENDING,
        message=message,
        question=question_of(step.message, message, secrets, fill_text),
        timeout_ms=step.timeout_ms,
        created_at=now,
        expires_at=later(now, step.timeout_ms),
        approvers=names_of(stages[:1]) if stages else named.names("approvers", step.approvers),
        groups=tuple(group_of(spec, mask(fill_rows(spec.rows), secrets)) for spec in step.groups),
        history=(HistoryEntry(now, "created"),),
        required_approvals=_required(step, stages),
        stages=stages,
        humans=step.humans,
        delegable=step.delegable,
        escalate_at=later(now, step.escalate.after_ms) if step.escalate else None,
        escalate_to=named.names("escalate.to", step.escalate.to) if step.escalate else (),
        allow_self_approval=step.allow_self_approval,
        reminders=_reminders(step, now),
        assurance=step.assurance,
        links=step.links,
        notify=step.notify,
        fields=step.fields,
        round=len(run.rounds_of(key)) + 1,
        revise_to=step.on_revise.goto if step.on_revise else None,
        revisions_left=step.on_revise.max - revisions_of(run, key) if step.on_revise else 0,
    )


@frozen
class _Named:
    """The rule by which entries of `approvers` become names as the approval opens. AP-34, AP-41."""

    fill: Callable[[Json], Json]
    groups: Groups
    people: People | None

    def names(self, where: str, entries: Sequence[str]) -> tuple[str, ...]:
        """
        The names, each once; a name from data only if it counts. Raises `UnreadPeople`;
        `TemplateFailed` if no name is left.
        """
        found = [one for entry in entries for one in self._of(where, entry)]
        if entries and not found:
            raise TemplateFailed(where, "names nobody who can decide")
        return tuple(dict.fromkeys(found))

    def _of(self, where: str, entry: str) -> Sequence[str]:
        if not is_template(entry):
            return expanded(where, entry, self.groups, self.people)
        given, found = given_names(where, self.fill(entry)), list[str]()
        if self.people is not None:
            self.people.require(name for name in given if not name.startswith(GROUP_MARK))
        for name in given:
            if name.startswith(GROUP_MARK):
                found += expanded(where, name, self.groups, self.people)
            elif self.people is None or self.people.admits(name):
                found.append(name)
        return found


def question_of(
    written: str, message: str, secrets: Secrets, fill_text: FillText | None
) -> str | None:
    """
    The Markdown of a *message*, each inserted text masked and escaped by itself. None if that would
    show a secret that several texts form together. MD-3, SC-1.
    """
    if fill_text is None:
        return None
    apart = fill_text(written, lambda text: mask_text(text, secrets))
    if apart != message:
        return None
    return fill_text(written, lambda text: escaped(mask_text(text, secrets)))


def _required(step: ApprovalStep, stages: tuple[Stage, ...]) -> int:
    """The number of approvals that will be required in the end, as far as it is known."""
    of_stages = sum(stage.required_approvals for stage in stages)
    return max(of_stages or step.required_approvals, step.humans)


def _reminders(step: ApprovalStep, now: EpochMs) -> tuple[EpochMs, ...]:
    """The instants of reminders, in order; none before the approval is open. AP-20."""
    before = sorted(set(step.reminders), reverse=True)
    return tuple(later(now, step.timeout_ms - one) for one in before if one < step.timeout_ms)


BUDGET_TIMEOUT = DAY


def ask_for_budget(
    run: Execution, step_name: str, why: str, approval_id: str, now: EpochMs
) -> Approval:
    """A PENDING approval that grants *run* its budget once more. BU-2."""
    message = f"{step_name}: {why}. Approving allows as much again; rejecting cancels."
    return Approval(
        id=approval_id,
        execution_id=run.id,
        workflow_id=run.workflow_id,
        workflow_owner_id=run.workflow_owner_id,
        owner_id=run.owner_id,
        step_name=step_name,
        reference=run.reference,
        status=ApprovalStatus.PENDING,
        message=message,
        timeout_ms=BUDGET_TIMEOUT,
        created_at=now,
        expires_at=later(now, BUDGET_TIMEOUT),
        history=(HistoryEntry(now, "created"),),
        purpose=Purpose.BUDGET,
    )


def open_budget_question(run: Execution, definition: Definition) -> str | None:
    """
    The id of the open approval for more budget; None if no step has opened such an approval. All
    steps share the approval, because the budget is the execution's. BU-4.
    """
    for key, result in run.step_results.items():
        waits = result.status is StepStatus.AWAITING_APPROVAL
        if waits and isinstance(definition.step(name_of(key)), AiStep):
            return result.approval_id
    return None


def as_text(value: Json) -> str:
    """A rendered text; for a template that is the whole string and gave another type, its JSON."""
    return value if isinstance(value, str) else compact(value)


def group_of(spec: GroupSpec, rows: Json) -> Group:
    """
    The group with these rows. Raises `TemplateFailed` for rows to which a reviewer could not refer.
    """
    where = f"groups.{spec.name}.rows"
    if not isinstance(rows, list | tuple):
        raise TemplateFailed(where, "must give a list of rows")
    if len(rows) > MAX_APPROVAL_ROWS:
        raise TemplateFailed(where, f"gives {len(rows)} rows; at most {MAX_APPROVAL_ROWS}")
    items: list[JsonObject] = []
    keys: set[str] = set()
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise TemplateFailed(where, f"row {number} is no object")
        if spec.row_key is not None:
            key = key_text(row.get(spec.row_key))
            if row.get(spec.row_key) is None or key in keys:
                raise TemplateFailed(where, f"row {number}: {spec.row_key} is missing or repeated")
            keys.add(key)
        items.append(row)
    return Group(spec.name, spec.title, spec.columns, tuple(items), spec.row_key, spec.allow_add)


def by_the_calendar(outcome: Outcome[Execution], by_ms: int) -> Outcome[Execution]:
    """
    The outcome, with the times of the approvals that open moved by *by_ms*: from the work clock to
    the clock with which deadlines are compared. The work clock may be ahead after the wall clock
    was set back. AP-1, EX-30.
    """
    if not by_ms:
        return outcome
    return evolve(outcome, effects=tuple(_moved(effect, by_ms) for effect in outcome.effects))


def _moved(effect: Effect, by_ms: int) -> Effect:
    if not isinstance(effect, OpenApproval):
        return effect
    one = effect.approval
    moved = evolve(
        one,
        created_at=later(one.created_at, by_ms),
        expires_at=later(one.expires_at, by_ms),
        reminders=tuple(later(at, by_ms) for at in one.reminders),
        escalate_at=None if one.escalate_at is None else later(one.escalate_at, by_ms),
        history=tuple(evolve(entry, at=later(entry.at, by_ms)) for entry in one.history),
        assents=tuple(evolve(given, at=later(given.at, by_ms)) for given in one.assents),
        decided_at=None if one.decided_at is None else later(one.decided_at, by_ms),
    )
    return evolve(effect, approval=moved)
