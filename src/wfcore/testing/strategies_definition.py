"""
Hypothesis strategies for definitions, and the documents that say them.

`definitions()` gives checked definitions whose templates only use names they can see;
`written()` gives the document that a person would have written for one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve
from hypothesis import strategies as st

from wfcore.instants import DAY, DurationMs
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import (
    ApprovalStep,
    CodeStep,
    Column,
    ColumnType,
    Definition,
    GroupSpec,
    Language,
    Retry,
    Step,
    Variable,
)
from wfcore.rules.field_paths import below
from wfcore.testing.strategies import texts, variables

STEP_NAMES = ("fetch", "review_1", "Apply", "_last")
VARIABLE_NAMES = ("limit", "order_id", "_x", "region.code", "a-b")


def durations() -> st.SearchStrategy[DurationMs]:
    """Durations that a definition may name."""
    return st.integers(1, 365 * DAY).map(DurationMs)


def filled_texts() -> st.SearchStrategy[str]:
    """Text that is not blank."""
    return texts(1).filter(lambda text: bool(text.strip()))


def expressions(declared: tuple[str, ...], before: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Templates over the names that are known at a place."""
    return st.sampled_from(
        [
            "{{ execution.id }}",
            '{{ "a" }}',
            *(f'{{{{ variables["{name}"] }}}}' for name in declared),
            *(f"{{{{ steps.{name}.output.rows | length > 0 }}}}" for name in before),
        ]
    )


