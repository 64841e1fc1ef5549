"""Any JSON becomes a definition or a complete list of mistakes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from adapters_runtime.ai import schemas
from adapters_runtime.cron import CronCalendar
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.json import Json
from wfcore.model.trigger import TRIGGER_NAMES
from wfcore.model.workflow import Definition, LoopStep, ParallelStep, Step, SwitchStep
from wfcore.rules.definition.check import check_definition
from wfcore.testing.strategies.definition import definitions, seen_after
from wfcore.testing.strategies.values import json_values
from wfcore.testing.strategies.written import leaves, written

Keys = tuple[str | int, ...]

FREE = ("value", "output", "rows", "items", "inputs", "schema")
"""Fields in which any JSON is right, null is, or a library has to say what is."""


def check(document: Json) -> Definition:
    templates, calendar = MiniJinjaTemplates(), CronCalendar()
    return check_definition(document, templates.problems, calendar.problems, schemas.problems)


def mistakes(document: Json) -> tuple[Problem, ...]:
    try:
        check(document)
    except InvalidDefinition as error:
        return error.problems
    return ()


def replaced(document: Any, keys: Keys, value: Json) -> Any:
    changed = deepcopy(document)
    place = changed
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return changed


def typed_leaves(document: Json) -> dict[str, Keys]:
    """The scalars whose type the format lays down."""
    return {path: keys for path, keys in leaves(document) if not set(FREE) & set(keys)}


def in_default(keys: Keys) -> bool:
    return keys[0] == "variables" and "default" in keys and keys[-1] != "default"


@given(json_values())
def test_any_json_is_a_definition_or_has_mistakes_with_paths(document: Json) -> None:
    """No JSON makes anything but a definition or an `InvalidDefinition` that says where."""
    found = mistakes(document)
    assert found, "arbitrary JSON is hardly ever a definition"
    assert all(problem.path and problem.message for problem in found)


@given(definitions(), st.data())
def test_any_json_anywhere_in_a_definition_is_judged(
    definition: Definition, data: st.DataObject
) -> None:
    """A document with one part replaced by any JSON is right, or its mistakes have paths."""
    document = written(definition)
    keys = data.draw(st.sampled_from([keys for _, keys in leaves(document)]))
    keys = keys[: data.draw(st.integers(1, len(keys)))]
    found = mistakes(replaced(document, keys, data.draw(json_values())))
    assert all(problem.path and problem.message for problem in found)


@given(definitions())
def test_a_definition_is_what_was_written(definition: Definition) -> None:
    """The document of a definition gives exactly that definition."""
    assert check(written(definition)) == definition


@given(definitions(), st.data())
def test_a_wrong_type_is_reported_at_its_path(definition: Definition, data: st.DataObject) -> None:
    """Null or an object where a scalar belongs is a mistake with exactly that path."""
    document = written(definition)
    path, keys = data.draw(st.sampled_from(sorted(typed_leaves(document).items())))
    assume(not in_default(keys))
    wrong = data.draw(st.sampled_from((None, {"x": 1})))
    assert path in {problem.path for problem in mistakes(replaced(document, keys, wrong))}


@given(definitions(), st.data())
def test_all_mistakes_are_reported_at_once(definition: Definition, data: st.DataObject) -> None:
    """However many fields are wrong, each of them is in the list. DF-1."""
    document = written(definition)
    places = {
        path: keys
        for path, keys in typed_leaves(document).items()
        if keys[-1] not in ("kind", "type", "value") and not in_default(keys)
    }
    paths = data.draw(st.sets(st.sampled_from(sorted(places)), min_size=2, max_size=5))
    for path in paths:
        document = replaced(document, places[path], None)
    assert paths <= {problem.path for problem in mistakes(document)}


@given(definitions(), st.data())
def test_an_unknown_field_is_reported_wherever_it_is(
    definition: Definition, data: st.DataObject
) -> None:
    """A misspelt field is never ignored: it is a mistake at its own path. DF-4."""
    document = written(definition)
    places: list[Keys] = [(), ("steps", 0), *(("variables", name) for name in definition.variables)]
    keys = data.draw(st.sampled_from(places))
    found = mistakes(replaced(document, (*keys, "tiemout"), 1))
    assert [problem.path.endswith("tiemout") for problem in found] == [True]


@given(definitions())
def test_templates_see_only_what_comes_before(definition: Definition) -> None:
    """
    What a template may name is what is declared, the loops around it, and the steps that have
    certainly ended by then: not those of another branch, nor of a loop that it is not in; in
    `onFailure` also the error. DF-7, DF-14.
    """
    asked: list[tuple[Collection[str], Collection[str]]] = []

    def note(text: str, known: Mapping[str, Collection[str] | None]) -> Sequence[str]:
        if "steps" not in known:  # inputs of a trigger
            assert known["trigger"] == TRIGGER_NAMES
            assert known.keys() == {"trigger", "state"}
            return ()
        always = {"variables", "steps", "execution", "trigger", "state"}
        loops = known.keys() - always - {"loop", "error"}
        assert ("loop" in known) is bool(loops)
        assert {*(known["variables"] or ())} == {*definition.variables, *loops}
        asked.append((set(known["steps"] or ()), loops))
        return ()

    check_definition(written(definition), note, CronCalendar().problems)
    allowed = [*places(definition.steps, frozenset(), frozenset())]
    all_steps, _ = allowed[-1]
    allowed += places(definition.on_failure, all_steps, frozenset())
    assert all(place in allowed for place in asked)


Place = tuple[frozenset[str], frozenset[str]]


def places(steps: Sequence[Step], seen: frozenset[str], loops: frozenset[str]) -> Iterator[Place]:
    """What can be seen at each place: before each step, and behind the last one."""
    for step in steps:
        yield seen, loops
        if isinstance(step, ParallelStep):
            for branch in step.branches:
                yield from places(branch.steps, seen, loops)
        elif isinstance(step, SwitchStep):
            for lane in (*(case.steps for case in step.cases), step.otherwise):
                yield from places(lane, seen, loops)
        elif isinstance(step, LoopStep):
            yield from places(step.steps, seen, loops | {step.variable})
        seen |= {*seen_after(step)}
    yield seen, loops
