"""How the shipped suites are asked about a planted bug, in this process: one promise at a time."""

import asyncio
import inspect
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from attrs import frozen
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from wfcore.errors import WfError
from wfcore.testing import vectors
from wfcore.testing.contracts import wakeups, worker, worker_site
from wfcore.testing.vectors.__main__ import text

CAUGHT = (AssertionError, ExceptionGroup, pytest.fail.Exception, TimeoutError, WfError)
"""What a suite may say of a bug; anything else is an accident of the planting."""
SOON_S = 0.7
QUICKLY = settings(
    max_examples=300,
    stateful_step_count=30,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@frozen
class Bug:
    """A planted bug: what goes wrong, how it is planted, and the promise that must break."""

    name: str
    plant: Callable[[], AbstractContextManager[Any]]
    catcher: Callable[[], None]


def patched(target: Any, name: str, new: Any) -> Callable[[], AbstractContextManager[Any]]:
    """Plants *new* as the attribute of that name."""
    return lambda: mock.patch.object(target, name, new)


def promise(contract: type, test: str, **fixtures: Callable[..., Any]) -> Callable[[], None]:
    """
    One test of a contract, with every set of its parameters; fixtures are made for each, and
    `folder` is an empty one.
    """

    def keep() -> None:
        function = getattr(contract, test)
        for parameters in _parameters(function):
            with tempfile.TemporaryDirectory() as folder:
                given = {"folder": Path(folder), **parameters}
                asyncio.run(_run(contract(), function, given, fixtures))

    return keep


async def _run(
    instance: Any,
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    fixtures: Mapping[str, Callable[..., Any]],
) -> None:
    made: dict[str, Any] = dict(parameters)
    try:
        for name, make in fixtures.items():
            needed = {one: made[one] for one in inspect.signature(make).parameters if one in made}
            found = make(**needed)
            made[name] = await found if inspect.isawaitable(found) else found
        wanted = inspect.signature(function).parameters
        ended = function(instance, **{name: one for name, one in made.items() if name in wanted})
        if inspect.isawaitable(ended):
            await ended
    finally:
        for one in made.values():
            if inspect.iscoroutinefunction(getattr(one, "close", None)):
                await one.close()


def _parameters(function: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """What `pytest.mark.parametrize` says, every combination."""
    choices = []
    for mark in getattr(function, "pytestmark", ()):
        names, values = mark.args[0], mark.args[1]
        split = [names] if isinstance(names, str) and "," not in names else _names(names)
        choices.append(
            [dict(zip(split, (one,) if len(split) == 1 else one, strict=True)) for one in values]
        )
    for chosen in product(*choices):
        yield {name: value for one in chosen for name, value in one.items()}


def _names(names: Any) -> list[str]:
    return [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)


@cache
def walk(machine: type[RuleBasedStateMachine]) -> Callable[[], None]:
    """A walk, or a comparison: a state machine of Hypothesis."""
    return lambda: run_state_machine_as_test(machine, settings=QUICKLY)


@cache
def vector(name: str) -> Callable[[], None]:
    """One document of the test vectors."""

    def keep() -> None:
        assert json.loads(text(name)) == vectors.load(name)

    return keep


@contextmanager
def impatient() -> Iterator[None]:
    """What never comes is not waited for as long as in an honest run."""
    with (
        mock.patch.object(worker_site, "PATIENCE_S", SOON_S),
        mock.patch.object(worker, "PATIENCE_S", SOON_S),
        mock.patch.object(wakeups, "PATIENCE_S", SOON_S),
    ):
        yield
