"""The document that a person would write for a definition."""

from collections.abc import Iterator, Mapping
from typing import Any

from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import Schedule, TriggerKind, TriggerSpec
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    Budget,
    ChildStep,
    CodeStep,
    Column,
    Concurrency,
    DataStep,
    Definition,
    DelayStep,
    GroupSpec,
    Language,
    Listen,
    LoopStep,
    MailStep,
    ParallelStep,
    Retry,
    Step,
    SwitchStep,
    Variable,
)
from wfcore.rules.paths import below


def written(definition: Definition) -> dict[str, Any]:
    """The document for *definition*, with every field spelled out."""
    document: dict[str, Any] = {
        "name": definition.name,
        "description": definition.description,
        "variables": {name: _variable(one) for name, one in definition.variables.items()},
        "steps": [_step(step) for step in definition.steps],
        "triggers": [_trigger(spec) for spec in definition.triggers],
        "onInterrupt": definition.on_interrupt.value,
        "notifyOnFailure": [*definition.notify_on_failure],
    }
    if definition.on_failure:
        document["onFailure"] = [_step(step) for step in definition.on_failure]
    if definition.budget is not None:
        document["budget"] = _budget(definition.budget)
    if definition.concurrency is not None:
        document["concurrency"] = _concurrency(definition.concurrency)
    if definition.reference is not None:
        document["reference"] = definition.reference
    return document | ({"output": definition.output} if definition.has_output else {})


def _budget(budget: Budget) -> JsonObject:
    return _given(
        maxCostUsd=budget.max_cost_usd,
        maxTokens=budget.max_tokens,
        onExceeded=budget.on_exceeded.value,
    )


def _given(**fields: Json) -> dict[str, Json]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _variable(variable: Variable) -> JsonObject:
    written = {
        "type": variable.type.value,
        "required": variable.required,
        "secret": variable.secret,
        "description": variable.description,
    }
    return written | ({"default": variable.default} if variable.has_default else {})


def _step(step: Step) -> JsonObject:
    document: dict[str, Json] = {"name": step.name, "continueOnError": step.continue_on_error}
    if step.when is not None:
        document["when"] = step.when
    timeout = None if isinstance(step, DelayStep | DataStep) else step.timeout_ms
    if timeout is not None:
        document["timeout"] = timeout
    if isinstance(step, CodeStep | AiStep) and step.on_interrupt is not None:
        document["onInterrupt"] = step.on_interrupt.value
    return document | _by_kind(step)


def _by_kind(step: Step) -> dict[str, Json]:
    match step:
        case CodeStep():
            return _code(step)
        case AiStep():
            return _ai(step)
        case ApprovalStep():
            return _approval(step)
        case MailStep():
            return {
                "kind": "mail",
                "to": [*step.to],
                "subject": step.subject,
                "body": step.body,
                "attach": [*step.attach],
            }
        case DelayStep():
            return {"kind": "delay", "duration": step.duration_ms}
        case ChildStep():
            return {
                "kind": "workflow",
                "workflow": step.workflow,
                "inputs": step.inputs,
                "retry": _retry(step.retry),
            }
        case ParallelStep():
            return _parallel(step)
        case LoopStep():
            return _loop(step)
        case DataStep():
            return {"kind": "data", "value": step.value}
        case SwitchStep():
            return _switch(step)


def _parallel(step: ParallelStep) -> dict[str, Json]:
    most: dict[str, Json] = {"maxParallel": step.max_parallel} if step.max_parallel else {}
    return {
        "kind": "parallel",
        "branches": [
            {"name": branch.name, "steps": [_step(one) for one in branch.steps]}
            for branch in step.branches
        ],
        **most,
    }


def _switch(step: SwitchStep) -> dict[str, Json]:
    cases: list[Json] = [
        {"when": case.when, "steps": [_step(one) for one in case.steps]} for case in step.cases
    ]
    document: dict[str, Json] = {"kind": "switch", "cases": cases}
    return document | ({"else": [_step(one) for one in step.otherwise]} if step.otherwise else {})


