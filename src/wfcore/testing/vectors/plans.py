"""Vectors of the planner: the next work of a definition, given the results of its steps."""

from typing import Any

from wfcore.effects import StartChild, StartStep
from wfcore.model.execution import Awaits, ExecutionStatus, StepResult, StepStatus
from wfcore.rules.definition.check import check_definition
from wfcore.rules.execution.proceed import proceed
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.fakes import PathTemplates
from wfcore.time import EpochMs

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
    """A definition of *steps*, with the *results* of the steps so far."""
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


RUNS = {"status": "RUNNING"}
HOLDS = {**RUNS, "awaits": "steps"}
BRANCHES = [{"name": "left", "steps": [ONE]}, {"name": "right", "steps": [TWO]}]
SPLIT = {"name": "split", "kind": "parallel", "branches": BRANCHES}
ROUNDS = {"name": "each", "kind": "loop", "items": ["a", "b"], "as": "it", "steps": [ONE]}
PAUSE = {"name": "pause", "kind": "delay", "duration": 1_000}
CHILD = {"name": "child", "kind": "workflow", "workflow": "Import", "timeout": 60_000}
TREES = {
    "branches begin together": at([SPLIT]),
    "no more branches than may": at([{**SPLIT, "maxParallel": 1}]),
    "the next branch follows": at([{**SPLIT, "maxParallel": 1}], {"split": HOLDS, "one": done(1)}),
    "a branch is waited for": at([SPLIT], {"split": HOLDS, "one": done(1), "two": RUNS}),
    "all branches have ended": at([SPLIT], {"split": HOLDS, "one": done(1), "two": done(2)}),
    "a branch fails, and the others with it": at(
        [
            {
                **SPLIT,
                "branches": [
                    {"name": "left", "steps": [code("one", when="{{ variables.no.gone }}")]},
                    BRANCHES[1],
                ],
            }
        ]
    ),
    "rounds follow one another": at([ROUNDS]),
    "rounds beside one another": at([{**ROUNDS, "maxParallel": 2}]),
    "the next round follows": at(
        [ROUNDS], {"each": {**HOLDS, "items": ["a", "b"]}, "each.0.one": done(1)}
    ),
    "all rounds have ended": at(
        [ROUNDS],
        {
            "each": {**HOLDS, "items": ["a", "b"]},
            "each.0.one": done(1),
            "each.1.one": done(2),
        },
    ),
    "nothing to go round": at([{**ROUNDS, "items": []}, TWO]),
    "items that are no list": at([{**ROUNDS, "items": "{{ variables }}"}]),
    "a delay begins": at([PAUSE, TWO]),
    "a delay goes on": at([PAUSE, TWO], {"pause": {**RUNS, "awaits": "time", "until": NOW + 1}}),
    "a delay is over": at([PAUSE, TWO], {"pause": {**RUNS, "awaits": "time", "until": NOW}}),
    "a child starts": at([CHILD, TWO]),
    "a child is waited for": at(
        [CHILD],
        {"child": {**RUNS, "awaits": "child", "childId": "exec_2", "until": NOW + 60_000}},
    ),
}


def _result(said: Any) -> StepResult:
    awaits, retry_at, until = said.get("awaits"), said.get("retryAt"), said.get("until")
    return builders.step_result(
        StepStatus(said["status"]),
        output=said.get("output"),
        retry_at=None if retry_at is None else EpochMs(retry_at),
        approval_id=said.get("approvalId"),
        awaits=None if awaits is None else Awaits(awaits),
        until=None if until is None else EpochMs(until),
        child_id=said.get("childId"),
        items=said.get("items"),
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
        "children": [one.workflow for one in outcome.effects if isinstance(one, StartChild)],
        "status": after.status.value,
        "steps": {name: one.status.value for name, one in after.step_results.items()},
        "dueAt": after.due_at,
        "failed": after.error is not None,
        "output": after.output,
    }


GROUPS = {
    "next": ("What happens next in a sequence.", CASES, _next),
    "trees": ("What happens next where steps hold steps, or wait for more.", TREES, _next),
}
