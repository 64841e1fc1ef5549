"""The shipped strategies: something for every class, valid, and small when they shrink."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import ModuleType, NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import attrs
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import wfcore.model
from adapters_store.memory import MemoryStore
from adapters_store.sqlite.store import SqliteStore
from wfcore.model.approval import Approval
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution, ExecutionStatus, StepResult
from wfcore.model.json import Json
from wfcore.model.workflow import Definition, LoopStep, ParallelStep, SwitchStep
from wfcore.ports.records import KIND_OF
from wfcore.rules.approval import machine as approval_rules
from wfcore.rules.auth.api_key import ALPHABET, ID_LENGTHS, RANDOM_LENGTH, parse
from wfcore.rules.execution import machine
from wfcore.rules.webhooks import webhook
from wfcore.testing.contracts import samples
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.strategies.derived import of_type
from wfcore.testing.strategies.records import values_of
from wfcore.testing.strategies.values import instants, json_values, key_texts, payloads


def classes(*modules: ModuleType) -> list[type]:
    """Every attrs class that a module defines."""
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__ and attrs.has(kind)
    ]


MODEL = [
    importlib.import_module(f"wfcore.model.{module.name}")
    for module in pkgutil.iter_modules(wfcore.model.__path__)
]
RECORDS = classes(*MODEL)
FACTS = classes(machine, webhook, approval_rules)
KEPT = [kind for kind in RECORDS if kind in (*KIND_OF, Event, AuditEntry)]


def by_name(kind: type) -> str:
    return kind.__name__


def conforms(value: Any, wanted: Any) -> bool:
    """Whether a value is of an annotation, all the way down; true is no number."""
    if wanted in (Any, Json) or isinstance(wanted, TypeVar | str):
        return True
    wanted = getattr(wanted, "__supertype__", wanted)
    arguments = get_args(wanted)
    match get_origin(wanted):
        case None if wanted in (None, NoneType):
            return value is None
        case None if wanted in (int, float):
            return isinstance(value, wanted) and not isinstance(value, bool)
        case None if attrs.has(wanted):
            return isinstance(value, wanted) and is_whole(value)
        case None:
            return isinstance(value, wanted)
        case origin if origin in (Union, UnionType):
            return any(conforms(value, one) for one in arguments)
        case origin if issubclass(origin, Mapping):
            return isinstance(value, Mapping) and all(
                conforms(key, arguments[0]) and conforms(one, arguments[1])
                for key, one in value.items()
            )
        case origin:
            return isinstance(value, origin | Sequence) and all(
                conforms(one, arguments[0]) for one in value
            )


def is_whole(record: Any) -> bool:
    """Whether every field of a record holds what the field's type says."""
    for field in attrs.fields(type(record)):
        assert conforms(getattr(record, field.name), field.type), f"{field.name} of {record}"
    return True


@pytest.mark.parametrize("kind", [*RECORDS, *FACTS], ids=by_name)
@settings(max_examples=10)
@given(data=st.data())
def test_there_are_values_of_every_class(kind, data):
    """Each record, fact and decision has a strategy whose values hold what their fields say."""
    value = data.draw(values_of(kind))
    assert type(value) is kind
    assert is_whole(value)


@pytest.mark.parametrize("kind", KEPT, ids=by_name)
async def test_stores_keep_every_value(kind, tmp_path):
    """What the strategies give, a store takes, and gives back as it was."""
    drawn: list[Any] = []

    @settings(max_examples=10, database=None)
    @given(value=values_of(kind))
    def draw(value) -> None:
        drawn.append(value)

    draw()
    for number, value in enumerate(drawn):
        for store in (MemoryStore(), await SqliteStore.open(tmp_path / f"{number}.db")):
            await keep(store, value)
            async with store.view() as view:
                assert await read_back(view, value) == as_kept(value)
            await store.close()


async def read_back(view: Any, value: Any) -> Any:
    if isinstance(value, Event):
        return (await view.events.of_execution(value.execution_id, value.number - 1, 1))[0]
    if isinstance(value, AuditEntry):
        return (await view.audit.list(value.at, None, 1))[0]
    return await view.get(type(value), *samples.identity(value))


def as_kept(value: Any) -> Any:
    return attrs.evolve(value, version=1) if hasattr(value, "version") else value


def test_many_executions_are_held():
    """A bug of leases needs executions that a worker holds: a third or more of those drawn."""
    drawn: list[Execution] = []

    @settings(max_examples=100, database=None)
    @given(run=values_of(Execution))
    def draw(run) -> None:
        drawn.append(run)

    draw()
    assert sum(run.worker is not None for run in drawn) > len(drawn) / 3


