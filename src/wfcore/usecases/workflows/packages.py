"""Packages of code steps: installed when a definition is applied, removed when unused. PK-3."""

from collections.abc import Collection

from wfcore.errors import InvalidDefinition, PackagesUnavailable, Problem
from wfcore.model.workflow import Definition, Needs
from wfcore.rules.definition.packages import locked, needs_of, with_locks_of
from wfcore.usecases.services import Services


async def prepare_packages(
    services: Services, definition: Definition, before: Definition | None = None
) -> Definition:
    """
    Have everything installed that the steps of *definition* import; it comes back with the locks
    that say what that is. What has not changed since *before* keeps its lock. PK-3, PK-9.

    Raises `InvalidDefinition` with a problem for each field whose packages could not be.
    """
    definition = with_locks_of(definition, before)
    found: dict[Needs, Needs] = {}
    problems = []
    for needs, path in needs_of(definition).items():
        try:
            found[needs] = await services.environments.prepare(needs)
        except PackagesUnavailable as refusal:
            problems.append(Problem(path, str(refusal)))
    if problems:
        raise InvalidDefinition(tuple(problems))
    return locked(definition, found)


async def prune_packages(services: Services) -> int:
    """Remove environments that no definition in use refers to; how many went. PK-6."""

    async def in_use() -> Collection[Needs]:
        async with services.store.view() as view:
            snapshots = await view.definitions.in_use()
        return {needs for one in snapshots for needs in needs_of(one.definition)}

    return await services.environments.prune(in_use)
