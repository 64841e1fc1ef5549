"""
The names that templates and code can use at a point in a definition.

A step sees the results of its own frame and of the frames around it: a round of a loop is a frame
inside the frame of the loop. The key of a step shows its frame.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import cast

from wfcore.model.execution import ENDED, Execution, StepResult, left_out
from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import TRIGGER_NAMES
from wfcore.model.workflow import ON_FAILURE, Definition, LoopStep, Named

Names = Mapping[str, Json]


def round_prefix(loop_key: str, index: int) -> str:
    """The prefix of the keys of all steps in one round of a loop. FL-2."""
    return f"{loop_key}.{index}."


def prefix_of(key: str) -> str:
    """The prefix of the keys in the frame of that step; empty outside of loops."""
    return key[: key.rfind(".") + 1]


def name_of(key: str) -> str:
    """The step's name in the definition."""
    return key[key.rfind(".") + 1 :]


def scope(definition: Definition, run: Execution, prefix: str = "") -> Names:
    """
    The names visible to templates where keys begin with *prefix*. FL-2.

    A step that has not begun is not visible, unless the container around it has ended without it,
    or the execution is going to fail: then its `onFailure` steps see the `error`, too. EX-31. The
    caller knows the workflow's `state`, which is empty here. SV-2.
    """
    steps: dict[str, Json] = {}
    _see(steps, definition.frames[""], run, "")
    known: dict[str, Json] = {
        "variables": run.variables,
        "steps": steps,
        "execution": {"id": run.id, "workflowId": run.workflow_id},
        "trigger": trigger_of(run),
        "state": {},
    }
    if run.failing is not None:
        for named in definition.frames[""]:
            steps.setdefault(named.name, _NEVER_BEGUN)
        _see(steps, definition.frames[ON_FAILURE], run, "")
        known["error"] = run.failing.error
    if not prefix:
        return known
    items: dict[str, Json] = {}
    here, rest = "", prefix
    while rest:
        name, number, rest = rest.split(".", 2)
        loop, index = definition.step(name), int(number)
        assert isinstance(loop, LoopStep)
        items[loop.variable] = _item(run.step_results[here + name], index)
        here = round_prefix(here + name, index)
        _see(steps, definition.frames[name], run, here)
        known["loop"] = {"index": index}
    return {**items, **known, "variables": {**run.variables, **items}}


def trigger_of(run: Execution) -> JsonObject:
    """
    The `trigger` of templates and of the context file: every one of `TRIGGER_NAMES`, null if it
    does not apply. EX-37.
    """
    own = {"kind": run.trigger_source.value, "webhookId": run.webhook_id}
    return {**dict.fromkeys(TRIGGER_NAMES), **own, **run.trigger}


def keys_seen(run: Execution, prefix: str, names: Collection[str]) -> tuple[str, ...]:
    """
    The keys of the steps *names* that have begun and are visible where keys begin with *prefix*;
    for each name, the key in the innermost frame that has the name. FL-2, AP-29.
    """
    found: list[str] = []
    for name in names:
        here = prefix
        while here and here + name not in run.step_results:
            here = prefix_of(here[:-1].rpartition(".")[0])
        if here + name in run.step_results:
            found.append(here + name)
    return tuple(found)


def seen(result: StepResult) -> JsonObject:
    """
    A step's result as templates and the context file show it. An unread output raises an error only
    when it is used. ST-7.
    """
    unread = left_out(result).get("output")
    if unread is not None and unread.key is not None:
        return _SeenUnread(result, unread.key)
    return {"status": result.status.value, "output": result.output}


def unread_outputs(names: Names) -> Mapping[str, str]:
    """The steps among *names* whose outputs were not read: their keys by their names. ST-7."""
    steps = cast("Mapping[str, Json]", names["steps"])
    return {name: one.key for name, one in steps.items() if isinstance(one, _SeenUnread)}


class _SeenUnread(Mapping[str, Json]):
    """The view of a result whose output raises `NotRead`. `key`: the key of the step."""

    def __init__(self, result: StepResult, key: str) -> None:
        self._result, self.key = result, key

    def __getitem__(self, name: str) -> Json:
        if name not in self:
            raise KeyError(name)
        return self._result.status.value if name == "status" else self._result.output

    def __iter__(self) -> Iterator[str]:
        return iter(("status", "output"))

    def __len__(self) -> int:
        return 2

    def __contains__(self, name: object) -> bool:
        return name in ("status", "output")


_NOT_ASKED: JsonObject = {
    "status": None,
    "output": {
        "decision": None,
        "comment": None,
        "decidedBy": None,
        "groups": {},
        "answers": {},
        "receipts": [],
    },
}
"""
The result of an approval that has not opened yet, for the steps to which it may go back. AP-32.
"""
_NEVER_BEGUN: JsonObject = {"status": "SKIPPED", "output": None}


def _see(steps: dict[str, Json], frame: tuple[Named, ...], run: Execution, prefix: str) -> None:
    results = run.step_results
    for named in frame:
        result = results.get(prefix + named.name)
        if result is not None:
            steps[named.name] = seen(result)
        elif named.revises and (rounds := run.rounds_of(prefix + named.name)):
            steps[named.name] = seen(rounds[-1])
        elif named.revises:
            steps[named.name] = _NOT_ASKED
        elif named.inside is not None and _over(steps, results, prefix + named.inside):
            steps[named.name] = _NEVER_BEGUN


def _over(steps: dict[str, Json], results: Mapping[str, StepResult], container: str) -> bool:
    """Whether a container has ended, or never began because a container around it has ended."""
    result = results.get(container)
    if result is not None:
        return result.status in ENDED
    return steps.get(name_of(container)) is _NEVER_BEGUN


def _item(loop: StepResult, index: int) -> Json:
    items = loop.items
    return items[index] if isinstance(items, list | tuple) else None
