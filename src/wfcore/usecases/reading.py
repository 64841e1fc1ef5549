"""
Executions as units of work need them: without large outputs, until a rule asks for one. ST-7.

What a store leaves out of an execution (`ports.store.head_of`) is read when a rule asks for it:
`NotRead` says which value, the whole unit is repeated, as after `Stale`, and reads it from the
start. So rules do not know of it, a poll reads no output, and a step's template costs what it
names.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from wfcore.errors import LeaseLost, NotRead, Stale
from wfcore.model.execution import Execution
from wfcore.ports.store import View, filled, head_of
from wfcore.usecases.services import Services

_ONE_BY_ONE = 4
"""From so many outputs of one execution on, all of them are read."""

Wanted = dict[str, set[str | None] | None]
"""By execution, the steps whose outputs a unit of work asked for; None: all."""

_wanted: ContextVar[Wanted] = ContextVar("wanted")


@contextmanager
def remembered(wanted: Wanted) -> Iterator[None]:
    """Within it, `execution_of` reads what is *wanted*, too."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def want(wanted: Wanted, missed: NotRead) -> None:
    """From the next repetition on, it is read."""
    keys = wanted.setdefault(missed.execution_id, set())
    if keys is None or len(keys) >= _ONE_BY_ONE or missed.key in keys:
        wanted[missed.execution_id] = None
    else:
        keys.add(missed.key)


async def execution_of(view: View, id: str) -> Execution | None:
    """`head_of`, with the outputs that this unit of work asked for before. Raises `Stale`."""
    run = await head_of(view, id)
    wanted = _wanted.get({})
    if run is None or id not in wanted:
        return run
    return await filled(view, run, wanted[id])


async def outputs_of(
    services: Services, run: Execution, keys: set[str | None] | None = None
) -> Execution:
    """
    *run* with the outputs of these steps (None among them: with its own), or of all; as it is now,
    if it has changed meanwhile.
    """
    async with services.store.view() as view:
        try:
            return await filled(view, run, keys)
        except Stale:
            return await view.get(Execution, run.id) or run


async def held_outputs(
    services: Services, run: Execution, keys: set[str | None] | None = None
) -> Execution:
    """The same of an execution that a worker holds. Raises `LeaseLost`."""
    found = await outputs_of(services, run, keys)
    if (found.worker, found.fence) != (run.worker, run.fence):
        raise LeaseLost(run.id)
    return found
