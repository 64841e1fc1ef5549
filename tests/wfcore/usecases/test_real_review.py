"""What an approver is shown beside rows, and answers: attachments and fields, over both stores."""

from io import BytesIO

import pytest
from attrs import evolve

from wfcore.errors import InvalidInput, ItemsChanged, NoMoreRevisions, NotFound
from wfcore.model.access import OPERATOR, Principal, Unrestricted
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution, RefusedFile, Usage
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Column, ColumnType, Definition, OnRevise, Variable
from wfcore.ports.runtime import LeftFile
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import Approve, Choice, Reject, Revise
from wfcore.rules.execution.budget import total
from wfcore.rules.execution.scope import scope
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.approvals.reviewing import Tab, count_of, read_inbox
from wfcore.usecases.artifacts import list_artifacts, read_artifact
from wfcore.usecases.executions import executions
from wfcore.usecases.executions.redriving import redrive
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.unit_of_work import definition_of
from wfcore.usecases.workflows import workflows

from .conftest import World, code, review

REASON = Column("reason", "Why?", required=True)
RISK = Column("risk", "Risk", ColumnType.ENUM, options=("low", "high"))


def left(name: str, sha256: str = "ab") -> LeftFile:
    return LeftFile(f"art_{name}", name, f"k/{name}", 3, "text/plain", sha256, False)


async def only(world: World, run_id: str) -> Approval:
    (found,) = await approvals.approvals_of(world.services, OPERATOR, run_id)
    return found


async def definition_in(world: World, run_id: str) -> Definition:
    run = await executions.read_execution(world.services, OPERATOR, run_id)
    async with world.services.store.view() as view:
        return await definition_of(view, run.workflow_id, run.revision)


async def decide(
    world: World, who: Principal | Unrestricted, id: str, decision: Choice, **more: object
) -> Approval:
    asked = Decide(id, decision, DecisionSource.API, **more)  # type: ignore[arg-type]
    return await deciding.decide_approval(world.services, who, asked)


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


async def test_what_was_sent_back_is_among_the_decided(world: World) -> None:
    """The inbox shows what is over, however it ended, and says how many wait. AP-31."""
    ann = await world.account()
    one = await asked(world, ann, on_revise=OnRevise("draft"))
    await decide(world, ann, one.id, Revise(), comment="shorter")
    inbox = await read_inbox(world.services, ann, Tab.DECIDED, PageRequest(1, 10))
    assert [found.id for found in inbox.found.rows] == [one.id]
    assert await count_of(world.services, ann, Tab.WAITING) == 0


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


async def test_an_approver_reads_no_secret_in_a_name(world: World) -> None:
    """What a runner leaves in a name is masked as it is recorded, wherever it is told. SC-1."""
    ann = await world.account()
    steps = code("draft"), review(attachments=("draft",))
    token = Variable("token", secret=True)
    flow = await workflows.apply_workflow(
        world.services, ann.account.id, Definition("flow", steps, variables={"token": token})
    )
    started = await start_execution(world.services, ann, flow.id, {"token": "sk-live-42"})
    run_id = started.execution_id
    lease, _ = await world.take()
    files, links = (left("r-sk-live-42.txt"),), (RefusedFile("sk-live-42.lnk", "a link"),)
    await world.finish(lease, "draft", {"for": "sk-live-42"}, files=files, refused=links)
    (attached,) = (await only(world, run_id)).attachments
    (artifact,) = await list_artifacts(world.services, ann, run_id)
    run, events = await executions.read_events(world.services, ann, run_id, 0)
    (told,) = (one.data for one in events if one.kind is EventKind.ARTIFACT_CREATED)
    assert [attached.name, artifact.name, told["name"]] == ["r-***.txt"] * 3
    assert run.step_results["draft"].refused == (RefusedFile("***.lnk", "a link"),)
    assert run.step_results["draft"].output == {"for": "sk-live-42"}


