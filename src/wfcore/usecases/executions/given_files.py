"""The files that a step reads, as they are stored when the step begins. FI-1, FI-2."""

from collections import defaultdict
from collections.abc import Sequence

from wfcore.model.execution import Artifact, Execution
from wfcore.model.workflow import Definition
from wfcore.ports.store import View, head_of
from wfcore.rules.execution.given_files import (
    FilesUnavailable,
    GivenFolder,
    folder_of,
    latest,
    require_within,
    sources,
)
from wfcore.usecases.services import Services

KnownFolders = dict[tuple[str, int], GivenFolder[Artifact]]
"""
Folders by the key of a step that has ended and the number of its attempts, which do not change.
"""


async def files_for(
    services: Services, run: Execution, definition: Definition, key: str, known: KnownFolders
) -> tuple[GivenFolder[Artifact], ...]:
    """
    The files with which the step at *key* begins. *known*: folders that need not be read; the
    folders that are read are added. Raises `FilesUnavailable` if they are too large, or if a child
    was deleted since it ended. FI-5.
    """
    folders = await given_files(services, run, definition, key, known)
    require_within(folders, services.policy.files_bytes)
    return folders


async def given_files(
    services: Services,
    run: Execution,
    definition: Definition,
    key: str,
    known: KnownFolders | None = None,
) -> tuple[GivenFolder[Artifact], ...]:
    """The folders that the step at *key* reads. Raises `FilesUnavailable` for a deleted child."""
    found = sources(definition, run, key)
    known = {} if known is None else known
    results = run.step_results
    begun = [step for step in found if step in results and results[step].tries]
    places = {step: (step, results[step].attempts) for step in begun}
    if not known.keys() >= set(places.values()):
        async with services.store.view() as view:
            left: dict[str, list[Artifact]] = defaultdict(list)
            for one in latest(results, await view.artifacts.of_execution(run.id)):
                left[one.step_name].append(one)
            for step, place in places.items():
                child = found[step]
                files = left[step] if child is None else await _left_by(view, step, child)
                known[place] = folder_of(step, files)
    return tuple(known[places[step]] if step in places else GivenFolder(step, {}) for step in found)


async def _left_by(view: View, step: str, child_id: str) -> Sequence[Artifact]:
    """The artifacts of the child that *step* started."""
    child = await head_of(view, child_id)
    if child is None:
        raise FilesUnavailable(f"{child_id}, which {step} started, was deleted with its files")
    return tuple(latest(child.step_results, await view.artifacts.of_execution(child_id)))