def templates(declared: tuple[str, ...], before: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Text with templates in it, or without."""
    plain = st.sampled_from(("", "Review these", "ä ✓ }", "a\nb"))
    return st.lists(plain | expressions(declared, before), max_size=3).map("".join)


@st.composite
def columns(draw: st.DrawFn, key: str) -> Column:
    """A column of that key."""
    type = draw(st.sampled_from(ColumnType))
    scalars = st.lists(st.integers(0, 9) | st.booleans() | st.just("x"), min_size=1, max_size=3)
    return Column(
        key,
        draw(texts()),
        type,
        editable=draw(st.booleans()),
        required=draw(st.booleans()),
        options=tuple(draw(scalars)) if type is ColumnType.ENUM else (),
    )


@st.composite
def group_specs(
    draw: st.DrawFn, name: str, declared: tuple[str, ...], before: tuple[str, ...]
) -> GroupSpec:
    """A group of that name with rows from a template, or written out."""
    keys = draw(st.lists(st.sampled_from(("id", "amount", "a note")), max_size=3, unique=True))
    row = st.dictionaries(st.sampled_from(("id", "amount")), templates(declared, before))
    return GroupSpec(
        name,
        draw(texts()),
        draw(expressions(declared, before) | st.lists(row, max_size=2)),
        columns=tuple(draw(columns(key)) for key in keys),
        row_key=draw(st.none() | st.sampled_from(keys or ["id"])),
    )


@st.composite
def code_steps(
    draw: st.DrawFn, name: str, declared: tuple[str, ...], before: tuple[str, ...]
) -> CodeStep:
    """A code step that uses only what comes before it."""
    language = draw(st.sampled_from(Language))
    is_command = language is Language.COMMAND
    arguments = st.lists(templates(declared, before), max_size=2)
    return CodeStep(
        name,
        language,
        source="" if is_command else draw(st.sampled_from(("exit", "{{ not a template", "é\n"))),
        command=("curl", *draw(arguments)) if is_command else (),
        timeout_ms=draw(durations()),
        network=draw(st.booleans()),
        when=draw(st.none() | expressions(declared, before)),
        retry=Retry(draw(st.integers(1, 100)), draw(durations()), draw(st.floats(1, 100))),
        continue_on_error=draw(st.booleans()),
    )


@st.composite
def approval_steps(
    draw: st.DrawFn, name: str, declared: tuple[str, ...], before: tuple[str, ...]
) -> ApprovalStep:
    """An approval step that uses only what comes before it."""
    names = draw(st.lists(st.sampled_from(("rows", "Refunds", "x y")), max_size=2, unique=True))
    approvers = draw(st.lists(st.sampled_from(("ann@example.org", "acc_1")), max_size=2))
    timeout = draw(durations())
    reminders = st.lists(st.integers(1, max(timeout - 1, 1)).map(DurationMs), max_size=2)
    return ApprovalStep(
        name,
        message=draw(templates(declared, before)),
        timeout_ms=timeout,
        approvers=tuple(approvers),
        groups=tuple(draw(group_specs(group, declared, before)) for group in names),
        required_approvals=draw(st.integers(1, len(set(approvers)) or 5)),
        allow_self_approval=draw(st.booleans()),
        reminders=tuple(draw(reminders) if timeout > 1 else ()),
        when=draw(st.none() | expressions(declared, before)),
        continue_on_error=draw(st.booleans()),
    )


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    """A checked definition; `steps_as_written` is what `written` says of it."""
    declared = tuple(draw(st.lists(st.sampled_from(VARIABLE_NAMES), max_size=3, unique=True)))
    names = draw(st.lists(st.sampled_from(STEP_NAMES), min_size=1, max_size=3, unique=True))
    steps: list[Step] = []
    for at, name in enumerate(names):
        before = tuple(names[:at])
        steps.append(
            draw(code_steps(name, declared, before) | approval_steps(name, declared, before))
        )
    output = st.dictionaries(texts(), templates(declared, tuple(names)), max_size=2)
    has_output = draw(st.booleans())
    definition = Definition(
        name=draw(filled_texts()),
        steps=tuple(steps),
        steps_as_written=(),
        variables={name: draw(variables(name)) for name in declared},
        output=draw(output) if has_output else None,
        has_output=has_output,
        description=draw(texts()),
    )
    document = written(definition)
    return evolve(definition, steps_as_written=tuple(document["steps"]))


def written(definition: Definition) -> dict[str, Any]:
    """The document that says *definition*, with every field written out."""
    document: dict[str, Any] = {
        "name": definition.name,
        "description": definition.description,
        "variables": {name: _variable(one) for name, one in definition.variables.items()},
        "steps": [_step(step) for step in definition.steps],
    }
    return document | ({"output": definition.output} if definition.has_output else {})


def _variable(variable: Variable) -> JsonObject:
    written = {
        "type": variable.type.value,
        "required": variable.required,
        "secret": variable.secret,
    }
    return written | ({"default": variable.default} if variable.has_default else {})


def _step(step: Step) -> JsonObject:
    common: dict[str, Json] = {
        "name": step.name,
        "timeout": step.timeout_ms,
        "continueOnError": step.continue_on_error,
    }
    if step.when is not None:
        common["when"] = step.when
    return common | (_code(step) if isinstance(step, CodeStep) else _approval(step))


def _code(step: CodeStep) -> dict[str, Json]:
    is_command = step.language is Language.COMMAND
    return {
        "kind": "code",
        "language": step.language.value,
        "network": step.network,
        "retry": {
            "attempts": step.retry.attempts,
            "delay": step.retry.delay_ms,
            "backoff": step.retry.backoff,
        },
        **({"command": [*step.command]} if is_command else {"source": step.source}),
    }


def _approval(step: ApprovalStep) -> dict[str, Json]:
    return {
        "kind": "manual_approval",
        "message": step.message,
        "approvers": [*step.approvers],
        "groups": [_group(group) for group in step.groups],
        "requiredApprovals": step.required_approvals,
        "allowSelfApproval": step.allow_self_approval,
        "reminders": [*step.reminders],
    }


def _group(group: GroupSpec) -> JsonObject:
    written: dict[str, Json] = {
        "name": group.name,
        "title": group.title,
        "rows": group.rows if isinstance(group.rows, str) else [*_rows(group.rows)],
        "columns": [_column(column) for column in group.columns],
    }
    return written if group.row_key is None else written | {"rowKey": group.row_key}


def _rows(rows: Json) -> tuple[Json, ...]:
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
    """Path and keys of every scalar in a document."""
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
