"""
One step of an execution: rounds, attempts, output, lines, and the steps whose results it could use.

A page shows the first 64 KB of an output; the whole output is a download. The page shows the views
of the API, in which secrets are masked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.values import DisplayedValue, display
from adapters_http.downloads import output_response
from adapters_http.request import Request
from wfcore.errors import NotFound
from wfcore.model.execution import Artifact, Execution, StepResult
from wfcore.model.workflow import CodeStep
from wfcore.rules.execution.given_files import FilesUnavailable
from wfcore.rules.execution.scope import name_of, prefix_of, scope
from wfcore.rules.explain.progress import Attempt, ProgressRow, attempts_of, key_of, rounds_of
from wfcore.rules.explain.source_lines import SourceLine, failed_lines
from wfcore.rules.explain.timeline import earlier_attempts
from wfcore.rules.masking import mask, secret_values
from wfcore.usecases.executions.browsing import ExecutionDetail
from wfcore.usecases.executions.executions import read_execution, read_logs
from wfcore.usecases.executions.given_files import given_files
from wfcore.usecases.reading import outputs_of
from wfcore.wire.common import disposition
from wfcore.wire.converter import plain
from wfcore.wire.events import log_view
from wfcore.wire.executions import step_view

MOST_ROUNDS = 1_000
"""The most squares in the picture of a loop."""
MOST_GIVEN = 200
"""The most files of earlier steps on a page."""


@frozen
class Round:
    """One round of a loop: a square in the picture of the loop."""

    key: str
    path: str
    result: StepResult


@frozen
class GivenArtifact:
    """
    A file of an earlier step that a step reads. `path`: below `WF_FILES`. `is_linked`: whether the
    reader may download the file.
    """

    path: str
    artifact: Artifact
    is_linked: bool


@frozen
class StepDetails:
    """
    The details of a step on its page.

    `key`: the key of the step's result; None: the step is in a loop, and no round was chosen.
    `view`: the view of the API. `part`: the part of the details that is shown, one of `parts`.
    `source`: the lines of code around the line that failed. `attempts`: the attempts, the first one
    first. `saw`: the names of the steps whose results the step could use.
    `given`: the files of earlier steps that the step reads; `more_given`: the number of the others.
    `item`: the item of the step's round.
    """

    row: ProgressRow
    key: str | None
    path: str
    view: Any = None
    part: str = ""
    parts: Sequence[str] = ()
    source: Sequence[SourceLine] = ()
    attempts: Sequence[Attempt] = ()
    output: DisplayedValue | None = None
    saw: Sequence[str] = ()
    given: Sequence[GivenArtifact] = ()
    more_given: int = 0
    item: DisplayedValue | None = None
    rounds: Sequence[Round] = ()
    more_rounds: int = 0


async def step_details(
    request: Request, whole: ExecutionDetail, rows: Mapping[str, ProgressRow], failed: str | None
) -> StepDetails | None:
    """
    The details of the step that the address names (`?step=`), otherwise of the step that *failed*;
    None without either. Raises `NotFound` for an address without such a step.
    """
    wanted = request.params.get("name") or request.query("step") or failed
    if wanted == failed and failed and name_of(failed) not in rows:
        return None
    if wanted is None:
        return None
    row = rows.get(name_of(wanted))
    if row is None:
        raise NotFound("Step")
    numbers = _rounds(wanted, request.params.get("round"), len(row.loops))
    if numbers is None:
        return _all_rounds(row)
    return await _one(request, whole, row, key_of(row.step.name, row.loops, numbers))


def _rounds(key: str, text: str | None, depth: int) -> Sequence[int] | None:
    """
    The numbers of the rounds in an address, *depth* numbers, or None without rounds. Raises
    `NotFound`.
    """
    try:
        found = rounds_of(key) if text is None else tuple(int(part) for part in text.split("."))
    except ValueError:
        raise NotFound("Step") from None
    if not found and depth:
        return None
    if len(found) != depth:
        raise NotFound("Step")
    return found


def _all_rounds(row: ProgressRow) -> StepDetails:
    """The rounds of a step in a loop: failed rounds first, then by number."""
    bad = ("FAILED", "INTERRUPTED", "REJECTED")
    ordered = sorted(row.results, key=lambda one: one[1].status not in bad)
    return StepDetails(
        row,
        None,
        row.step.name,
        rounds=[_round(row, key, result) for key, result in ordered[:MOST_ROUNDS]],
        more_rounds=max(0, len(ordered) - MOST_ROUNDS),
    )


def _round(row: ProgressRow, key: str, result: StepResult) -> Round:
    return Round(key, f"{row.step.name}/{'.'.join(map(str, rounds_of(key)))}", result)


async def _one(request: Request, whole: ExecutionDetail, row: ProgressRow, key: str) -> StepDetails:
    run = await outputs_of(request.services, whole.run, {key, _loop_of(key)})
    path = row.step.name if not row.loops else _round(row, key, None).path  # type: ignore[arg-type]
    if key not in run.step_results:
        if row.loops:
            raise NotFound("Step")
        return StepDetails(row, key, path, saw=())
    view = step_view(run, key)
    parts = ("error", *PARTS) if view.error else PARTS
    part = request.query("show")
    given = await _given(request, whole, key)
    return StepDetails(
        row,
        key,
        path,
        view,
        part if part and part in parts else parts[0],
        parts,
        _source(row, view.error),
        list(attempts_of(key, run.step_results[key], earlier_attempts(whole.retried))),
        display(view.output) if view.output is not None else None,
        _saw(whole, key),
        given[:MOST_GIVEN],
        max(0, len(given) - MOST_GIVEN),
        _item(run, key) if whole.definition else None,
    )


PARTS = ("output", "inputs", "attempts")
"""The parts of the details, after the error if there is one: `?show=`."""


def _source(row: ProgressRow, error: str | None) -> Sequence[SourceLine]:
    """The lines of code around the line that failed, if *error* names it."""
    step = row.step
    if error is None or not isinstance(step, CodeStep):
        return ()
    return failed_lines(step.language, step.source, error)


async def _given(request: Request, whole: ExecutionDetail, key: str) -> Sequence[GivenArtifact]:
    """The files that the step reads; nothing if the execution that left them was deleted. FI-3."""
    if whole.definition is None:
        return ()
    try:
        folders = await given_files(request.services, whole.run, whole.definition, key)
    except FilesUnavailable:
        return ()
    visible = {whole.run.id, *whole.children}
    return [
        GivenArtifact(f"{folder.step}/{path}", one, one.execution_id in visible)
        for folder in folders
        for path, one in folder.files.items()
    ]


def _saw(whole: ExecutionDetail, key: str) -> Sequence[str]:
    """The names of the steps that had begun before the step with *key*."""
    names = list(whole.run.step_results)
    before = {name_of(name) for name in names[: names.index(key)]}
    seen = scope(whole.definition, whole.run, prefix_of(key))["steps"] if whole.definition else {}
    assert isinstance(seen, Mapping)
    return [name for name in seen if name in before]


def _item(run: Execution, key: str) -> DisplayedValue | None:
    """The item of the round of *key*; None for a step outside of loops."""
    rounds = rounds_of(key)
    if not rounds:
        return None
    loop = run.step_results.get(_loop_of(key))
    items = loop.items if loop else None
    if not isinstance(items, list | tuple) or rounds[-1] >= len(items):
        return None
    return display(mask(items[rounds[-1]], secret_values(run)))


def _loop_of(key: str) -> str:
    """The key of the loop around *key*; *key* itself outside of loops."""
    return key.rsplit(".", 2)[0] if "." in key else key


async def lines(request: Request) -> Response:
    """All output lines of the execution, or of one step, as a file. EX-28."""
    services, who, key = request.services, request.who, request.params.get("name")
    parts, after = list[str](), 0
    while True:
        run, found, after = await read_logs(
            services, who, request.params["id"], after, key, _AT_ONCE
        )
        if not found:
            break
        parts += [log_view(one).text for one in found]
    headers = {
        "Content-Disposition": disposition(f"{run.id}-{key}.txt" if key else f"{run.id}.txt"),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return Response("".join(parts).encode("utf-8", "replace"), 200, headers, "text/plain")


_AT_ONCE = 1_000


async def output(request: Request) -> Response:
    """The output of one step as a file."""
    services, key = request.services, request.params["name"]
    run = await read_execution(services, request.who, request.params["id"], outputs=False)
    run = await outputs_of(services, run, {key})
    return output_response(key, plain(step_view(run, key).output))