async def test_a_redrive_asks_with_the_files_of_the_kept_step(world: World) -> None:
    """The step's result is kept, so its files are attached, and open for the approver. AP-29."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    stored = await world.services.files.store("exec_1", "art_1", BytesIO(b"abc"))
    file = evolve(left("a.pdf"), storage_key=stored.storage_key)
    one = await asked(world, ann, file, attachments=("draft",), approvers=("bob@example.org",))
    await decide(world, bob, one.id, Reject())
    world.clock.advance(1_000)
    again = await redrive(world.services, ann, one.execution_id)
    await world.take()
    other = await only(world, again.execution_id)
    assert other.id != one.id
    (attached,) = other.attachments
    assert (attached.name, attached.execution_id) == ("a.pdf", again.execution_id)
    assert await read_artifact(world.services, bob, again.execution_id, attached.artifact_id)


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


class Desk:
    """A flow draft → check → review (back to *draft*) → send, as far as its question."""

    def __init__(self, world: World, ann: Principal, run_id: str) -> None:
        self.world, self.ann, self.run_id = world, ann, run_id

    async def work(self, *outputs: str) -> None:
        """Take the execution, and end the steps before the question, each with one of *outputs*."""
        lease, jobs = await self.world.take()
        for step, output in zip(("draft", "check"), outputs, strict=False):
            assert [job.step_name for job in jobs] == [step]
            jobs = await self.world.finish(lease, step, output, attempt=jobs[0].attempt)

    async def asked(self) -> Approval:
        return (await approvals.approvals_of(self.world.services, OPERATOR, self.run_id))[0]

    async def revise(self, comment: str = "shorter") -> Approval:
        one = await self.asked()
        return await decide(self.world, self.ann, one.id, Revise(), comment=comment)

    async def run(self) -> Execution:
        return await executions.read_execution(self.world.services, OPERATOR, self.run_id)


async def desk(world: World, most: int = 3) -> Desk:
    ann = await world.account()
    asks = review(on_revise=OnRevise("draft", most))
    flow = await world.workflow(ann, code("draft"), code("check"), asks, code("send"))
    return Desk(world, ann, await world.start(ann, flow))


async def test_asking_for_changes_runs_the_steps_again(world: World) -> None:
    """The execution goes back, results are put aside, and a new approval asks. AP-31."""
    at = await desk(world)
    await at.work("a1", "b1")
    first = await at.revise()
    assert (first.status, first.history[-1].comment) == (ApprovalStatus.REVISED, "shorter")
    run = await at.run()
    assert (run.status, dict(run.step_results)) == ("RUNNING", {})
    aside = {key: one.output for key, one in run.put_aside.items()}
    assert (aside["1/draft"], aside["1/check"]) == ("a1", "b1")
    assert aside["1/review"]["decision"] == "revise"  # type: ignore[index, call-overload]
    await at.work("a2", "b2")
    second = await at.asked()
    assert (second.id != first.id, second.round, second.revisions_left) == (True, 2, 2)
    done = await decide(world, at.ann, second.id, Approve())
    run = await at.run()
    assert (done.status, run.step_results["draft"].output) == (ApprovalStatus.APPROVED, "a2")
    assert [run.step_results[name].attempts for name in ("draft", "check")] == [2, 2]
    assert run.step_results["draft"].tries == 1


async def test_the_comment_is_there_for_the_steps_that_run_again(world: World) -> None:
    """In the first round it is null, in the next what the reviewer wrote; in templates. AP-32."""
    at = await desk(world)
    definition = await definition_in(world, at.run_id)
    seen = [scope(definition, await at.run())["steps"]["review"]["output"]["comment"]]  # type: ignore[index, call-overload]
    await at.work("a1", "b1")
    await at.revise("shorter, please")
    seen.append(scope(definition, await at.run())["steps"]["review"]["output"]["comment"])  # type: ignore[index, call-overload]
    assert seen == [None, "shorter, please"]


async def test_the_loop_back_is_bounded(world: World) -> None:
    """After `max` revisions only yes and no are left; nothing has changed. AP-31."""
    at = await desk(world, most=2)
    for number in range(2):
        await at.work(f"a{number}", f"b{number}")
        await at.revise()
    await at.work("a", "b")
    last = await at.asked()
    assert (last.round, last.revisions_left) == (3, 0)
    with pytest.raises(NoMoreRevisions):
        await at.revise()
    assert await at.asked() == last
    await decide(world, at.ann, last.id, Reject())
    assert (await at.run()).status == "CANCELLED"


@pytest.mark.parametrize("comment", [None, "", "  "])
async def test_changes_are_asked_for_with_words(world: World, comment: str | None) -> None:
    """Without a comment, or where the step names no way back, it is refused by name. AP-31."""
    at = await desk(world)
    await at.work("a", "b")
    with pytest.raises(InvalidInput, match="comment"):
        await decide(world, at.ann, (await at.asked()).id, Revise(), comment=comment)
    plain = await asked(world, at.ann)
    with pytest.raises(InvalidInput, match="onRevise"):
        await decide(world, at.ann, plain.id, Revise(), comment="why")


async def test_late_news_of_an_earlier_round_changes_nothing(world: World) -> None:
    """An attempt has a number of its own over all rounds, so an old end is known as old. EX-23."""
    at = await desk(world)
    await at.work("a1", "b1")
    await at.revise()
    lease, jobs = await world.take()
    assert [(job.step_name, job.attempt) for job in jobs] == [("draft", 2)]
    await world.finish(lease, "draft", "late", attempt=1)
    assert (await at.run()).step_results["draft"].status == "RUNNING"


async def test_files_of_an_earlier_round_are_not_attached(world: World) -> None:
    """Each round asks about its own files. AP-29, AP-31."""
    ann = await world.account()
    asks = review(on_revise=OnRevise("draft"), attachments=("draft",))
    run_id = await world.start(ann, await world.workflow(ann, code("draft"), asks))
    for number in (1, 2):
        lease, _ = await world.take()
        await world.finish(lease, "draft", files=(left(f"{number}.pdf"),))
        one = (await approvals.approvals_of(world.services, OPERATOR, run_id))[0]
        assert [file.name for file in one.attachments] == [f"{number}.pdf"]
        if number == 1:
            await decide(world, ann, one.id, Revise(), comment="again")


async def test_what_was_put_aside_is_stored_and_counted(world: World) -> None:
    """It is read as it was, its usage counts, and a redrive takes it along. AP-31, BU-1."""
    at = await desk(world)
    lease, _ = await world.take()
    await world.finish(lease, "draft", {"text": "a1"}, usage=Usage(3, 4, "0.1"))
    await world.finish(lease, "check", "b1")
    await at.revise()
    await at.work("a2", "b2")
    run = await at.run()
    assert total(run.every_result) == Usage(3, 4, "0.1")
    assert run.put_aside["1/draft"].output == {"text": "a1"}
    await decide(world, at.ann, (await at.asked()).id, Reject())
    again = await redrive(world.services, at.ann, at.run_id)
    kept = await executions.read_execution(world.services, OPERATOR, again.execution_id)
    assert kept.put_aside == run.put_aside
