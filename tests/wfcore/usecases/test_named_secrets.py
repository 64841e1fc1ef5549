"""Named secrets: who gets them, what is seen of them, and what is said where one is missing."""

import json
from collections.abc import Mapping

import pytest

from wfcore.errors import InvalidDefinition, InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Permission
from wfcore.model.execution import ExecutionStatus, RefusedFile
from wfcore.model.workflow import Definition, Retry
from wfcore.ports.runtime import LeftFile, StepEnd
from wfcore.rules.limits import SECRET_BYTES, SECRETS_PER_ACCOUNT
from wfcore.time import EpochMs
from wfcore.usecases.accounts import accounts
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.executions import read_events, read_execution
from wfcore.usecases.workflows import workflows
from wfcore.usecases.workflows.workflows import edit_workflow

from .conftest import World, code

TOKEN = "t0ken/with \"quotes\" and 'more'"


def given(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("WF_SECRET_")}


async def test_only_steps_that_list_a_secret_get_it(world: World) -> None:
    """Under its name in the environment, and nowhere else: not in the context of any step. SC-6."""
    ann = await world.account()
    for name, value in (("TOKEN", TOKEN), ("OTHER", "other")):
        await accounts.set_secret(world.services, OPERATOR, ann.account.id, name, value)
    workflow = await world.workflow(ann, code("a", secrets=("TOKEN",)), code("b"))
    await world.start(ann, workflow)
    lease, (first,) = await world.take()
    assert given(first.environment) == {"WF_SECRET_TOKEN": TOKEN}
    assert "t0ken" not in json.dumps(first.context)
    assert "t0ken" not in repr(first)
    (second,) = await world.finish(lease, "a")
    assert given(second.environment) == {}
    assert not second.hidden


async def test_what_comes_out_of_the_step_is_masked_before_it_is_stored(world: World) -> None:
    """Output, error, lines and names of files; no later step can read it there. SC-6."""
    ann = await world.account()
    await accounts.set_secret(world.services, OPERATOR, ann.account.id, "TOKEN", TOKEN)
    failing = code("a", secrets=("TOKEN",), continue_on_error=True)
    workflow = await world.workflow(ann, failing, code("b", secrets=("TOKEN",)), code("c"))
    id = await world.start(ann, workflow)
    lease, (job,) = await world.take()
    file = LeftFile("art_1", f"x{TOKEN}", "key", 1, "text/plain", "0" * 64, False)
    end = StepEnd(error=f"401 for {TOKEN}", files=(file,), refused=(RefusedFile(TOKEN, "link"),))
    lines = f"{TOKEN}\n{json.dumps(TOKEN)}"
    await worker.log_lines(world.services, lease, "a", "stdout", lines, job.hidden)
    await accounts.set_secret(world.services, OPERATOR, ann.account.id, "TOKEN", "another value")
    work = await worker.complete_step(world.services, lease, "a", end, hidden=job.hidden)
    (job,) = work.jobs
    assert given(job.environment) == {"WF_SECRET_TOKEN": "another value"}
    output = {"said": ["x another value"]}
    work = await worker.complete_step(
        world.services, lease, "b", StepEnd(output), hidden=job.hidden
    )
    (last,) = work.jobs
    assert "another value" not in json.dumps(last.context)
    run, events = await read_events(world.services, OPERATOR, id, 0)
    shown = repr((run, events))
    assert "401 for ***" in shown
    assert run.step_results["b"].output == {"said": ["x ***"]}
    assert "t0ken" not in shown
    assert "another value" not in shown


async def test_the_owner_of_the_workflow_gives_its_secrets(world: World) -> None:
    """Also where somebody else starts it, who has a secret of that name, too. SC-6."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    for who, value in ((ann, "of ann"), (bob, "of bob")):
        await accounts.set_secret(world.services, OPERATOR, who.account.id, "TOKEN", value)
    workflow = await world.workflow(ann, code("a", secrets=("TOKEN",)))
    await workflows.share_workflow(
        world.services, OPERATOR, workflow, bob.account.id, Permission.EXECUTE
    )
    await world.start(bob, workflow)
    _, (job,) = await world.take()
    assert given(job.environment) == {"WF_SECRET_TOKEN": "of ann"}


async def test_a_definition_whose_secret_is_missing_is_refused(world: World) -> None:
    """Each place is named with what to type, and nothing is stored. SC-7."""
    ann = await world.account()
    with pytest.raises(InvalidDefinition) as refusal:
        await world.workflow(ann, code("a"), code("b", secrets=("ONE", "TWO")))
    said = [(one.path, one.message) for one in refusal.value.problems]
    assert [path for path, _ in said] == ["steps[1].secrets[0]", "steps[1].secrets[1]"]
    assert f"wfcore secret set ONE --account {ann.account.id}" in said[0][1]
    async with world.services.store.view() as view:
        assert await view.workflows.by_name(ann.account.id, "flow") is None


async def test_who_edits_for_the_owner_adds_none_of_the_owners_secrets(world: World) -> None:
    """What the workflow lists already stays usable in any step; the owner may add more. SC-8."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    for name in ("TOKEN", "PAYROLL"):
        await accounts.set_secret(world.services, OPERATOR, ann.account.id, name, TOKEN)
    id = await world.workflow(ann, code("a", secrets=("TOKEN",)))
    await workflows.share_workflow(world.services, OPERATOR, id, bob.account.id, Permission.EDIT)
    more = Definition(name="flow", steps=(code("a"), code("b", secrets=("TOKEN", "PAYROLL"))))
    with pytest.raises(InvalidDefinition) as refusal:
        await edit_workflow(world.services, bob, id, more, "", 1)
    said = [(one.path, one.message) for one in refusal.value.problems]
    assert said == [("steps[1].secrets[1]", "only the workflow's owner may add PAYROLL")]
    moved = Definition(name="flow", steps=(code("a"), code("b", secrets=("TOKEN",))))
    assert (await edit_workflow(world.services, bob, id, moved, "", 1)).revision == 2
    assert (await edit_workflow(world.services, ann, id, more, "", 2)).revision == 3


