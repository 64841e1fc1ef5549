"""The earlier steps whose artifacts a code step reads. FI-1."""

from typing import Any

from wfcore.model.json import Json
from wfcore.model.workflow import ChildStep, CodeStep, LoopStep, ParallelStep, SwitchStep
from wfcore.rules.definition.tree import Fields, Reading
from wfcore.rules.definition.values import Check, Field, Findings, filled, known_or, list_of
from wfcore.rules.limits import MAX_FILE_STEPS

_INSIDE = ".*"
"""What may follow the name of a container, to no effect."""
_CONTAINERS = (LoopStep, ParallelStep, SwitchStep)
_SOURCES = (CodeStep, ChildStep, *_CONTAINERS)


def files(reading: Reading) -> Fields:
    """The field `files` of a code step."""

    def one(document: Json, path: str, findings: Findings) -> Any:
        before = len(findings.problems)
        entry: Any = filled(document, path, findings)
        if len(findings.problems) > before:
            return None
        for message in _problems(entry, reading):
            findings.add(path, message)
        return entry.removesuffix(_INSIDE)

    return {
        "files": Field(
            list_of(Check(one, filled.schema), most=MAX_FILE_STEPS),
            "files",
            "Earlier steps whose artifacts this step reads below `WF_FILES`, like "
            "`[fetch, lines.*]`. A loop, `parallel` or `switch` means all steps in it; `.*` may "
            "follow its name. A `workflow` step means the artifacts of the execution that it "
            "started.",
        )
    }


def _problems(entry: str, reading: Reading) -> list[str]:
    name = entry.removesuffix(_INSIDE)
    before = reading.names.steps
    kinds = {one: kind.build for one in before if (kind := reading.kinds_of.get(one))}
    if name not in before:
        sources = [one for one in before if kinds.get(one) in _SOURCES]
        near = known_or(name, sources) if sources else "there is none"
        return [f"{name!r} is no step before this one; {near}"]
    if name in kinds and kinds[name] not in _SOURCES:
        return [f"{name!r} leaves no files; only code steps and `workflow` steps do"]
    if name in kinds and name != entry and kinds[name] not in _CONTAINERS:
        return [f"{name!r} has no steps in it; write {name}"]
    return []
