"""The job of a begun step, with its templates rendered, and the facts and artifacts of its end."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from attrs import define, evolve

from wfcore.effects import StartStep
from wfcore.errors import TemplateFailed, WfError
from wfcore.model.access import Account
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Artifact, Execution, RefusedFile
from wfcore.model.json import Json, JsonObject
from wfcore.model.trace import span_of_attempt
from wfcore.model.workflow import AiStep, CodeStep, Definition, Step
from wfcore.ports.runtime import AiJob, Job, StepEnd, StepJob
from wfcore.ports.system import Templates
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.budget import NOTHING, allowance
from wfcore.rules.execution.given_files import GivenFolder
from wfcore.rules.execution.open_approval import as_text
from wfcore.rules.execution.retry import after_failure, lasting_postponement, postponement
from wfcore.rules.execution.scope import name_of, prefix_of, scope
from wfcore.rules.limits import ARTIFACTS_PER_EXECUTION as MOST_FILES
from wfcore.rules.masking import (
    NO_SECRETS,
    Secrets,
    mask,
    mask_cut,
    mask_shortened,
    mask_text,
    secret_values,
    secrets_of,
)
from wfcore.rules.named_secrets import SecretMissing, secrets_for
from wfcore.rules.state import NO_STATE, SeenState
from wfcore.rules.variables import environment
from wfcore.time import EpochMs
from wfcore.usecases.services import Services

_MOST_NAMED = 50
_TOO_MANY_FILES = f"The execution would have more than {MOST_FILES} artifacts"


@define
class NotRendered(WfError):
    """A step whose field has a template that fails."""

    field: str
    failed: TemplateFailed

    def __str__(self) -> str:
        return f"{self.field}: {self.failed}"


def job_for(
    templates: Templates,
    run: Execution,
    definition: Definition,
    begun: StartStep,
    secrets: Mapping[str, str],
    state: SeenState = NO_STATE,
    files: tuple[GivenFolder[Artifact], ...] = (),
) -> Job:
    """
    The job of one attempt, under the lease on *run*, with *secrets* in its environment and the
    *files* of earlier steps. Raises `NotRendered`.
    """
    key = begun.step_name
    step = definition.step(name_of(key))
    code = isinstance(step, CodeStep)
    names = {
        **scope(definition, run, prefix_of(key)),
        "state": state.values if code else state.shown,
    }
    hidden = (*secrets.values(), *state.secret_texts)
    if isinstance(step, AiStep):
        return AiJob(
            execution_id=run.id,
            workflow_id=run.workflow_id,
            step_name=key,
            attempt=begun.attempt,
            fence=run.fence,
            step=step,
            system=_rendered(templates, "system", step.system, names),
            prompt=_rendered(templates, "prompt", step.prompt, names),
            allowance=allowance(definition.budget, run),
            log=run.monitored,
            postponed=begun.postponed,
            traceparent=_traceparent(run, key) if run.trace and run.trace.recorded else None,
        )
    assert isinstance(step, CodeStep)
    return StepJob(
        execution_id=run.id,
        workflow_id=run.workflow_id,
        step_name=key,
        attempt=begun.attempt,
        fence=run.fence,
        step=step,
        argv=tuple(_rendered(templates, "command", part, names) for part in step.command),
        environment={**_environment(names, run.request_id), **_traced(run, key), **secrets},
        context=names,
        log=True,
        monitored=run.monitored,
        postponed=begun.postponed,
        hidden=secrets_of(hidden) if hidden else NO_SECRETS,
        hidden_in_names=secret_values(run, hidden),
        files=files,
        is_read=step.name in definition.steps_read,
    )


def _environment(names: Mapping[str, Json], request_id: str | None) -> Mapping[str, str]:
    given = environment(cast("JsonObject", names["variables"]), names.get("error"))
    return {**given, **({"WF_REQUEST_ID": request_id} if request_id else {})}


def _traceparent(run: Execution, key: str) -> str | None:
    if run.trace is None:
        return None
    return run.trace.handed_on(span_of_attempt(run.id, key, run.step_results[key].attempts))


def _traced(run: Execution, key: str) -> Mapping[str, str]:
    """The variables that make calls of the step a part of its trace. TR-2."""
    parent = _traceparent(run, key)
    if parent is None or run.trace is None:
        return {}
    return {"TRACEPARENT": parent, **({"TRACESTATE": run.trace.state} if run.trace.state else {})}


MOST_LOGGED = 1_048_576
"""The most characters of an attempt's output that are kept if nobody followed the output."""
_PIECE = 65_536
NO_MORE = "\n[no further lines are stored]\n"


