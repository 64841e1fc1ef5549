"""Vectors of the planner: what a definition does next, given what its steps have done."""

from typing import Any

from wfcore.effects import StartStep
from wfcore.instants import EpochMs
from wfcore.model.execution import ExecutionStatus, StepResult, StepStatus
from wfcore.rules.definition import check_definition
from wfcore.rules.proceed import proceed
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.fakes import PathTemplates

ABOUT = (
    "What a RUNNING execution of a definition does next, given the results of its steps: which "
    "steps start now, and what the record says afterwards. Instants are epoch milliseconds, "
    f"now is {NOW}."
)


def code(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "code", "language": "bash", "source": ":", **more}


def review(name: str = "review", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "manual_approval", "timeout": 60_000, **more}


def done(output: Any = None) -> dict[str, Any]:
    return {"status": "COMPLETED", "output": output}


def at(steps: list[Any], results: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A definition of these steps, and what is known of them."""
    variables = {"yes": {"type": "boolean", "default": True}, "no": {"default": ""}}
    document = {"name": "vectors", "variables": variables, "steps": steps, **more}
    return {"definition": document, "stepResults": results or {}}


ONE, TWO = code("one"), code("two")
CASES = {
    "the first step starts": at([ONE, TWO]),
    "the next one starts when the first has ended": at([ONE, TWO], {"one": done(1)}),
    "a running step is waited for": at([ONE, TWO], {"one": {"status": "RUNNING"}}),
    "all steps have ended": at([ONE, TWO], {"one": done(1), "two": done(2)}),
    "the output is what the definition says": at(
        [ONE, TWO], {"one": done({"n": 1}), "two": done(2)}, output="{{ steps.one.output.n }}"
    ),
    "an output that cannot be computed": at(
        [ONE], {"one": done({})}, output="{{ steps.one.output.n }}"
    ),
    "a step whose condition is true": at([code("one", when="{{ variables.yes }}"), TWO]),
    "a step whose condition is false is skipped": at([code("one", when="{{ variables.no }}"), TWO]),
    "all steps are skipped": at([code("one", when="{{ variables.no }}")]),
    "a condition that fails": at(
        [ONE, code("two", when="{{ steps.one.output.n }}")], {"one": done({})}
    ),
    "a condition that fails, and the execution goes on": at(
        [ONE, code("two", when="{{ steps.one.output.n }}", continueOnError=True)],
        {"one": done({})},
    ),
    "a failure that is tolerated": at(
        [code("one", continueOnError=True), TWO], {"one": {"status": "FAILED"}}
    ),
    "a retry that is not due": at([ONE], {"one": {"status": "RUNNING", "retryAt": NOW + 1}}),
    "a retry that is due": at([ONE], {"one": {"status": "RUNNING", "retryAt": NOW}}),
    "an interrupted step is begun again": at([ONE], {"one": {"status": "INTERRUPTED"}}),
    "an approval pauses": at([ONE, review(), TWO], {"one": done()}),
    "an approval that waits": at(
        [review(), TWO], {"review": {"status": "AWAITING_APPROVAL", "approvalId": "appr_1"}}
    ),
    "rows that are none": at([review(groups=[{"name": "g", "title": "G", "rows": "{{ steps }}"}])]),
    "after an approval": at([review(), TWO], {"review": done({"decision": "approve"})}),
}


def _result(said: Any) -> StepResult:
    status = StepStatus(said["status"])
    retry_at = said.get("retryAt")
    return builders.step_result(
        status,
        output=said.get("output"),
        retry_at=None if retry_at is None else EpochMs(retry_at),
        approval_id=said.get("approvalId"),
    )


def _next(given: Any) -> Any:
    definition = check_definition(given["definition"], PathTemplates().problems)
    variables = {name: one.default for name, one in definition.variables.items() if one.has_default}
    run = builders.execution(
        status=ExecutionStatus.RUNNING,
        worker="worker_1",
        due_at=None,
        variables=variables,
        step_results={name: _result(said) for name, said in given["stepResults"].items()},
    )
    outcome = proceed(run, definition, NOW, PathTemplates().render, lambda prefix: f"{prefix}_new")
    after = outcome.record
    return {
        "starts": [one.step_name for one in outcome.effects if isinstance(one, StartStep)],
        "status": after.status.value,
        "steps": {name: one.status.value for name, one in after.step_results.items()},
        "dueAt": after.due_at,
        "failed": after.error is not None,
        "output": after.output,
    }


GROUPS = {"next": ("What happens next.", CASES, _next)}
