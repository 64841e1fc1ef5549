"""
The activity of an open execution's steps, or the event for which they wait: one line for each open
step. XP-1.
"""

from collections.abc import Iterator, Sequence

from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Awaits, Execution, StepResult, StepStatus
from wfcore.model.explanation import Line, Why
from wfcore.model.review import Assurance
from wfcore.model.work import Listen
from wfcore.model.workflow import AiStep, CodeStep, Definition, Step
from wfcore.rules.approval.machine import approvers_now
from wfcore.rules.execution.scope import name_of
from wfcore.rules.explain.context import ExplanationContext
from wfcore.rules.explain.progress import begun_rounds
from wfcore.rules.masking import mask_text, secret_values
from wfcore.rules.phrase import instant_text, phrase
from wfcore.time import EpochMs, later


def steps(run: Execution, context: ExplanationContext) -> Iterator[Line]:
    """A line for each step that has begun and has not ended."""
    for name, result in run.step_results.items():
        if result.status is StepStatus.AWAITING_APPROVAL:
            yield _approval(name, result, context.approvals)
        elif result.status is StepStatus.RUNNING and result.retry_at is not None:
            yield _retrying(run, name, result)
        elif result.status is StepStatus.RUNNING:
            yield from _running(run, name, result, context)


def _running(
    run: Execution, name: str, result: StepResult, context: ExplanationContext
) -> Iterator[Line]:
    """The lines of a running step: its activity, or the event for which it waits."""
    match result.awaits:
        case None:
            yield _working(name, result, context)
            yield from _listening(name, context.definition)
            yield from _data(name, context.definition)
        case Awaits.TIME:
            yield Line(Why.STEP_DELAYED, _delayed(name, result.until), result.until, name)
        case Awaits.CHILD:
            yield _waiting_for_child(name, result, context)
        case Awaits.MAIL:
            yield _waiting_for_mail(name, result, context)
        case Awaits.STEPS:
            yield from _holding(run, name, result)


def _delayed(name: str, until: EpochMs | None) -> str:
    if until is None:
        return phrase("Step '{step}' waits until its end.", step=name)
    return phrase("Step '{step}' waits until {until}.", step=name, until=until)


def _waiting_for_child(name: str, result: StepResult, context: ExplanationContext) -> Line:
    child = next((one for one in context.children if one.id == result.child_id), None)
    if child is None:
        text = phrase(
            "Step '{step}' waits for the execution that it started{limit}.",
            step=name,
            limit=_limit(result),
        )
        return Line(Why.CHILD_RUNNING, text, result.until, name)
    text = phrase(
        "Step '{step}' waits for {execution} of '{workflow}', which is {status}{limit}.",
        step=name,
        execution=f"execution {child.id}",
        workflow=child.workflow_name,
        status=child.status,
        limit=_limit(result),
    )
    return Line(Why.CHILD_RUNNING, text, result.until, name, execution_id=child.id)


def _waiting_for_mail(name: str, result: StepResult, context: ExplanationContext) -> Line:
    mail = next((one for one in context.mails if one.about.get("step") == name), None)
    if mail is None or mail.last_error is None or mail.due_at is None:
        text = phrase(
            "Step '{step}' waits for a mail server to take its mail{limit}.",
            step=name,
            limit=_limit(result),
        )
        return Line(Why.MAIL_WAITING, text, result.until, name)
    text = phrase(
        "Attempt {count} to send the mail of step '{step}' failed ({error}); "
        "the next one starts at {until}.",
        count=mail.attempts,
        step=name,
        error=mail.last_error,
        until=mail.due_at,
    )
    return Line(Why.MAIL_WAITING, text, mail.due_at, name)


def _holding(run: Execution, name: str, result: StepResult) -> Iterator[Line]:
    """
    The facts about a container that its inner steps do not show: its rounds, and its timeout. FL-7.
    """
    if result.rounds is not None:
        text = phrase(
            "Loop '{step}' has begun {begun} of {all} rounds{limit}.",
            step=name,
            begun=begun_rounds(run, name),
            all=result.rounds,
            limit=_limit(result),
        )
        yield Line(Why.STEPS_RUNNING, text, result.until, name)
    elif result.until is not None:
        text = phrase("Step '{step}' goes on{limit}.", step=name, limit=_limit(result))
        yield Line(Why.STEPS_RUNNING, text, result.until, name)


def _limit(result: StepResult) -> str:
    if result.until is None:
        return ""
    return phrase("; its timeout ends it at {until}", until=result.until)


def _working(name: str, result: StepResult, context: ExplanationContext) -> Line:
    step = _timed(context.definition, name)
    if step is None or result.attempts > 1 or result.postponed:  # `started_at` is of the first one
        text = phrase(
            "Step '{step}' is running, attempt {count}.", step=name, count=result.attempts
        )
        return Line(Why.STEP_RUNNING, text, step_name=name)
    until = later(result.started_at, step.timeout_ms)
    text = phrase(
        "Step '{step}' is running, attempt {count}, since {since}; its timeout ends it at {until}.",
        step=name,
        count=result.attempts,
        since=result.started_at,
        until=until,
    )
    return Line(Why.STEP_RUNNING, text, until, step_name=name)