_SPACE = 1 << 20
"""
The numbers reserved for lines per event of the execution; each end of an attempt adds at least one
event. Lines stored with the end use the second half of the numbers, lines stored while the step ran
the first half.
"""
_HALF = _SPACE // 2
_MOST_PIECES = 999


def logged(
    run: Execution, key: str, lines: Iterable[tuple[str, str]], now: EpochMs
) -> Iterator[Event]:
    """
    Output *lines* of a step that has ended, in their stored form. Their numbers follow all earlier
    numbers without reading earlier lines, because each recorded end is another event.
    """
    kept = islice(_kept(run, key, lines), _MOST_PIECES)
    for number, data in enumerate(kept, run.events * _SPACE + _HALF + 1):
        yield Event(run.id, number, now, EventKind.STEP_LOG, data)


def told(
    run: Execution, key: str, lines: Iterable[tuple[str, str]], now: EpochMs, before: int
) -> Iterator[Event]:
    """
    Masked output *lines* of a running step, in their stored form. *before*: the number of rows
    already stored in this way under this lease.
    """
    pieces = (log_of(run, key, stream, piece) for stream, text in lines for piece in _pieces(text))
    room = max(_HALF - before, 0)
    for number, data in enumerate(islice(pieces, room), run.events * _SPACE + before + 1):
        yield Event(run.id, number, now, EventKind.STEP_LOG, data)


def _kept(run: Execution, key: str, lines: Iterable[tuple[str, str]]) -> Iterator[JsonObject]:
    """
    The event data of *lines*: secrets masked, in pieces, with one limit for all streams together.
    EX-28, SC-1.
    """
    room, secrets = MOST_LOGGED, secret_values(run)
    for stream, written in lines:
        text = _mask_kept(written, secrets)
        if len(text) > room:
            text = text[:room] + NO_MORE if room else ""
        room = max(room - len(text), 0)
        for piece in _pieces(text):
            yield log_of(run, key, stream, piece)


_MAYBE_CUT = 10_000
"""
The length from which the beginning of a text may be missing: the last part of a stream is kept.
"""


def _mask_kept(text: str, secrets: Secrets) -> str:
    return mask_cut(text, secrets, start=len(text) > _MAYBE_CUT)


def mask_lines(text: str, *secrets: Secrets, continued: bool) -> str:
    """
    Output lines with secrets masked. *continued*: the lines follow a line that was too long to
    arrive whole. The text may also end within a line, or where output is cut off.
    """
    shown, no_more, _ = text.partition(NO_MORE)
    cut = bool(no_more) or not text.endswith("\n")
    for one in secrets:
        shown = mask_cut(shown, one, start=continued, end=cut)
    return shown + no_more


def log_of(run: Execution, key: str, stream: str, text: str) -> JsonObject:
    """The event data for output lines."""
    attempt = run.step_results[key].attempts
    return {"step": key, "attempt": attempt, "stream": stream, "text": text}


def _pieces(text: str) -> Iterator[str]:
    """*text* in pieces of whole lines, except for lines that are longer than a piece."""
    while len(text) > _PIECE:
        end = text.rfind("\n", 0, _PIECE) + 1 or _PIECE
        yield text[:end]
        text = text[end:]
    if text:
        yield text


def _rendered(templates: Templates, field: str, written: str, names: Mapping[str, Json]) -> str:
    try:
        return as_text(templates.render(written, names))
    except TemplateFailed as failed:
        raise NotRendered(field, failed) from None


