"""
What the steps of an open execution are doing or waiting for, one line for each that is open. XP-1.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from attrs import frozen

from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Awaits, Execution, StepResult, StepStatus
from wfcore.model.explanation import Line, Why
from wfcore.model.workflow import AiStep, CodeStep, Definition
from wfcore.rules.execution.scope import name_of
from wfcore.rules.masking import mask_text, secret_values
from wfcore.time import EpochMs, later


@frozen
class Known:
    """What is known around an execution and may be shown to the caller. XP-2."""

    definition: Definition | None = None
    approvals: Sequence[Approval] = ()
    children: Sequence[Execution] = ()


def steps(run: Execution, known: Known) -> Iterator[Line]:
    """A line for each step that has begun and has not ended."""
    for name, result in run.step_results.items():
        if result.status is StepStatus.AWAITING_APPROVAL:
            yield _approval(name, result, known.approvals)
        elif result.status is StepStatus.RUNNING and result.retry_at is not None:
            yield _retrying(run, name, result)
        elif result.status is StepStatus.RUNNING:
            yield from _running(run, name, result, known)


def _running(run: Execution, name: str, result: StepResult, known: Known) -> Iterator[Line]:
    """What is running, or what the step waits for."""
    match result.awaits:
        case None:
            yield _working(name, result, known)
        case Awaits.TIME:
            end = said(result.until) if result.until is not None else "its end"
            yield Line(Why.STEP_DELAYED, f"Step '{name}' waits until {end}.", result.until, name)
        case Awaits.CHILD:
            yield _waiting_for_child(name, result, known)
        case Awaits.STEPS:
            yield from _holding(run, name, result)


def _waiting_for_child(name: str, result: StepResult, known: Known) -> Line:
    child = next((one for one in known.children if one.id == result.child_id), None)
    what = (
        f"execution {child.id} of '{child.workflow_name}', which is {child.status}"
        if child is not None
        else "the execution that it started"
    )
    text = f"Step '{name}' waits for {what}{_limit(result)}."
    id = child.id if child is not None else None
    return Line(Why.CHILD_RUNNING, text, result.until, name, execution_id=id)


def _holding(run: Execution, name: str, result: StepResult) -> Iterator[Line]:
    """
    What the steps inside a container do not say themselves: its rounds, and its timeout. FL-7.
    """
    if isinstance(result.items, list | tuple):
        begun = {key.removeprefix(f"{name}.").partition(".")[0] for key in _inside(run, name)}
        many = f"has begun {len(begun)} of {len(result.items)} rounds"
        yield Line(Why.STEPS_RUNNING, f"Loop '{name}' {many}{_limit(result)}.", result.until, name)
    elif result.until is not None:
        yield Line(Why.STEPS_RUNNING, f"Step '{name}' goes on{_limit(result)}.", result.until, name)


def _inside(run: Execution, name: str) -> Iterator[str]:
    return (key for key in run.step_results if key.startswith(f"{name}."))


def _limit(result: StepResult) -> str:
    return f"; its timeout ends it at {said(result.until)}" if result.until is not None else ""


def _working(name: str, result: StepResult, known: Known) -> Line:
    step = _timed(known.definition, name)
    since = f"Step '{name}' is running, attempt {result.attempts}"
    if step is None or result.attempts > 1:  # only the first attempt's beginning is on record
        return Line(Why.STEP_RUNNING, f"{since}.", step_name=name)
    until = later(result.started_at, step.timeout_ms)
    text = f"{since}, since {said(result.started_at)}; its timeout ends it at {said(until)}."
    return Line(Why.STEP_RUNNING, text, until, step_name=name)


def _retrying(run: Execution, name: str, result: StepResult) -> Line:
    assert result.retry_at is not None
    if result.error is None:
        text = f"More budget was approved; step '{name}' starts at {said(result.retry_at)}."
        return Line(Why.STEP_RETRYING, text, result.retry_at, step_name=name)
    error = mask_text(result.error, secret_values(run))
    if result.postponed:
        text = (
            f"Step '{name}' could not be started: {error}. Nothing of it has run; "
            f"the next try is at {said(result.retry_at)}."
        )
        return Line(Why.STEP_POSTPONED, text, result.retry_at, step_name=name)
    text = (
        f"Attempt {result.attempts} of step '{name}' failed ({error}); "
        f"the next one starts at {said(result.retry_at)}."
    )
    return Line(Why.STEP_RETRYING, text, result.retry_at, step_name=name)


def _approval(name: str, result: StepResult, approvals: Sequence[Approval]) -> Line:
    found = (one for one in approvals if one.id == result.approval_id)
    approval = next((one for one in found if one.status is ApprovalStatus.PENDING), None)
    text = f"Step '{name}' waits for a decision on approval {result.approval_id}"
    if approval is None:
        return Line(Why.AWAITING_APPROVAL, f"{text}.", None, name, result.approval_id)
    text += (
        f" by {_approvers(approval)}{_so_far(approval)}. Without one it counts as rejected at "
        f"{said(approval.expires_at)}, and the execution is CANCELLED."
    )
    return Line(
        Why.AWAITING_APPROVAL,
        text,
        approval.expires_at,
        name,
        approval.id,
        approvers=approval.approvers,
        given=len(approval.assents),
        required=approval.required_approvals,
    )


def _approvers(approval: Approval) -> str:
    """Who may decide, in words. AP-10."""
    if approval.approvers:
        return " or ".join(approval.approvers)
    return "the workflow's owner, the execution's owner or somebody with EDIT on the workflow"


def _so_far(approval: Approval) -> str:
    """How many have approved, if several are required. AP-15, AP-18."""
    words = "" if approval.allow_self_approval else ", but not by who started it"
    if approval.required_approvals == 1:
        return words
    names = "".join(f" ({one.by})" for one in approval.assents)
    count = f"{len(approval.assents)} of {approval.required_approvals} approvals are there{names}"
    return f"{words}; {count}"


def _timed(definition: Definition | None, name: str) -> CodeStep | AiStep | None:
    try:
        step = definition.step(name_of(name)) if definition else None
    except KeyError:
        return None
    return step if isinstance(step, CodeStep | AiStep) else None


def said(at: EpochMs) -> str:
    """An instant in words, in UTC and to the second."""
    return f"{datetime.fromtimestamp(at / 1_000, UTC):%Y-%m-%d %H:%M:%SZ}"
