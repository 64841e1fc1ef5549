"""Hypothesis strategies for definitions with nested steps."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from hypothesis import strategies as st

from wfcore.model.json import Json
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    Case,
    ChildStep,
    DataStep,
    Definition,
    DelayStep,
    LoopStep,
    ParallelStep,
    Step,
    SwitchStep,
)
from wfcore.testing import builders
from wfcore.testing.strategies.runs import BOOM, NO, YES, any_step, outputs, retries
from wfcore.time import DurationMs

DEEPEST = 2
"""The most containers around a step."""


@st.composite
def trees(draw: st.DrawFn, mild: bool = False) -> Definition:
    """
    A definition of any kinds of steps, up to three levels deep.

    *mild*: no step fails by itself or runs out of time.
    """
    names = (f"s{number}" for number in count())
    steps = draw(step_list(names, 0, mild, most=3))
    return builders.definition(*steps, **({} if mild else draw(outputs())))


@st.composite
def step_list(
    draw: st.DrawFn, names: Iterator[str], depth: int, mild: bool, most: int = 2
) -> tuple[Step, ...]:
    """One or more steps in sequence."""
    kinds = [_leaf] * (1 + 2 * depth) + [_delay, _child, _data]
    if depth < DEEPEST:
        kinds += [_parallel, _loop] * 2 + [_switch]
    return tuple(
        draw(draw(st.sampled_from(kinds))(names, depth, mild))
        for _ in range(draw(st.integers(1, most)))
    )


def _common(mild: bool) -> dict[str, st.SearchStrategy[Any]]:
    usual = (None, None, None, YES, NO)
    when = st.sampled_from(usual if mild else (*usual * 4, NO, BOOM))
    return {"when": when, "continue_on_error": st.booleans()}


def _leaf(names: Iterator[str], depth: int, mild: bool) -> st.SearchStrategy[Step]:
    name = next(names)
    if not mild:
        return any_step(name)
    code = st.builds(builders.code_step, st.just(name), retry=retries(), **_common(mild))
    return code | st.builds(ApprovalStep, st.just(name), **_common(mild))


def _delay(names: Iterator[str], depth: int, mild: bool) -> st.SearchStrategy[Step]:
    return st.builds(DelayStep, st.just(next(names)), _durations(), **_common(mild))


def _data(names: Iterator[str], depth: int, mild: bool) -> st.SearchStrategy[Step]:
    values: tuple[Json, ...] = (None, {"a": [1, YES]})
    given = st.sampled_from(values if mild else (*values * 3, BOOM))
    return st.builds(DataStep, st.just(next(names)), given, **_common(mild))


def _child(names: Iterator[str], depth: int, mild: bool) -> st.SearchStrategy[Step]:
    inputs = st.just({}) if mild else st.sampled_from(({}, {"a": 1}, {"a": BOOM}))
    return st.builds(
        ChildStep,
        st.just(next(names)),
        st.just("wf_2"),
        inputs,
        _timeouts(mild),
        retry=retries(),
        **_common(mild),
    )


@st.composite
def _parallel(draw: st.DrawFn, names: Iterator[str], depth: int, mild: bool) -> Step:
    name = next(names)
    branches = [
        Branch(f"b{at}", draw(step_list(names, depth + 1, mild))) for at in range(draw(_numbers(3)))
    ]
    most = draw(st.none() | _numbers(3))
    more = {field: draw(one) for field, one in _common(mild).items()}
    return ParallelStep(name, tuple(branches), most, draw(_timeouts(mild)), **more)


@st.composite
def _switch(draw: st.DrawFn, names: Iterator[str], depth: int, mild: bool) -> Step:
    name = next(names)
    whens = st.sampled_from((YES, NO, NO) if mild else (YES, NO, NO, BOOM))
    cases = [
        Case(draw(whens), draw(step_list(names, depth + 1, mild))) for _ in range(draw(_numbers(2)))
    ]
    otherwise = draw(step_list(names, depth + 1, mild)) if draw(st.booleans()) else ()
    more = {field: draw(one) for field, one in _common(mild).items()}
    return SwitchStep(name, tuple(cases), otherwise, draw(_timeouts(mild)), **more)


@st.composite
def _loop(draw: st.DrawFn, names: Iterator[str], depth: int, mild: bool) -> Step:
    name = next(names)
    lists: tuple[Json, ...] = ([], [1], ["a", "b"], [1, 2, 3])
    items = draw(st.sampled_from(lists if mild else (*lists * 3, BOOM, "no list")))
    steps = draw(step_list(names, depth + 1, mild))
    more = {field: draw(one) for field, one in _common(mild).items()}
    return LoopStep(
        name, items, f"i{depth}", steps, draw(_numbers(3)), draw(_timeouts(mild)), **more
    )


def _numbers(most: int) -> st.SearchStrategy[int]:
    return st.integers(1, most)


def _durations() -> st.SearchStrategy[DurationMs]:
    return st.sampled_from((1, 500, 20_000)).map(DurationMs)


def _timeouts(mild: bool) -> st.SearchStrategy[DurationMs | None]:
    return st.none() if mild else st.sampled_from((None, None, None, DurationMs(700)))