async def named_secrets(services: Services, run: Execution, step: Step) -> Mapping[str, str]:
    """The secrets for the step's environment. Raises `SecretMissing`."""
    if not isinstance(step, CodeStep) or not step.secrets:
        return {}
    async with services.store.view() as view:
        owner = await view.get(Account, run.workflow_owner_id)
    if owner is None:
        raise SecretMissing(step.secrets[0], run.workflow_owner_id)
    return secrets_for(owner, step)


def without_secrets(end: StepEnd, hidden: Secrets) -> StepEnd:
    """*end* with the job's secrets masked. SC-6."""
    output = mask(end.output, hidden)
    return evolve(
        with_names_masked(end, hidden),
        output=output,
        size=end.size if output is end.output else None,
        error=end.error and mask_shortened(end.error, hidden),
        postponed=end.postponed and mask_text(end.postponed, hidden),
        lines=tuple((name, _mask_kept(text, hidden)) for name, text in end.lines),
    )


def with_names_masked(end: StepEnd, hidden: Secrets) -> StepEnd:
    """
    *end* with *hidden* masked in the names of its files. These names are stored and shown to people
    who know nothing of the execution. SC-1.
    """
    if not hidden:
        return end
    return evolve(
        end,
        files=tuple(evolve(one, name=mask_text(one.name, hidden)) for one in end.files),
        refused=tuple(evolve(one, name=mask_text(one.name, hidden)) for one in end.refused),
    )


def room_for(run: Execution, kept: Sequence[Artifact], failed: bool) -> int:
    """
    The number of artifacts that *run* may still have beside *kept*. Artifacts of an attempt do not
    count once a later attempt of the step has begun. These past artifacts have a limit of the same
    size, which bounds the artifacts of an attempt that *failed*. CS-14.
    """
    past = sum(1 for one in kept if _is_past(run, one))
    room = MOST_FILES - (len(kept) - past)
    return min(room, MOST_FILES - past) if failed else room


def _is_past(run: Execution, artifact: Artifact) -> bool:
    result = run.step_results.get(artifact.step_name)
    return result is not None and 0 < artifact.attempt < result.attempts


def fitting(end: StepEnd, room: int) -> StepEnd:
    """
    *end* if its files are within the limits of the execution; otherwise a failed end that keeps the
    files within the limits and names the other files. A failed attempt keeps its cause, and may be
    repeated as before. CS-10.
    """
    room = max(room, 0)
    if len(end.files) <= room:
        return end
    refused = [RefusedFile(file.name, _TOO_MANY_FILES) for file in end.files[room:]]
    return evolve(
        end,
        error=end.error or _TOO_MANY_FILES,
        permanent=end.permanent if end.error else True,
        files=end.files[:room],
        refused=(*end.refused, *refused[:_MOST_NAMED]),
    )


def end_facts(
    run: Execution, definition: Definition, step_name: str, end: StepEnd, now: EpochMs
) -> Sequence[facts.Fact]:
    """
    The facts of an attempt: its usage, its files, and its end; for an attempt that did not begin,
    its postponement.
    """
    if end.postponed is not None:
        why = mask_text(end.postponed, secret_values(run))
        if not end.lasting:
            return (postponement(run, step_name, why, now),)
        step = definition.step(name_of(step_name))
        return (lasting_postponement(run, step, step_name, why, now),)
    found: list[facts.Fact] = []
    if end.usage is not None or end.model is not None:
        found.append(facts.UsageRecorded(step_name, end.usage or NOTHING, end.model))
    if end.refused:
        found.append(facts.FilesRefused(step_name, end.refused))
    return (*found, _end_fact(run, definition, step_name, end, now))


def _end_fact(
    run: Execution, definition: Definition, step_name: str, end: StepEnd, now: EpochMs
) -> facts.Fact:
    if end.error is None:
        written = tuple(sorted(end.state or ()))
        return facts.StepDone(step_name, end.output, size=end.size, state=written)
    step = definition.step(name_of(step_name))
    error = mask_shortened(end.error, secret_values(run))
    return after_failure(
        run, step, step_name, error, now, permanent=end.permanent, timed_out=end.timed_out
    )
