"""
The tools for agents: one tool for each workflow that a key may start, and a few fixed tools. MC-1
to MC-5, decision 212.

Names, schemas and results are plain values in this module; `serving` translates them for the SDK.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from wfcore.model.access import Scope
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import Definition, Variable, VariableType, Workflow
from wfcore.rules.execution.machine import EXECUTION
from wfcore.wire.executions import result_view, status_view

Schema = dict[str, Any]

_NO_LETTERS = re.compile(r"[^a-z0-9]+")
_LONGEST_WORDS, _TAIL = 48, 8
LONGEST_WAIT_S, WAIT_S = 50, 20
"""
The longest and the usual wait in seconds; clients end a call after a minute, some clients earlier.
"""


MOST_FILES = 50
"""The most files that a result lists."""


def tool_name(workflow: Workflow) -> str:
    """
    The name of a workflow's tool: the words of the workflow's name and the end of its id, so that
    other workflows do not change the name. Letters, digits, `_`; at most 57 characters. MC-1.
    """
    words = _NO_LETTERS.sub("_", workflow.name.lower()).strip("_")[:_LONGEST_WORDS]
    tail = _NO_LETTERS.sub("_", workflow.id.lower())[-_TAIL:]
    return f"{words or 'workflow'}_{tail}"


def input_schema(definition: Definition) -> Schema:
    """
    The declared variables as the arguments of a tool. A secret shows no default; an array has
    `items`, which providers of models require. MC-1.
    """
    declared = definition.variables
    return {
        "type": "object",
        "properties": {name: _property(one) for name, one in declared.items()},
        "required": [name for name, one in declared.items() if _is_required(one)],
        "additionalProperties": False,
    }


def _property(variable: Variable) -> Schema:
    found: Schema = {"type": variable.type.value}
    if variable.type is VariableType.ARRAY:
        found["items"] = {}
    if variable.secret:
        return {**found, "description": "A secret: it is never shown again."}
    return {**found, "default": variable.default} if variable.has_default else found


def _is_required(variable: Variable) -> bool:
    return variable.required and not variable.has_default


@frozen
class FixedTool:
    """A tool for all keys with `scope`."""

    name: str
    about: str
    scope: Scope
    schema: Schema
    reads: bool = False


_ID: Schema = {"type": "string", "description": "As a call of a workflow's tool returned it."}
_WAIT: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": LONGEST_WAIT_S,
    "default": WAIT_S,
    "description": "How many seconds to wait for its end, or for people to be asked.",
}
_ROWS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "rowKey": {"type": "string", "description": "The field that tells rows apart."},
            "rows": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["name", "rows"],
    },
    "description": "Groups of rows that people may edit or leave out before they release them.",
}


def _object(required: Sequence[str], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }


TOOLS: Final[tuple[FixedTool, ...]] = (
    FixedTool(
        "execution_status",
        "How an execution stands, and its output once it is completed. Waits a little for its end.",
        Scope.EXECUTION_READ,
        _object(["executionId"], executionId=_ID, waitSeconds=_WAIT),
        reads=True,
    ),
    FixedTool(
        "execution_cancel",
        "End an execution at once.",
        Scope.EXECUTION_CANCEL,
        _object(["executionId"], executionId=_ID),
    ),
    FixedTool(
        "execution_redrive",
        "Go on where an execution stopped, or from a step of it. Without `digest` nothing starts: "
        "the result has the plan, which says of each step whether it is kept or runs again, and "
        "how often it had begun. Call again with the plan's digest to carry it out.",
        Scope.WORKFLOW_EXECUTE,
        _object(
            ["executionId"],
            **{
                "executionId": _ID,
                "from": {"type": "string", "description": "The first step that runs again."},
                "definition": {
                    "type": "string",
                    "enum": ["same", "newest"],
                    "default": "same",
                    "description": "The version of the workflow that runs.",
                },
                "inputs": {"type": "object", "description": "Inputs that replace those it had."},
                "digest": {"type": "string", "description": "Of the plan that you have read."},
            },
        ),
    ),
    FixedTool(
        "execution_start_again",
        "Start a workflow anew with the inputs of an earlier execution; every step runs.",
        Scope.WORKFLOW_EXECUTE,
        _object(
            ["executionId"],
            executionId=_ID,
            inputs={"type": "object", "description": "Inputs that replace those it had."},
        ),
    ),
    FixedTool(
        "ask_people",
        "Ask people before you do something that they must agree to. Returns an execution that "
        "waits for them; its output has the rows that they released, perhaps edited or fewer.",
        Scope.WORKFLOW_EXECUTE,
        _object(
            ["message"],
            message={"type": "string", "description": "What people read."},
            groups=_ROWS,
            approvers={
                "type": "array",
                "items": {"type": "string"},
                "description": "Emails of those who may decide: people with an account here, or "
                "whom the operator or your key allows.",
            },
            timeout={"type": "integer", "description": "In milliseconds; rejected after it."},
        ),
    ),
)

RESULT: Final[Schema] = {
    "type": "object",
    "properties": {
        "executionId": {"type": "string"},
        "state": {
            "type": "string",
            "enum": ["working", "input_required", "completed", "failed", "cancelled"],
        },
        "status": {"type": "string"},
        "completedSteps": {"type": "integer"},
        "totalSteps": {"type": "integer"},
        "currentStep": {"type": ["string", "null"]},
        "output": {},
        "error": {"type": ["string", "null"]},
        "explanation": {"type": ["string", "null"]},
        "approvalUrl": {"type": ["string", "null"]},
        "reference": {"type": ["string", "null"]},
        "files": {
            "type": "array",
            "items": {"type": "object"},
            "description": f"The newest files of an ended execution, at most {MOST_FILES}.",
        },
        "plan": {"type": "object", "description": "Of a redrive that was not carried out."},
    },
    "required": ["executionId", "state", "status"],
}
"""The schema of every tool's result."""

_STATES: Mapping[ExecutionStatus, str] = {
    ExecutionStatus.AWAITING_APPROVAL: "input_required",
    ExecutionStatus.COMPLETED: "completed",
    ExecutionStatus.FAILED: "failed",
    ExecutionStatus.CANCELLED: "cancelled",
}
"""The states of the protocol's tasks; the other statuses are `working`. MC-2."""


_FOR_PEOPLE = "People must decide; you cannot. Ask for the status again later."


def result_of(
    run: Execution, explained: Sequence[str], approval_url: str | None, files: Sequence[Schema]
) -> Schema:
    """The state of an execution for an agent; secrets are masked. MC-2."""
    seen, over = status_view(run, outputs=False), run.status in EXECUTION.final
    about = named(run)
    state = about["state"]
    words = [*explained, _FOR_PEOPLE] if state == "input_required" else explained
    return {
        **about,
        "completedSteps": seen.completed_steps,
        "totalSteps": seen.total_steps,
        "currentStep": seen.current_step,
        "output": result_view(run, outputs=False).output if over else None,
        "error": seen.error,
        "explanation": " ".join(words) or None,
        "approvalUrl": approval_url if state == "input_required" else None,
        "reference": seen.reference,
        "files": [*files],
    }


def named(run: Execution) -> Schema:
    """The id and the status of *run*, also in the words of the protocol's tasks."""
    state = _STATES.get(run.status, "working")
    return {"executionId": run.id, "state": state, "status": run.status.value}


def started_only(execution_id: str) -> Schema:
    """The result for a key that may start executions but not read them."""
    return {"executionId": execution_id, "state": "working", "status": "PENDING"}