def test_an_unknown_type_of_field_is_said():
    """Who adds a record of a new sort is told where to say what its values are."""
    with pytest.raises(TypeError, match=r"Record\.field.*wfcore\.testing\.strategies"):
        of_type(bytes, values_of, "Record.field")


# Shrinking

NEEDED = {"Execution.due_at", "Page.total"}
"""Optional fields that the plainest value has: its status, or a page by number, asks for them."""
SHRINKING = settings(phases=[Phase.generate, Phase.shrink], database=None, max_examples=2_000)


def least(strategy: st.SearchStrategy, holds: Callable[[Any], object] = lambda value: True) -> Any:
    """The plainest value of which *holds* is true."""
    return find(strategy, holds, settings=SHRINKING)


@pytest.mark.parametrize("kind", [*RECORDS, *FACTS], ids=by_name)
def test_the_plainest_value_is_plain(kind):
    """With nothing to ask for, every optional field is empty and every choice the first."""
    plainest = least(values_of(kind))
    for field in attrs.fields(kind):
        held = getattr(plainest, field.name)
        optional = NoneType in get_args(field.type) and field.type != Json
        if optional and f"{by_name(kind)}.{field.name}" not in NEEDED:
            assert held is None, field.name
        elif isinstance(held, Enum) and field.default is attrs.NOTHING:
            assert held is next(iter(type(held))), field.name


def test_a_failed_execution_is_plain_but_for_its_failure():
    """One thing is asked for: what does not follow from it stays as plain as it was."""
    plainest = least(values_of(Execution))
    failed = least(values_of(Execution), lambda run: run.status is ExecutionStatus.FAILED)
    changed = {
        field.name
        for field in attrs.fields(Execution)
        if getattr(failed, field.name) != getattr(plainest, field.name)
    }
    assert changed == {"status", "completed_at", "error", "due_at"}


def test_one_step_is_one_plain_step():
    """Of a map of results, one entry is left, and that is plain."""
    run = least(values_of(Execution), lambda run: len(run.step_results) > 0)
    assert list(run.step_results.values()) == [least(values_of(StepResult))]


def test_one_row_is_one_empty_row():
    """A group with a row has no columns and one row with nothing but its id."""
    approval = least(values_of(Approval), lambda one: any(group.items for group in one.groups))
    (group,) = approval.groups
    assert group.columns == ()
    assert group.items == ({"id": 0},)


def test_two_steps_are_two_plain_steps():
    """A definition shrinks by steps and within them: no variable, no output, no condition."""
    two = least(values_of(Definition), lambda one: len(one.steps) == 2)
    assert (two.variables, two.has_output, two.description) == ({}, False, "")
    assert not {type(step) for step in two.steps} & {ParallelStep, LoopStep, SwitchStep}
    assert {step.when for step in two.steps} == {None}


FAILING = """
from hypothesis import Phase, given, settings
from wfcore import Approval, Execution
from wfcore.webhooks import Webhook
from wfcore.testing import values_of

for kind in (Approval, Execution, Webhook):
    @settings(database=None, derandomize=True, phases=[Phase.generate, Phase.shrink])
    @given(values_of(kind))
    def fails(value):
        raise AssertionError

    try:
        fails()
    except AssertionError as failed:
        print(*failed.__notes__)
"""


def test_a_failing_value_is_told_as_a_call_of_its_class():
    """What a failure prints can be read: the class, and no field that has its default."""
    run = subprocess.run(
        [sys.executable, "-c", FAILING], capture_output=True, text=True, timeout=60
    )
    assert re.findall(r"value=(\w+)\(", run.stdout) == ["Approval", "Execution", "Webhook"], (
        run.stderr
    )
    assert not re.search("lambda|None|version", run.stdout)


def test_json_keys_and_instants_are_small():
    """The least JSON, payload, key and instant that does it."""
    assert least(json_values(), lambda one: isinstance(one, list) and len(one) > 1) == [None, None]
    assert least(payloads(), lambda one: len(one) > 0) == {"0": None}
    assert least(instants()) == 0
    assert least(instants(), lambda at: at > 86_400_000) == 86_400_001
    key = parse(least(key_texts()))
    assert key.id == ALPHABET[0] * ID_LENGTHS[0]
    assert key.secret.startswith(ALPHABET[0] * RANDOM_LENGTH)
