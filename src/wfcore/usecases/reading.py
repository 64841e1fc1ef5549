"""
Executions without large outputs until a rule needs a large output. ST-7.

A rule that needs an omitted value (`ports.store.head_of`) raises `NotRead`, which names the value.
The whole unit is then repeated, as after `Stale`, and reads the value from the start. So rules know
nothing of omissions, a poll reads no output, and a template of a step costs only the values that it
names.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from wfcore.errors import LeaseLost, NotRead, Stale
from wfcore.model.execution import Execution
from wfcore.ports.store import View, filled, head_of, texts_of
from wfcore.usecases.services import Services

_ONE_BY_ONE = 4
"""The number of missing outputs of one execution from which all of its outputs are read."""

Wanted = dict[str, set[str | None] | None]
"""The steps whose outputs a unit of work needs, by execution; None: all steps."""

_wanted: ContextVar[Wanted] = ContextVar("wanted")


@contextmanager
def remembered(wanted: Wanted) -> Iterator[None]:
    """A context in which `execution_of` also reads the outputs in *wanted*."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def want(wanted: Wanted, missed: NotRead) -> None:
    """Add the value of *missed* to *wanted*, so that the next repetition reads it."""
    keys = wanted.setdefault(missed.execution_id, set())
    if keys is None or len(keys) >= _ONE_BY_ONE or missed.key in keys:
        wanted[missed.execution_id] = None
    else:
        keys.add(missed.key)


async def execution_of(view: View, id: str) -> Execution | None:
    """
    The execution from `head_of`, with the outputs that this unit of work needed before. Raises
    `Stale`.
    """
    run = await head_of(view, id)
    wanted = _wanted.get({})
    if run is None or id not in wanted:
        return run
    return await filled(view, run, wanted[id])


async def outputs_of(
    services: Services, run: Execution, keys: set[str | None] | None = None
) -> Execution:
    """
    *run* with the outputs of the steps *keys* (the key None: the execution's own output); with
    *keys* None, of all steps. If the execution has changed in the meantime, its present state.
    """
    async with services.store.view() as view:
        try:
            return await filled(view, run, keys)
        except Stale:
            return await view.get(Execution, run.id) or run


async def held_texts(
    services: Services, run: Execution, keys: Collection[str]
) -> Mapping[str, bytes]:
    """
    The unread outputs of the steps *keys* of an execution that a worker holds, as JSON text by key.
    Raises `Stale` if the execution has changed.
    """
    async with services.store.view() as view:
        return await texts_of(view, run, keys)


async def held_again(services: Services, run: Execution) -> Execution:
    """The present state of an execution that a worker holds. Raises `LeaseLost`."""
    async with services.store.view() as view:
        found = await head_of(view, run.id)
    return _still_held(run, found)


async def held_outputs(
    services: Services, run: Execution, keys: set[str | None] | None = None
) -> Execution:
    """The result of `outputs_of` for an execution that a worker holds. Raises `LeaseLost`."""
    return _still_held(run, await outputs_of(services, run, keys))


def _still_held(run: Execution, found: Execution | None) -> Execution:
    if found is None or (found.worker, found.fence) != (run.worker, run.fence):
        raise LeaseLost(run.id)
    return found
