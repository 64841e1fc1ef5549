"""
Gates: questions that a program asks people without a workflow of its own. GT-1, decision 211.

A gate is an execution of a workflow of one step, which is made here. The workflow holds the parts
that questions have in common (approvers, timeout, groups and their columns); the message and the
rows are inputs. So a program that repeats a question makes one version of the workflow, and a
message is never taken for a template.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from wfcore.errors import Forbidden, InvalidDefinition, InvalidInput, Problem, TemplateFailed
from wfcore.model.access import Principal, Scope
from wfcore.model.execution import Execution
from wfcore.model.json import JsonObject
from wfcore.model.workflow import ApprovalStep, Definition
from wfcore.rules.execution.open_approval import group_of

GATES = "Gates"
"""The name of the workflow of an account's gates."""
STEP = "gate"
ABOUT = "Questions that programs ask through POST /api/v1/gates. Made by the server."
DECIDING = frozenset({Scope.APPROVAL_RESPOND, Scope.ADMIN})
_STEP_PATH = "steps[0]."


def require_no_approver(who: Principal) -> None:
    """
    Raises `Forbidden` if *who* could also answer: a program that asks people must not be able to
    answer for them. GT-3.
    """
    granted = who.scopes if who.key is None else who.key.scopes
    if held := sorted(DECIDING & granted):
        raise Forbidden(
            f"Whoever asks people must not be able to answer: use a key without {held[0]}"
        )


def bound(asked: JsonObject, who: Principal) -> JsonObject:
    """
    The gate *asked* with the approvers to which the key is bound, if the gate names no approvers.
    GT-5.
    """
    if who.key is None or not who.key.approvers or asked.get("approvers"):
        return asked
    return {**asked, "approvers": list(who.key.approvers)}


def approvers_of(definition: Definition) -> tuple[str, ...]:
    """The people whom a gate asks."""
    (step,) = definition.steps
    assert isinstance(step, ApprovalStep)
    return step.approvers


def gate_document(asked: JsonObject) -> JsonObject:
    """The document of the workflow for the gate *asked*."""
    groups = _groups(asked)
    step = {name: asked[name] for name in ("approvers", "timeout") if name in asked}
    declared: dict[str, JsonObject] = {"message": {"type": "string", "required": True}}
    for at in range(len(groups)):
        declared[f"rows{at}"] = {"type": "array", "required": True}
    return {
        "name": GATES,
        "description": ABOUT,
        "variables": declared,
        "steps": [
            {
                "name": STEP,
                "kind": "manual_approval",
                "message": "{{ variables.message }}",
                "groups": [
                    {**one, "rows": f"{{{{ variables.rows{at} }}}}"}
                    for at, one in enumerate(groups)
                ],
                **step,
            }
        ],
    }


def gate_inputs(asked: JsonObject, definition: Definition) -> JsonObject:
    """
    The inputs of the execution. Raises `InvalidInput` for an empty message, and for rows to which a
    reviewer could not refer.
    """
    message = asked["message"]
    if not (isinstance(message, str) and message.strip()):
        raise InvalidInput("message", "must not be empty: it is what people read")
    rows = [one["rows"] for one in _groups(asked)]
    (step,) = definition.steps
    assert isinstance(step, ApprovalStep)
    for spec, given in zip(step.groups, rows, strict=True):
        try:
            group_of(spec, given)
        except TemplateFailed as refused:
            raise InvalidInput(refused.template, refused.why) from None
    return {"message": message, **{f"rows{at}": given for at, given in enumerate(rows)}}


def _groups(asked: JsonObject) -> Sequence[Mapping[str, Any]]:
    given: Any = asked
    found: Sequence[Mapping[str, Any]] = given.get("groups", ())
    return found


def in_words_of_gate(error: InvalidDefinition) -> InvalidInput:
    """Mistakes in the generated workflow, as mistakes in the gate."""
    first, *others = (_of_gate(one) for one in error.problems)
    fix = "; ".join([first.message, *(f"{one.path}: {one.message}" for one in others)])
    return InvalidInput(first.path, fix)


def _of_gate(problem: Problem) -> Problem:
    return Problem(problem.path.removeprefix(_STEP_PATH) or "groups", problem.message)


def is_gate(run: Execution) -> bool:
    """Whether an execution is a gate. GT-1."""
    return run.workflow_name == GATES and STEP in run.step_results
