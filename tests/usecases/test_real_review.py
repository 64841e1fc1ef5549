"""What an approver is shown beside rows, and answers: attachments and fields, over both stores."""

import pytest

from usecases.conftest import World, code, review
from wfcore.errors import InvalidInput, ItemsChanged, NotFound
from wfcore.model.access import Principal
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.json import JsonObject
from wfcore.model.workflow import Column, ColumnType
from wfcore.ports.runtime import LeftFile
from wfcore.rules.approval.machine import Approve, Reject, items_hash
from wfcore.usecases.approvals import approvals
from wfcore.usecases.approvals.approvals import Decide
from wfcore.usecases.artifacts import read_artifact
from wfcore.usecases.executions import executions
from wfcore.usecases.executions.starting import redrive

REASON = Column("reason", "Why?", required=True)
RISK = Column("risk", "Risk", ColumnType.ENUM, options=("low", "high"))


def left(name: str, sha256: str = "ab") -> LeftFile:
    return LeftFile(f"art_{name}", name, f"k/{name}", 3, "text/plain", sha256, False)


async def only(world: World, run_id: str) -> Approval:
    (found,) = await approvals.approvals_of(world.services, None, run_id)
    return found


async def decide(
    world: World, who: Principal | None, id: str, decision: Approve | Reject, **more: object
) -> Approval:
    asked = Decide(id, decision, DecisionSource.API, **more)  # type: ignore[arg-type]
    return await approvals.decide_approval(world.services, who, asked)


async def asked(world: World, ann: Principal, *files: LeftFile, **step: object) -> Approval:
    """The approval after a step *draft* that left *files*."""
    flow = await world.workflow(ann, code("draft"), review(**step), code("send"))
    run_id = await world.start(ann, flow)
    lease, _ = await world.take()
    await world.finish(lease, "draft", files=files)
    return await only(world, run_id)


async def test_attached_files_are_part_of_the_question(world: World) -> None:
    """They are recorded with their content when it opens, and its hash covers them. AP-29."""
    ann = await world.account()
    one = await asked(world, ann, left("b.pdf", "b1"), left("a.pdf", "a1"), attachments=("draft",))
    files = [(file.step_name, file.name, file.sha256) for file in one.attachments]
    assert files == [("draft", "a.pdf", "a1"), ("draft", "b.pdf", "b1")]
    other = await asked(world, ann, left("c.pdf"), attachments=("draft",))
    plain = await asked(world, ann, left("d.pdf"))
    assert plain.attachments == ()
    assert len({items_hash(one), items_hash(other), items_hash(plain)}) == 3
    with pytest.raises(ItemsChanged):
        await decide(world, ann, one.id, Approve(), items_hash=items_hash(plain))


async def test_an_approver_reads_the_attached_file_and_nothing_else(world: World) -> None:
    """Who only approves may open the attachment, no other file, and not the execution. AP-29."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    cyd = await world.account("cyd@example.org")
    named = ("bob@example.org",)
    shown = left("shown.pdf")
    flow = await world.workflow(
        ann, code("secret"), code("draft"), review(attachments=("draft",), approvers=named)
    )
    run_id = await world.start(ann, flow)
    lease, _ = await world.take()
    await world.finish(lease, "secret", files=(left("secret.pdf"),))
    await world.finish(lease, "draft", files=(shown,))
    found = await read_artifact(world.services, bob, run_id, shown.id)
    assert found.sha256 == shown.sha256
    for who, id in ((bob, "art_secret.pdf"), (cyd, shown.id)):
        with pytest.raises(NotFound):
            await read_artifact(world.services, who, run_id, id)
    with pytest.raises(NotFound):
        await executions.read_execution(world.services, bob, run_id)


async def test_a_redrive_asks_with_the_files_of_the_kept_step(world: World) -> None:
    """The step's result is kept, so its files are attached, and open for the approver. AP-29."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    one = await asked(
        world, ann, left("a.pdf"), attachments=("draft",), approvers=("bob@example.org",)
    )
    await decide(world, bob, one.id, Reject())
    world.clock.advance(1_000)
    again = await redrive(world.services, ann, one.execution_id)
    await world.take()
    other = await only(world, again.execution_id)
    assert other.id != one.id
    assert [file.artifact_id for file in other.attachments] == ["art_a.pdf"]
    assert (await read_artifact(world.services, bob, one.execution_id, "art_a.pdf")).id


@pytest.mark.parametrize(
    "answers",
    [None, {}, {"reason": None}, {"reason": 1}, {"reason": "x", "risk": "none"}, {"other": "x"}],
)
async def test_wrong_answers_decide_nothing(world: World, answers: JsonObject | None) -> None:
    """Missing, of the wrong type, or to no field: refused with the name of the field. AP-30."""
    ann = await world.account()
    one = await asked(world, ann, fields=(REASON, RISK))
    with pytest.raises(InvalidInput, match=r"answers\.(reason|risk|other)"):
        await decide(world, ann, one.id, Approve(answers=answers))
    assert (await only(world, one.execution_id)) == one


async def test_answers_go_on_as_output(world: World) -> None:
    """Later steps find them in the step's output, and the history says who gave them. AP-30."""
    ann = await world.account()
    one = await asked(world, ann, fields=(REASON, RISK))
    given = {"reason": "ok", "risk": "low"}
    decided = await decide(world, ann, one.id, Approve(answers=given))
    assert (decided.status, decided.history[-1].answers) == (ApprovalStatus.APPROVED, given)
    run = await executions.read_execution(world.services, ann, one.execution_id)
    output = run.step_results["review"].output
    assert isinstance(output, dict)
    assert output["answers"] == given


async def test_other_answers_begin_the_count_anew(world: World) -> None:
    """Who counts has agreed to the answers that go on; leaving them out agrees. AP-17, AP-30."""
    people = [await world.account(f"{name}@example.org") for name in ("ann", "bob", "cyd")]
    named = tuple(who.account.email for who in people)
    one = await asked(world, people[0], fields=(REASON,), approvers=named, required_approvals=2)
    first = await decide(world, people[0], one.id, Approve(answers={"reason": "one"}))
    assert len(first.assents) == 1
    changed = await decide(world, people[1], one.id, Approve(answers={"reason": "two"}))
    assert (changed.status, [a.by for a in changed.assents]) == ("PENDING", ["bob@example.org"])
    assert items_hash(changed) != items_hash(first)
    done = await decide(world, people[2], one.id, Approve())
    assert (done.status, done.answers) == (ApprovalStatus.APPROVED, {"reason": "two"})