def _listening(name: str, definition: Definition | None) -> Iterator[Line]:
    """The lines about connections that a running step accepts. CS-20."""
    match _step(definition, name):
        case CodeStep(listen=Listen.LOOPBACK):
            text = phrase("Others on its machine may connect to step '{step}'.", step=name)
        case CodeStep(listen=Listen.ANY):
            text = phrase("Anybody on the network may connect to step '{step}'.", step=name)
        case _:
            return
    yield Line(Why.STEP_RUNNING, text, step_name=name)


def _data(name: str, definition: Definition | None) -> Iterator[Line]:
    """The lines about the data of a running step: files, state, and models. XP-1."""
    step = _step(definition, name)
    if isinstance(step, CodeStep) and step.files:
        text = phrase(
            "Step '{step}' reads the files of {others}.", step=name, others=", ".join(step.files)
        )
        yield Line(Why.STEP_RUNNING, text, step_name=name)
    if isinstance(step, CodeStep) and definition and definition.state:
        text = phrase("State that step '{step}' writes counts once it has completed.", step=name)
        yield Line(Why.STEP_RUNNING, text, step_name=name)
    if isinstance(step, AiStep) and step.fallback:
        text = phrase(
            "If the model of step '{step}' fails, these are asked in turn: {models}.",
            step=name,
            models=", ".join(step.fallback),
        )
        yield Line(Why.STEP_RUNNING, text, step_name=name)


def _retrying(run: Execution, name: str, result: StepResult) -> Line:
    assert result.retry_at is not None
    if result.error is None:
        text = phrase(
            "More budget was approved; step '{step}' starts at {until}.",
            step=name,
            until=result.retry_at,
        )
        return Line(Why.STEP_RETRYING, text, result.retry_at, step_name=name)
    error = mask_text(result.error, secret_values(run))
    if result.postponed:
        text = phrase(
            "Step '{step}' could not be started: {error}. Nothing of it has run; "
            "the next try is at {until}.",
            step=name,
            error=error,
            until=result.retry_at,
        )
        return Line(Why.STEP_POSTPONED, text, result.retry_at, step_name=name)
    text = phrase(
        "Attempt {count} of step '{step}' failed ({error}); the next one starts at {until}.",
        count=result.attempts,
        step=name,
        error=error,
        until=result.retry_at,
    )
    return Line(Why.STEP_RETRYING, text, result.retry_at, step_name=name)


def _approval(name: str, result: StepResult, approvals: Sequence[Approval]) -> Line:
    found = (one for one in approvals if one.id == result.approval_id)
    approval = next((one for one in found if one.status is ApprovalStatus.PENDING), None)
    if approval is None:
        text = phrase(
            "Step '{step}' waits for a decision on approval {approval}.",
            step=name,
            approval=result.approval_id,
        )
        return Line(Why.AWAITING_APPROVAL, text, None, name, result.approval_id)
    told = (  # a page says this in words of its own, from the fields of the line
        f"Step '{name}' waits for a decision on approval {result.approval_id}"
        f" by {_approvers(approval)}{_so_far(approval)}. Without one it counts as rejected at "
        f"{instant_text(approval.expires_at)}, and the execution is CANCELLED."
        f"{_by_passkey(approval)}"
    )
    return Line(
        Why.AWAITING_APPROVAL,
        told,
        approval.expires_at,
        name,
        approval.id,
        approvers=approvers_now(approval),
        given=len(approval.assents),
        required=approval.required_approvals,
    )


def _approvers(approval: Approval) -> str:
    """The people who may decide now, in words. AP-10, AP-33."""
    if asked := approvers_now(approval):
        return " or ".join(asked)
    return "the workflow's owner, the execution's owner or somebody with EDIT on the workflow"


def _so_far(approval: Approval) -> str:
    """The number of approvals so far, if several are required. AP-15, AP-18."""
    words = "" if approval.allow_self_approval else ", but not by who started it"
    if approval.required_approvals == 1:
        return words
    names = "".join(f" ({one.by})" for one in approval.assents)
    count = f"{len(approval.assents)} of {approval.required_approvals} approvals are there{names}"
    return f"{words}; {count}"


def _by_passkey(approval: Approval) -> str:
    """The passkey that approving takes, which programs do not have. SR-6."""
    if approval.assurance is not Assurance.PASSKEY:
        return ""
    return " It is approved with a passkey, by a person at its page."


def _timed(definition: Definition | None, name: str) -> CodeStep | AiStep | None:
    """
    The step if its timeout counts from its record; packages of other steps may be installed first.
    """
    step = _step(definition, name)
    if isinstance(step, CodeStep) and step.needs is not None:
        return None
    return step if isinstance(step, CodeStep | AiStep) else None


def _step(definition: Definition | None, name: str) -> Step | None:
    try:
        return definition.step(name_of(name)) if definition else None
    except KeyError:
        return None