def _loop(step: LoopStep) -> dict[str, Json]:
    return {
        "kind": "loop",
        "items": step.items if isinstance(step.items, str) else [*_listed(step.items)],
        "as": step.variable,
        "steps": [_step(one) for one in step.steps],
        "maxParallel": step.max_parallel,
    }


def _code(step: CodeStep) -> dict[str, Json]:
    is_command = step.language is Language.COMMAND
    return {
        "kind": "code",
        "language": step.language.value,
        "network": step.network,
        "retry": _retry(step.retry),
        "requirements": [*step.requirements],
        "packages": [*step.packages],
        "secrets": [*step.secrets],
        "files": [*step.files],
        "labels": [*step.labels],
        **({"command": [*step.command]} if is_command else {"source": step.source}),
        **({"runtime": step.runtime.value} if step.runtime else {}),
        **({"listen": step.listen is Listen.LOOPBACK or "any"} if step.listen else {}),
    }


def _ai(step: AiStep) -> dict[str, Json]:
    return _given(
        kind="ai",
        labels=[*step.labels],
        model=step.model,
        system=step.system,
        prompt=step.prompt,
        retry=_retry(step.retry),
        maxTokens=step.max_tokens,
        temperature=step.temperature,
        schema=step.schema,
        fallback=[*step.fallback] or None,
    )


def _retry(retry: Retry) -> JsonObject:
    return {"attempts": retry.attempts, "delay": retry.delay_ms, "backoff": retry.backoff}


def _approval(step: ApprovalStep) -> dict[str, Json]:
    return {
        "kind": "manual_approval",
        "message": step.message,
        "approvers": [*step.approvers],
        "groups": [_group(group) for group in step.groups],
        "requiredApprovals": step.required_approvals,
        "allowSelfApproval": step.allow_self_approval,
        "reminders": [*step.reminders],
        "links": step.links.value,
        "assurance": step.assurance.value,
        **({"notify": [*step.notify]} if step.notify is not None else {}),
    }


def _group(group: GroupSpec) -> JsonObject:
    written: dict[str, Json] = {
        "name": group.name,
        "title": group.title,
        "rows": group.rows if isinstance(group.rows, str) else [*_listed(group.rows)],
        "columns": [_column(column) for column in group.columns],
    }
    if group.row_key is not None:
        written |= {"rowKey": group.row_key}
    return written | {"allowAdd": True} if group.allow_add else written


def _listed(rows: Json) -> tuple[Json, ...]:
    return tuple(rows) if isinstance(rows, list | tuple) else ()


def _column(column: Column) -> JsonObject:
    return {
        "key": column.key,
        "title": column.title,
        "type": column.type.value,
        "editable": column.editable,
        "required": column.required,
        "options": [*column.options],
    }


def leaves(document: Json, path: str = "") -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """The path and the keys of every scalar in a document."""
    parts: Mapping[Any, Json] = {}
    if isinstance(document, Mapping):
        parts = document
    elif isinstance(document, list | tuple):
        parts = dict(enumerate(document))
    else:
        yield path, ()
    for key, part in parts.items():
        for where, keys in leaves(part, below(path, key)):
            yield where, (key, *keys)


def _trigger(spec: TriggerSpec) -> JsonObject:
    """A trigger as written in a definition."""
    written: dict[str, Json]
    if isinstance(spec, Schedule):
        written = {"kind": "SCHEDULE", "cron": spec.cron, "timezone": spec.timezone}
        written |= {} if spec.pause_after is None else {"pauseAfter": spec.pause_after}
        written |= {"inputs": spec.inputs} if spec.inputs else {}
        return written if spec.missed is None else written | {"missed": spec.missed.value}
    kind = TriggerKind.DELAYED_COMPLETION.value
    written = {"kind": kind, "workflow": spec.workflow, "delaySeconds": spec.delay_seconds}
    written |= {"on": [one.value for one in spec.on], "inputs": spec.inputs}
    return written if spec.max_runs is None else written | {"maxRuns": spec.max_runs}


def _concurrency(concurrency: Concurrency) -> JsonObject:
    """A limit as written in a definition."""
    written: dict[str, Json] = {
        "limit": concurrency.limit,
        "onLimit": concurrency.on_limit.value,
    }
    return written if concurrency.key is None else written | {"key": concurrency.key}