async def test_a_step_whose_secret_is_gone_fails_at_once(world: World) -> None:
    """Not tried again, and its error says what to type. SC-7."""
    ann = await world.account()
    await accounts.set_secret(world.services, OPERATOR, ann.account.id, "TOKEN", TOKEN)
    step = code("a", secrets=("TOKEN",), retry=Retry(5))
    id = await world.start(ann, await world.workflow(ann, step))
    await accounts.delete_secret(world.services, OPERATOR, ann.account.id, "TOKEN")
    _, jobs = await world.take()
    assert jobs == ()
    run = await read_execution(world.services, OPERATOR, id)
    assert run.status is ExecutionStatus.FAILED
    assert "secrets: TOKEN is not set; wfcore secret set TOKEN" in (run.error or "")
    assert run.step_results["a"].attempts == 1


async def test_secrets_are_set_listed_and_deleted(world: World) -> None:
    """By name; the audit log says who did what with which name, and no value. SC-4, SC-5."""
    services, ann = world.services, (await world.account()).account
    for name, value in (("B", "first"), ("A", TOKEN), ("B", "second-value")):
        await accounts.set_secret(services, OPERATOR, ann.id, name, value)
    found = await accounts.list_secrets(services, ann.id)
    assert [(one.name, one.value) for one in found] == [("A", TOKEN), ("B", "second-value")]
    assert "t0ken" not in repr(found)
    await accounts.delete_secret(services, OPERATOR, ann.id, "A")
    for id, name in ((ann.id, "A"), ("acc_none", "B")):
        with pytest.raises(NotFound):
            await accounts.delete_secret(services, OPERATOR, id, name)
    with pytest.raises(NotFound):
        await accounts.list_secrets(services, "acc_none")
    entries = await read_audit(services, EpochMs(0), None, 100)
    told = [(one.event, one.details) for one in entries if one.event.startswith("secret")]
    assert told == [
        *[("secret.set", {"name": name}) for name in "BAB"],
        ("secret.delete", {"name": "A"}),
    ]
    assert "second-value" not in repr(entries)


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("1st", "x", "name"),
        ("A-B", "x", "name"),
        ("", "x", "name"),
        ("A" * 65, "x", "name"),
        ("Ä", "x", "name"),
        ("A\n", "x", "name"),
        ("A", "", "value"),
        ("A", "x" * (SECRET_BYTES + 1), "value"),
        ("A", "x\0y", "value"),
    ],
)
async def test_what_can_be_no_secret_is_refused(
    world: World, name: str, value: str, field: str
) -> None:
    """The refusal names the field, and never the value. SC-5."""
    ann = (await world.account()).account
    with pytest.raises(InvalidInput) as refusal:
        await accounts.set_secret(world.services, OPERATOR, ann.id, name, value)
    assert refusal.value.field == field
    assert await accounts.list_secrets(world.services, ann.id) == ()


async def test_an_account_has_a_bounded_number_of_secrets(world: World) -> None:
    """The longest value fits; one name more does not, but another value for one does. SC-5."""
    ann = (await world.account()).account
    for number in range(SECRETS_PER_ACCOUNT):
        await accounts.set_secret(
            world.services, OPERATOR, ann.id, f"S{number}", "x" * SECRET_BYTES
        )
    with pytest.raises(InvalidInput, match=r"^name: an account has at most 50 secrets$"):
        await accounts.set_secret(world.services, OPERATOR, ann.id, "MORE", "x")
    await accounts.set_secret(world.services, OPERATOR, ann.id, "S0", "y")
