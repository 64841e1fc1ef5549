"""Packages of steps: installed at apply or nothing is applied, removed when nobody needs them."""

import pytest
from attrs import evolve

from wfcore.errors import InvalidDefinition
from wfcore.model.access import OPERATOR
from wfcore.model.page import PageRequest
from wfcore.model.workflow import CodeStep, Language, LoopStep, Needs
from wfcore.testing import builders as make
from wfcore.testing.fakes import NotedEnvironments
from wfcore.usecases.audit.auditing import UNKNOWN
from wfcore.usecases.upkeep import retention
from wfcore.usecases.workflows import workflows

from .conftest import World, code

ONE = Needs(Language.PYTHON, ("one==1",), lock="release 1")
TWO = Needs(Language.PYTHON, ("two==1",), lock="release 1")


@pytest.fixture
def noted() -> NotedEnvironments:
    return NotedEnvironments("nowhere")


@pytest.fixture
def bringing(world: World, noted: NotedEnvironments) -> World:
    return evolve(world, services=evolve(world.services, environments=noted))


def python(name: str, *requirements: str) -> CodeStep:
    return CodeStep(name, Language.PYTHON, "1", requirements=requirements)


async def test_apply_installs_what_the_steps_ask_for(
    bringing: World, noted: NotedEnvironments
) -> None:
    """Each set once; a definition without packages asks for none. PK-3."""
    ann = await bringing.account()
    await bringing.workflow(ann, code("a"))
    assert noted.idle == {}
    await bringing.workflow(
        ann, python("a", "one==1"), python("b", "one==1"), python("c", "two==1"), name="two"
    )
    assert set(noted.idle) == {ONE, TWO}


async def test_what_cannot_be_installed_keeps_the_definition_out(
    bringing: World, noted: NotedEnvironments
) -> None:
    """All failures at once, each at its field, in the installer's words; nothing stored. PK-3."""
    ann = await bringing.account()
    steps = (python("a", "nowhere==1"), python("b", "one==1"), python("c", "nowhere==2"))
    with pytest.raises(InvalidDefinition) as caught:
        await bringing.workflow(ann, *steps)
    assert [(one.path, one.message) for one in caught.value.problems] == [
        ("steps[0].requirements", "there is no nowhere==1"),
        ("steps[2].requirements", "there is no nowhere==2"),
    ]
    found = await workflows.list_workflows(bringing.services, OPERATOR, PageRequest())
    assert found.total == 0
    noted.missing = ()
    await bringing.workflow(ann, *steps)


async def test_applying_again_brings_back_what_is_gone(
    bringing: World, noted: NotedEnvironments
) -> None:
    """The same definition again is no new revision, but its packages are there again. PK-5."""
    ann = await bringing.account()
    id = await bringing.workflow(ann, python("a", "one==1"))
    noted.idle.clear()
    await bringing.workflow(ann, python("a", "one==1"))
    assert noted.find(ONE) is not None
    defined = await workflows.read_workflow(bringing.services, OPERATOR, id)
    assert defined.workflow.revision == 1


async def test_where_nothing_can_be_installed_apply_says_so(world: World) -> None:
    """A service without environments refuses packages by name, and takes everything else."""
    ann = await world.account()
    with pytest.raises(InvalidDefinition, match="packages cannot be installed here"):
        await world.workflow(ann, python("a", "one==1"))
    assert await workflows.prune_packages(world.services) == 0
    assert world.services.environments.find(ONE) is None


async def test_packages_stay_while_somebody_needs_them(
    bringing: World, noted: NotedEnvironments
) -> None:
    """A current definition needs them, and an execution that has not ended. PK-6."""
    ann = await bringing.account()
    id = await bringing.workflow(ann, python("a", "one==1"))
    run_id = await bringing.start(ann, id)
    await bringing.workflow(ann, python("a", "two==1"))
    noted.grow_old()
    assert await workflows.prune_packages(bringing.services) == 0
    lease, _ = await bringing.take()
    assert lease.execution_id == run_id
    await bringing.finish(lease, "a")
    noted.grow_old()
    await retention.run_upkeep(bringing.services)
    assert set(noted.idle) == {TWO}
    await workflows.delete_workflow(bringing.services, OPERATOR, id)
    assert await workflows.prune_packages(bringing.services) == 1
    assert noted.idle == {}


async def locks(world: World, id: str) -> list[str | None]:
    """The locks of a workflow's steps as they are now."""
    defined = await workflows.read_workflow(world.services, OPERATOR, id)
    return [step.lock for step in defined.definition.walk() if isinstance(step, CodeStep)]


async def test_what_packages_were_resolved_to_is_kept_with_the_definition(
    bringing: World, noted: NotedEnvironments
) -> None:
    """
    Each step has its lock, nested ones too, which stays while its packages do, whatever else
    changes; other packages are resolved anew. PK-9.
    """
    ann = await bringing.account()
    loop = LoopStep("l", [1], "one", (python("b", "one==1"),))
    id = await bringing.workflow(ann, python("a", "one==1"), loop)
    assert await locks(bringing, id) == ["release 1", "release 1"]
    noted.release = 2
    assert await bringing.workflow(ann, python("a", "one==1"), loop) == id
    assert (await workflows.read_workflow(bringing.services, OPERATOR, id)).workflow.revision == 1
    await bringing.workflow(ann, python("a", "one==1"), python("new", "two==1"))
    assert await locks(bringing, id) == ["release 1", "release 2"]


async def test_what_was_applied_before_there_were_locks_gets_one_when_applied_again(
    bringing: World, noted: NotedEnvironments
) -> None:
    """The same text again is a new revision then, and only then. PK-9."""
    ann = await bringing.account()
    definition = make.definition(python("a", "one==1"))
    text = workflows._Text(definition, "", None)
    before = await workflows._apply(bringing.services, ann.account.id, text, UNKNOWN, None, None)
    assert await locks(bringing, before.id) == [None]
    for _ in range(2):
        now = await workflows.apply_workflow(bringing.services, ann.account.id, definition)
        assert (now.id, now.revision) == (before.id, 2)
    assert await locks(bringing, before.id) == ["release 1"]
